import { type BatchColumns, readColumns } from "./batch-columns.ts";
import type { VaultEntry } from "./batch-data.ts";
import * as format from "./batch-data.ts";
import { BlobKind, OwnerClass, planRuns, type Run, type RunPlan } from "./batch-runs.ts";
import { commitGas, contentGas, contentOf, plainRuns } from "./commit-gas.ts";

/**
 * Encodes the slots of a batch (docs/protocol.md 4). A pure function, linear in the number of
 * slots; `decodeBatchData` inverts it. It puts owners into a dictionary where that is shorter,
 * writes consecutive decimal ids as ranges and other decimals as two digits a byte, and starts a
 * new run where the saving exceeds its header.
 *
 * @param slots - 1 to 2^20 in slot order; null for a void one. Vault ids are not read
 * @param least - the cost to minimize: `bytes` for data that a committee stores; `gas` for data
 *   that L1 decodes, where packing digits pays only if calldata costs more than unpacking
 * @throws MintmarkError `validation_failed`, `amount_out_of_range`, `blob_invalid` or
 *   `batch_too_large` (more than 255 assets)
 *
 * @example
 * const data = encodeBatchData([{ chainId: 1n, owner, assetType, amount: 1n, blob: "0x3137" },
 * null]); decodeBatchData(data).length; // 2 slots; the second one is void
 */
export function encodeBatchData(
  slots: readonly (VaultEntry | null)[],
  least: "bytes" | "gas" = "bytes",
): Uint8Array {
  return encodeBatchColumns(readColumns(slots), least);
}

/** {@link encodeBatchData} for slots that are already columns. */
export function encodeBatchColumns(
  columns: BatchColumns,
  least: "bytes" | "gas" = "bytes",
): Uint8Array {
  const packed = planRuns(columns, "packed");
  if (least === "bytes") return writeBatch(columns, packed);
  const raw = planRuns(columns, "raw");
  const fewest = gasOf(columns, raw) < gasOf(columns, packed) ? raw : packed;
  const data = writeBatch(columns, fewest);
  const gas = boundOf(columns, fewest, data);
  const content = contentOf(columns);
  if (gas <= contentGas(content)) return data;
  // Its runs take more gas than a batch of this content may.
  const bytes = content.bytes + columns.count * format.VOID_RUN_BYTES;
  const plain = {
    runs: plainRuns(columns),
    ownerClass: new Uint8Array(),
    isUsed: new Uint8Array(),
    bytes,
  };
  const plainData = writeBatch(columns, plain);
  return boundOf(columns, plain, plainData) < gas ? plainData : data;
}

function boundOf(columns: BatchColumns, { runs, isUsed }: RunPlan, data: Uint8Array): number {
  const owners = isUsed.reduce((sum, used) => sum + used, 0);
  return commitGas(columns, runs, data.length, owners);
}

/** Calldata gas of a nonzero byte: its price, and the floor price of EIP-7623. */
const BYTE_GAS = 16;
const BYTE_FLOOR_GAS = 40;
/**
 * Measured execution gas: a commit; a vault's leaf with its share of the tree; unpacking its
 * digits.
 */
const COMMIT_GAS = 50_000;
const VAULT_GAS = 350;
const UNPACK_GAS = 130;

/** Estimated cost of this plan on L1: exact enough to choose between two plans. */
function gasOf({ count }: BatchColumns, { runs, bytes }: RunPlan): number {
  let packed = 0;
  for (const { start, end, blobKind } of runs)
    if (blobKind === BlobKind.packed) packed += end - start;
  const execution = COMMIT_GAS + count * VAULT_GAS + packed * UNPACK_GAS;
  return Math.max(bytes * BYTE_FLOOR_GAS, bytes * BYTE_GAS + execution);
}

function writeBatch(columns: BatchColumns, plan: RunPlan): Uint8Array {
  const { owners, indices } = ownerDictionary(columns, plan);
  const output = new format.BatchOutput(plan.bytes);
  output.uint(format.BATCH_DATA_VERSION, 1);
  output.uint(columns.assets.length, 2);
  for (const { chainId, assetType } of columns.assets) {
    output.u64(chainId);
    output.hex(assetType, 32);
  }
  output.uint(owners.length, 2);
  for (const owner of owners) output.slice(owner, 0, format.OWNER_BYTES);
  for (const run of plan.runs) writeRun(output, run, columns, indices);
  return output.bytes;
}

/** The owners that runs refer to by index, one-byte indices first, and the index of each owner. */
function ownerDictionary({ owners }: BatchColumns, { isUsed, ownerClass }: RunPlan) {
  const ids = Array.from(owners.keys()).filter((id) => isUsed[id] === 1);
  const isNear = (id: number) => owners.length <= 256 || ownerClass[id] === OwnerClass.near;
  const ordered = [...ids.filter(isNear), ...ids.filter((id) => !isNear(id))];
  const indices = new Uint16Array(owners.length);
  for (const [index, id] of ordered.entries()) indices[id] = index;
  return { owners: ordered.map((id) => owners[id] as Uint8Array), indices };
}

function writeRun(
  output: format.BatchOutput,
  run: Run,
  columns: BatchColumns,
  ownerIndices: Uint16Array,
): void {
  const { start, end, ownerForm, blobKind, amountForm } = run;
  output.uint(columns.asset[start] as number, 2);
  if (columns.asset[start] === format.VOID_RUN) {
    output.uint(end - start, 3);
    return;
  }
  const blobForm = blobKind === BlobKind.rawOfOneLength ? format.BlobForm.raw : blobKind;
  output.uint((amountForm << 4) | (blobForm << 2) | ownerForm, 1);
  output.uint(end - start, 3);
  if (ownerForm === format.OwnerForm.run)
    output.uint(ownerIndices[columns.owner[start] as number] as number, 2);
  if (blobKind === BlobKind.raw) output.uint(0, 1);
  else if (blobKind !== BlobKind.empty) output.uint(columns.blobBytes[start] as number, 1);
  const { owner, owners, amountHigh, amountLow, blobs, blobEnd } = columns;
  const blobStart = (slot: number) => (slot === 0 ? 0 : (blobEnd[slot - 1] as number));
  if (blobKind === BlobKind.consecutive)
    output.packedSlice(blobs, blobStart(start), blobEnd[start] as number);
  for (let slot = start; slot < end; slot++) {
    if (ownerForm === format.OwnerForm.inline)
      output.slice(owners[owner[slot] as number] as Uint8Array, 0, format.OWNER_BYTES);
    else if (ownerForm !== format.OwnerForm.run)
      output.uint(ownerIndices[owner[slot] as number] as number, ownerForm);
    if (amountForm > 0)
      output.words(amountHigh[slot] as number, amountLow[slot] as number, amountForm);
    if (blobKind === BlobKind.packed)
      output.packedSlice(blobs, blobStart(slot), blobEnd[slot] as number);
    if (blobKind === BlobKind.raw) output.uint(columns.blobBytes[slot] as number, 1);
    if (blobForm === format.BlobForm.raw)
      output.slice(blobs, blobStart(slot), blobEnd[slot] as number);
  }
}
