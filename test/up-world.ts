import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { createTestClient, http, parseAbi, publicActions } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { withdrawalListTypedData } from "../core/protocol/typed-data.ts";
import { readRecord } from "../scripts/deploy/record.ts";
import { answer, createClient } from "../server/client/index.ts";
import { type Anvil, startAnvil } from "./anvil.ts";
import { eventually } from "./eventually.ts";
import { Npm } from "./npm.ts";
import { listOfOne } from "./one-withdrawal.ts";
import { at } from "./settlement/fixture.ts";

// A public chain, as far as a machine without a network has one: another chain id, blocks by time,
// late finality.

export const SEPOLIA = 11_155_111;
export const BASE = 8_453;
export const BASE_SEPOLIA = 84_532;
export const HARDHAT = 31_337;
const ETHER = 10n ** 18n;
export const TOKEN = { standard: "erc721", name: "Swords", symbol: "SWRD" };
/** Nobody listens there. */
export const AWAY = "http://127.0.0.1:1";

const stack: (() => Promise<unknown>)[] = [];

/** Ends something with the test. */
export function track(end: () => Promise<unknown>): void {
  stack.push(end);
}

/** Ends what a test has begun. */
export async function endAll(): Promise<void> {
  for (const end of stack.splice(0).reverse()) await end();
}

export async function chainOf(
  chainId: number,
): Promise<Anvil & { readonly client: ReturnType<typeof clientOf> }> {
  const anvil = await startAnvil([
    "--chain-id",
    `${chainId}`,
    "--block-time",
    "1",
    "--slots-in-an-epoch",
    "1",
  ]);
  stack.push(() => anvil.close());
  return { ...anvil, client: clientOf(anvil.url) };
}

export function clientOf(url: string) {
  return createTestClient({ mode: "anvil", transport: http(url) }).extend(publicActions);
}

export async function folderOf(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-up-"));
  stack.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** The first of some hundred ports, below those that the system gives to others. */
export function portOf(): number {
  return 12_000 + 200 * Math.floor(Math.random() * 90);
}

export function mintmark(...args: string[]): Npm {
  const run = new Npm(["exec", "--", "mintmark", ...args]);
  // `up` ends the processes that it started, which are in no group of its own.
  const isStart = args.includes("--start");
  stack.push(() => (isStart ? run.interrupt().catch(() => {}) : run[Symbol.asyncDispose]()));
  return run;
}

export async function answersIn(folder: string, answers: object): Promise<string> {
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
export async function funded(
  args: readonly string[],
  client: ReturnType<typeof clientOf>,
): Promise<void> {
  const asking = mintmark(...args);
  await asking.says(/waiting for money/);
  await fund(asking.said, client);
  await asking[Symbol.asyncDispose]();
}

/** Sourcify's interface, version 2, that keeps what it is given. */
export async function sourcify(): Promise<{
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

/** Mints in both modes over HTTP, waits until both are final, and withdraws one to a new owner. */
export async function mintAndWithdraw({
  folder,
  port,
  chainId,
  client,
}: {
  readonly folder: string;
  readonly port: number;
  readonly chainId: number;
  readonly client: ReturnType<typeof clientOf>;
}): Promise<void> {
  const { settlement, tokens } =
    (await readRecord(join(folder, "deployments", `${chainId}.json`))) ?? {};
  const apiKey = (await readFile(join(folder, "keys", "api-key"), "utf8")).trim();
  const api = createClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey });
  const owner = privateKeyToAccount(generatePrivateKey());
  const { userId } = await answer(
    api.POST("/api/v1/users", { body: { ownerAddress: owner.address } }),
  );
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
  const signature = await owner.signTypedData(
    withdrawalListTypedData({ chainId: BigInt(chainId), contract }, listOfOne(message)),
  );
  const vaults = [{ vaultId: vault.vaultId, quantity: "1" }];
  const body = { vaults, deadline: `${deadline}`, signature };
  await answer(api.POST("/api/v1/withdrawals", { body }));
  const token = tokens?.[0]?.address ?? "0x";
  const abi = parseAbi(["function ownerOf(uint256) view returns (address)"]);
  await eventually(async () => {
    // A vault matures by the time of blocks, and Hardhat makes none by itself.
    if (chainId === HARDHAT)
      await client.request({ method: "evm_mine", params: undefined } as never);
    const found = await client.readContract({
      abi,
      address: token,
      functionName: "ownerOf",
      args: [2n],
    });
    expect(found).toBe(owner.address);
  });
}
