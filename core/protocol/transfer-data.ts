import type { Hex, Mode, VaultId } from "../model.ts";
import { BatchInput, BatchOutput } from "./batch-data.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { hexToBytes } from "./hex.ts";
import {
  MAX_GROUP_TRANSFERS,
  MAX_TRANSFER_DEADLINE,
  type Transfer,
  TransferPart,
  transferAuth,
  transferItem,
  transferLeaf,
  transferList,
} from "./transfer.ts";
import { isVaultId, packVaultId, requireVaultId } from "./vault.ts";

/**
 * The transfer data format (docs/protocol.md 10): the signed records of a transfer batch, always in
 * calldata.
 *
 * ```
 * version:u8  group+
 *
 * group:  form:u8 deadline:u32 [base:u64] [length:u16] [to:20] [signature:64]  record*length
 * record: id:u24 or u64  [to:20] [amount:u64]
 * form:   1: records have amounts          2: approved on L1, no signature   4: a length; otherwise one record
 *         8: a base, also of later groups  16: ids are whole vault ids of 8 bytes; otherwise added to the base
 *         32: one receiver for all records
 * ```
 *
 * The version is its own: batch data begins with 1 and blob data with 2, so the first byte tells
 * them apart.
 */
const TRANSFER_DATA_VERSION = 0x03;
/** Most slots of one transfer batch. The 128 KiB that nodes take in a transaction hold fewer. */
export const MAX_TRANSFER_SLOTS = 1 << 13;

const WITH_AMOUNTS = 1;
const APPROVED = 2;
const MANY = 4;
const NEW_BASE = 8;
const WHOLE_IDS = 16;
const ONE_RECEIVER = 32;
const ALL_FORMS = 63;
const GROUP_HEADER_BYTES = 5;
const SIGNATURE_BYTES = 64;
/** Ids reach so far from their base. */
const REACH = 1n << 24n;

/** Transfers under one signature, as they stand in the data. */
export interface TransferGroup {
  /** 1 to {@link MAX_GROUP_TRANSFERS}. */
  readonly transfers: readonly Transfer[];
  /** Seconds, below 2^32. */
  readonly deadline: bigint;
  /** 64 bytes `r ‖ vs` (EIP-2098); `0x` when the owners have approved the group on L1. */
  readonly signature: Hex;
}

/** One output of a transfer batch: the leaf of its slot. */
export interface TransferOutput {
  readonly outId: VaultId;
  readonly part: TransferPart;
  /** The number of the transfer's group in the data, from 0. */
  readonly group: number;
  readonly transfer: Transfer;
}

/**
 * The reasons for refusing transfer data. They are stable: committee members and the engine show
 * them.
 */
const TRANSFER_DATA_REASONS = {
  version_unknown: "The first byte is not a known version.",
  truncated: "The data ends too early.",
  no_group: "The batch has no group, so no slot.",
  form_unknown: "A group's form has unknown bits.",
  group_length: "A group has no record, or more than 1,024.",
  too_many_slots: "The batch has more than 8,192 slots.",
  vault_id: "A vault id has unused bits set, or more than 64 bits.",
  spent_twice: "Two records spend one vault.",
} as const;
export type TransferDataReason = keyof typeof TRANSFER_DATA_REASONS;

/** Transfer data that breaks the grammar. L1 refuses it too. */
export class TransferDataError extends Error {
  override readonly name = "TransferDataError";
  readonly reason: TransferDataReason;
  readonly offset: number;

  constructor(reason: TransferDataReason, offset: number) {
    super(`${TRANSFER_DATA_REASONS[reason]} (${reason} at byte ${offset})`);
    this.reason = reason;
    this.offset = offset;
  }
}

/**
 * Whether a batch's data holds transfers. Its first byte tells it from the other data of rollup
 * batches.
 */
export function isTransferData(mode: Mode, data: Uint8Array): boolean {
  return mode === "zk-rollup" && data[0] === TRANSFER_DATA_VERSION;
}

/**
 * The transfer data of these groups, each in its shortest form. It is shorter for groups in the
 * order of their vaults.
 *
 * @throws MintmarkError `validation_failed` for values out of bounds
 * @throws TransferDataError for a batch that L1 refuses: no group, too many slots, a vault twice
 */
