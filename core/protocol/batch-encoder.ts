import { type BatchColumns, readColumns } from "./batch-columns.ts";
import type { VaultEntry } from "./batch-data.ts";
import * as format from "./batch-data.ts";
import { BlobKind, OwnerClass, planRuns, type Run, type RunPlan } from "./batch-runs.ts";
import { commitGas, contentGas, contentOf, plainRuns } from "./commit-gas.ts";
import { writeHex } from "./hex.ts";

/**
 * Encodes the slots of a batch (docs/protocol.md 4). A pure function, linear in the number of slots; `decodeBatchData`
 * inverts it. It puts owners into a dictionary where that is shorter, writes consecutive decimal ids as ranges and
 * other decimals as two digits a byte, and starts a new run where the saving exceeds its header.
 *
 * @param slots - 1 to 2^20 in slot order; null for a void one. Vault ids are not read
 * @param least - the cost to minimize: `bytes` for data that a committee stores; `gas` for data that L1 decodes, where
 *   packing digits pays only if calldata costs more than unpacking
 * @throws MintmarkError `validation_failed`, `amount_out_of_range`, `blob_invalid` or `batch_too_large` (more than 255
 *   assets)
 *
 * @example
 * const data = encodeBatchData([{ chainId: 1n, owner, assetType, amount: 1n, blob: "0x3137" }, null]);
 * decodeBatchData(data).length; // 2 slots; the second one is void
 */
export function encodeBatchData(slots: readonly (VaultEntry | null)[], least: "bytes" | "gas" = "bytes"): Uint8Array {
  return encodeBatchColumns(readColumns(slots), least);
}

/** {@link encodeBatchData} for slots that are already columns. */
export function encodeBatchColumns(columns: BatchColumns, least: "bytes" | "gas" = "bytes"): Uint8Array {
  const packed = planRuns(columns, "packed");
  if (least === "bytes") return writeBatch(columns, packed);
  const raw = planRuns(columns, "raw");
  const fewest = gasOf(columns, raw) < gasOf(columns, packed) ? raw : packed;
  return writeBatch(columns, withinBound(columns, fewest));
}

/** The plan itself. If its runs take more gas than a batch of this content may, the plain plan. */
function withinBound(columns: BatchColumns, plan: RunPlan): RunPlan {
  const gas = boundOf(columns, plan);
  if (gas <= contentGas(contentOf(columns))) return plan;
  const plain = { runs: plainRuns(columns), ownerClass: plan.ownerClass };
  return boundOf(columns, plain) < gas ? plain : plan;
}

function boundOf(columns: BatchColumns, plan: RunPlan): number {
  const owners = dictionarySize(columns, plan);
  return commitGas(columns, plan.runs, sizeOf(columns, plan, owners), owners);
}

/** Calldata gas of a nonzero byte: its price, and the floor price of EIP-7623. */
const BYTE_GAS = 16;
const BYTE_FLOOR_GAS = 40;
/** Measured execution gas: a commit; a vault's leaf with its share of the tree; unpacking its digits. */
const COMMIT_GAS = 50_000;
const VAULT_GAS = 350;
const UNPACK_GAS = 130;

/** Estimated cost of this plan on L1: exact enough to choose between two plans. */
function gasOf(columns: BatchColumns, plan: RunPlan): number {
  let packed = 0;
  for (const { start, end, blobKind } of plan.runs) if (blobKind === BlobKind.packed) packed += end - start;
  const bytes = sizeOf(columns, plan, dictionarySize(columns, plan));
  const execution = COMMIT_GAS + columns.count * VAULT_GAS + packed * UNPACK_GAS;
  return Math.max(bytes * BYTE_FLOOR_GAS, bytes * BYTE_GAS + execution);
}

function writeBatch(columns: BatchColumns, plan: RunPlan): Uint8Array {
  const dictionary = ownerDictionary(columns, plan);
  const output = new BatchOutput(sizeOf(columns, plan, dictionary.owners.length));
  output.uint(format.BATCH_DATA_VERSION, 1);
  output.uint(columns.assets.length, 2);
  for (const { chainId, assetType } of columns.assets) {
    output.words(Number(chainId >> 32n), Number(chainId & 0xffff_ffffn), 8);
    output.hex(assetType, 32);
  }
  output.uint(dictionary.owners.length, 2);
  for (const owner of dictionary.owners) output.slice(owner, 0, format.OWNER_BYTES);
  for (const run of plan.runs) writeRun(output, run, columns, dictionary.indices);
  return output.bytes;
}

function dictionarySize(columns: BatchColumns, plan: RunPlan): number {
  let size = 0;
  for (const isUsed of usedOwners(columns, plan)) size += isUsed;
  return size;
}

/** 1 for each owner that a run refers to by index. */
function usedOwners(columns: BatchColumns, { runs }: RunPlan): Uint8Array {
  const isUsed = new Uint8Array(columns.owners.length);
  for (const { start, end, ownerForm } of runs) {
    if (columns.asset[start] === format.VOID_RUN || ownerForm === format.OwnerForm.inline) continue;
    for (let slot = start; slot < end; slot++) isUsed[columns.owner[slot] as number] = 1;
  }
  return isUsed;
}

