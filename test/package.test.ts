import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** The first TypeScript block of README.md: what a newcomer copies. It is plain JavaScript too. */
function readmeExample(): string {
  const [, code] = /```ts\n([\s\S]*?)```/.exec(readFileSync(`${ROOT}README.md`, "utf8")) ?? [];
  if (code === undefined) throw new Error("README.md shows no TypeScript");
  return code;
}

describe("the package, installed in a foreign project", () => {
  let project: string;

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "mintmark-package-"));
    const tarball = execFileSync(process.execPath, ["scripts/package.ts"], { cwd: ROOT, encoding: "utf8" }).trim();
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "foreign", private: true, type: "module" }));
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", tarball], {
      cwd: project,
      stdio: "ignore",
    });
  }, 180_000);

  afterAll(() => rmSync(project, { recursive: true, force: true }));

  test("README's example mints and proves", () => {
    writeFileSync(join(project, "example.mjs"), readmeExample());
    const output = execFileSync(process.execPath, ["example.mjs"], { cwd: project, encoding: "utf8" });
    expect(output).toMatch(/vault 9223372036854775808 of zk-rollup-0 has root 0x[0-9a-f]{64}/);
  });

  test("every subpath loads, and nothing else can be reached", () => {
    const { exports } = JSON.parse(readFileSync(join(project, "node_modules/mintmark/package.json"), "utf8")) as {
      exports: Record<string, unknown>;
    };
    const paths = Object.keys(exports).map((path) => path.replace(".", "mintmark"));
    expect(paths.length).toBeGreaterThan(4);
    const load = paths.map(
      (path) => `if (Object.keys(await import("${path}")).length === 0) throw new Error("${path}");`,
    );
    writeFileSync(join(project, "load.mjs"), load.join("\n"));
    execFileSync(process.execPath, ["load.mjs"], { cwd: project });
    writeFileSync(join(project, "deep.mjs"), 'await import("mintmark/core/engine.js");');
    expect(() => execFileSync(process.execPath, ["deep.mjs"], { cwd: project, stdio: "pipe" })).toThrow(
      /ERR_PACKAGE_PATH_NOT_EXPORTED/,
    );
  });

  test("its types hold in strict mode", () => {
    const options = {
      strict: true,
      module: "nodenext",
      target: "es2024",
      lib: ["es2024", "esnext.disposable"],
      noEmit: true,
      skipLibCheck: true,
      types: [],
    };
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["example.ts"] }));
    writeFileSync(
      join(project, "example.ts"),
      `declare const console: { log(line: string): void };\n${readmeExample()}`,
    );
    execFileSync(process.execPath, [`${ROOT}node_modules/typescript/bin/tsc`, "-p", project], { stdio: "pipe" });
  });
});