export function encodeTransferData(groups: readonly TransferGroup[]): Uint8Array {
  const most = groups.reduce(
    (bytes, { transfers }) => bytes + MAX_GROUP_BYTES + 36 * transfers.length,
    1,
  );
  const output = new BatchOutput(most);
  output.uint(TRANSFER_DATA_VERSION, 1);
  let base = 0n;
  for (const group of groups) base = writeGroup(group, output, base);
  const data = output.bytes;
  // One set of rules: the decoder's.
  decodeTransferData(data);
  return data;
}

/**
 * The groups of transfer data, in order. Exactly what L1 takes is taken; L1 checks no signature and
 * no amount, nor does this.
 *
 * @throws TransferDataError with the reason and the byte
 *
 * @example
 * const transfers = decodeTransferData(data).flatMap((group) => group.transfers);
 */
export function decodeTransferData(data: Uint8Array): TransferGroup[] {
  if (data[0] !== TRANSFER_DATA_VERSION) throw new TransferDataError("version_unknown", 0);
  if (data.length === 1) throw new TransferDataError("no_group", 1);
  // L1 too says where the group begins that ends too late.
  let start = 1;
  const input = new BatchInput(data, () => new TransferDataError("truncated", start));
  input.skip(start);
  const groups: TransferGroup[] = [];
  const seen = new Set<VaultId>();
  let slots = 0;
  for (let before = 0n; !input.atEnd; ) {
    start = input.offset;
    const { base, ...group } = readGroup(input, before, seen);
    slots += group.transfers.reduce((sum, transfer) => sum + slotsOf(transfer), 0);
    if (slots > MAX_TRANSFER_SLOTS) throw new TransferDataError("too_many_slots", start);
    groups.push(group);
    before = base;
  }
  return groups;
}

/** The slots that a transfer takes: its receiver's, and one for the change of a split. */
export function slotsOf({ amount }: Pick<Transfer, "amount">): number {
  return amount === 0n ? 1 : 2;
}

/**
 * The outputs of a transfer batch, in slot order.
 *
 * @example
 * const made = transferOutputs(decodeTransferData(data), batchNumber).map(({ outId }) => outId);
 */
export function transferOutputs(
  groups: readonly TransferGroup[],
  batchNumber: number,
): TransferOutput[] {
  let slot = 0;
  const next = () => packVaultId({ mode: "zk-rollup", batchNumber, slot: slot++ });
  return groups.flatMap(({ transfers }, group) =>
    transfers.flatMap((transfer): TransferOutput[] => {
      const receiver = { outId: next(), part: TransferPart.receiver, group, transfer };
      return transfer.amount === 0n
        ? [receiver]
        : [receiver, { ...receiver, outId: next(), part: TransferPart.change }];
    }),
  );
}

/**
 * The leaves of a transfer batch, 32 bytes a slot, packed. Their tree's root is the batch's
 * content.
 *
 * @example
 * const content = new BatchTree(transferLeaves(decodeTransferData(data), batchNumber)).root;
 */
export function transferLeaves(groups: readonly TransferGroup[], batchNumber: number): Uint8Array {
  return leavesOf(groups, transferOutputs(groups, batchNumber));
}

/** The leaves of some outputs of these groups, in order, packed. */
export function leavesOf(
  groups: readonly TransferGroup[],
  outputs: readonly TransferOutput[],
): Uint8Array {
  const auths = new Map(
    [...new Set(outputs.map(({ group }) => group))].map((i) => {
      const { transfers, deadline, signature } = groups[i]!;
      return [i, transferAuth(deadline, transferList(transfers), hexToBytes(signature))];
    }),
  );
  const leaves = new Uint8Array(outputs.length * 32);
  for (const [i, { outId, part, group, transfer }] of outputs.entries()) {
    leaves.set(
      transferLeaf(outId, part, transferItem(transfer), auths.get(group) as Uint8Array),
      i * 32,
    );
  }
  return leaves;
}

