import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const CLIENT = "server/client";
const IMPORT = /(?:from|import)\s*\(?\s*["']([^"']+)["']/g;

/** Every import in the TypeScript files of a folder, as `file → target`; relative targets as paths from the root. */
function importsOf(folder: string): { readonly file: string; readonly target: string }[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.[cm]?tsx?$/.test(name))
    .flatMap((name) => {
      const file = join(folder, name);
      return [...readFileSync(join(ROOT, file), "utf8").matchAll(IMPORT)].map(([, specifier = ""]) => ({
        file,
        target: specifier.startsWith(".") ? relative(ROOT, join(ROOT, dirname(file), specifier)) : specifier,
      }));
    });
}

/** The files that are subpaths of the package, as scripts/package.ts declares them. */
function declaredSubpaths(): readonly string[] {
  const source = readFileSync(join(ROOT, "scripts/package.ts"), "utf8");
  return [...source.matchAll(/: "(core\/[^"]+)"/g)].map(([, path]) => `${path}.ts`);
}

describe("import edges", () => {
  it("of the core lead neither to the server, the scripts nor the tests, and to no server framework or toolchain", () => {
    const forbidden =
      /^(?:server|scripts|test|contracts|artifacts)\/|^(?:hardhat|@nomicfoundation\/|fastify|@fastify\/|zod|vitest)/;
    const found = importsOf("core");
    expect(found.length).toBeGreaterThan(100);
    expect(found.filter(({ target }) => forbidden.test(target))).toEqual([]);
  });

  it("of the protocol lead to no engine: verifiers use it alone", () => {
    const found = importsOf("core/protocol").filter(({ target }) => target.startsWith("core/"));
    expect(found.length).toBeGreaterThan(0);
    const allowed = /^core\/(?:protocol|keccak)\/|^core\/(?:errors|model|ports)\.ts$/;
    expect(found.filter(({ target }) => !allowed.test(target))).toEqual([]);
  });

  it("of the server lead into the core by its public surface only", () => {
    const found = importsOf("server").filter(
      ({ file, target }) => target.startsWith("core/") && !file.startsWith(CLIENT),
    );
    expect(found.length).toBeGreaterThan(0);
    const allowed = new Set(["core/index.ts", "core/protocol/verifier.ts", ...declaredSubpaths()]);
    expect(found.filter(({ target }) => !allowed.has(target))).toEqual([]);
  });

  it("of the client lead to nothing that a browser lacks, nor to the engine", () => {
    const outside = importsOf(CLIENT).filter(({ target }) => !target.startsWith(`${CLIENT}/`));
    expect(new Set(outside.map(({ target }) => target))).toEqual(new Set(["core/backoff.ts", "openapi-fetch"]));
    expect(importsOf("core").filter(({ file }) => file === "core/backoff.ts")).toEqual([]);
  });

  it("of the contracts, their tests aside, lead to contracts and OpenZeppelin only", () => {
    const sources = readdirSync(join(ROOT, "contracts"), { recursive: true, encoding: "utf8" }).filter(
      (name) => name.endsWith(".sol") && !name.startsWith("test/"),
    );
    expect(sources.length).toBeGreaterThan(0);
    const targets = sources.flatMap((name) =>
      [...readFileSync(join(ROOT, "contracts", name), "utf8").matchAll(/^import[^"']*["']([^"']+)["']/gm)].map(
        ([, target = ""]) => target,
      ),
    );
    expect(
      targets.filter((target) => !target.startsWith(".") && !target.startsWith("@openzeppelin/contracts/")),
    ).toEqual([]);
  });
});
