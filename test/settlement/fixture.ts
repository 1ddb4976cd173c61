import { network } from "hardhat";
import { MemoryLevel } from "memory-level";
import type { Hex } from "viem";
import * as viem from "viem";
import { expect } from "vitest";
import { collectAttestations } from "../../core/committee/collector.ts";
import { CommitteeMember, type MemberOptions } from "../../core/committee/member.ts";
import { attestationTypedData, type MemberClient } from "../../core/committee/member-service.ts";
import type {
  Engine,
  EngineOptions,
  Mode,
  Principal,
  Standard,
  Uuid,
  VaultId,
} from "../../core/index.ts";
import type { CommitterOptions } from "../../core/l1/committer.ts";
import { connectL1, type L1Options } from "../../core/l1/connect.ts";
import type {
  HistoryPoint,
  L1Committer,
  L1Reader,
  PortalIdentity,
  SealedBatch,
} from "../../core/ports.ts";
import { encodeAttestation } from "../../core/protocol/attestation.ts";
import { compactSignature } from "../../core/protocol/signature.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { adoptFromL1 } from "../../core/settlement/from-l1.ts";
import { Settler, type SettlerOptions } from "../../core/settlement/settler.ts";
import type { NewAsset } from "../../core/tenants/assets.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import { deploySettlement, type SettlementConfig } from "../../scripts/deploy/settlement.ts";
import { deployToken, type TokenConfig } from "../../scripts/deploy/token.ts";
import {
  ADMIN,
  COMMITTEE,
  GUARDIAN,
  OPERATOR,
  THRESHOLD,
  USERS,
} from "../../scripts/sandbox/accounts.ts";
import { startAnvil } from "../anvil.ts";
import { sourceOf } from "../archive/fixture.ts";
import { mintOf, openTest } from "../core/engine/fixture.ts";
import { listOfOne, withdrawOne } from "../one-withdrawal.ts";

/** Seconds. */
export const MATURITY = 100n;
/** Blocks above one that make it final here, so that tests can reorganise the ones below. */
const CONFIRMATIONS = 20n;

export const TOKENS: readonly TokenConfig[] = [
  { standard: "erc20", name: "Points", symbol: "PTS", quantum: 1_000n, admin: ADMIN.address },
  { standard: "erc721", name: "Swords", symbol: "SWRD", admin: ADMIN.address },
  { standard: "erc1155", name: "Potions", symbol: "PTN", admin: ADMIN.address },
];

export type Request = viem.EIP1193RequestFn;

export type Store = MemoryLevel<Uint8Array, Uint8Array>;

interface Node extends ReturnType<typeof controlsOf> {
  close(): Promise<void>;
}

