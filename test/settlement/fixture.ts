import { network } from "hardhat";
import { MemoryLevel } from "memory-level";
import {
  createPublicClient,
  custom,
  type EIP1193RequestFn,
  encodeErrorResult,
  type HDAccount,
  type Hex,
  http,
  parseAbi,
  toHex,
} from "viem";
import { expect } from "vitest";
import { collectAttestations, type MemberClient } from "../../core/guards/committee/collector.ts";
import { CommitteeMember, type MemberOptions } from "../../core/guards/committee/member.ts";
import { attestationTypedData } from "../../core/guards/committee/request.ts";
import {
  type Engine,
  type EngineOptions,
  type Mode,
  openEngine,
  type Principal,
  type Standard,
  type Uuid,
  type VaultId,
} from "../../core/index.ts";
import type { CommitterOptions } from "../../core/l1/committer.ts";
import { connectL1 } from "../../core/l1/connect.ts";
import { adoptFromL1 } from "../../core/l1/settlement/adopt-history.ts";
import { Settler, type SettlerOptions } from "../../core/l1/settlement/settler.ts";
import type { HistoryPoint, L1Committer, L1Reader, PortalIdentity, SealedBatch } from "../../core/ports.ts";
import { compactSignature, encodeAttestation } from "../../core/protocol/attestation.ts";
import { withdrawalListTypedData, withdrawalTypedData } from "../../core/protocol/typed-data.ts";
import type { NewAsset } from "../../core/tenants/assets.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import { deploySettlement, type SettlementConfig } from "../../scripts/deploy/settlement.ts";
import { deployToken, type TokenConfig } from "../../scripts/deploy/token.ts";
import { ADMIN, COMMITTEE, GUARDIAN, OPERATOR, THRESHOLD, USERS } from "../../scripts/sandbox/accounts.ts";
import { startAnvil } from "../anvil.ts";
import { sourceOf } from "../archive/fixture.ts";

/** Seconds. */
export const MATURITY = 100n;
/** Blocks above one that make it final here, so that tests can reorganise the ones below. */
const CONFIRMATIONS = 20n;

export const TOKENS: readonly TokenConfig[] = [
  { standard: "erc20", name: "Points", symbol: "PTS", quantum: 1_000n, admin: ADMIN.address },
  { standard: "erc721", name: "Swords", symbol: "SWRD", admin: ADMIN.address },
  { standard: "erc1155", name: "Potions", symbol: "PTN", admin: ADMIN.address },
];

export type Request = EIP1193RequestFn;

export type Store = MemoryLevel<Uint8Array, Uint8Array>;

