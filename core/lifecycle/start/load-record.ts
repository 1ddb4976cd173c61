import { enablementId, type Ledger } from "../../ledger/ledger.ts";
import { decodeRecord, type Field } from "../../store/layout.ts";
import * as records from "../../store/records.ts";
import { PREFIX } from "../../store/store-keys.ts";

type Load = (ledger: Ledger, key: Buffer, value: Buffer) => void;

/** What takes a stored record into memory, for each prefix in the order of loading. */
const LOADERS: ReadonlyMap<number, Load> = new Map([
  [
    PREFIX.divergence,
    of(records.divergenceRecord, (ledger, record) => {
      ledger.divergence = record;
    }),
  ],
  [
    PREFIX.application,
    of(records.applicationRecord, (ledger, record) => {
      ledger.applicationIndices.set(record.applicationId, record.applicationIndex);
      ledger.applications.load(record.applicationIndex, record);
    }),
  ],
  [
    PREFIX.key,
    of(records.keyRecord, (ledger, record) => {
      ledger.keyIndices.set(record.keyId, record.keyIndex);
      ledger.keys.load(record.keyIndex, record);
    }),
  ],
  [
    PREFIX.asset,
    of(records.assetRecord, (ledger, record) => {
      ledger.indexAsset(record);
      ledger.assets.load(record.assetIndex, record);
    }),
  ],
  [
    PREFIX.collection,
    of(records.collectionRecord, (ledger, record) => ledger.collections.load(record.assetId, record)),
  ],
  [PREFIX.person, of(records.personRecord, (ledger, record) => ledger.loadPerson(record))],
  [PREFIX.auditCount, of(records.auditCountRecord, (ledger, record) => ledger.auditCounts.load(record.log, record))],
  [
    PREFIX.webhook,
    of(records.webhookRecord, (ledger, record) => {
      ledger.webhookIndices.set(record.webhookId, record.webhookIndex);
      ledger.webhooks.load(record.webhookIndex, record);
    }),
  ],
  [PREFIX.portal, of(records.portalRecord, (ledger, record) => ledger.portals.load(record.chainId, record))],
  [PREFIX.enablement, (ledger: Ledger, key: Buffer) => ledger.enablements.load(enablementOf(key), true)],
  [
    PREFIX.batch,
    of(records.batchRecord, (ledger, record) => ledger.batches[record.mode].load(record.batchNumber, record)),
  ],
  [
    PREFIX.voids,
    of(records.voidsRecord, (ledger, { mode, batchNumber, runs }) => ledger.voids[mode].load(batchNumber, runs)),
  ],
  [
    PREFIX.lost,
    of(records.lostRecord, (ledger, record) => {
      const { mode, batchNumber } = record;
      ledger.lost[mode].load(batchNumber, [...(ledger.lost[mode].latest(batchNumber) ?? []), record]);
    }),
  ],
]);

/** The prefixes of records that are held in memory, in the order of loading. */
export const LOADED_PREFIXES: readonly number[] = [...LOADERS.keys()];

/** Takes a stored record into memory. Skips records that are read on demand. Throws `store_corrupt`. */
export function loadRecord(ledger: Ledger, key: Buffer, value: Buffer): void {
  LOADERS.get(key[0] as number)?.(ledger, key, value);
}

export function enablementOf(key: Buffer): string {
  return enablementId(key.readUInt32BE(1), key.readUInt32BE(5));
}

function of<T>(field: Field<T>, load: (ledger: Ledger, record: T) => void): Load {
  return (ledger, key, value) => load(ledger, decodeRecord(field, value, `Record ${key.toString("hex")}`));
}
