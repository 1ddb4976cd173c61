import { argumentError } from "../errors.ts";
import { type Address, type Hash, MAX_AMOUNT, type VaultId } from "../model.ts";
import type { PortalIdentity } from "../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { HASH_BYTES, hashOf, keccak256, packed, textHash, writeHex, ZERO_ADDRESS } from "./hex.ts";
import { batchRoot } from "./manifest.ts";
import {
  domainHash,
  struct,
  typedData,
  type ValidiumBatchMessage,
  validiumBatchTypedData,
} from "./typed-data.ts";
import { requireVaultId } from "./vault.ts";

/** One vault, or a part of it, changes hands. */
export interface Transfer {
  readonly vaultId: VaultId;
  /** Units that `to` receives; 0 for the whole rest. Less than the rest splits the vault. */
  readonly amount: bigint;
  /** The receiver. The zero address redeems: the units are burned. */
  readonly to: Address;
}

/**
 * An owner signs this. L1 gets all of these transfers, or none; each counts by itself, so this is
 * no swap.
 */
export interface TransfersMessage {
  /** 1 to {@link MAX_GROUP_TRANSFERS}. */
  readonly transfers: readonly Transfer[];
  /** Last second at which a commit may hold them, below 2^32. */
  readonly deadline: bigint;
}

/** An owner signs this so that another key may transfer for it. */
export interface SessionMessage {
  /** The owner: a key's account, or a wallet contract of that key. */
  readonly owner: Address;
  /** The account of the session's key. */
  readonly key: Address;
  /** Last second of the session. */
  readonly until: bigint;
  /** Most units of one transfer. */
  readonly limit: bigint;
  /** The only asset that the key may transfer; zero for every asset of the owner. */
  readonly assetType: Hash;
}

/** An owner signs this to end the session of a key. Anybody can bring it to L1. */
export type SessionEndMessage = Pick<SessionMessage, "owner" | "key">;

/** Most transfers that one signature covers. */
export const MAX_GROUP_TRANSFERS = 1024;
/**
 * Most transfers between a mint and an exit. A record of a vault that is so far from its mint does
 * not count. Otherwise a vault could be split again and again, until no block has the gas for its
 * exit.
 */
export const MAX_TRANSFER_HOPS = 8;
/**
 * Most transfers between a mint and the change that a session's key leaves. Otherwise the key could
 * give away single units, until the owner can give away nothing.
 */
export const MAX_SESSION_CHANGE_HOPS = 4;
/** Deadlines have four bytes, until the year 2106. */
export const MAX_TRANSFER_DEADLINE = (1n << 32n) - 1n;

/** The receiver's part of a transfer, and the change that stays with the owner. */
export const TransferPart = { receiver: 0, change: 1 } as const;
/** 0 receiver, 1 change. */
export type TransferPart = (typeof TransferPart)[keyof typeof TransferPart];

const LIST = "Transfer[] transfers,uint64 deadline";
const ITEM = "uint64 vaultId,uint64 amount,address to";

/** EIP-712 types of {@link TransfersMessage}. */
export const TRANSFERS_TYPES = { Transfers: struct(LIST), Transfer: struct(ITEM) } as const;

/** EIP-712 type of {@link SessionMessage}. */
export const SESSION_TYPES = {
  Session: struct("address owner,address key,uint64 until,uint64 limit,uint256 assetType"),
} as const;

/** EIP-712 type of {@link SessionEndMessage}. */
export const SESSION_END_TYPES = { SessionEnd: struct("address owner,address key") } as const;

const LEAF_PREFIX = 0x08;
const NO_MANIFEST: Hash = `0x${"00".repeat(HASH_BYTES)}`;
const ITEM_TYPE_HASH = textHash(`Transfer(${ITEM})`);
const TRANSFERS_TYPE_HASH = textHash(`Transfers(${LIST})Transfer(${ITEM})`);
/** prefix 1, output id 8, part 1, item 32, authorization 32. */
const LEAF_BYTES = 74;

/**
 * The `Transfers` typed data for viem's `signTypedData`. Throws `validation_failed` for values out
 * of bounds.
 *
 * @example
 * const message = { transfers: [{ vaultId, amount: 0n, to: friend }], deadline };
 * const signature = await owner.signTypedData(transfersTypedData(settlement, message));
 */
export function transfersTypedData(settlement: PortalIdentity, message: TransfersMessage) {
  requireTransfers(message);
  return typedData(settlement, TRANSFERS_TYPES, "Transfers", message);
}

/**
 * The digest that an owner, or a session's key, signs. It takes whatever a committed group can
 * hold, also amounts that no vault has. An engine needs thousands a second, and `hashTypedData`
 * takes a tenth of a millisecond for each.
 *
 * @example
 * await reader.approvedAt(owner, transfersDigest(settlement, { transfers, deadline }));
 */
export function transfersDigest(
  settlement: PortalIdentity,
  { transfers, deadline }: TransfersMessage,
): Hash {
  const message = packed([32], TRANSFERS_TYPE_HASH, transferList(transfers), deadline);
  return hashOf([2, 32, 32], 0x1901, domainHash(settlement), keccak256(message));
}

