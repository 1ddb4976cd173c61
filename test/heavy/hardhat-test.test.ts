import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const hardhatTest = (file: string) =>
  spawnSync("npx", ["hardhat", "test", file], {
    cwd: fileURLToPath(new URL("../../", import.meta.url)),
    encoding: "utf8",
  });

test("`npx hardhat test` runs the contracts' tests, and fails where it runs none", () => {
  const { status, stdout } = hardhatTest("test/contracts/code-size.test.ts");
  expect(status).toBe(0);
  expect(stdout).toMatch(/\b[1-9]\d* passed, 0 failed/);
  expect(hardhatTest("test/contracts/none.test.ts").status).toBe(1);
});
