import type { Hex, Mode, VaultId } from "../model.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { bytesToHex, hexToBytes, writeHex } from "./hex.ts";
import {
  MAX_GROUP_TRANSFERS,
  MAX_TRANSFER_DEADLINE,
  type Transfer,
  TransferPart,
  transferAuth,
  transferItem,
  transferLeaf,
  transferList,
  writeDeadline,
} from "./transfers.ts";
import { packVaultId, unpackVaultId } from "./vault.ts";

/**
 * The transfer data format (docs/protocol.md 10): the signed records of a transfer batch, always in calldata.
 *
 * ```
 * version:u8  group+
 *
 * group:  form:u8 deadline:u40 length:u16 [signature:65]  record*length
 * form:   bit 0: records have amounts   bit 1: approved on L1, no signature
 * record: vaultId:u64 to:20 [amount:u64]
 * ```
 *
 * The version is its own: batch data begins with 1 and blob data with 2, so the first byte tells them apart.
 */
export const TRANSFER_DATA_VERSION = 0x03;
/** Most slots of one transfer batch. The 128 KiB that nodes take in a transaction hold fewer. */
export const MAX_TRANSFER_SLOTS = 1 << 13;

const WITH_AMOUNTS = 1;
const APPROVED = 2;
/** form 1, deadline 5, length 2. */
const GROUP_HEADER_BYTES = 8;
const SIGNATURE_BYTES = 65;
const RECORD_BYTES = 28;
const AMOUNT_BYTES = 8;
const UNUSED_ID_BITS = 0x7ff0_0000_0000_0000n;

/** Transfers under one signature, as they stand in the data. */
export interface TransferGroup {
  /** 1 to {@link MAX_GROUP_TRANSFERS}. */
  readonly transfers: readonly Transfer[];
  /** Seconds, below 2^40. */
  readonly deadline: bigint;
  /** 65 bytes `r ‖ s ‖ v`; `0x` when the owners have approved the group on L1. */
  readonly signature: Hex;
}

/** One output of a transfer batch: the leaf of its slot. */
export interface TransferOutput {
  readonly outId: VaultId;
  readonly part: TransferPart;
  /** Of the transfer in the data, from 0. */
  readonly group: number;
  readonly transfer: Transfer;
}

/** The reasons for refusing transfer data. They are stable: committee members and the engine show them. */
export const TRANSFER_DATA_REASONS = {
  version_unknown: "The first byte is not a known version.",
  truncated: "The data ends too early.",
  no_group: "The batch has no group, so no slot.",
  form_unknown: "A group's form has unknown bits.",
  group_length: "A group has no record, or more than 1,024.",
  too_many_slots: "The batch has more than 8,192 slots.",
  vault_id: "A vault id has unused bits set.",
  spent_twice: "Two records spend one vault.",
} as const;
/** A key of {@link TRANSFER_DATA_REASONS}. */
export type TransferDataReason = keyof typeof TRANSFER_DATA_REASONS;

/** Transfer data that breaks the grammar. L1 refuses it too. */
export class TransferDataError extends Error {
  override readonly name = "TransferDataError";
  readonly reason: TransferDataReason;
  /** Byte offset of the fault. */
  readonly offset: number;

  constructor(reason: TransferDataReason, offset: number) {
    super(`${TRANSFER_DATA_REASONS[reason]} (${reason} at byte ${offset})`);
    this.reason = reason;
    this.offset = offset;
  }
}

/** Whether a batch's data holds transfers. Its first byte tells it from the other data of rollup batches. */
export function isTransferData(mode: Mode, data: Uint8Array): boolean {
  return mode === "zk-rollup" && data[0] === TRANSFER_DATA_VERSION;
}

/**
 * The transfer data of these groups. A group without amounts takes the shorter form.
 *
 * @throws MintmarkError `validation_failed` for values out of bounds
 * @throws TransferDataError for a batch that L1 refuses: no group, too many slots, a vault twice
 */
export function encodeTransferData(groups: readonly TransferGroup[]): Uint8Array {
  const data = new Uint8Array(groups.reduce((bytes, group) => bytes + groupBytes(group), 1));
  data[0] = TRANSFER_DATA_VERSION;
  let offset = 1;
  for (const group of groups) offset = writeGroup(group, data, offset);
  // One set of rules: the decoder's.
  decodeTransferData(data);
  return data;
}

/**
 * The groups of transfer data, in order. Exactly what L1 takes is taken; L1 checks no signature and no amount, nor does
 * this.
 *
 * @throws TransferDataError with the reason and the byte
 *
 * @example
 * const transfers = decodeTransferData(data).flatMap((group) => group.transfers);
 */
export function decodeTransferData(data: Uint8Array): TransferGroup[] {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  if (data[0] !== TRANSFER_DATA_VERSION) throw new TransferDataError("version_unknown", 0);
  if (data.length === 1) throw new TransferDataError("no_group", 1);
  const groups: TransferGroup[] = [];
  const seen = new Set<VaultId>();
  let slots = 0;
  for (let offset = 1; offset < data.length; ) {
    const group = readGroup(view, offset, seen);
    slots += group.transfers.reduce((sum, transfer) => sum + slotsOf(transfer), 0);
    if (slots > MAX_TRANSFER_SLOTS) throw new TransferDataError("too_many_slots", offset);
    groups.push(group);
    offset += lengthOf(data[offset] as number, group.transfers.length);
  }
  return groups;
}

/** The slots that a transfer takes: its payee's, and one for the change of a split. */
export function slotsOf({ amount }: Pick<Transfer, "amount">): number {
  return amount === 0n ? 1 : 2;
}