/**
 * The `Session` typed data for viem's `signTypedData`. Throws `validation_failed` for values out of
 * bounds.
 *
 * @example
 * const session = { owner: player.address, key: game.address, until, limit: 10n, assetType };
 * const signature = await player.signTypedData(sessionTypedData(settlement, session));
 */
export function sessionTypedData(settlement: PortalIdentity, session: SessionMessage) {
  requireBigint("until", session.until, 0n, MAX_UINT64);
  requireBigint("limit", session.limit, 1n, MAX_UINT64);
  const message = { ...session, assetType: BigInt(session.assetType) };
  return typedData(settlement, SESSION_TYPES, "Session", message);
}

/**
 * The `SessionEnd` typed data for viem's `signTypedData`.
 *
 * @example
 * const signature = await player.signTypedData(sessionEndTypedData(settlement, { owner:
 * player.address, key }));
 */
export function sessionEndTypedData(settlement: PortalIdentity, { owner, key }: SessionEndMessage) {
  return typedData(settlement, SESSION_END_TYPES, "SessionEnd", { owner, key } as const);
}

/**
 * The message that a committee member signs: it has checked every record of the batch. Its fields
 * are those of a validium batch, under another name, so that neither signature counts for the
 * other.
 */
export function transferBatchTypedData(settlement: PortalIdentity, batch: ValidiumBatchMessage) {
  const { domain, types, message } = validiumBatchTypedData(settlement, batch);
  return {
    domain,
    types: { TransferBatch: types.ValidiumBatch },
    primaryType: "TransferBatch",
    message,
  } as const;
}

/** EIP-712's `hashStruct` of one transfer; 32 bytes. */
export function transferItem({ vaultId, amount, to }: Transfer): Uint8Array {
  const words = new Uint8Array(4 * HASH_BYTES);
  const view = new DataView(words.buffer);
  words.set(ITEM_TYPE_HASH);
  view.setBigUint64(56, vaultId);
  view.setBigUint64(88, amount);
  writeHex(to, 20, words, 108);
  return keccak256(words);
}

/** The hash of a group's transfers, as EIP-712 hashes an array; 32 bytes. */
export function transferList(transfers: readonly Transfer[]): Uint8Array {
  const items = new Uint8Array(transfers.length * HASH_BYTES);
  for (const [i, transfer] of transfers.entries())
    items.set(transferItem(transfer), i * HASH_BYTES);
  return keccak256(items);
}

/**
 * Every leaf of a group binds this: `keccak256(deadline(4) ‖ list(32) ‖ signature(64))`.
 *
 * @param list - of {@link transferList}
 * @param signature - 64 bytes, or none when the owners have approved the list on L1, which stands
 *   for zeros
 */
export function transferAuth(
  deadline: bigint,
  list: Uint8Array,
  signature: Uint8Array,
): Uint8Array {
  return keccak256(packed([4, HASH_BYTES, 64], deadline, list, signature));
}

/** The leaf of an output: `keccak256(0x08 ‖ outId(8) ‖ part(1) ‖ item(32) ‖ auth(32))`. */
export function transferLeaf(
  outId: VaultId,
  part: TransferPart,
  item: Uint8Array,
  auth: Uint8Array,
): Uint8Array {
  const preimage = new Uint8Array(LEAF_BYTES);
  preimage[0] = LEAF_PREFIX;
  new DataView(preimage.buffer).setBigUint64(1, outId);
  preimage[9] = part;
  preimage.set(item, 10);
  preimage.set(auth, 42);
  return keccak256(preimage);
}

/**
 * The root of a transfer batch. Its kind is 3 and it has no manifest, so no proof of a mint leads
 * to it.
 *
 * @example
 * transferBatchRoot(bytesToHex(new BatchTree(leaves).root)) === header.batchRoot;
 */
export function transferBatchRoot(content: Hash): Hash {
  return batchRoot("transfers", NO_MANIFEST, content);
}

/**
 * Whether a transfer burns what it takes.
 *
 * @example
 * const used = transfers.filter(isRedemption);
 */
export function isRedemption({ to }: Pick<Transfer, "to">): boolean {
  return to.toLowerCase() === ZERO_ADDRESS;
}

/** Throws `validation_failed` unless every reader takes this message. */
export function requireTransfers({ transfers, deadline }: TransfersMessage): void {
  requireInteger("transfers", transfers.length, 1, MAX_GROUP_TRANSFERS);
  requireBigint("deadline", deadline, 0n, MAX_TRANSFER_DEADLINE);
  const seen = new Set<VaultId>();
  for (const [i, { vaultId, amount }] of transfers.entries()) {
    requireVaultId(`transfers[${i}].vaultId`, vaultId);
    requireBigint(`transfers[${i}].amount`, amount, 0n, MAX_AMOUNT);
    if (seen.has(vaultId))
      throw argumentError(`transfers[${i}].vaultId`, "is transferred by the same list already");
    seen.add(vaultId);
  }
}
