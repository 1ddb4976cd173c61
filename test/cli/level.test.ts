import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const OPENS = `
const { openLevel } = await import(${JSON.stringify(fileURLToPath(new URL("../../scripts/cli/l1.ts", import.meta.url)))});
const store = await openLevel(process.argv[1]);
await store.put(Buffer.of(1), Buffer.of(1));
console.log("open");
setInterval(() => {}, 1_000);
`;

test("a member's process ends when another one could open its store", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-level-"));
  const child = spawn(process.execPath, ["--input-type=module", "-e", OPENS, folder]);
  try {
    const said = text(child.stderr);
    await once(child.stdout, "data");
    expect(await readdir(folder)).toContain("LOCK");
    await rm(join(folder, "LOCK"));
    const [code] = await once(child, "exit");
    expect([code, await said]).toEqual([3, expect.stringContaining(`LOCK in ${folder}`)]);
  } finally {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true });
  }
});
