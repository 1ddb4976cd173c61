import { MintmarkError } from "../errors.ts";
import { MODES, type Mode } from "../model.ts";
import { readEntry } from "../store/journal.ts";
import { decodeRecord, type Field } from "../store/layout.ts";
import {
  applicationRecord,
  assetRecord,
  batchRecord,
  headRecord,
  keyRecord,
  portalRecord,
  voidsRecord,
  webhookRecord,
} from "../store/records.ts";
import { batchTokensKey, endOf, HEAD_KEY, journalKey, PREFIX } from "../store/store-keys.ts";
import type { Store } from "../store-ports.ts";
import { loadBatches } from "./batches/load-batches.ts";
import { enablementId, type Ledger } from "./ledger.ts";
import { type BatchTokens, decodeBatchTokens } from "./tokens/batch-tokens.ts";
import { SHARDS, TokenIndex } from "./tokens/token-index.ts";
import { batchIdOf } from "./vaults/vaults.ts";

/** Reads the state into memory. Throws `store_corrupt` for what does not fit together. */
export async function load(ledger: Ledger): Promise<void> {
  const stored = await ledger.store.get(HEAD_KEY);
  if (stored === undefined) throw new MintmarkError("store_corrupt", "The store's head is missing.");
  ledger.head = decodeRecord(headRecord, stored, "The store's head");
  ledger.durableHead = ledger.head;
  await requireJournalEnd(ledger);
  for await (const record of all(ledger.store, PREFIX.application, applicationRecord)) {
    ledger.applicationIndices.set(record.applicationId, record.applicationIndex);
    ledger.applications.load(record.applicationIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.key, keyRecord)) {
    ledger.keyIndices.set(record.keyId, record.keyIndex);
    ledger.keys.load(record.keyIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.asset, assetRecord)) {
    ledger.assetIndices.set(record.assetId, record.assetIndex);
    ledger.standards[record.assetIndex] = record.standard;
    ledger.assets.load(record.assetIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.webhook, webhookRecord)) {
    ledger.webhookIndices.set(record.webhookId, record.webhookIndex);
    ledger.webhooks.load(record.webhookIndex, record);
  }
  for await (const record of all(ledger.store, PREFIX.portal, portalRecord)) {
    ledger.portals.load(record.chainId, record);
  }
  const enablements = Buffer.from([PREFIX.enablement]);
  for await (const [key] of ledger.store.entries({ gte: enablements, lt: endOf(enablements) })) {
    ledger.enablements.load(enablementId(key.readUInt32BE(1), key.readUInt32BE(5)), true);
  }
  for await (const record of all(ledger.store, PREFIX.batch, batchRecord)) {
    ledger.batches[record.mode].load(record.batchNumber, record);
  }
  for await (const { mode, batchNumber, runs } of all(ledger.store, PREFIX.voids, voidsRecord)) {
    ledger.voids[mode].load(batchNumber, runs);
  }
  await loadTokens(ledger);
  for (const mode of MODES) await loadBatches(ledger, mode);
}

/** Makes the index of tokens from what each sealed batch has recorded of its own. */
async function loadTokens(ledger: Ledger): Promise<void> {
  const loaded: { readonly tokens: BatchTokens; readonly mode: Mode; readonly firstOrdinal: number }[] = [];
  let count = 0;
  for (const mode of MODES) {
    let firstOrdinal = 0;
    for (const { status, batchNumber, vaultCount } of ledger.batches[mode].values()) {
      ledger.refs.setFirstOrdinal(mode, batchNumber, firstOrdinal);
      if (status === "open") break;
      const record = await ledger.store.get(batchTokensKey(mode, batchNumber));
      const name = batchIdOf(mode, batchNumber);
      if (record === undefined) throw new MintmarkError("store_corrupt", `The tokens of ${name} are missing.`);
      const tokens = decodeBatchTokens(record, name);
      loaded.push({ tokens, mode, firstOrdinal });
      count += tokens.hashes.length;
      firstOrdinal += vaultCount;
    }
  }
  ledger.tokens = new TokenIndex(count);
  const cursors = new Uint32Array(loaded.length);
  for (let shard = 0; shard < SHARDS; shard++) {
    for (const [i, { tokens, mode, firstOrdinal }] of loaded.entries()) {
      const { hashes, slots } = tokens;
      let at = cursors[i] as number;
      for (; at < hashes.length && ((hashes[at] as number) & (SHARDS - 1)) === shard; at++) {
        ledger.tokens.insert(hashes[at] as number, ledger.refs.refOf({ mode, firstOrdinal }, slots[at] as number));
      }
      cursors[i] = at;
    }
  }
}

/** The head and the journal are written together: anything else is damage. */
async function requireJournalEnd({ store, head }: Ledger): Promise<void> {
  await readEntry(store, head.journalLength - 1);
  if ((await store.get(journalKey(head.journalLength))) !== undefined) {
    throw new MintmarkError("store_corrupt", "The journal goes on after the store's head.");
  }
}

async function* all<T>(store: Store, prefix: number, field: Field<T>): AsyncGenerator<T> {
  const start = Buffer.from([prefix]);
  for await (const [key, record] of store.entries({ gte: start, lt: endOf(start) })) {
    yield decodeRecord(field, record, `Record ${key.toString("hex")}`);
  }
}
