import type { PrivateKeyAccount } from "viem/accounts";
import type {
  Engine,
  Hex,
  L1Event,
  ListedVault,
  Mode,
  VaultId,
  WaitOptions,
} from "../../../core/index.ts";
import type { MadeVault, PortalIdentity } from "../../../core/ports.ts";
import { makingRoot } from "../../../core/protocol/making.ts";
import { withdrawalListTypedData } from "../../../core/protocol/typed-data.ts";
import { listOfOne } from "../../one-withdrawal.ts";
import { type Fixture, fixture, hashOf, mintOf, OWNERS, requestOf, SETTLEMENT } from "./fixture.ts";

/** The settlement contract's chain. */
export const HOME = SETTLEMENT.chainId;

/** An event before it has its block. */
export type Told = L1Event extends infer E
  ? E extends L1Event
    ? Omit<E, "txHash" | "blockNumber" | "logIndex">
    : never
  : never;

/** The event that L1 emits for a sealed batch. */
export async function committed(
  engine: Engine,
  mode: Mode,
  batchNumber: number,
  blockNumber: bigint,
) {
  const { batchRoot, vaultCount, dataHash } = await engine.batches.getSealed(mode, batchNumber);
  const place = { txHash: hashOf(Number(blockNumber)), blockNumber, logIndex: 0 };
  const header = {
    batchRoot,
    vaultCount,
    committedAt: 1000n + blockNumber,
    sequence: BigInt(batchNumber),
  };
  return { type: "batchCommitted", mode, batchNumber, dataHash, ...place, ...header } as const;
}

export function withdrawn(
  vaultId: VaultId,
  quantity: bigint,
  withdrawnTotal: bigint,
  recipient: Hex,
  blockNumber: bigint,
  logIndex = 0,
) {
  const place = { txHash: hashOf(Number(blockNumber) * 100 + logIndex), blockNumber, logIndex };
  return { type: "withdrawn", vaultId, quantity, withdrawnTotal, recipient, ...place } as const;
}

/** The event of vaults that L1 makes by itself. */
export function made(
  making: number,
  vaults: readonly MadeVault[],
  blockNumber: bigint,
  entered: bigint | null = null,
) {
  const place = { txHash: hashOf(Number(blockNumber)), blockNumber, logIndex: 0 };
  const batchRoot = makingRoot({ chainId: HOME, making, vaults });
  const facts = { making: BigInt(making), batchRoot, sequence: 0n, entered, vaults };
  return { type: "made", ...place, ...facts } as const;
}

/** L1 tells of one event, and of nothing else up to its block. */
export function hear(engine: Engine, event: L1Event, wait?: WaitOptions): Promise<number | null> {
  return engine.operator.recordEvents(HOME, [event], event.blockNumber, wait);
}

/** Another chain, and the contract that pays withdrawals there. */
export const MIRROR = { chainId: 31_338n, contract: `0x${"bb".repeat(20)}` } as const;

/** The event that a mirror emits for a batch that it has learned of. */
export async function imported(
  engine: Engine,
  mode: Mode,
  batchNumber: number,
  blockNumber: bigint,
) {
  const asCommitted = await committed(engine, mode, batchNumber, blockNumber);
  return { ...asCommitted, type: "batchImported", committedAt: 5000n + blockNumber } as const;
}

/** A fixture whose first user holds 100 units in vault 0, sealed. */
export async function holding(options: Parameters<typeof fixture>[0] = {}): Promise<Fixture> {
  const made = await fixture(options);
  await made.engine.mint(
    made.tenant.principal,
    requestOf(made.tenant.users[0], mintOf(made.assets.erc20, "", 100)),
  );
  await made.engine.operator.seal("validium");
  return made;
}

const [owner] = OWNERS;
export const ownerAddress = owner.address.toLowerCase() as Hex;
export const stranger: Hex = `0x${"57".repeat(20)}`;

export async function signed(
  { engine, clock }: Fixture,
  quantity: bigint,
  options: {
    withdrawnBefore?: bigint;
    recipient?: Hex;
    vaultId?: VaultId;
    signer?: PrivateKeyAccount;
    portal?: PortalIdentity;
  } = {},
) {
  const { withdrawnBefore = 0n, recipient = ownerAddress, vaultId = 0n, signer = owner } = options;
  const { portal = engine.settlement } = options;
  const deadline = BigInt(clock.now / 1000 + 3600);
  const message = { vaultId, withdrawnBefore, quantity, recipient, deadline };
  const signature = await signer.signTypedData(withdrawalListTypedData(portal, listOfOne(message)));
  return { ...listOfOne(message), signature };
}

/**
 * An owner's list of vaults, which it signs once; a vault by its id is one unit of an untouched
 * vault.
 */
export async function signedList(
  { engine, clock }: Pick<Fixture, "engine" | "clock">,
  listed: readonly (VaultId | ListedVault)[],
  options: {
    readonly signer?: PrivateKeyAccount;
    readonly seconds?: number;
    readonly portal?: PortalIdentity;
  } = {},
) {
  const { signer = owner, seconds = 3600, portal = engine.settlement } = options;
  const vaults = listed.map((each) =>
    typeof each === "bigint" ? { vaultId: each, withdrawnBefore: 0n, quantity: 1n } : each,
  );
  const message = {
    vaults,
    recipient: signer.address,
    deadline: BigInt(clock.now / 1000 + seconds),
  };
  const signature = await signer.signTypedData(withdrawalListTypedData(portal, message));
  return { vaults, deadline: message.deadline, signature };
}
