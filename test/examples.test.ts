import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../scripts/demo/until.ts";
import { USERS } from "../scripts/sandbox/accounts.ts";
import { type Sandbox, startSandbox } from "../scripts/sandbox/sandbox.ts";
import { mintmark } from "./cli/cli.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const [, , CAROL] = USERS;
/** Columns of the collection's file. */
const HEADER = "tokenId,ownerAddress,name,image";

describe("the examples, run as their reader runs them", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "mintmark-examples-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Standard output of an example that succeeds. */
  async function output(name: string, args: readonly string[] = [], env: Record<string, string> = {}) {
    const file = join(ROOT, "examples", name);
    const options = { cwd: folder, env: { PATH: process.env.PATH, ...env } };
    return (await promisify(execFile)(process.execPath, [file, ...args], options)).stdout;
  }

  test("embed.ts is the README's code, and proves its vault", async () => {
    expect(read("README.md")).toContain(read("examples/embed.ts").replace(/^\/\*\*[\s\S]*?\*\/\n/, "```ts\n"));
    expect(await output("embed.ts")).toMatch(/^vault 9223372036854775808 of zk-rollup-0 has root 0x[0-9a-f]{64}\n$/);
  });

  test("loyalty.ts counts each order once", async () => {
    expect(await output("loyalty.ts")).toBe(
      "order-1: earned 250\norder-2: earned 100\norder-2: counted before\n" +
        "the customer has 350 points and can withdraw 350\n",
    );
  });

  test("tickets.ts sells no seat twice and no place beyond the cap", async () => {
    expect(await output("tickets.ts")).toBe(
      "seat 1412 to alice: sold\nseat 1412 to bob: refused: token_already_minted\n" +
        "2 standing places to bob: sold\n2 more to alice: refused: supply_cap_exceeded\n1 more to alice: sold\n",
    );
  });

  test("receipt.ts takes the true receipt and no other", async () => {
    const lines = (await output("receipt.ts")).split("\n");
    expect(lines).toEqual([
      "the operator signed for 5 of vault 9223372036854775808:",
      "  receipt as it was given: true",
      "  with another amount:     false",
      "",
    ]);
  });

  describe("against the sandbox", () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await startSandbox({ folder: join(folder, "sandbox"), port: 0, chainPort: 0 });
    });
    afterAll(() => sandbox.stop());

    const sword = () => sandbox.description.assets.find(({ standard }) => standard === "erc721")?.assetId ?? "";
    const owner = (index: number) => toHex(0x1000 + index, { size: 20 });

    async function swords(): Promise<number> {
      let count = 0;
      const { applicationId } = sandbox.description;
      for await (const { assetId } of sandbox.engine.vaults.list(applicationId)) if (assetId === sword()) count++;
      return count;
    }

    test("`mintmark drop` mints the guide's 10,000 pieces, and no more when it is repeated", async () => {
      // Carol's piece is the first, so that it is in the first batch on L1.
      const pieces = Array.from(
        { length: 10_000 },
        (_, id) =>
          `${id},${id === 0 ? CAROL.owner.address : owner(id % 499)},Piece ${id},https://art.example/${id}.png`,
      );
      const file = join(folder, "pieces.csv");
      writeFileSync(file, [HEADER, ...pieces].join("\n"));
      const { api, apiKey } = sandbox.description;
      const command = ["drop", file, "--asset", sword(), "--mode", "zk-rollup"];
      expect(read("docs/guides/collection.md")).toContain("drop pieces.csv --asset $ASSET --mode zk-rollup\n");
      for (const _ of ["at first", "again"]) {
        const { code, stdout } = await mintmark(command, { MINTMARK_URL: api, MINTMARK_API_KEY: apiKey });
        expect([code, stdout]).toEqual([
          0,
          expect.stringMatching(/^rows +10000\nminted +10000\nmintable +0\nrefused +0\n/),
        ]);
        expect(await swords()).toBe(10_000);
      }
      const guide = read("docs/guides/collection.md");
      expect(guide).toContain(`(echo ${HEADER};`);
      const shown = await fetch(`${api}/public/v1/metadata/${sword()}/7`);
      expect(guide).toContain(`\n${await shown.text()}\n`);
      // The sandbox takes such a file over HTTP too.
      const headers = { "x-api-key": apiKey, "content-type": "text/csv" };
      const url = `${api}/api/v1/drops?assetId=${sword()}&dataAvailabilityMode=zk-rollup&dryRun=true`;
      const sent = await fetch(url, {
        method: "POST",
        headers,
        body: [HEADER, ...pieces.slice(0, 50)].join("\n"),
      });
      expect(await sent.json()).toMatchObject({ rows: 50, dryRun: true });
    });

    test("exit.ts brings an owner's piece to L1 without the server", async () => {
      const { rpcUrl, contract, applicationId } = sandbox.description;
      const carols = async () => (await sandbox.engine.vaults.list(applicationId, { userId: CAROL.userId })).data[0];
      const vault = await until("carol's batch on L1", carols, (found) => found?.status === "finalized");
      const env = {
        MINTMARK_RPC_URL: rpcUrl,
        MINTMARK_CONTRACT: contract,
        OWNER_KEY: toHex(CAROL.owner.getHdKey().privateKey ?? new Uint8Array()),
      };
      const told = await output("exit.ts", [`${vault?.vaultId}`], env);
      expect(told).toMatch(
        /^the kit of vault \d+ is in exit-kit\.json\n1 of token 0 is on L1 for \d+ gas; the owner holds 1\n$/,
      );
    });
  });

  test("every example is run here", () => {
    const tests = read("test/examples.test.ts");
    const names = readdirSync(join(ROOT, "examples")).filter((name) => name.endsWith(".ts") && name !== "shop.ts");
    expect(names.filter((name) => !tests.includes(`output("${name}"`))).toEqual([]);
  });
});
