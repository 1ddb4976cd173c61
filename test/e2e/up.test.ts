import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { createTestClient, createWalletClient, http, keccak256, parseAbi, publicActions } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, describe, expect, test } from "vitest";
import { withdrawalTypedData } from "../../core/protocol/typed-data.ts";
import { readRecord } from "../../scripts/deploy/record.ts";
import { settingsIn } from "../../scripts/doctor/doctor.ts";
import { freePort } from "../../scripts/sandbox/port.ts";
import { answer, createClient } from "../../server/client/index.ts";
import { type Anvil, startAnvil } from "../anvil.ts";
import { eventually } from "../eventually.ts";
import { Npm } from "../npm.ts";
import { at } from "../settlement/fixture.ts";

// A public chain, as far as a machine without a network has one: another chain id, blocks by time, late finality.

const SEPOLIA = 11_155_111;
const BASE = 8_453;
const ETHER = 10n ** 18n;
const TOKEN = { standard: "erc721", name: "Swords", symbol: "SWRD" };
/** Nobody listens there. */
const AWAY = "http://127.0.0.1:1";

const stack: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of stack.splice(0).reverse()) await end();
});

async function chainOf(chainId: number): Promise<Anvil & { readonly client: ReturnType<typeof clientOf> }> {
  const anvil = await startAnvil(["--chain-id", `${chainId}`, "--block-time", "1", "--slots-in-an-epoch", "1"]);
  stack.push(() => anvil.close());
  return { ...anvil, client: clientOf(anvil.url) };
}

function clientOf(url: string) {
  return createTestClient({ mode: "anvil", transport: http(url) }).extend(publicActions);
}

