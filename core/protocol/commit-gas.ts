import type { BatchColumns } from "./batch-columns.ts";
import * as format from "./batch-data.ts";
import type { Run } from "./batch-runs.ts";
import { BlobKind } from "./batch-runs.ts";

/**
 * Upper bounds of the gas of `commitRollupBatch`, measured on the contract and rounded up;
 * `test/contracts/commit-gas.test.ts` holds them. Measure again after a change of the contract's
 * loops.
 */
const GAS = {
  /**
   * The transaction, its storage (all slots new, 32 frontier slots read), its event, other
   * arguments' calldata.
   */
  base: 200_000,
  /** Calldata: the price of a byte besides the execution, and its floor price (EIP-7623). */
  byte: 16,
  floorByte: 40,
  /**
   * The first read of a registered asset, from four slots at worst, and the consent of an issuer's
   * key.
   */
  asset: 16_500,
  owner: 90,
  voidRun: 420,
  voidSlot: 90,
  run: 1_900,
  /** The first number of a consecutive run, and each of its digits. */
  first: 300,
  firstDigit: 100,
  /**
   * A vault with its share of the tree: any, one of consecutive ids of one owner, and what its
   * digits add.
   */
  vault: 720,
  rangeVault: 400,
  unpacking: 230,
} as const;
/**
 * Memory costs the square of its words divided by 512. The measured bounds contain the linear part.
 */
const MEMORY_SQUARE = 512;
const WORD_BYTES = 32;
const ASSET_ARRAYS = 4;

/**
 * Isolated void slots cut runs. In the worst case every second slot is void, and each pair of slots
 * has a run with a vault and a void run. A void run also frees at least 21 bytes of calldata.
 * {@link contentGas} charges half of such a pair for each slot, and the rest of a run's cost for
 * each run.
 */
const VOID_PAIR = GAS.voidRun + GAS.voidSlot - 21 * GAS.byte;
const SLOT_GAS = Math.ceil((GAS.vault + GAS.run + VOID_PAIR) / 2);
const RUN_GAS = GAS.vault + GAS.run - SLOT_GAS;

/** The properties of a batch that determine its gas, whatever forms the encoder chooses. */
export interface BatchContent {
  readonly vaults: number;
  /** Runs of {@link plainRuns}. */
  readonly runs: number;
  readonly assets: number;
  /**
   * Upper bound of the encoded data: the sum of `vaultBytesBound` and the bytes before the runs.
   */
  readonly bytes: number;
  readonly blobBytes: number;
}

export function contentOf({
  asset,
  assets,
  amountWidth,
  blobBytes,
  count,
}: BatchColumns): BatchContent {
  const content = { vaults: 0, runs: 0, assets: assets.length, bytes: 0, blobBytes: 0 };
  content.bytes = format.BATCH_DATA_BASE_BYTES + assets.length * format.ASSET_ENTRY_BYTES;
  let last = -1;
  for (let slot = 0; slot < count; slot++) {
    if (asset[slot] === format.VOID_RUN) continue;
    if (
      last < 0 ||
      asset[slot] !== asset[last] ||
      isWide(amountWidth[slot] as number) !== isWide(amountWidth[last] as number)
    )
      content.runs++;
    content.vaults++;
    content.bytes += format.vaultBytesBound(amountWidth[slot] as number, blobBytes[slot] as number);
    content.blobBytes += blobBytes[slot] as number;
    last = slot;
  }
  return content;
}

/**
 * Upper bound of the gas of committing a rollup batch with this content, even if some slots become
 * void.
 */
export function contentGas({ vaults, runs, assets, bytes, blobBytes }: BatchContent): number {
  const execution = vaults * SLOT_GAS + runs * RUN_GAS + assets * GAS.asset + blobBytes;
  return transactionGas(bytes, execution, vaults + assets * ASSET_ARRAYS);
}

/** Upper bound of the gas of committing a rollup batch with these runs. */
export function commitGas(
  columns: BatchColumns,
  runs: readonly Run[],
  bytes: number,
  owners: number,
): number {
  let execution = columns.assets.length * GAS.asset + owners * GAS.owner;
  for (const run of runs) execution += runGas(columns, run);
  return transactionGas(
    bytes,
    execution,
    columns.count + owners + columns.assets.length * ASSET_ARRAYS,
  );
}

function transactionGas(bytes: number, execution: number, words: number): number {
  // The contract copies the data into memory to hash it.
  const memory = words + Math.ceil(bytes / WORD_BYTES);
  const executed = execution + Math.ceil(memory ** 2 / MEMORY_SQUARE);
  return GAS.base + Math.max(GAS.floorByte * bytes, GAS.byte * bytes + executed);
}

function runGas(
  columns: BatchColumns,
  { start, end, ownerForm, blobKind, amountForm }: Run,
): number {
  const length = end - start;
  if (columns.asset[start] === format.VOID_RUN) return GAS.voidRun + length * GAS.voidSlot;
  const digits = columns.digits[start] as number;
  const isRange = blobKind === BlobKind.consecutive;
  const first = isRange ? GAS.first + digits * GAS.firstDigit : 0;
  if (isRange && amountForm === 0 && ownerForm === format.OwnerForm.run)
    return GAS.run + first + length * GAS.rangeVault;
  const unpacking = blobKind === BlobKind.packed || isRange ? GAS.unpacking : 0;
  let blobBytes = 0;
  for (let slot = start; slot < end; slot++) blobBytes += columns.blobBytes[slot] as number;
  return GAS.run + first + length * (GAS.vault + unpacking) + blobBytes;
}

/**
 * Whether amounts of this width get runs of their own. Widening their neighbours would cost more
 * than a header.
 */
export function isWide(amountWidth: number): boolean {
  return amountWidth > format.RUN_HEADER_BYTES;
}

/**
 * The runs whose gas is low for any content: owners in full, and raw blobs with their own lengths.
 * Runs end only where the asset changes, or where wide amounts begin or end. They take no more
 * bytes than the sum of `vaultBytesBound`, which includes a header for each vault.
 */
export function plainRuns({ asset, amountWidth, blobBytes, count }: BatchColumns): Run[] {
  const runs: Run[] = [];
  for (let start = 0; start < count; ) {
    const isEmpty = asset[start] === format.VOID_RUN || blobBytes[start] === 0;
    const wide = isWide(amountWidth[start] as number);
    let amountForm = 0;
    let end = start;
    for (; end < count && asset[end] === asset[start]; end++) {
      const width = amountWidth[end] as number;
      if (isWide(width) !== wide || (blobBytes[end] === 0) !== (blobBytes[start] === 0)) break;
      amountForm = Math.max(amountForm, width);
    }
    const blobKind = isEmpty ? BlobKind.empty : BlobKind.raw;
    runs.push({ start, end, ownerForm: format.OwnerForm.inline, blobKind, amountForm });
    start = end;
  }
  return runs;
}
