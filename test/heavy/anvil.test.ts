import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Level } from "level";
import { createPublicClient, erc721Abi, type Hex, http, toHex } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEngine } from "../../core/index.ts";
import { withdrawalTypedData } from "../../core/protocol/typed-data.ts";
import { chainReader } from "../../scripts/demo/chain.ts";
import { until } from "../../scripts/demo/until.ts";
import { deploySettlement } from "../../scripts/deploy/settlement.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN, COMMITTEE, GUARDIAN, OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { answer, createClient, type MintmarkClient, mint } from "../../server/client/index.ts";
import { startAnvil } from "../anvil.ts";
import { MemberProcess } from "../e2e/member-process.ts";
import { OperatorProcess } from "../e2e/operator-process.ts";
import { run } from "../e2e/script.ts";
import { at, seed } from "../settlement/fixture.ts";

const { owner } = at(USERS, 0);
const keyOf = (account: typeof owner): Hex => toHex(account.getHdKey().privateKey ?? new Uint8Array());
const stack = new AsyncDisposableStack();
let folder: string;
let rpcUrl: string;
let settlement: { readonly address: Hex; readonly deployedAtBlock: bigint };
let sword: Hex;
let server: OperatorProcess;
let member: MemberProcess;
let client: MintmarkClient;
let assetId: string;

const SWORD = { standard: "erc721", name: "Swords", symbol: "SWRD", admin: ADMIN.address } as const;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-anvil-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const anvil = await startAnvil(["--block-time", "1"]);
  stack.defer(() => anvil.close());
  rpcUrl = anvil.url;
  const transport = http(rpcUrl);
  const by = { account: ADMIN, client: createPublicClient({ transport }), transport, chainId: 31_337 };
  settlement = await deploySettlement(by, {
    admin: ADMIN.address,
    guardian: GUARDIAN.address,
    operator: OPERATOR.address,
    committee: [at(COMMITTEE, 0).address],
    threshold: 1,
    changeDelay: 60n,
    maturity: 1n,
  });
  const token = await deployToken(by, settlement.address, SWORD);
  sword = token.address;

  const store = new Level<Uint8Array, Uint8Array>(join(folder, "store"), {
    keyEncoding: "view",
    valueEncoding: "view",
  });
  const place = { chainId: 31_337n, contract: settlement.address, engineVersion: 5 };
  const engine = await openEngine({ store, settlement: place, environment: "sandbox", createIfMissing: true });
  const { principal, assets } = await seed(engine, { tokens: [{ ...token, ...SWORD }] });
  const { secret } = await engine.keys.issue(principal.applicationId);
  assetId = assets.get("erc721") ?? "";
  await engine.close();

  const { deployedAtBlock: fromBlock } = settlement;
  const where = { rpcUrl, contract: settlement.address, fromBlock, port: 0 };
  // The committee, and an archive that follows L1 and keeps the blobs that the beacon node has.
  member = await MemberProcess.start({
    ...where,
    key: keyOf(at(COMMITTEE, 0)),
    store: join(folder, "member"),
    peers: [],
    env: { MINTMARK_BEACONS: rpcUrl },
  });
  stack.defer(() => member.stop().then(() => {}));
  server = stack.use(
    await OperatorProcess.start({
      ...where,
      store: join(folder, "store"),
      members: [member.url],
      settings: { MINTMARK_ROLLUP_DATA: "blobs", MINTMARK_THRESHOLD: "1" },
    }),
  );
  client = createClient({ baseUrl: server.url, apiKey: secret });
});
afterAll(() => stack.disposeAsync());

const ownerOf = (id: bigint) =>
  createPublicClient({ transport: http(rpcUrl) }).readContract({
    ...{ abi: erc721Abi, address: sword, functionName: "ownerOf", args: [id] },
  });

const limits = () => answer(client.GET("/api/v1/limits"));