async function folderOf(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-up-"));
  stack.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function mintmark(...args: string[]): Npm {
  const run = new Npm(["run", "--silent", "mintmark", "--", ...args]);
  stack.push(() => run[Symbol.asyncDispose]());
  return run;
}

async function answersIn(folder: string, answers: object): Promise<string> {
  const file = join(folder, "answers.json");
  await writeFile(file, JSON.stringify(answers));
  return file;
}

/** Gives every account that the command names the money that it asks for. */
async function fund(said: string, client: ReturnType<typeof clientOf>): Promise<void> {
  for (const [, address] of said.matchAll(/^ {2}[\w-]+ +(0x[0-9a-f]{40}) /gm)) {
    await client.setBalance({ address: address as `0x${string}`, value: 5n * ETHER });
  }
}

/** Runs it until it asks for money, gives the money, and stops it there. */
async function funded(args: readonly string[], client: ReturnType<typeof clientOf>): Promise<void> {
  const asking = mintmark(...args);
  await asking.says(/waiting for money/);
  await fund(asking.said, client);
  await asking[Symbol.asyncDispose]();
}

/** Sourcify's interface, version 2, that keeps what it is given. */
async function sourcify(): Promise<{
  url: string;
  given: Map<string, { stdJsonInput: object; contractIdentifier: string }>;
}> {
  const given = new Map<string, { stdJsonInput: object; contractIdentifier: string }>();
  const server = createServer(async (request, response) => {
    const [, , kind, , address = ""] = (request.url ?? "").split("/");
    const reply = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.method === "POST") {
      given.set(address, (await json(request)) as never);
      return reply(202, { verificationId: address });
    }
    if (kind === "contract") return reply(404, { match: null });
    return reply(200, { isJobCompleted: true, contract: { match: "exact_match" } });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  stack.push(() => new Promise((done) => server.close(done)));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, given };
}

describe("mintmark up on a public network", () => {
  test("brings a deployment to life without money at first; a token is minted, final and withdrawn", async () => {
    const { url, client } = await chainOf(SEPOLIA);
    const folder = await folderOf();
    const port = await freePort(0);
    const answers = await answersIn(folder, { members: 2, tokens: [TOKEN], maturitySeconds: 1, port });
    const args = ["up", "--network", "sepolia", "--rpc", url, "--folder", folder, "--answers", answers];
    const more = ["--poll-ms", "200", "--sourcify", AWAY, "--yes"];
    await funded([...args, ...more], client);
    const running = mintmark(...args, ...more, "--start", "--json");
    await running.says(/all processes are ready/);
    expect(running.said).toMatch(/sources +not published: 127\.0\.0\.1:1 cannot be reached/);
    expect(running.said).toMatch(/deployed +cost 0\.\d+ ETH/);

    const { settlement, tokens } = (await readRecord(join(folder, "deployments", `${SEPOLIA}.json`))) ?? {};
    const apiKey = (await readFile(join(folder, "keys", "api-key"), "utf8")).trim();
    const api = createClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey });
    const owner = privateKeyToAccount(generatePrivateKey());
    const { userId } = await answer(api.POST("/api/v1/users", { body: { ownerAddress: owner.address } }));
    const { data: assets } = await answer(api.GET("/api/v1/assets", {}));
    const { assetId } = at(assets, 0);
    const mints = (["validium", "zk-rollup"] as const).map((mode, index) => {
      return { assetId, tokenId: `${index + 1}`, amount: 1, dataAvailabilityMode: mode };
    });
    const minted = await answer(api.POST("/api/v1/mint", { body: { users: [{ userId, mints }] } }));
    if (!("mintId" in minted)) throw new Error("it was a dry run");
    const vault = at(minted.vaults, 1);
    await eventually(async () => {
      const query = { mintId: minted.mintId };
      const { data } = await answer(api.GET("/api/v1/transactions", { params: { query } }));
      expect(data.map(({ status }) => status)).toEqual(["finalized", "finalized"]);
    });
    const deadline = BigInt(Math.floor(Date.now() / 1000) + 3_600);
    const withdrawal = { withdrawnBefore: 0n, quantity: 1n, recipient: owner.address, deadline };
    const message = { vaultId: BigInt(vault.vaultId), ...withdrawal };
    const contract = settlement?.address ?? "0x";
    const signature = await owner.signTypedData(withdrawalTypedData({ chainId: BigInt(SEPOLIA), contract }, message));
    const body = { vaultId: vault.vaultId, quantity: "1", deadline: `${deadline}`, signature };
    await answer(api.POST("/api/v1/withdrawals", { body }));
    const token = tokens?.[0]?.address ?? "0x";
    const abi = parseAbi(["function ownerOf(uint256) view returns (address)"]);
    await eventually(async () => {
      const found = await client.readContract({ abi, address: token, functionName: "ownerOf", args: [2n] });
      expect(found).toBe(owner.address);
    });

    // The backup may be under way.
    const findings = () => mintmark("doctor", "--folder", folder, "--json").json();
    await eventually(async () => {
      for (const { status } of await findings()) expect(status).not.toBe("fault");
    });
    const operator = settlement?.operator ?? "0x";
    const admin = settlement?.admin ?? "0x";
    await client.impersonateAccount({ address: admin });
    const revoke = parseAbi(["function revokeOperator(address)"]);
    const { request } = await client.simulateContract({
      ...{ abi: revoke, address: contract, functionName: "revokeOperator", args: [operator], account: admin },
    });
    await createWalletClient({ transport: http(url) }).writeContract({ ...request, chain: null });
    await eventually(async () => {
      const doctor = mintmark("doctor", "--folder", folder);
      expect(await doctor.ended).toBe(1);
      expect(doctor.said).toMatch(/role +fault +0x\w+ does not hold the operator role/);
    });
    await running.interrupt();
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow("fetch failed");
  });

  test("refuses a wrong chain, and deploys again what a reorganisation removed; sources are published", async () => {
    const { url, client } = await chainOf(BASE);
    const folder = await folderOf();
    const answers = await answersIn(folder, { members: 1, tokens: [TOKEN] });
    const wrong = mintmark("up", "--network", "sepolia", "--rpc", url, "--folder", folder, "--yes");
    expect(await wrong.ended).toBe(2);
    expect(wrong.said).toContain(`serves chain ${BASE}, and Sepolia is chain ${SEPOLIA}`);
    const { url: service, given } = await sourcify();
    const args = ["up", "--network", "base", "--rpc", url, "--folder", folder, "--answers", answers];
    const more = ["--poll-ms", "200", "--sourcify", service, "--yes"];
    await funded([...args, ...more], client);
    const before = await client.snapshot();
    const run = mintmark(...args, ...more, "--json");
    await run.says(/waiting for block/);
    await client.revert({ id: before });
    await run.says(/dropped the deployment in a reorganisation/);
    const { contract, assets } = await run.json();
    expect(await client.getCode({ address: contract })).not.toBe(undefined);
    expect(assets).toHaveLength(1);
    // The interface of the live network, not of a test network.
    expect(settingsIn(join(folder, "server", "settings.env")).MINTMARK_ENVIRONMENT).toBe("live");
    const { settlement, tokens } = (await readRecord(join(folder, "deployments", `${BASE}.json`))) ?? {};
    const published = [settlement?.address, settlement?.transfersCode, tokens?.[0]?.address];
    expect([...given.keys()]).toEqual(published);
    const names = [...given.values()].map(({ contractIdentifier }) => contractIdentifier.split(":").at(-1));
    expect(names).toEqual(["StateCommitment", "Transfers", "MintableERC721"]);
    type Input = { readonly sources: Readonly<Record<string, { readonly content: string }>> };
    const { stdJsonInput } = at([...given.values()], 0) as { readonly stdJsonInput: Input };
    const own = await readFile(new URL("../../contracts/StateCommitment.sol", import.meta.url), "utf8");
    expect(keccak256(Buffer.from(stdJsonInput.sources["contracts/StateCommitment.sol"]?.content ?? ""))).toBe(
      keccak256(Buffer.from(own)),
    );
    // A second run changes nothing, and spends nothing.
    const deployer = await client.getTransactionCount({ address: settlement?.admin ?? "0x" });
    await mintmark(...args, ...more, "--json").json();
    expect(await client.getTransactionCount({ address: settlement?.admin ?? "0x" })).toBe(deployer);
    expect(given.size).toBe(3);
  });
});
