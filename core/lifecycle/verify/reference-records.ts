import type { Mode } from "../../model.ts";
import { encodeRecord } from "../../store/layout.ts";
import { type BatchRecord, batchRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { CHUNK_VAULTS, encodeChunk, type StoredVault } from "../../store/vault-columns.ts";

/** A record that the store must hold with exactly this value. */
export interface Expected {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly name: string;
}

/** Prefixes with few records, or with records that can still change. */
export const COMPARED_WHOLE: ReadonlySet<number> = new Set([
  keys.PREFIX.head,
  keys.PREFIX.divergence,
  keys.PREFIX.application,
  keys.PREFIX.key,
  keys.PREFIX.asset,
  keys.PREFIX.metadata,
  keys.PREFIX.collection,
  keys.PREFIX.claim,
  keys.PREFIX.applicationClaim,
  keys.PREFIX.webhook,
  keys.PREFIX.person,
  keys.PREFIX.auditCount,
  keys.PREFIX.audit,
  keys.PREFIX.enablement,
  keys.PREFIX.batch,
  keys.PREFIX.voids,
  keys.PREFIX.activity,
  keys.PREFIX.withdrawal,
  keys.PREFIX.withdrawalBy,
  keys.PREFIX.pendingWithdrawal,
  keys.PREFIX.authorization,
  keys.PREFIX.withdrawalList,
  keys.PREFIX.transferList,
  keys.PREFIX.transferDigest,
  keys.PREFIX.waitingTransfers,
  keys.PREFIX.batchTransfers,
  keys.PREFIX.transferSession,
  keys.PREFIX.transferApproval,
  keys.PREFIX.l1Event,
  keys.PREFIX.vaultEvent,
  keys.PREFIX.portal,
  keys.PREFIX.import,
  keys.PREFIX.checkpoint,
]);

export function expectedRecord(key: Buffer, value: Buffer, name: string): Expected {
  return { key, value, name };
}

export function batchExpected(record: BatchRecord): Expected {
  const name = `batch ${record.batchNumber} of ${record.mode}`;
  return expectedRecord(keys.batchKey(record.mode, record.batchNumber), encodeRecord(batchRecord, record), name);
}

export function chunksExpected(mode: Mode, batchNumber: number, vaults: readonly StoredVault[]): Expected[] {
  return Array.from({ length: Math.ceil(vaults.length / CHUNK_VAULTS) }, (_, chunk) => {
    const first = chunk * CHUNK_VAULTS;
    const name = `vaults ${first} to ${first + CHUNK_VAULTS - 1} of batch ${batchNumber} of ${mode}`;
    return expectedRecord(
      keys.chunkKey(mode, batchNumber, chunk),
      encodeChunk(vaults.slice(first, first + CHUNK_VAULTS)),
      name,
    );
  });
}
