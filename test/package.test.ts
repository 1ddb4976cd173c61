import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import type { DemoResult } from "../scripts/demo/run.ts";
import { TRACE } from "./cli/cli.ts";
import { Npm } from "./npm.ts";
import { installNode, installPackage, QUIETLY } from "./package-life.ts";

const { hardhat: HARDHAT, "@openzeppelin/contracts": OPENZEPPELIN } = packageJson.peerDependencies;
const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** The first TypeScript block of README.md: what a newcomer copies. It is plain JavaScript too. */
function readmeExample(): string {
  const [, code] = /```ts\n([\s\S]*?)```/.exec(readFileSync(`${ROOT}README.md`, "utf8")) ?? [];
  if (code === undefined) throw new Error("README.md shows no TypeScript");
  return code;
}

const TSC = `${ROOT}node_modules/typescript/bin/tsc`;

/** A whole server by the package's types, in a project that checks the types of libraries too. */
const SERVER = `
import { openEngine } from "mintmark";
import { buildServer } from "mintmark/server";
const settlement = { chainId: 1n, contract: "0x${"5e".repeat(20)}", engineVersion: 5 } as const;
const engine = await openEngine({ store: "store", settlement, environment: "sandbox" });
export const app = await buildServer({ engine });
`;

/** The client's types promise this: each line below a ts-expect-error must not compile. */
const CLIENT_TYPES = `
import { createClient, mint, type Vault } from "mintmark/client";

const client = createClient({ baseUrl: "http://127.0.0.1:3000", apiKey: "mm_test_" });
const { data, error } = await client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId: "1" } } });
export const vault: Vault | undefined = data;
export const missing: boolean = error?.code === "vault_not_found";
// @ts-expect-error no such code on this route
export const never: boolean = error?.code === "token_already_minted";
// @ts-expect-error no such route
await client.GET("/api/v1/vault");
// @ts-expect-error no such mode
await mint(client, { users: [{ userId: "", mints: [{ mintingBlob: "", assetId: "", amount: 1, dataAvailabilityMode: "zk" }] }] });
`;

/**
 * An integrator's two halves in one process: the packed server, and the packed client that mints
 * through it. Plain JavaScript and TypeScript.
 */
const CLIENT_EXAMPLE = `
import { openEngine } from "mintmark";
import { ApiError, createClient, mint } from "mintmark/client";
import { buildServer } from "mintmark/server";

const contract = "0x8464135c8f25da09e49bc8782676a84730c318bc";
const settlement = { chainId: 31337n, contract, engineVersion: 5 };
const engine = await openEngine({ store: "./client-data", createIfMissing: true, environment: "sandbox", settlement });
const { applicationId } = await engine.applications.create({ name: "Game" });
const { secret } = await engine.keys.issue(applicationId);
const { userId } = await engine.users.create(applicationId, { ownerAddress: contract });
const ready = async (standard, contractAddress) => {
  const { assetId } = await engine.assets.add({ standard, contractAddress, name: "Token", symbol: "TKN" });
  await engine.assets.whitelist(assetId);
  await engine.operator.recordRegistered(assetId);
  await engine.assets.enable(applicationId, assetId);
  return assetId;
};
const points = await ready("erc20", "0xbcf26943c0197d2ee0e5d05c716be60cc2761508");
const swords = await ready("erc721", "0xbcf26943c0197d2ee0e5d05c716be60cc2761509");
const app = await buildServer({ engine });
const client = createClient({ baseUrl: await app.listen({ host: "127.0.0.1", port: 0 }), apiKey: secret });

const point = { mintingBlob: "", assetId: points, amount: "9007199254740993", dataAvailabilityMode: "validium" };
const sword = { mintingBlob: "0x31", assetId: swords, amount: 1, dataAvailabilityMode: "zk-rollup" };
const { vaults } = await mint(client, { users: [{ userId, mints: [point] }] });
const error = await mint(client, { users: [{ userId, mints: [sword, sword] }] }).catch((thrown) => thrown);
console.log(JSON.stringify({ amount: vaults[0].amount, refusal: error instanceof ApiError && error.code }));
await app.close();
await engine.close();
`;