/** Controls of a local chain beside the calls of viem. */
export function controlsOf(request: Request) {
  const rpc = (method: string, params: readonly unknown[] = []): Promise<unknown> =>
    (request as (call: { method: string; params: readonly unknown[] }) => Promise<unknown>)({
      method,
      params,
    });
  /**
   * Mines empty blocks, one by one: the blocks that `hardhat_mine` makes have no state that could
   * be asked.
   */
  const mine = async (blocks: number): Promise<void> => {
    for (let mined = 0; mined < blocks; mined++) await rpc("evm_mine");
  };
  return {
    request,
    rpc,
    mine,
    /** Moves the chain's clock. */
    async passSeconds(seconds: bigint): Promise<void> {
      await rpc("evm_increaseTime", [viem.toHex(seconds)]);
      await mine(1);
    },
    async pendingHashes(): Promise<Hex[]> {
      const block = (await rpc("eth_getBlockByNumber", ["pending", false])) as {
        transactions: Hex[];
      };
      return block.transactions;
    },
  };
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** The terms of a settlement contract of these tests. */
export const TERMS: SettlementConfig = {
  admin: ADMIN.address,
  guardian: GUARDIAN.address,
  operator: OPERATOR.address,
  committee: COMMITTEE.map(({ address }) => address),
  threshold: THRESHOLD,
  changeDelay: 60n,
  maturity: MATURITY,
};

/** The administrator, as who deploys. */
export async function adminOver(transport: viem.Transport) {
  const client = viem.createPublicClient({ transport, pollingInterval: 5, cacheTime: 0 });
  return { account: ADMIN, client, transport, chainId: await client.getChainId() };
}

/** Hardhat's chain, in this process. It keeps no blob transaction pending. */
export async function hardhat(name = "local"): Promise<Node> {
  const connection = await network.create({ network: name });
  const request = connection.provider.request.bind(connection.provider) as Request;
  return { ...controlsOf(request), close: () => connection.close() };
}

/** A chain of anvil, in a process of its own. */
export async function anvil() {
  const { url, close } = await startAnvil();
  const { request } = viem.http(url, { retryCount: 0 })({});
  return { ...controlsOf(request as Request), url, close };
}

/** A chain with the contracts and one registered token of each standard. */
export async function createChain(
  config: Partial<SettlementConfig> = {},
  start: () => Promise<Node> = hardhat,
  wanted = TOKENS,
) {
  const node = await start();
  const { request } = node;
  const transport = viem.custom({ request });
  const by = await adminOver(transport);
  const { client } = by;
  const settlement = await deploySettlement(by, { ...TERMS, ...config });
  const tokens = [];
  for (const token of wanted) tokens.push(await deployToken(by, settlement.address, token));
  // Members sign for final registrations only.
  await node.mine(Number(CONFIRMATIONS));
  return {
    ...node,
    client,
    transport,
    by,
    settlement,
    tokens,
    /**
     * The operator's connection; the request stands between it and the chain, so that a test can
     * break it.
     */
    connectOperator: (
      through: Request = request,
      fees: CommitterOptions & Pick<L1Options, "finality"> = {},
    ) =>
      connectL1({
        rpc: viem.custom({ request: through }, { retryCount: 3, retryDelay: 1 }),
        contract: settlement.address,
        account: OPERATOR,
        finality: { confirmations: CONFIRMATIONS },
        pollingMs: 5,
        ...fees,
      }),
    newSettler: (parts: Omit<SettlerOptions, "fromBlock" | "sealing">) =>
      new Settler({
        lagMs: 0,
        secondLookMs: 0,
        rereadMs: 0,
        ...parts,
        fromBlock: settlement.deployedAtBlock,
        sealing: { maxAgeMs: 0 },
      }),
    /** How many transactions of the operator the chain has. */
    sentByOperator: () => client.getTransactionCount({ address: OPERATOR.address }),
  };
}

export type Chain = Awaited<ReturnType<typeof createChain>>;

export interface WorldOptions {
  /** Each member as the collector sees it; default as it is. */
  readonly member?: (member: CommitteeMember, index: number) => MemberClient;
  readonly request?: (chain: Chain) => Request;
  readonly fees?: CommitterOptions;
  readonly verifySignature?: NonNullable<EngineOptions["verifySignature"]>;
  readonly clock?: () => number;
  readonly monotonic?: () => number;
  readonly divergenceMs?: number;
  readonly kzg?: NonNullable<EngineOptions["kzg"]>;
  readonly receiptSigner?: NonNullable<EngineOptions["receiptSigner"]>;
  /** Changes of the settlement contract's terms. */
  readonly config?: Partial<SettlementConfig>;
  /** Default {@link TOKENS}. */
  readonly tokens?: readonly TokenConfig[];
  /** Milliseconds that a member has to sign; default 2,000. */
  readonly attestMs?: number;
  /** Default: hardhat's chain in this process. */
  readonly node?: () => Promise<Node>;
}

/**
 * Chain, engine with one user and ready assets, five members, and a settler that works only when
 * told to.
 */
export async function createWorld(given: WorldOptions = {}) {
  const {
    member = (it) => it,
    request,
    fees,
    node,
    config,
    tokens,
    attestMs = 20_000,
    ...options
  } = given;
  const chain = await createChain(config, node, tokens);
  const l1 = await chain.connectOperator(request?.(chain), fees);
  const engineStore: Store = new MemoryLevel();
  const engine = await openTest(engineStore, { settlement: l1.settlement, ...options });
  const members = await openMembers(l1);
  const committee = collectAttestations({
    members: members.map(member),
    threshold: THRESHOLD,
    l1,
    timeoutMs: attestMs,
  });
  const settler = chain.newSettler({ engine, l1, committee });
  return {
    ...{ chain, l1, engine, engineStore, members, committee, settler },
    ...(await seed(engine, chain)),
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
  for await (const [key, value] of store.iterator<Uint8Array, Uint8Array>(BYTES))
    await copy.put(key, value, BYTES);
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
  const l1 = await chain.connectOperator();
  const members = await openMembers(l1);
  const opened: Engine[] = [];
  return {
    chain,
    l1,
    members,
    async operate(store: Store): Promise<Operator> {
      const engine = await openTest(store, { settlement: l1.settlement });
      opened.push(engine);
      const committee = collectAttestations({
        members,
        threshold: THRESHOLD,
        l1,
        timeoutMs: 20_000,
      });
      return { store, engine, settler: chain.newSettler({ engine, l1, committee }) };
    },
    /** Adopts what is on L1, if it is final. Members give the data of validium. */
    adopt: (engine: Engine) =>
      adoptFromL1({
        engine,
        l1,
        fromBlock: chain.settlement.deployedAtBlock,
        sources: members.map(sourceOf),
      }),
    async close() {
      for (const engine of opened) await engine.close();
      for (const member of members) await member.close();
      await chain.close();
    },
  };
}

/** The whole committee in this process, over empty stores. */
export function openMembers(l1: MemberOptions["l1"]): Promise<CommitteeMember[]> {
  return Promise.all(
    COMMITTEE.map((account) => CommitteeMember.open({ account, store: new MemoryLevel(), l1 })),
  );
}

/** Commits a batch that a committee has signed without a look at it, as a hostile majority does. */
export async function commitUnseen(
  l1: Pick<L1Reader, "settlement" | "state"> & L1Committer,
  batch: SealedBatch,
) {
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

/** The point that the next commit follows. */
export async function pointOn(l1: Pick<L1Reader, "state">): Promise<HistoryPoint> {
  const { history, countValidium, countRollup } = await l1.state();
  return { history, sequence: BigInt(countValidium + countRollup) };
}

/** An application with a key, users, and the chain's tokens ready to be minted. */
export async function seed(engine: Engine, chain: Pick<Chain, "tokens">) {
  const { applicationId } = await engine.applications.create({ name: "Settlement test" });
  const { secret } = await engine.keys.issue(applicationId);
  const principal: Principal = await engine.keys.authenticate(secret);
  const users: { userId: Uuid; owner: viem.HDAccount }[] = [];
  for (const { userId, owner } of USERS) {
    await engine.users.create(applicationId, { userId, ownerAddress: owner.address });
    users.push({ userId, owner });
  }
  const assets = new Map<Standard, Uuid>();
  for (const { standard, address, name, symbol, quantum } of chain.tokens) {
    const asset = { standard, contractAddress: address, quantum, name, symbol };
    assets.set(standard, await readyAsset(engine, applicationId, asset));
  }
  return { ...deeds, principal, users, assets };
}

/** Adds an asset that the application can mint at once. */
export async function readyAsset(
  engine: Engine,
  applicationId: Uuid,
  asset: NewAsset,
): Promise<Uuid> {
  const { assetId } = await engine.assets.add(asset);
  await engine.assets.whitelist(assetId);
  await engine.operator.recordRegistered(assetId);
  await engine.assets.enable(applicationId, assetId);
  return assetId;
}

interface Actors {
  readonly engine: Engine;
  readonly principal: Principal;
  readonly users: readonly { readonly userId: Uuid; readonly owner: viem.HDAccount }[];
  readonly assets: ReadonlyMap<Standard, Uuid>;
}

/**
 * The deeds of an application and its first user. In a copy with another engine, they do them
 * there.
 */
const deeds = {
  /** Mints one entry for the first user and returns its vault. `text` is the identifier. */
  async mint(
    this: Actors,
    standard: Standard,
    mode: Mode,
    text = "",
    amount = 1,
  ): Promise<VaultId> {
    const mintingBlob = standard === "erc20" ? "" : viem.toHex(text);
    const entry = {
      mintingBlob,
      assetId: this.assets.get(standard),
      amount,
      dataAvailabilityMode: mode,
    };
    const request = { users: [{ userId: this.users[0]?.userId, mints: [entry] }] };
    return at((await this.engine.mint(this.principal, request as unknown)).vaults, 0).vaultId;
  },

  /** The first user's signed request to withdraw from a vault, handed to the engine. */
  async requestWithdrawal(
    this: Omit<Actors, "assets">,
    vaultId: VaultId,
    quantity = 1n,
    deadline = inTwentyDays(),
    portal: PortalIdentity = this.engine.settlement,
  ) {
    const { owner } = at(this.users, 0);
    const vault = await this.engine.vaults.get(this.principal.applicationId, vaultId);
    const message = {
      vaultId,
      withdrawnBefore: vault.withdrawnBalance,
      quantity,
      recipient: owner.address,
      deadline,
    };
    const signature = await owner.signTypedData(
      withdrawalListTypedData(portal, listOfOne(message)),
    );
    return withdrawOne(this.engine, this.principal, { ...listOfOne(message), signature });
  },

  /**
   * The first user's one signature for all of the vaults, whole and untouched ones of one unit,
   * handed to the engine.
   */
  async requestList(this: Actors, vaultIds: readonly VaultId[], deadline = inTwentyDays()) {
    const { owner } = at(this.users, 0);
    const vaults = vaultIds.map((vaultId) => ({ vaultId, withdrawnBefore: 0n, quantity: 1n }));
    const message = { vaults, recipient: owner.address, deadline };
    const signature = await owner.signTypedData(
      withdrawalListTypedData(this.engine.settlement, message),
    );
    return this.engine.withdrawals.request(this.principal, { vaults, deadline, signature });
  },

  /** The owner's own withdrawal, past engine and operator. */
  async withdrawAlone(
    this: Actors & { readonly chain: Chain },
    vaultId: VaultId,
    quantity: bigint,
  ): Promise<void> {
    const { owner } = at(this.users, 0);
    const contract = this.chain.settlement.address;
    const own = await connectL1({
      rpc: this.chain.transport,
      contract,
      account: owner,
      pollingMs: 5,
    });
    const { header, ...proof } = await this.engine.proofs.exit(vaultId);
    if (header === null) throw new Error("the vault is not on L1");
    await own.withdrawOwn({
      ...proof,
      header,
      quantity,
      recipient: owner.address,
      authorization: null,
    });
  },

  transactionStatus(this: Actors, vaultId: VaultId): Promise<string> {
    return this.engine.vaults
      .get(this.principal.applicationId, vaultId)
      .then(({ status }) => status);
  },
};

/** Mints items of the first user in one batch, and requests the withdrawal of one unit of each. */
export async function withdrawMany(
  world: World,
  count: number,
  amount = 1,
): Promise<readonly VaultId[]> {
  const assetId = world.assets.get("erc1155") ?? "";
  const mints = Array.from({ length: count }, (_, id) => mintOf(assetId, id, amount));
  const users = [{ userId: at(world.users, 0).userId, mints }];
  const { vaults } = await world.engine.mint(world.principal, { users });
  await world.settler.round();
  for (const { vaultId } of vaults) await world.requestWithdrawal(vaultId);
  return vaults.map(({ vaultId }) => vaultId);
}

const IN_TWENTY_DAYS = BigInt(Math.floor(Date.now() / 1000) + 20 * 86_400);

/**
 * Seconds; behind everything that the chain's clock is set forward in these tests. The deadline is
 * one in a run: what is asked for again a second later is the request that it was.
 */
export function inTwentyDays(): bigint {
  return IN_TWENTY_DAYS;
}

/**
 * Requires that L1 and the engine have one history, and that the store's records are those of its
 * journal.
 */
export async function expectOneHistory({
  engine,
  l1,
}: Pick<World, "engine" | "l1">): Promise<void> {
  expect(await l1.state()).toEqual({
    ...engine.batches.state(),
    history: engine.operator.history(),
  });
  expect(await engine.batches.committedState()).toEqual(engine.batches.state());
  expect((await engine.operator.verify()).problems).toEqual([]);
}

export async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error) => error.code,
  );
}

/** Code of a contract that refuses every call with these words. */
export function refusing(words: string): Hex {
  const data = viem.encodeErrorResult({
    abi: viem.parseAbi(["error Error(string)"]),
    args: [words],
  });
  const length = ((data.length - 2) / 2).toString(16).padStart(4, "0");
  // Copies what lies behind these 15 bytes, and reverts with it.
  return `0x61${length}61000f60003961${length}6000fd${data.slice(2)}`;
}

export function at<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new Error(`nothing at ${index} of ${list.length}`);
  return item;
}
