import { enablementId, type Ledger } from "../../ledger/ledger.ts";
import { decodeRecord, type Field } from "../../store/layout.ts";
import * as records from "../../store/records.ts";
import { PREFIX } from "../../store/store-keys.ts";

type Load = (ledger: Ledger, key: Buffer, value: Buffer) => void;

/** What takes a stored record into memory, for each prefix in the order of loading. */
const LOADERS: ReadonlyMap<number, Load> = new Map<number, Load>([
  of(PREFIX.divergence, records.divergenceRecord, (ledger, record) => {
    ledger.divergence = record;
  }),
  of(PREFIX.application, records.applicationRecord, (ledger, record) => {
    ledger.applicationIndices.set(record.applicationId, record.applicationIndex);
    ledger.applications.load(record.applicationIndex, record);
  }),
  of(PREFIX.key, records.keyRecord, (ledger, record) => {
    ledger.keyIndices.set(record.keyId, record.keyIndex);
    ledger.keys.load(record.keyIndex, record);
  }),
  of(PREFIX.asset, records.assetRecord, (ledger, record) => {
    ledger.indexAsset(record);
    ledger.assets.load(record.assetIndex, record);
  }),
  of(PREFIX.collection, records.collectionRecord, (ledger, record) => ledger.collections.load(record.assetId, record)),
  of(PREFIX.person, records.personRecord, (ledger, record) => ledger.loadPerson(record)),
  of(PREFIX.auditCount, records.auditCountRecord, (ledger, record) => ledger.auditCounts.load(record.log, record)),
  of(PREFIX.webhook, records.webhookRecord, (ledger, record) => {
    ledger.webhookIndices.set(record.webhookId, record.webhookIndex);
    ledger.webhooks.load(record.webhookIndex, record);
  }),
  of(PREFIX.portal, records.portalRecord, (ledger, record) => ledger.portals.load(record.chainId, record)),
  [PREFIX.enablement, (ledger: Ledger, key: Buffer) => ledger.enablements.load(enablementOf(key), true)],
  of(PREFIX.batch, records.batchRecord, (ledger, record) =>
    ledger.batches[record.mode].load(record.batchNumber, record),
  ),
  of(PREFIX.voids, records.voidsRecord, (ledger, { mode, batchNumber, runs }) =>
    ledger.voids[mode].load(batchNumber, runs),
  ),
  of(PREFIX.lost, records.lostRecord, (ledger, record) => {
    const { mode, batchNumber } = record;
    ledger.lost[mode].load(batchNumber, [...(ledger.lost[mode].latest(batchNumber) ?? []), record]);
  }),
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

function of<T>(prefix: number, field: Field<T>, load: (ledger: Ledger, record: T) => void): readonly [number, Load] {
  return [prefix, (ledger, key, value) => load(ledger, decodeRecord(field, value, `Record ${key.toString("hex")}`))];
}
