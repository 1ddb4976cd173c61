import { tokenHashOf } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MODES, SERIES } from "../model.ts";
import { stateLeafOf } from "../sealing/contents.ts";
import { decodeRecord } from "../store/layout.ts";
import type { StoreOperation } from "../store/ports.ts";
import { type BatchRecord, batchRecord, headRecord, transferListRecord } from "../store/records.ts";
import { PREFIX } from "../store/store-keys.ts";
import { CHUNK_VAULTS, decodeIntoColumns, VaultColumns } from "../store/vault-columns.ts";
import { outputsOf, usersOf } from "../vaults/transfer-lists.ts";
import { historyOf } from "./load-batches.ts";
import { enablementOf, indexEntry, loadRecord } from "./start.ts";

type Put = Extract<StoreOperation, { readonly type: "put" }>;

/**
 * A standby's state in memory. It follows the leader's writes after they are in the standby's
 * store, and holds what reads need. A standby that takes the lead loads its store anew.
 */
export class Replica {
  readonly #ledger: Ledger;
  /** How many vaults of each unsealed batch the token index has, by `mode:number`. */
  readonly #indexed = new Map<string, number>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
    for (const mode of MODES) {
      for (const batch of ledger.batches.records[mode].durable.values())
        if (batch.status === "open")
          this.#indexed.set(`${mode}:${batch.batchNumber}`, batch.vaultCount);
    }
  }

  /**
   * Applies one write. Returns false for a write that takes batches back: the store must be loaded
   * anew.
   */
  apply(operations: readonly StoreOperation[]): boolean {
    const chunks: Put[] = [];
    const woken: number[] = [];
    for (const one of operations) {
      if (one.type === "del") {
        if (!this.#remove(one.key)) return false;
      } else if (one.key[0] === PREFIX.chunk && SERIES[one.key[1] as number] !== "made")
        chunks.push(one);
      else {
        const application = this.#put(one);
        if (application !== null) woken.push(application);
      }
    }
    // A batch's first vault is placed by the batches before it, which may come in the same write.
    for (const chunk of chunks) this.#index(chunk);
    for (const application of woken) this.#ledger.readers.followers.wake(application);
    return true;
  }

  /** Returns the changed application, whose followers wait; null for other records. */
  #put({ key, value }: Put): number | null {
    const ledger = this.#ledger;
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const prefix = key[0];
    if (prefix === PREFIX.head)
      ledger.journal.head.load(decodeRecord(headRecord, bytes, "The store's head"));
    else if (prefix === PREFIX.batch)
      this.#batch(decodeRecord(batchRecord, bytes, `Record ${key.toString("hex")}`));
    else {
      this.#forgetSums(key, bytes);
      if (prefix === PREFIX.entry) indexEntry(ledger, key, bytes);
      loadRecord(ledger, key, bytes);
    }
    return prefix === PREFIX.application ? key.readUInt32BE(1) : null;
  }

  /** Forgets the sums of the users whose vaults a record changes. */
  #forgetSums(key: Buffer, bytes: Buffer): void {
    const { tokenSums } = this.#ledger.readers;
    const prefix = key[0];
    // Void slots are rare, and a batch of them can have thousands of holders.
    if (prefix === PREFIX.voids) tokenSums.forgetAll();
    if (prefix === PREFIX.activity) tokenSums.forgetHolderOf(key.readBigUInt64BE(1));
    if (prefix !== PREFIX.transferList) return;
    const list = decodeRecord(transferListRecord, bytes, `Record ${key.toString("hex")}`);
    for (const user of usersOf(outputsOf(list))) tokenSums.forget(user);
  }

  #remove(key: Buffer): boolean {
    const prefix = key[0];
    if (prefix === PREFIX.divergence) this.#ledger.l1.divergence = null;
    if (prefix === PREFIX.trade) this.#ledger.trades.unload(key.readBigUInt64BE(1));
    if (prefix === PREFIX.enablement) this.#ledger.tenants.enablements.unload(enablementOf(key));
    return prefix !== PREFIX.batch && prefix !== PREFIX.voids && prefix !== PREFIX.asset;
  }

  #batch(record: BatchRecord): void {
    const ledger = this.#ledger;
    const { mode, batchNumber } = record;
    const before = ledger.batches.records[mode].durable.get(batchNumber);
    ledger.batches.records[mode].load(batchNumber, record);
    ledger.batches.commits.changed(before, record);
    if (before === undefined) this.#begin(record);
    if (record.status === "open") return;
    this.#indexed.delete(`${mode}:${batchNumber}`);
    ledger.batches.unsealed.release(record);
    const history = ledger.batches.histories[mode].durable;
    if (history.count === batchNumber) {
      history.append(stateLeafOf(record));
      ledger.batches.histories[mode].load(history);
    } else if (before?.batchRoot !== record.batchRoot) {
      // Slots of a sealed batch became void.
      ledger.batches.histories[mode].load(historyOf(ledger, mode));
    }
  }

  /** Places a batch that mints have just opened behind the one before it. */
  #begin({ mode, batchNumber, openedAt, transfers }: BatchRecord): void {
    const ledger = this.#ledger;
    const { refs, records, unsealed } = ledger.batches;
    const first = unsealed.openNumber(mode);
    if (first < batchNumber) {
      // Earlier batches are complete.
      for (let number = first; number < batchNumber; number++) {
        const vaults = records[mode].durable.get(number)?.vaultCount ?? 0;
        refs.set(mode, number + 1, refs.firstOrdinalOf(mode, number) + vaults);
      }
      ledger.batches.open(mode, batchNumber, refs.firstOrdinalOf(mode, batchNumber), openedAt);
    }
    const batch = unsealed.at({ mode, batchNumber, slot: 0 });
    if (batch !== undefined) batch.transfers = transfers ? [] : null;
  }

  /** Adds the ERC-721 tokens of a chunk's new vaults to the index. */
  #index({ key, value }: Put): void {
    const ledger = this.#ledger;
    const mode = MODES[key[1] as number]!;
    const batchNumber = key.readUInt32BE(2);
    const first = key.readUInt16BE(6) * CHUNK_VAULTS;
    // A transfer makes no token.
    if (ledger.batches.records[mode].durable.get(batchNumber)?.transfers) return;
    const batch = `${mode}:${batchNumber}`;
    const known = this.#indexed.get(batch) ?? 0;
    const vaults = new VaultColumns();
    decodeIntoColumns(value, vaults, (vault) => tokenHashOf(ledger, vault));
    const place = { mode, firstOrdinal: ledger.batches.refs.firstOrdinalOf(mode, batchNumber) };
    for (let i = Math.max(0, known - first); i < vaults.count; i++) {
      if (ledger.tenants.standards[vaults.assetIndex[i]!] !== "erc721") continue;
      ledger.minting.tokens.insert(
        vaults.tokenHash[i]!,
        ledger.batches.refs.refOf(place, first + i),
      );
    }
    this.#indexed.set(batch, Math.max(known, first + vaults.count));
  }
}