interface Node {
  readonly request: Request;
  close(): Promise<void>;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** Hardhat's chain, in this process. It keeps no blob transaction pending. */
async function hardhat(): Promise<Node> {
  const connection = await network.create({ network: "local" });
  return { request: connection.provider.request.bind(connection.provider) as Request, close: () => connection.close() };
}

/** A chain of anvil, in a process of its own. */
export async function anvil(): Promise<Node> {
  const { url, close } = await startAnvil();
  const { request } = http(url, { retryCount: 0 })({});
  return { request: request as Request, close };
}

/** A chain with the contracts and one registered token of each standard. */
export async function createChain(config: Partial<SettlementConfig> = {}, start = hardhat, wanted = TOKENS) {
  const node = await start();
  const { request } = node;
  const transport = custom({ request });
  const client = createPublicClient({ transport, pollingInterval: 5, cacheTime: 0 });
  const by = { account: ADMIN, client, transport, chainId: await client.getChainId() };
  const settlement = await deploySettlement(by, {
    admin: ADMIN.address,
    guardian: GUARDIAN.address,
    operator: OPERATOR.address,
    committee: COMMITTEE.map(({ address }) => address),
    threshold: THRESHOLD,
    changeDelay: 60n,
    maturity: MATURITY,
    ...config,
  });
  const tokens = [];
  for (const token of wanted) tokens.push(await deployToken(by, settlement.address, token));
  // Members sign for final registrations only.
  await mine({ request }, Number(CONFIRMATIONS));
  return { request, client, transport, by, settlement, tokens, close: () => node.close() };
}

export type Chain = Awaited<ReturnType<typeof createChain>>;

/** The operator's connection; `request` stands between it and the chain, so that a test can break it. */
export function connectOperator(chain: Chain, request: Request = chain.request, fees: CommitterOptions = {}) {
  return connectL1({
    rpc: custom({ request }, { retryCount: 3, retryDelay: 1 }),
    contract: chain.settlement.address,
    account: OPERATOR,
    finality: { confirmations: CONFIRMATIONS },
    pollingMs: 5,
    ...fees,
  });
}

export interface WorldOptions {
  /** Each member as the collector sees it; default as it is. */
  readonly member?: (member: CommitteeMember, index: number) => MemberClient;
  readonly request?: (chain: Chain) => Request;
  readonly fees?: CommitterOptions;
  readonly verifySignature?: NonNullable<EngineOptions["verifySignature"]>;
  readonly clock?: () => number;
  readonly kzg?: NonNullable<EngineOptions["kzg"]>;
  readonly receiptSigner?: NonNullable<EngineOptions["receiptSigner"]>;
  /** Of the settlement contract. */
  readonly config?: Partial<SettlementConfig>;
  /** Default {@link TOKENS}. */
  readonly tokens?: readonly TokenConfig[];
  /** Milliseconds that a member has to sign; default 2,000. */
  readonly attestMs?: number;
  /** Default: hardhat's chain in this process. */
  readonly node?: () => Promise<Node>;
}

/** Chain, engine with one user and ready assets, five members, and a settler that works only when told to. */
export async function createWorld(given: WorldOptions = {}) {
  const { member = (it) => it, request, fees, node, config, tokens, attestMs = 20_000, ...options } = given;
  const chain = await createChain(config, node, tokens);
  const l1 = await connectOperator(chain, request?.(chain), fees);
  const engineStore: Store = new MemoryLevel();
  const settlement = l1.settlement;
  const opened = { store: engineStore, settlement, environment: "sandbox", createIfMissing: true } as const;
  const engine = await openEngine({ ...opened, ...options });
  const members = await openMembers(l1);
  const committee = collectAttestations({
    members: members.map(member),
    threshold: THRESHOLD,
    l1,
    timeoutMs: attestMs,
  });
  const settler = newSettler({ engine, l1, committee }, chain);
  const { principal, users, assets } = await seed(engine, chain);
  return {
    chain,
    l1,
    engine,
    engineStore,
    members,
    committee,
    settler,
    principal,
    users,
    assets,
    async close() {
      await engine.close();
      for (const each of members) await each.close();
      await chain.close();
    },
  };
}

const BYTES = { keyEncoding: "view", valueEncoding: "view" } as const;

export async function copyOf(store: Store): Promise<Store> {
  await store.open();
  const copy: Store = new MemoryLevel(BYTES);
  for await (const [key, value] of store.iterator<Uint8Array, Uint8Array>(BYTES)) await copy.put(key, value, BYTES);
  return copy;
}

/** One operator of a store: its engine, and what brings it to L1. */
export interface Operator {
  readonly store: Store;
  readonly engine: Engine;
  readonly settler: Settler;
}

/** A chain and a committee for operators on copies of one store. */
export async function createStage() {
  const chain = await createChain();
  const l1 = await connectOperator(chain);
  const members = await openMembers(l1);
  const opened: Engine[] = [];
  return {
    chain,
    l1,
    members,
    async operate(store: Store): Promise<Operator> {
      const { settlement } = l1;
      const engine = await openEngine({ store, settlement, environment: "sandbox", createIfMissing: true });
      opened.push(engine);
      const committee = collectAttestations({ members, threshold: THRESHOLD, l1, timeoutMs: 20_000 });
      return { store, engine, settler: newSettler({ engine, l1, committee }, chain) };
    },
    /** Adopts what is on L1, if it is final. Members give the data of validium. */
    adopt: (engine: Engine) =>
      adoptFromL1({ engine, l1, fromBlock: chain.settlement.deployedAtBlock, sources: members.map(sourceOf) }),
    async close() {
      for (const engine of opened) await engine.close();
      for (const member of members) await member.close();
      await chain.close();
    },
  };
}

/** The whole committee in this process, over empty stores. */
export function openMembers(l1: MemberOptions["l1"]): Promise<CommitteeMember[]> {
  return Promise.all(COMMITTEE.map((account) => CommitteeMember.open({ account, store: new MemoryLevel(), l1 })));
}

/** Commits a batch that a committee has signed without a look at it, as a hostile majority does. */
export async function commitUnseen(l1: Pick<L1Reader, "settlement" | "state"> & L1Committer, batch: SealedBatch) {
  const members = COMMITTEE.toSorted((a, b) => (lower(a.address) < lower(b.address) ? -1 : 1));
  const { history, sequence } = await pointOn(l1);
  const message = attestationTypedData(l1.settlement, batch, { history, sequence, epoch: 0n });
  const signatures = await Promise.all(
    members.slice(0, THRESHOLD).map(async (member, memberIndex) => {
      return { memberIndex, ...compactSignature(await member.signTypedData(message)) };
    }),
  );
  const addresses = members.map(({ address }) => lower(address));
  const attestation = encodeAttestation({ threshold: THRESHOLD, members: addresses, signatures });
  return l1.commit(batch, history, attestation);
}

/** What the next commit follows. */
export async function pointOn(l1: Pick<L1Reader, "state">): Promise<HistoryPoint> {
  const { history, countValidium, countRollup } = await l1.state();
  return { history, sequence: BigInt(countValidium + countRollup) };
}

export function newSettler(parts: Omit<SettlerOptions, "fromBlock" | "sealing">, chain: Chain): Settler {
  return new Settler({ lagMs: 0, ...parts, fromBlock: chain.settlement.deployedAtBlock, sealing: { maxAgeMs: 0 } });
}

/** An application with a key, users, and the chain's tokens ready to be minted. */
export async function seed(engine: Engine, chain: Pick<Chain, "tokens">) {
  const { applicationId } = await engine.applications.create({ name: "Settlement test" });
  const { secret } = await engine.keys.issue(applicationId);
  const principal: Principal = await engine.keys.authenticate(secret);
  const users: { userId: Uuid; owner: HDAccount }[] = [];
  for (const { userId, owner } of USERS) {
    await engine.users.create(applicationId, { userId, ownerAddress: owner.address });
    users.push({ userId, owner });
  }
  const assets = new Map<Standard, Uuid>();
  for (const { standard, address, name, symbol, quantum } of chain.tokens) {
    const asset = { standard, contractAddress: address, quantum, name, symbol };
    assets.set(standard, await readyAsset({ engine, principal }, asset));
  }
  return { principal, users, assets };
}

/** Adds an asset that the application can mint at once. */
export async function readyAsset({ engine, principal }: Pick<World, "engine" | "principal">, asset: NewAsset) {
  const { assetId } = await engine.assets.add(asset);
  await engine.assets.whitelist(assetId);
  await engine.operator.recordRegistered(assetId);
  await engine.assets.enable(principal.applicationId, assetId);
  return assetId;
}

/** Mints one entry for the first user and returns its vault. `text` is the identifier. */
export async function mint(
  {
    engine,
    principal,
    users,
    assets,
  }: Pick<World, "engine" | "principal" | "users"> & { readonly assets: ReadonlyMap<Standard, Uuid> },
  standard: Standard,
  mode: Mode,
  text = "",
  amount = 1,
): Promise<VaultId> {
  const entry = {
    mintingBlob: standard === "erc20" ? "" : toHex(text),
    assetId: assets.get(standard),
    amount,
    dataAvailabilityMode: mode,
  };
  const { vaults } = await engine.mint(principal, { users: [{ userId: users[0]?.userId, mints: [entry] }] });
  return at(vaults, 0).vaultId;
}

/** Seconds; behind everything that the chain's clock is set forward in these tests. */
function inTwentyDays(): bigint {
  return BigInt(Math.floor(Date.now() / 1000) + 20 * 86_400);
}

/** The first user's signed request to withdraw from a vault, handed to the engine. */
export async function requestWithdrawal(
  world: Pick<World, "engine" | "principal" | "users">,
  vaultId: VaultId,
  quantity = 1n,
  deadline = inTwentyDays(),
  portal: PortalIdentity = world.engine.settlement,
) {
  const { owner } = at(world.users, 0);
  const vault = await world.engine.vaults.get(world.principal.applicationId, vaultId);
  const message = { vaultId, withdrawnBefore: vault.withdrawnBalance, quantity, recipient: owner.address, deadline };
  const signature = await owner.signTypedData(withdrawalTypedData(portal, message));
  return world.engine.withdrawals.request(world.principal, { vaultId, quantity, deadline, signature });
}

/** The first user's one signature for all of the vaults, whole and untouched ones of one unit, handed to the engine. */
export async function requestList(
  world: Pick<World, "engine" | "principal" | "users">,
  vaultIds: readonly VaultId[],
  deadline = inTwentyDays(),
) {
  const { owner } = at(world.users, 0);
  const vaults = vaultIds.map((vaultId) => ({ vaultId, withdrawnBefore: 0n, quantity: 1n }));
  const message = { vaults, recipient: owner.address, deadline };
  const signature = await owner.signTypedData(withdrawalListTypedData(world.engine.settlement, message));
  return world.engine.withdrawals.requestList(world.principal, { vaults, deadline, signature });
}

/** The owner's own withdrawal, past engine and operator. */
export async function withdrawAlone(
  { chain, engine, users }: Pick<World, "chain" | "engine" | "users">,
  vaultId: VaultId,
  quantity: bigint,
): Promise<void> {
  const { owner } = at(users, 0);
  const contract = chain.settlement.address;
  const own = await connectL1({ rpc: chain.transport, contract, account: owner, pollingMs: 5 });
  const { header, ...proof } = await engine.proofs.exit(vaultId);
  if (header === null) throw new Error("the vault is not on L1");
  const authorization = { deadline: 0n, signature: "0x" } as const;
  await own.withdrawOwn({ ...proof, header, quantity, recipient: owner.address, authorization });
}

/** Requires that L1 and the engine have one history, and that the store's records are those of its journal. */
export async function expectOneHistory({ engine, l1 }: Pick<World, "engine" | "l1">): Promise<void> {
  expect(await l1.state()).toEqual({ ...engine.batches.state(), history: engine.operator.history() });
  expect(await engine.batches.committedState()).toEqual(engine.batches.state());
  expect((await engine.operator.verify()).problems).toEqual([]);
}

export async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error) => error.code,
  );
}

