import { type Backoff, backoffDelay, pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import { batchIdOf, type Mode } from "../model.ts";
import { tokenIdOfBytes } from "../protocol/minting-blob.ts";
import type {
  BatchToDerive,
  CompleteRecords,
  DerivedVoid,
  DerivingResult,
} from "../sealing/derive-batch.ts";
import { deriveBatch, withContent } from "../sealing/derive-batch.ts";
import type { BatchRecord } from "../store/records.ts";
import { endOf, prefixOf } from "../store/store-keys.ts";
import { shortDecimalIn } from "../store/token-id.ts";
import { decodeIntoColumns, type NewVault, VaultColumns } from "../store/vault-columns.ts";
import type { Ledger } from "./ledger.ts";

// An operator may mend the machine meanwhile
const KZG_RETRY: Backoff = { firstMs: 250, maxMs: 30_000 };

/**
 * A batch of as many vaults is derived on the thread. A smaller one in a tree takes a millisecond
 * or less.
 */
const OFF_LOOP_VAULTS = 1_024;

type Counted = Pick<BatchRecord, "mode" | "batchNumber" | "vaultCount">;

/**
 * All vaults of a batch on disk, void ones too. Throws `store_corrupt` unless their number is that
 * of its record.
 */
export async function readBatchVaults(ledger: Ledger, batch: Counted): Promise<VaultColumns> {
  const vaults = new VaultColumns();
  for await (const chunk of chunkRecords(ledger, batch))
    decodeIntoColumns(chunk, vaults, (vault) => tokenHashOf(ledger, vault));
  requireCount(batch, vaults.count);
  return vaults;
}

export async function derivedAgain(
  ledger: Ledger,
  batch: BatchToDerive,
  vaults: VaultColumns,
  voids: readonly DerivedVoid[] = [],
): Promise<CompleteRecords> {
  return completed(ledger, await recordsAgain(ledger, batch, vaults, voids));
}

/** Commits to the blobs of a batch, if it is in blobs. Rejects with `kzg_unavailable`. */
export async function completed(ledger: Ledger, derived: DerivingResult): Promise<CompleteRecords> {
  return "content" in derived ? derived : withContent(derived, ledger.batches.blobs.kzg);
}

/** Like {@link derivedAgain}, without commitments. What takes long goes to the thread. */
export async function recordsAgain(
  ledger: Ledger,
  { mode, batchNumber, inBlobs = false }: BatchToDerive,
  vaults: VaultColumns,
  voids: readonly DerivedVoid[] = [],
): Promise<DerivingResult> {
  const assetAt = (index: number) => ledger.tenants.assetAt(index);
  const { sealingThread } = ledger.services;
  return isLong({ inBlobs, vaultCount: vaults.count })
    ? sealingThread.derive({ mode, batchNumber, inBlobs }, vaults, assetAt, voids)
    : deriveBatch({ mode, batchNumber }, vaults, assetAt, voids);
}

/** Whether a batch is derived on the thread. */
export function isLong({
  inBlobs,
  vaultCount,
}: Pick<BatchRecord, "inBlobs" | "vaultCount">): boolean {
  return inBlobs || vaultCount >= OFF_LOOP_VAULTS;
}

/**
 * Derives a closed batch, off the event loop. While KZG fails, it tries again until the engine
 * ends.
 */
export async function derivedBatch(
  ledger: Ledger,
  batch: BatchToDerive,
  vaults: VaultColumns,
): Promise<CompleteRecords> {
  const derived = await ledger.services.sealingThread.derive(batch, vaults, (index) =>
    ledger.tenants.assetAt(index),
  );
  if ("content" in derived) return derived;
  for (let attempt = 1; ; attempt++) {
    try {
      const completed = await withContent(derived, ledger.batches.blobs.kzg);
      ledger.batches.blobs.fault = null;
      return completed;
    } catch (error) {
      if (!(error instanceof MintmarkError) || error.code !== "kzg_unavailable") throw error;
      ledger.batches.blobs.fault = error;
      await pause(backoffDelay(KZG_RETRY, attempt), ledger.writer.ended);
    }
  }
}

export async function* chunkRecords(
  ledger: Ledger,
  { mode, batchNumber }: { readonly mode: Mode; readonly batchNumber: number },
): AsyncGenerator<Buffer> {
  const prefix = prefixOf.chunk(mode, batchNumber);
  for await (const [, record] of ledger.store.entries({ gte: prefix, lt: endOf(prefix) }))
    yield record;
}

/** Throws `store_corrupt` unless the number of vaults is that of the batch's record. */
export function requireCount({ mode, batchNumber, vaultCount }: Counted, found: number): void {
  if (found === vaultCount) return;
  throw new MintmarkError(
    "store_corrupt",
    `${batchIdOf(mode, batchNumber)} has ${found} vaults, not ${vaultCount}.`,
  );
}

/**
 * The hash of the token that a vault holds; 0 for other standards than ERC-721, and for an empty
 * slot of L1's history.
 */
export function tokenHashOf(
  ledger: Ledger,
  { assetIndex, mintingBlobs, start, end }: NewVault,
): number {
  const { standard, mintingBlobScheme } = ledger.tenants.assetAt(assetIndex);
  if (standard !== "erc721" || start === end) return 0;
  const short = mintingBlobScheme === "mintmark" ? shortDecimalIn(mintingBlobs, start, end) : -1;
  if (short >= 0) return ledger.minting.hasher.ofShortId(assetIndex, short);
  return ledger.minting.hasher.ofId(
    assetIndex,
    tokenIdOfBytes(standard, mintingBlobScheme, mintingBlobs.subarray(start, end)) ?? 0n,
  );
}