describe("the package, installed in a foreign project", () => {
  let project: string;

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "mintmark-package-"));
    installPackage(project);
  });

  afterAll(() => rmSync(project, { recursive: true, force: true }));

  /** A folder of a user's own project, in which the package is installed. */
  const folderOf = (name: string): string => {
    const folder = mkdtempSync(join(project, `${name}-`));
    symlinkSync(join(project, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    return folder;
  };

  test("README's code runs as pasted, in JavaScript and by `tsc --init`, on Node 22, and twice", () => {
    const node = join(installNode(project, 22), "node");
    const [javascript, typescript] = [folderOf("javascript"), folderOf("typescript")];
    writeFileSync(join(javascript, "app.js"), readmeExample());
    writeFileSync(join(typescript, "app.ts"), readmeExample());
    execFileSync(process.execPath, [TSC, "--init"], { cwd: typescript });
    execFileSync(process.execPath, [TSC], { cwd: typescript, stdio: "pipe" });
    for (const cwd of [javascript, typescript]) {
      const printed = [0, 1].map(() => execFileSync(node, ["app.js"], { cwd, encoding: "utf8" }));
      for (const [run, line] of printed.entries())
        expect(line).toMatch(
          new RegExp(`^vault \\d+ of zk-rollup-${run} has root 0x[0-9a-f]{64}\\n$`),
        );
    }
  });

  test("scanners see its libraries, and its manifest can be imported", () => {
    const options = { cwd: project, encoding: "utf8" } as const;
    const listed = execFileSync("npm", ["ls", "--json"], options);
    const { dependencies } = JSON.parse(listed) as { dependencies: { mintmark: object } };
    expect(Object.keys(dependencies)).toEqual(["mintmark"]);
    const seen = execFileSync("npm", ["ls", "fastify", "zod", "pg", "jose", "viem"], options);
    for (const library of ["fastify", "zod", "pg", "jose", "viem"])
      expect(seen).toContain(` ${library}@`);
    const { dependencies: own } = createRequire(join(project, "app.js"))(
      "mintmark/package.json",
    ) as { dependencies: Record<string, string> };
    expect(Object.values(own).filter((range) => !range.startsWith("^"))).toEqual([]);
    expect(existsSync(join(project, "node_modules/mintmark/libraries"))).toBe(false);
  });

  test("takes less than 145 MB, and a check of one proof brings no pairings to a page", async () => {
    const [size] = execFileSync("du", ["-sm", "node_modules"], {
      cwd: project,
      encoding: "utf8",
    }).split("\t");
    expect(Number(size)).toBeLessThan(145);
    const bundled = async (check: string) => {
      const contents = `import { ${check} } from "mintmark/verifier"; console.log(${check});`;
      const { metafile } = await build({
        stdin: { contents, resolveDir: project },
        bundle: true,
        metafile: true,
        write: false,
        format: "esm",
        absWorkingDir: project,
      });
      const [output] = Object.values(metafile.outputs);
      return Object.entries(output?.inputs ?? {})
        .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
        .map(([input]) => input);
    };
    const isPairing = (input: string) => /bls|curves/.test(input);
    expect((await bundled("verifyTreeProof")).filter(isPairing)).toEqual([]);
    expect((await bundled("verifyVaultProof")).some(isPairing)).toBe(true);
  });

  test("its client mints over HTTP at its server", () => {
    writeFileSync(join(project, "client.mjs"), CLIENT_EXAMPLE);
    const output = execFileSync(process.execPath, ["client.mjs"], {
      cwd: project,
      encoding: "utf8",
    });
    expect(JSON.parse(output)).toEqual({ amount: "9007199254740993", refusal: "duplicate_mint" });
  });

  test("the help of each of its commands loads commander alone", () => {
    const bin = join(project, "node_modules/mintmark/scripts/mintmark.js");
    for (const words of [["server"], ["assets", "add"], ["exit"]]) {
      const shown = spawnSync(process.execPath, ["--import", TRACE, bin, ...words, "--help"], {
        encoding: "utf8",
      });
      expect(shown.stdout).toContain(`Usage: mintmark ${words.join(" ")} [options]`);
      const loaded = [
        ...shown.stderr.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/g),
      ];
      expect(new Set(loaded.map(([, library]) => library))).toEqual(
        new Set(["commander", "mintmark"]),
      );
    }
  });

  test("its command line creates a store, and lists only what works there", () => {
    const mintmark = (...args: string[]) =>
      spawnSync(join(project, "node_modules/.bin/mintmark"), args, {
        cwd: project,
        encoding: "utf8",
        env: {
          ...process.env,
          MINTMARK_ENVIRONMENT: "sandbox",
          MINTMARK_CHAIN_ID: "31337",
          MINTMARK_CONTRACT: "0x8464135c8f25da09e49bc8782676a84730c318bc",
        },
      });
    expect(mintmark("init", "--store", "cli-data").status).toBe(0);
    const { stdout } = mintmark("applications", "create", "Game", "--store", "cli-data", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ name: "Game", suspended: false });
    const commands = mintmark("--help").stdout;
    expect(commands).toMatch(/^ +sandbox /m);
    expect(commands).not.toMatch(/^ +cluster /m);
    const sandbox = mintmark("sandbox");
    expect([sandbox.status, sandbox.stderr.trim().split("\n").at(-1)]).toEqual([
      2,
      expect.stringMatching(/^error: .*`npm install hardhat@\S+` adds it/),
    ]);
  });

  test("`npx mintmark sandbox` and `npx mintmark demo` work once Hardhat is added as the error says", async () => {
    execFileSync("npm", ["install", ...QUIETLY, `hardhat@${HARDHAT}`], {
      cwd: project,
      stdio: "ignore",
    });
    const ports = { MINTMARK_PORT: "0", MINTMARK_CHAIN_PORT: "0" };
    await using sandbox = new Npm(["exec", "--", "mintmark", "sandbox"], ports, "", project);
    await sandbox.says(/Ctrl-C stops everything/);
    await using demo = new Npm(["exec", "--", "mintmark", "demo", "--json"], {}, "", project);
    const { checks } = (await demo.json()) as DemoResult;
    expect(checks.length).toBeGreaterThanOrEqual(7);
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    await sandbox.interrupt();
  });

  test("every subpath loads, and nothing else can be reached", () => {
    const { exports } = JSON.parse(
      readFileSync(join(project, "node_modules/mintmark/package.json"), "utf8"),
    ) as {
      exports: Record<string, unknown>;
    };
    const modules = Object.keys(exports).filter((path) => !/[*]|json$/.test(path));
    const paths = modules.map((path) => path.replace(".", "mintmark"));
    expect(paths.length).toBeGreaterThan(4);
    const load = paths.map(
      (path) =>
        `if (Object.keys(await import("${path}")).length === 0) throw new Error("${path}");`,
    );
    writeFileSync(join(project, "load.mjs"), load.join("\n"));
    execFileSync(process.execPath, ["load.mjs"], { cwd: project });
    writeFileSync(join(project, "deep.mjs"), 'await import("mintmark/core/engine.js");');
    expect(() =>
      execFileSync(process.execPath, ["deep.mjs"], { cwd: project, stdio: "pipe" }),
    ).toThrow(/ERR_PACKAGE_PATH_NOT_EXPORTED/);
  });

  test("its server brings the explorer and the reference to browsers", () => {
    const serve = `
      import { openEngine } from "mintmark";
      import { buildServer } from "mintmark/server";
      const settlement = { chainId: 1n, contract: "0x${"5e".repeat(20)}", engineVersion: 5 };
      const engine = await openEngine({ store: "store", settlement, environment: "sandbox", createIfMissing: true });
      const app = await buildServer({ engine });
      for (const url of ["/explorer", "/explorer/explorer.js", "/explorer/withdraw.js", "/exit", "/docs", "/docs/reference.js", "/guide/", "/guide/collection"]) {
        const { statusCode } = await app.inject({ url });
        console.log(statusCode, url);
      }
      await app.close();
      await engine.close();`;
    writeFileSync(join(project, "serve.mjs"), serve);
    const output = execFileSync(process.execPath, ["serve.mjs"], {
      cwd: project,
      encoding: "utf8",
    });
    expect(output.match(/^200 /gm), output).toHaveLength(8);
  });

  test("holds its licence, and every page that its README links to", () => {
    const root = join(project, "node_modules/mintmark");
    expect(readFileSync(join(root, "LICENSE"), "utf8")).toContain("MIT License");
    const links = [
      ...readFileSync(join(root, "README.md"), "utf8").matchAll(/\]\((docs\/[^)#]+)/g),
    ];
    expect(links.length).toBeGreaterThan(10);
    expect(
      links.map(([, path = ""]) => path).filter((path) => !existsSync(join(root, path))),
    ).toEqual([]);
  });

  test("its contracts compile in a project that imports them", () => {
    const source = `pragma solidity 0.8.37;
      import {MintingBlobScheme} from "mintmark/contracts/interfaces/Model.sol";
      import {MintableERC721} from "mintmark/contracts/tokens/MintableERC721.sol";
      contract Shields is MintableERC721 {
        constructor(address admin, address minter)
          MintableERC721("Shields", "SHLD", "", MintingBlobScheme.Mintmark, Royalty(address(0), 0), admin, minter, address(0), false) {}
      }`;
    const solc = createRequire(import.meta.url)("solc") as {
      compile(input: string, callbacks: { import(path: string): { contents: string } }): string;
    };
    const settings = {
      evmVersion: "osaka",
      outputSelection: { "*": { "*": ["evm.bytecode.object"] } },
    };
    const input = JSON.stringify({
      language: "Solidity",
      sources: { "Shields.sol": { content: source } },
      settings,
    });
    // The tokens are OpenZeppelin's, which a project of contracts installs itself.
    execFileSync("npm", ["install", ...QUIETLY, `@openzeppelin/contracts@${OPENZEPPELIN}`], {
      cwd: project,
      stdio: "ignore",
    });
    const imports = {
      import: (path: string) => ({
        contents: readFileSync(join(project, "node_modules", path), "utf8"),
      }),
    };
    const { errors = [], contracts } = JSON.parse(solc.compile(input, imports)) as {
      errors?: readonly { severity: string; formattedMessage: string }[];
      contracts: Record<string, Record<string, { evm: { bytecode: { object: string } } }>>;
    };
    expect(errors.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(contracts["Shields.sol"]?.Shields?.evm.bytecode.object.length).toBeGreaterThan(1_000);
  });

  // The whole life on the oldest one is a heavy test.
  test.each([22, 26])("on Node %i it mints over HTTP at its server", (version) => {
    const folder = mkdtempSync(join(project, "client-"));
    symlinkSync(join(project, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "client.mjs"), CLIENT_EXAMPLE);
    const node = join(installNode(folder, version), "node");
    const output = execFileSync(node, ["client.mjs"], { cwd: folder, encoding: "utf8" });
    expect(JSON.parse(output)).toEqual({ amount: "9007199254740993", refusal: "duplicate_mint" });
  });

  test("its types hold in strict mode, those of its server with the libraries' own", () => {
    const { "@types/node": types } = packageJson.devDependencies;
    execFileSync("npm", ["install", ...QUIETLY, `@types/node@${types}`], {
      cwd: project,
      stdio: "ignore",
    });
    const compilerOptions = {
      strict: true,
      module: "nodenext",
      target: "es2024",
      lib: ["es2024", "esnext.disposable", "dom"],
      noEmit: true,
      skipLibCheck: false,
      types: ["node"],
    };
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["server.ts", "client.ts"] }),
    );
    writeFileSync(join(project, "server.ts"), SERVER);
    writeFileSync(join(project, "client.ts"), CLIENT_TYPES);
    execFileSync(process.execPath, [TSC, "-p", project], { stdio: "pipe" });
  });
});