test("a whole server's mints go into blobs on anvil, are paid, and outlive server and beacon node", async () => {
  // The server asks L1 first where it may put them.
  await until("blobs", limits, ({ rollupData }) => rollupData === "blobs");
  const mints = [7, 8].map((id) => ({
    ...{ assetId, tokenId: `${id}`, amount: "1", dataAvailabilityMode: "zk-rollup" as const },
  }));
  const body = { users: [{ userId: at(USERS, 0).userId, mints }] };
  const { vaults } = await mint(client, body);
  const [first, second] = vaults.map(({ vaultId }) => vaultId);
  if (first === undefined || second === undefined) throw new Error("two vaults");
  const vaultOf = (vaultId: string) =>
    answer(client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId } } }));
  await until(
    "the vault final",
    () => vaultOf(first),
    ({ status }) => status === "finalized",
  );
  const path = { batchId: "zk-rollup-0" };
  const batch = await answer(client.GET("/public/v1/batches/{batchId}", { params: { path } }));
  expect(batch).toMatchObject({ kind: "blobs", vaultCount: 2 });
  const cost = await chainReader(rpcUrl, settlement.address).gasOf(batch.l1TxHash as Hex);
  expect(cost.blobGas).toBe(131_072n);
  expect(cost.gas).toBeLessThan(150_000n);

  const deadline = BigInt(Math.floor(Date.now() / 1000) + 3_600);
  const message = { vaultId: BigInt(first), withdrawnBefore: 0n, quantity: 1n, recipient: owner.address, deadline };
  const signature = await owner.signTypedData(
    withdrawalTypedData({ chainId: 31_337n, contract: settlement.address }, message),
  );
  const asked = { vaultId: first, quantity: "1", deadline: `${deadline}`, signature };
  const { withdrawalId } = await answer(client.POST("/api/v1/withdrawals", { body: asked }));
  const withdrawal = () =>
    answer(client.GET("/api/v1/withdrawals/{withdrawalId}", { params: { path: { withdrawalId } } }));
  // Only what is final is rebuilt.
  await until("the withdrawal final", withdrawal, ({ status }) => status === "finalized");
  expect(await ownerOf(7n)).toBe(owner.address);
  await until(
    "the member's copy",
    () => member.status(),
    ({ missingBatches }) => missingBatches.length === 0,
  );

  // The operator goes, and the beacon nodes have dropped the blobs.
  expect(await server.stop()).toBe(0);
  await rm(join(folder, "store"), { recursive: true });
  const pruned = createServer((_, response) => response.writeHead(404).end("{}"));
  await new Promise<void>((done) => pruned.listen(0, "127.0.0.1", done));
  stack.defer(() => void pruned.close());
  const chain = { MINTMARK_RPC_URL: rpcUrl, MINTMARK_CONTRACT: settlement.address, MINTMARK_CONFIRMATIONS: "2" };
  const beacon = `http://127.0.0.1:${(pruned.address() as AddressInfo).port}`;
  const env = {
    ...{ ...chain, MINTMARK_STORE: join(folder, "rebuilt"), MINTMARK_BEACONS: beacon },
    MINTMARK_FROM_BLOCK: `${settlement.deployedAtBlock}`,
  };
  const alone = await run("rebuild", ["--json"], env);
  expect(alone.code).toBe(1);
  expect(JSON.parse(alone.stdout)).toMatchObject({ missing: ["zk-rollup-0"] });
  const rebuilt = await run("rebuild", ["--json"], { ...env, MINTMARK_PEERS: member.url });
  expect(rebuilt.code).toBe(0);
  expect(JSON.parse(rebuilt.stdout)).toMatchObject({ missing: [], vaults: { "zk-rollup": 2 }, withdrawnVaults: 1 });
  const kit = join(folder, "kit.json");
  await member.stop();
  expect((await run("exit-kit", [second, "--store", env.MINTMARK_STORE, "--out", kit], chain)).code).toBe(0);
  expect(JSON.parse(await readFile(kit, "utf8")).vault.vaultId).toBe(second);
  const left = await run("exit", [kit, "--wait"], { MINTMARK_RPC_URL: rpcUrl }, keyOf(owner));
  expect(left).toMatchObject({ code: 0 });
  expect(await ownerOf(8n)).toBe(owner.address);
});
