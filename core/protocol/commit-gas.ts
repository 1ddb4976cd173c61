import type { BatchColumns } from "./batch-columns.ts";
import {
  ASSET_ENTRY_BYTES,
  BATCH_DATA_BASE_BYTES,
  OwnerForm,
  RUN_HEADER_BYTES,
  VOID_RUN,
  vaultBytesBound,
} from "./batch-data.ts";
import type { Run } from "./batch-runs.ts";
import { BlobKind } from "./run-forms.ts";

/**
 * Upper bounds of what `commitRollupBatch` takes, measured on the contract and rounded up; `test/contracts/commit-gas.test.ts` holds them.
 * Whoever changes the contract's loops measures them again.
 */
const GAS = {
  /** The transaction itself, its storage with every slot new and 32 frontier slots read, its event, and its other arguments' calldata. */
  base: 200_000,
  /** Calldata: a byte beside the execution, and a byte by EIP-7623's floor. */
  byte: 16,
  floorByte: 40,
  /** A registered asset that is read for the first time. */
  asset: 3_300,
  /** An entry of the owners' dictionary. */
  owner: 90,
  voidRun: 420,
  voidSlot: 90,
  /** A run in the contract's general loop, and in one of its tight loops. */
  run: 1_760,
  tightRun: 2_750,
  /** A consecutive run's first number, and each of its digits. */
  first: 300,
  firstDigit: 100,
  /** A vault with its leaf and its share of the tree: in the general loop, in a tight loop, and for digits that are unpacked there. */
  vault: 890,
  tightVault: 640,
  unpacking: 260,
} as const;
/** Memory costs a gas for each 512 words, squared; the linear part is in what was measured. */
const MEMORY_SQUARE = 512;
const WORD_BYTES = 32;
/** Arrays that hold a word for each asset. */
const ASSET_ARRAYS = 4;

/** Digits that a tight loop unpacks from one word, and bytes of a raw blob that it reads as one. */
const TIGHT_DIGITS = 8;
const TIGHT_BYTES = 32;

/**
 * Isolated void slots cut runs. At worst every second slot is void: then each pair of slots has a run with a vault, and a void run. A
 * void run also frees at least 21 bytes of calldata. {@link contentGas} charges each slot half of such a pair, and each run the rest of
 * what it takes when nothing is void.
 */
const VOID_PAIR = GAS.voidRun + GAS.voidSlot - 21 * GAS.byte;
const SLOT_GAS = Math.ceil((GAS.vault + GAS.run + VOID_PAIR) / 2);
const RUN_GAS = GAS.vault + GAS.run - SLOT_GAS;

/** What the gas of a batch depends on, whatever forms the encoder gives it. */
export interface BatchContent {
  readonly vaults: number;
  /** Stretches that {@link plainRuns} writes as one run. */
  readonly runs: number;
  readonly assets: number;
  /** Upper bound of the encoded data: the sum of `vaultBytesBound` and what stands before the runs. */
  readonly bytes: number;
  /** Of them, bytes of blobs. */
  readonly blobBytes: number;
}

/** The content of the slots that are not void. */
export function contentOf({ asset, assets, amountWidth, blobBytes, count }: BatchColumns): BatchContent {
  const content = { vaults: 0, runs: 0, assets: assets.length, bytes: 0, blobBytes: 0 };
  content.bytes = BATCH_DATA_BASE_BYTES + assets.length * ASSET_ENTRY_BYTES;
  let last = -1;
  for (let slot = 0; slot < count; slot++) {
    if (asset[slot] === VOID_RUN) continue;
    if (
      last < 0 ||
      asset[slot] !== asset[last] ||
      isWide(amountWidth[slot] as number) !== isWide(amountWidth[last] as number)
    )
      content.runs++;
    content.vaults++;
    content.bytes += vaultBytesBound(amountWidth[slot] as number, blobBytes[slot] as number);
    content.blobBytes += blobBytes[slot] as number;
    last = slot;
  }
  return content;
}

/** Upper bound of the gas of committing a rollup batch with this content, whichever of its slots become void. */
export function contentGas({ vaults, runs, assets, bytes, blobBytes }: BatchContent): number {
  const execution = vaults * SLOT_GAS + runs * RUN_GAS + assets * GAS.asset + blobBytes;
  return transactionGas(bytes, execution, vaults + assets * ASSET_ARRAYS);
}

/** Upper bound of the gas of committing a rollup batch that is written as these runs. */
export function commitGas(columns: BatchColumns, runs: readonly Run[], bytes: number, owners: number): number {
  let execution = columns.assets.length * GAS.asset + owners * GAS.owner;
  for (const run of runs) execution += runGas(columns, run);
  return transactionGas(bytes, execution, columns.count + owners + columns.assets.length * ASSET_ARRAYS);
}

function transactionGas(bytes: number, execution: number, words: number): number {
  // The data is copied into memory to be hashed.
  const memory = words + Math.ceil(bytes / WORD_BYTES);
  const executed = execution + Math.ceil(memory ** 2 / MEMORY_SQUARE);
  return GAS.base + Math.max(GAS.floorByte * bytes, GAS.byte * bytes + executed);
}

function runGas(columns: BatchColumns, { start, end, ownerForm, blobKind, amountForm }: Run): number {
  const length = end - start;
  if (columns.asset[start] === VOID_RUN) return GAS.voidRun + length * GAS.voidSlot;
  const digits = columns.digits[start] as number;
  const isRange = blobKind === BlobKind.consecutive;
  const isTight =
    amountForm === 0 &&
    ((blobKind === BlobKind.packed && digits <= TIGHT_DIGITS) ||
      (blobKind === BlobKind.rawOfOneLength && (columns.blobBytes[start] as number) <= TIGHT_BYTES) ||
      (isRange && ownerForm === OwnerForm.run));
  const first = isRange ? GAS.first + digits * GAS.firstDigit : 0;
  if (isTight) return GAS.tightRun + first + length * GAS.tightVault;
  const unpacking = blobKind === BlobKind.packed || isRange ? GAS.unpacking : 0;
  let blobBytes = 0;
  for (let slot = start; slot < end; slot++) blobBytes += columns.blobBytes[slot] as number;
  return GAS.run + first + length * (GAS.vault + unpacking) + blobBytes;
}

/** Whether an amount of so many bytes is written in runs of their own: to write others as wide would take more than a header. */
export function isWide(amountWidth: number): boolean {
  return amountWidth > RUN_HEADER_BYTES;
}

/**
 * The runs that stay cheap whatever the batch holds: owners in full and raw blobs that each say their length, cut only where the asset
 * changes or where wide amounts begin or end. They take no more bytes than the sum of `vaultBytesBound`, which has a header for each
 * vault.
 */
export function plainRuns({ asset, amountWidth, blobBytes, count }: BatchColumns): Run[] {
  const runs: Run[] = [];
  for (let start = 0; start < count; ) {
    const isEmpty = asset[start] === VOID_RUN || blobBytes[start] === 0;
    const wide = isWide(amountWidth[start] as number);
    let amountForm = 0;
    let end = start;
    for (; end < count && asset[end] === asset[start]; end++) {
      const width = amountWidth[end] as number;
      if (isWide(width) !== wide || (blobBytes[end] === 0) !== (blobBytes[start] === 0)) break;
      amountForm = Math.max(amountForm, width);
    }
    const blobKind = isEmpty ? BlobKind.empty : BlobKind.raw;
    runs.push({ start, end, ownerForm: OwnerForm.inline, blobKind, amountForm });
    start = end;
  }
  return runs;
}