/** Transactions of the operator that the chain has. */
export const sentBy = ({ client }: Pick<Chain, "client">) => client.getTransactionCount({ address: OPERATOR.address });

export async function pendingHashes(chain: Pick<Chain, "request">): Promise<Hex[]> {
  const block = (await rpc(chain, "eth_getBlockByNumber", ["pending", false])) as { transactions: Hex[] };
  return block.transactions;
}

export function transactionStatus({ engine, principal }: World, vaultId: VaultId): Promise<string> {
  return engine.vaults.get(principal.applicationId, vaultId).then(({ status }) => status);
}

/** Code of a contract that refuses every call with these words. */
export function refusing(words: string): Hex {
  const data = encodeErrorResult({ abi: parseAbi(["error Error(string)"]), args: [words] });
  const length = ((data.length - 2) / 2).toString(16).padStart(4, "0");
  // Copies what lies behind these 15 bytes, and reverts with it.
  return `0x61${length}61000f60003961${length}6000fd${data.slice(2)}`;
}

/** Mines empty blocks. */
export async function mine(chain: Pick<Chain, "request">, blocks: number): Promise<void> {
  // One by one: the blocks that `hardhat_mine` makes have no state that could be asked.
  for (let mined = 0; mined < blocks; mined++) await rpc(chain, "evm_mine", []);
}

/** Moves the chain's clock. */
export async function passSeconds(chain: Pick<Chain, "request">, seconds: bigint): Promise<void> {
  await rpc(chain, "evm_increaseTime", [toHex(seconds)]);
  await mine(chain, 1);
}

/** A request that is not of viem's own list: the local chain's controls. */
export function rpc(chain: Pick<Chain, "request">, method: string, params: readonly unknown[] = []): Promise<unknown> {
  return (chain.request as (call: { method: string; params: readonly unknown[] }) => Promise<unknown>)({
    method,
    params,
  });
}

export function at<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new Error(`nothing at ${index} of ${list.length}`);
  return item;
}