/** Most bytes of a group before its records. */
const MAX_GROUP_BYTES = GROUP_HEADER_BYTES + 8 + 2 + 20 + SIGNATURE_BYTES;

/** The shortest form of a group behind this base, and the base that it begins with. */
function formOf(
  { transfers, signature }: TransferGroup,
  before: bigint,
): { form: number; base: bigint } {
  const ids = transfers.map(({ vaultId }) => vaultId);
  const least = ids.reduce((a, b) => (a < b ? a : b));
  const most = ids.reduce((a, b) => (a > b ? a : b));
  const reaches = (base: bigint) => base <= least && most - base < REACH;
  const ofBatch = (least >> 20n) << 20n;
  const base = [before, ofBatch, least].find(reaches) ?? before;
  const isOne =
    transfers.length > 1 &&
    transfers.every(({ to }) => to.toLowerCase() === transfers[0]?.to.toLowerCase());
  const form =
    (transfers.some(({ amount }) => amount !== 0n) ? WITH_AMOUNTS : 0) |
    (signature === "0x" ? APPROVED : 0) |
    (transfers.length > 1 ? MANY : 0) |
    (reaches(base) ? (base === before ? 0 : NEW_BASE) : WHOLE_IDS) |
    (isOne ? ONE_RECEIVER : 0);
  return { form, base };
}

const has = (form: number, bit: number): boolean => (form & bit) !== 0;

/** Returns the base of the ids behind the group. */
function writeGroup(group: TransferGroup, output: BatchOutput, before: bigint): bigint {
  const { transfers, deadline, signature } = group;
  requireInteger("transfers", transfers.length, 1, MAX_GROUP_TRANSFERS);
  requireBigint("deadline", deadline, 0n, MAX_TRANSFER_DEADLINE);
  const { form, base } = formOf(group, before);
  output.uint(form, 1);
  output.uint(Number(deadline), 4);
  if (has(form, NEW_BASE)) output.u64(base);
  if (has(form, MANY)) output.uint(transfers.length, 2);
  if (has(form, ONE_RECEIVER)) output.hex(transfers[0]!.to, 20);
  output.hex(signature, has(form, APPROVED) ? 0 : SIGNATURE_BYTES);
  for (const { vaultId, amount, to } of transfers) {
    requireVaultId("vaultId", vaultId);
    requireBigint("amount", amount, 0n, MAX_UINT64);
    if (has(form, WHOLE_IDS)) output.u64(vaultId);
    else output.uint(Number(vaultId - base), 3);
    if (!has(form, ONE_RECEIVER)) output.hex(to, 20);
    if (has(form, WITH_AMOUNTS)) output.u64(amount);
  }
  return base;
}

/** A group behind this base, and the base behind the group. */
function readGroup(
  input: BatchInput,
  before: bigint,
  seen: Set<VaultId>,
): TransferGroup & { readonly base: bigint } {
  const start = input.offset;
  const form = input.number(1);
  if (form > ALL_FORMS) throw new TransferDataError("form_unknown", start);
  const deadline = input.uint(4);
  const base = has(form, NEW_BASE) ? input.uint(8) : before;
  const length = has(form, MANY) ? input.number(2) : 1;
  if (length === 0 || length > MAX_GROUP_TRANSFERS)
    throw new TransferDataError("group_length", start);
  const receiver = has(form, ONE_RECEIVER) ? input.hex(20) : null;
  const signature = has(form, APPROVED) ? "0x" : input.hex(SIGNATURE_BYTES);
  const transfers: Transfer[] = [];
  for (let i = 0; i < length; i++) {
    const at = input.offset;
    const vaultId = has(form, WHOLE_IDS) ? input.uint(8) : base + input.uint(3);
    const to = receiver ?? input.hex(20);
    const amount = has(form, WITH_AMOUNTS) ? input.uint(8) : 0n;
    if (!isVaultId(vaultId)) throw new TransferDataError("vault_id", at);
    if (seen.has(vaultId)) throw new TransferDataError("spent_twice", at);
    seen.add(vaultId);
    transfers.push({ vaultId, amount, to });
  }
  return { transfers, deadline, signature, base };
}