/** The owners that runs refer to by index, one-byte indices first, and the index of each owner. */
function ownerDictionary(columns: BatchColumns, plan: RunPlan) {
  const isUsed = usedOwners(columns, plan);
  const { ownerClass } = plan;
  const ids = Array.from(columns.owners.keys()).filter((id) => isUsed[id] === 1);
  const isNear = (id: number) => columns.owners.length <= 256 || ownerClass[id] === OwnerClass.near;
  const ordered = [...ids.filter(isNear), ...ids.filter((id) => !isNear(id))];
  const indices = new Uint16Array(columns.owners.length);
  for (const [index, id] of ordered.entries()) indices[id] = index;
  return { owners: ordered.map((id) => columns.owners[id] as Uint8Array), indices };
}

function sizeOf(columns: BatchColumns, { runs }: RunPlan, owners: number): number {
  let size =
    format.BATCH_DATA_BASE_BYTES + columns.assets.length * format.ASSET_ENTRY_BYTES + owners * format.OWNER_BYTES;
  for (const run of runs) size += runSize(run, columns);
  return size;
}

function runSize({ start, end, ownerForm, blobKind, amountForm }: Run, columns: BatchColumns): number {
  if (columns.asset[start] === format.VOID_RUN) return format.VOID_RUN_BYTES;
  const length = end - start;
  const packedBytes = ((columns.digits[start] as number) + 1) >> 1;
  const ownerBytes = [format.OWNER_BYTES, 1, 2, 0][ownerForm] as number;
  let size =
    format.RUN_HEADER_BYTES + (ownerForm === format.OwnerForm.run ? 2 : 0) + length * (ownerBytes + amountForm);
  if (blobKind !== BlobKind.empty) size += 1;
  if (blobKind === BlobKind.packed) size += length * packedBytes;
  if (blobKind === BlobKind.consecutive) size += packedBytes;
  if (blobKind === BlobKind.rawOfOneLength) size += length * (columns.blobBytes[start] as number);
  if (blobKind === BlobKind.raw) {
    for (let slot = start; slot < end; slot++) size += 1 + (columns.blobBytes[slot] as number);
  }
  return size;
}

function writeRun(output: BatchOutput, run: Run, columns: BatchColumns, ownerIndices: Uint16Array): void {
  const { start, end, ownerForm, blobKind, amountForm } = run;
  output.uint(columns.asset[start] as number, 2);
  if (columns.asset[start] === format.VOID_RUN) {
    output.uint(end - start, 3);
    return;
  }
  const blobForm = blobKind === BlobKind.rawOfOneLength ? format.BlobForm.raw : blobKind;
  output.uint((amountForm << 4) | (blobForm << 2) | ownerForm, 1);
  output.uint(end - start, 3);
  if (ownerForm === format.OwnerForm.run) output.uint(ownerIndices[columns.owner[start] as number] as number, 2);
  if (blobKind === BlobKind.raw) output.uint(0, 1);
  else if (blobKind !== BlobKind.empty) output.uint(columns.blobBytes[start] as number, 1);
  const { owner, owners, amountHigh, amountLow, blobs, blobEnd } = columns;
  const blobStart = (slot: number) => (slot === 0 ? 0 : (blobEnd[slot - 1] as number));
  if (blobKind === BlobKind.consecutive) output.packedSlice(blobs, blobStart(start), blobEnd[start] as number);
  for (let slot = start; slot < end; slot++) {
    if (ownerForm === format.OwnerForm.inline)
      output.slice(owners[owner[slot] as number] as Uint8Array, 0, format.OWNER_BYTES);
    else if (ownerForm !== format.OwnerForm.run) output.uint(ownerIndices[owner[slot] as number] as number, ownerForm);
    if (amountForm > 0) output.words(amountHigh[slot] as number, amountLow[slot] as number, amountForm);
    if (blobKind === BlobKind.packed) output.packedSlice(blobs, blobStart(slot), blobEnd[slot] as number);
    if (blobKind === BlobKind.raw) output.uint(columns.blobBytes[slot] as number, 1);
    if (blobForm === format.BlobForm.raw) output.slice(blobs, blobStart(slot), blobEnd[slot] as number);
  }
}

/** Appends the big-endian values of batch data. */
class BatchOutput {
  readonly bytes: Uint8Array;
  #offset = 0;

  constructor(size: number) {
    this.bytes = new Uint8Array(size);
  }

  /** An unsigned integer below 2^32 in `size` bytes, 1 to 8. */
  uint(value: number, size: number): void {
    let rest = value;
    for (let at = this.#offset + size - 1; at >= this.#offset; at--) {
      this.bytes[at] = rest & 0xff;
      rest >>>= 8;
    }
    this.#offset += size;
  }

  hex(hex: string, size: number): void {
    this.#offset = writeHex(hex, size, this.bytes, this.#offset);
  }

  /** An integer of two 32-bit words in `size` bytes, 1 to 8. */
  words(high: number, low: number, size: number): void {
    if (size > 4) this.uint(high, size - 4);
    this.uint(low, Math.min(size, 4));
  }

  slice(from: Uint8Array, start: number, end: number): void {
    for (let i = start; i < end; i++) this.bytes[this.#offset++] = from[i] as number;
  }

  /** Packs characters 0x30 to 0x3f, one nibble a character, right-aligned. */
  packedSlice(from: Uint8Array, start: number, end: number): void {
    let at = start;
    if ((end - start) % 2 === 1) this.bytes[this.#offset++] = (from[at++] as number) & 0x0f;
    for (; at < end; at += 2) {
      this.bytes[this.#offset++] = (((from[at] as number) & 0x0f) << 4) | ((from[at + 1] as number) & 0x0f);
    }
  }
}