/**
 * The outputs of a transfer batch, in slot order.
 *
 * @example
 * const made = transferOutputs(decodeTransferData(data), batchNumber).map(({ outId }) => outId);
 */
export function transferOutputs(groups: readonly TransferGroup[], batchNumber: number): TransferOutput[] {
  let slot = 0;
  const next = () => packVaultId({ mode: "zk-rollup", batchNumber, slot: slot++ });
  return groups.flatMap(({ transfers }, group) =>
    transfers.flatMap((transfer): TransferOutput[] => {
      const payee = { outId: next(), part: TransferPart.payee, group, transfer };
      return transfer.amount === 0n ? [payee] : [payee, { ...payee, outId: next(), part: TransferPart.change }];
    }),
  );
}

/**
 * The leaves of a transfer batch, 32 bytes a slot, packed. Their tree's root is the batch's content.
 *
 * @example
 * const content = new BatchTree(transferLeaves(decodeTransferData(data), batchNumber)).root;
 */
export function transferLeaves(groups: readonly TransferGroup[], batchNumber: number): Uint8Array {
  return leavesOf(groups, transferOutputs(groups, batchNumber));
}

/** The leaves of some outputs of these groups, in order, packed. */
export function leavesOf(groups: readonly TransferGroup[], outputs: readonly TransferOutput[]): Uint8Array {
  const auths = new Map(
    [...new Set(outputs.map(({ group }) => group))].map((i) => [i, groupAuth(groups[i] as TransferGroup)]),
  );
  const leaves = new Uint8Array(outputs.length * 32);
  for (const [i, { outId, part, group, transfer }] of outputs.entries()) {
    leaves.set(transferLeaf(outId, part, transferItem(transfer), auths.get(group) as Uint8Array), i * 32);
  }
  return leaves;
}

/** {@link transferAuth} of a group. */
export function groupAuth({ transfers, deadline, signature }: TransferGroup): Uint8Array {
  return transferAuth(deadline, transferList(transfers), hexToBytes(signature));
}

function groupBytes({ transfers, signature }: TransferGroup): number {
  return lengthOf(formOf(transfers, signature), transfers.length);
}

function formOf(transfers: readonly Transfer[], signature: Hex): number {
  return (transfers.some(({ amount }) => amount !== 0n) ? WITH_AMOUNTS : 0) | (signature === "0x" ? APPROVED : 0);
}

function lengthOf(form: number, count: number): number {
  return GROUP_HEADER_BYTES + signatureBytes(form) + count * recordBytes(form);
}

function signatureBytes(form: number): number {
  return (form & APPROVED) === 0 ? SIGNATURE_BYTES : 0;
}

function recordBytes(form: number): number {
  return RECORD_BYTES + ((form & WITH_AMOUNTS) === 0 ? 0 : AMOUNT_BYTES);
}

function writeGroup({ transfers, deadline, signature }: TransferGroup, data: Uint8Array, start: number): number {
  requireInteger("transfers", transfers.length, 1, MAX_GROUP_TRANSFERS);
  requireBigint("deadline", deadline, 0n, MAX_TRANSFER_DEADLINE);
  const view = new DataView(data.buffer);
  const form = formOf(transfers, signature);
  data[start] = form;
  writeDeadline(deadline, data, start + 1);
  view.setUint16(start + 6, transfers.length);
  let offset = writeHex(signature, signatureBytes(form), data, start + GROUP_HEADER_BYTES);
  for (const { vaultId, amount, to } of transfers) {
    unpackVaultId(vaultId);
    requireBigint("amount", amount, 0n, MAX_UINT64);
    view.setBigUint64(offset, vaultId);
    offset = writeHex(to, 20, data, offset + 8);
    if ((form & WITH_AMOUNTS) === 0) continue;
    view.setBigUint64(offset, amount);
    offset += AMOUNT_BYTES;
  }
  return offset;
}

function readGroup(view: DataView, start: number, seen: Set<VaultId>): TransferGroup {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  const form = view.getUint8(start);
  if (form > (WITH_AMOUNTS | APPROVED)) throw new TransferDataError("form_unknown", start);
  if (start + GROUP_HEADER_BYTES > bytes.length) throw new TransferDataError("truncated", start);
  const deadline = (BigInt(view.getUint8(start + 1)) << 32n) | BigInt(view.getUint32(start + 2));
  const length = view.getUint16(start + 6);
  if (length === 0 || length > MAX_GROUP_TRANSFERS) throw new TransferDataError("group_length", start + 6);
  if (start + lengthOf(form, length) > bytes.length) throw new TransferDataError("truncated", start);
  let offset = start + GROUP_HEADER_BYTES;
  const signature = bytesToHex(bytes.subarray(offset, offset + signatureBytes(form)));
  offset += signatureBytes(form);
  const transfers: Transfer[] = [];
  for (let i = 0; i < length; i++, offset += recordBytes(form)) {
    const vaultId = view.getBigUint64(offset);
    if ((vaultId & UNUSED_ID_BITS) !== 0n) throw new TransferDataError("vault_id", offset);
    if (seen.has(vaultId)) throw new TransferDataError("spent_twice", offset);
    seen.add(vaultId);
    const to = bytesToHex(bytes.subarray(offset + 8, offset + RECORD_BYTES));
    const amount = (form & WITH_AMOUNTS) === 0 ? 0n : view.getBigUint64(offset + RECORD_BYTES);
    transfers.push({ vaultId, amount, to });
  }
  return { transfers, deadline, signature };
}
