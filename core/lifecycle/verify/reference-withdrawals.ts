import { packVaultId, unpackVaultId, type VaultPlace } from "../../protocol/vault.ts";
import type { Entry, EntryOf } from "../../store/entries.ts";
import type { WithdrawalEventType } from "../../store/event-record.ts";
import { encodeRecord } from "../../store/layout.ts";
import {
  type ActivityRecord,
  activityRecord,
  bigRecord,
  importRecord,
  l1EventRecord,
  NO_EVENT,
  type VoidRun,
  WITHDRAWAL_STATUSES,
  type WithdrawalRecord,
  withdrawalIdRecord,
  withdrawalListRecord,
  withdrawalRecord,
} from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import type { ReferenceEvents } from "./reference-events.ts";
import type { Expected } from "./reference-records.ts";

interface SeenEvent {
  readonly chainId: bigint;
  readonly blockNumber: bigint;
  readonly logIndex: number;
  /** null for an import of a batch to a mirror. */
  readonly vaultId: bigint | null;
  /** null for an event without a withdrawal. */
  readonly total: bigint | null;
  readonly withdrawalIds: readonly string[];
  readonly imported: EntryOf<"batchImported"> | null;
}

const UNTOUCHED: ActivityRecord = {
  withdrawn: 0n,
  reserved: 0n,
  pending: [],
  updatedAt: 0,
  refusal: null,
  spentBy: null,
  transferred: 0n,
};
const OVERTAKEN = "The owner has withdrawn from this vault on L1, so the authorization is no longer good.";
const CANCELLED = "The owner has cancelled the authorization on L1.";

/** The part of the reference for withdrawals: every request and every L1 event, in memory. */
export class ReferenceWithdrawals {
  readonly #withdrawals = new Map<string, WithdrawalRecord>();
  /** The asset of each withdrawal. */
  readonly #assets = new Map<string, number>();
  readonly #activities = new Map<bigint, ActivityRecord>();
  readonly #lists = new Map<string, EntryOf<"withdrawalListSigned">>();
  /** The withdrawals of their vaults. */
  readonly #listed = new Map<string, string>();
  readonly #told: ReferenceEvents;
  #events: SeenEvent[] = [];
  /** Called when units withdrawn of a vault have changed. */
  readonly #whenWithdrawn: (vaultId: bigint, time: number) => Expected[];

  constructor(told: ReferenceEvents, whenWithdrawn: (vaultId: bigint, time: number) => Expected[]) {
    this.#told = told;
    this.#whenWithdrawn = whenWithdrawn;
  }

  /** Applies a request for a vault of an asset; returns its index records and its event. */
  request(
    entry: EntryOf<"withdrawalRequested">,
    assetIndex: number,
    journalSequence: number,
    time: number,
  ): Expected[] {
    this.#assets.set(entry.withdrawalId, assetIndex);
    const { kind: _, ...facts } = entry;
    const untouched = { l1TxHash: null, l1BlockNumber: null, failure: null };
    const notYet = { submittedAt: null, settledAt: null, finalizedAt: null, failedAt: null };
    const times = { ...notYet, createdAt: time, updatedAt: time };
    this.#withdrawals.set(entry.withdrawalId, {
      ...facts,
      journalSequence,
      status: "accepted",
      ...untouched,
      ...times,
    });
    this.#reserve(entry.vaultId, entry.withdrawalId, time);
    if (this.#lists.has(entry.digest)) this.#listed.set(listedName(entry.digest, entry), entry.withdrawalId);
    const value = keys.journalKey(journalSequence).subarray(1);
    const name = `an index of withdrawal ${entry.withdrawalId}`;
    return [
      { key: keys.transactionKey(entry.applicationIndex, entry.sequence), value, name },
      { key: keys.userTransactionKey(entry.applicationIndex, entry.userIndex, entry.sequence), value, name },
      { key: keys.applicationWithdrawalKey(entry.applicationIndex, entry.sequence), value, name },
      ...this.#tell("withdrawal.accepted", entry.withdrawalId, time),
    ];
  }

  apply(entry: Entry, time: number): Expected[] {
    switch (entry.kind) {
      case "withdrawalSubmitted": {
        const submittedAt = this.#withdrawals.get(entry.withdrawalId)?.submittedAt ?? time;
        this.#change(entry.withdrawalId, { status: "submitted", l1TxHash: entry.txHash, submittedAt, updatedAt: time });
        return this.#tell("withdrawal.submitted", entry.withdrawalId, time);
      }
      case "withdrawalAttempted":
        this.#change(entry.withdrawalId, { failure: entry.failure, updatedAt: time });
        return this.#tell("withdrawal.attempt_refused", entry.withdrawalId, time);
      case "withdrawalFailed":
        return this.#fail(entry.withdrawalId, entry.failure, time);
      case "vaultsRefused":
        for (const { slot, refusal } of entry.refusals) {
          const vaultId = packVaultId({ mode: entry.mode, batchNumber: entry.batchNumber, slot });
          this.#activities.set(vaultId, { ...this.#activity(vaultId), refusal, updatedAt: time });
        }
        return [];
      case "withdrawalListSigned":
        this.#lists.set(entry.digest, entry);
        return [];
      case "authorizationCancelled": {
        const { chainId, blockNumber, logIndex } = entry;
        const cancelled = [...this.#withdrawals.values()].filter(
          ({ digest, status }) => digest === entry.digest && (status === "accepted" || status === "submitted"),
        );
        const withdrawalIds = cancelled.map(({ withdrawalId }) => withdrawalId);
        const vaultId = this.#lists.has(entry.digest) ? null : (cancelled[0]?.vaultId ?? null);
        this.#events.push({ chainId, blockNumber, logIndex, vaultId, total: null, withdrawalIds, imported: null });
        return withdrawalIds.flatMap((withdrawalId) => this.#fail(withdrawalId, CANCELLED, time));
      }
      case "vaultWithdrawn":
        return this.#withdrawn(entry, time);
      case "batchImported": {
        const { chainId, blockNumber, logIndex } = entry;
        const nothing = { vaultId: null, total: null, withdrawalIds: [] };
        this.#events.push({ chainId, blockNumber, logIndex, ...nothing, imported: entry });
        return [];
      }
      default:
        return [];
    }
  }

  /** The vaults of these slots became void, so their pending withdrawals have failed, in vault order. */
  failVoided(batch: Pick<VaultPlace, "mode" | "batchNumber">, voids: readonly VoidRun[], time: number): Expected[] {
    const isVoid = `The vault of ${batch.mode}-${batch.batchNumber} is void:`;
    return this.#failIn(batch, voids, ({ failure }) => `${isVoid} ${failure}`, time);
  }

  /** L1's history lacks these vaults, so their pending withdrawals have failed, in vault order. */
  failLost(lost: EntryOf<"historyAdopted">["lost"][number], failure: string, time: number): Expected[] {
    return this.#failIn(lost, lost.runs, () => failure, time);
  }

  #failIn<R extends Pick<VoidRun, "firstSlot" | "count">>(
    { mode, batchNumber }: Pick<VaultPlace, "mode" | "batchNumber">,
    runs: readonly R[],
    failureOf: (run: R) => string,
    time: number,
  ): Expected[] {
    const told: Expected[] = [];
    for (const [vaultId, { pending }] of [...this.#activities].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const place = unpackVaultId(vaultId);
      const run = runs.find(({ firstSlot, count }) => place.slot >= firstSlot && place.slot < firstSlot + count);
      if (place.mode !== mode || place.batchNumber !== batchNumber || run === undefined) continue;
      for (const withdrawalId of pending) told.push(...this.#fail(withdrawalId, failureOf(run), time));
    }
    return told;
  }

  /** Settles withdrawals, in the order of the chain's events. */
  finalize(chainId: bigint, blockNumber: bigint, time: number): Expected[] {
    const told: Expected[] = [];
    const events = this.#events.filter((event) => event.chainId === chainId).sort(inOrder);
    for (const withdrawalId of events.flatMap((event) => event.withdrawalIds)) {
      const { status, l1BlockNumber = null } = this.#withdrawals.get(withdrawalId) ?? {};
      if (status !== "settled" || l1BlockNumber === null || l1BlockNumber > blockNumber) continue;
      this.#change(withdrawalId, { status: "finalized", finalizedAt: time, updatedAt: time });
      told.push(...this.#tell("withdrawal.finalized", withdrawalId, time));
    }
    return told;
  }

  revert(chainId: bigint, blockNumber: bigint, time: number): Expected[] {
    const told: Expected[] = [];
    const isGone = (event: SeenEvent) => event.chainId === chainId && event.blockNumber >= blockNumber;
    const gone = this.#events.filter(isGone);
    this.#events = this.#events.filter((event) => !isGone(event));
    for (const { vaultId, withdrawalIds } of gone.sort(inOrder).reverse()) {
      if (vaultId !== null) {
        const totals = this.#events.filter((event) => event.vaultId === vaultId && event.total !== null).sort(inOrder);
        const withdrawn = totals.at(-1)?.total ?? 0n;
        this.#activities.set(vaultId, { ...this.#activity(vaultId), withdrawn, updatedAt: time });
      }
      for (const withdrawalId of withdrawalIds) {
        const known = this.#withdrawals.get(withdrawalId);
        if (known === undefined) continue;
        const status = known.submittedAt === null ? "accepted" : "submitted";
        const notYet = { settledAt: null, finalizedAt: null, failedAt: null };
        this.#change(withdrawalId, { l1BlockNumber: null, failure: null, ...notYet, updatedAt: time, status });
        this.#reserve(known.vaultId, withdrawalId, time);
        told.push(...this.#tell("withdrawal.reverted", withdrawalId, time));
      }
      if (vaultId !== null) told.push(...this.#whenWithdrawn(vaultId, time));
    }
    return told;
  }

  #listsOf({ applicationIndex, userIndex, vaultId, status, withdrawalId }: WithdrawalRecord): Buffer[] {
    return [
      keys.withdrawalsOfUser(applicationIndex, userIndex),
      keys.withdrawalsOfAsset(applicationIndex, this.#assets.get(withdrawalId) ?? 0),
      keys.withdrawalsOfVault(applicationIndex, vaultId),
      keys.withdrawalsOfStatus(applicationIndex, WITHDRAWAL_STATUSES.indexOf(status)),
    ];
  }

  finish(): Expected[] {
    const expected: Expected[] = [];
    const add = (key: Buffer, value: Buffer, name: string): void => void expected.push({ key, value, name });
    for (const record of this.#withdrawals.values()) {
      const { withdrawalId, journalSequence, chainId, digest, status } = record;
      const id = encodeRecord(withdrawalIdRecord, withdrawalId);
      add(keys.withdrawalKey(withdrawalId), encodeRecord(withdrawalRecord, record), `withdrawal ${withdrawalId}`);
      if (!this.#lists.has(digest))
        add(keys.authorizationKey(digest), id, `the authorization of withdrawal ${withdrawalId}`);
      for (const of of this.#listsOf(record)) {
        const value = keys.journalKey(journalSequence).subarray(1);
        add(keys.requestByKey(of, record.sequence), value, `an index of withdrawal ${withdrawalId}`);
      }
      if (status !== "accepted" && status !== "submitted") continue;
      add(keys.pendingWithdrawalKey(chainId, journalSequence), id, `pending withdrawal ${withdrawalId}`);
    }
    for (const { digest, signature, vaults } of this.#lists.values()) {
      const listed = vaults.map((vault) => ({
        ...vault,
        withdrawalId: this.#listed.get(listedName(digest, vault)) ?? null,
      }));
      const record = encodeRecord(withdrawalListRecord, { signature, vaults: listed });
      add(keys.withdrawalListKey(digest), record, `the list of digest ${digest}`);
    }
    for (const [vaultId, record] of this.#activities) {
      add(keys.activityKey(vaultId), encodeRecord(activityRecord, record), `the activity of vault ${vaultId}`);
    }
    for (const { chainId, blockNumber, logIndex, vaultId, withdrawalIds, total, imported } of this.#events) {
      const name = `event ${logIndex} of block ${blockNumber} of chain ${chainId}`;
      const event = encodeRecord(l1EventRecord, { ...NO_EVENT, vaultId, withdrawalIds, imported });
      add(keys.l1EventKey(chainId, blockNumber, logIndex), event, name);
      if (vaultId !== null && total !== null)
        add(keys.vaultEventKey(vaultId, blockNumber, logIndex), encodeRecord(bigRecord, total), name);
      if (imported !== null)
        add(keys.importKey(chainId, imported.mode, imported.batchNumber), encodeRecord(importRecord, imported), name);
    }
    // Two requests with one digest share their authorization record. The later one wrote it last.
    return [...new Map(expected.map((one) => [keys.keyString(one.key), one])).values()];
  }

  #withdrawn(entry: EntryOf<"vaultWithdrawn">, time: number): Expected[] {
    const told: Expected[] = [];
    const { chainId, vaultId, total, quantity, recipient, blockNumber, logIndex, txHash } = entry;
    this.#activities.set(vaultId, { ...this.#activity(vaultId), withdrawn: total, refusal: null, updatedAt: time });
    const decided: string[] = [];
    for (const withdrawalId of this.#activity(vaultId).pending) {
      const known = this.#withdrawals.get(withdrawalId);
      if (known === undefined || known.withdrawnBefore >= total) continue;
      decided.push(withdrawalId);
      const asked =
        known.quantity === quantity && known.recipient === recipient && known.withdrawnBefore + quantity === total;
      if (!asked) {
        told.push(...this.#fail(withdrawalId, OVERTAKEN, time));
        continue;
      }
      this.#release(withdrawalId, time);
      const onL1 = { l1TxHash: txHash, l1BlockNumber: blockNumber, submittedAt: known.submittedAt ?? time };
      this.#change(withdrawalId, { ...onL1, status: "settled", failure: null, settledAt: time, updatedAt: time });
      told.push(...this.#tell("withdrawal.settled", withdrawalId, time));
    }
    this.#events.push({ chainId, blockNumber, logIndex, vaultId, total, withdrawalIds: decided, imported: null });
    return [...told, ...this.#whenWithdrawn(vaultId, time)];
  }

  #fail(withdrawalId: string, failure: string, time: number): Expected[] {
    this.#release(withdrawalId, time);
    this.#change(withdrawalId, { status: "failed", failure, failedAt: time, updatedAt: time });
    return this.#tell("withdrawal.failed", withdrawalId, time);
  }

  /** The event of a withdrawal in its present state. */
  #tell(type: WithdrawalEventType, withdrawalId: string, time: number): Expected[] {
    const known = this.#withdrawals.get(withdrawalId);
    if (known === undefined) return [];
    const { applicationIndex, userIndex, chainId, vaultId, quantity, recipient } = known;
    const { l1TxHash, l1BlockNumber, failure } = known;
    const facts = { withdrawalId, userIndex, chainId, vaultId, quantity, recipient, l1TxHash, l1BlockNumber, failure };
    return [this.#told.tell(applicationIndex, time, { type, ...facts })];
  }

  #change(withdrawalId: string, change: Partial<WithdrawalRecord>): void {
    const known = this.#withdrawals.get(withdrawalId);
    if (known !== undefined) this.#withdrawals.set(withdrawalId, { ...known, ...change });
  }

  /** A vault holds less than its pending withdrawals counted on. */
  failPending(vaultId: bigint, failure: string, time: number): Expected[] {
    return this.#activity(vaultId).pending.flatMap((withdrawalId) => this.#fail(withdrawalId, failure, time));
  }

  activity(vaultId: bigint): ActivityRecord {
    return this.#activity(vaultId);
  }

  changeActivity(vaultId: bigint, change: Partial<ActivityRecord>): void {
    this.#activities.set(vaultId, { ...this.#activity(vaultId), ...change });
  }

  #activity(vaultId: bigint): ActivityRecord {
    return this.#activities.get(vaultId) ?? UNTOUCHED;
  }

  #reserve(vaultId: bigint, withdrawalId: string, time: number): void {
    this.#setPending(vaultId, [...this.#activity(vaultId).pending, withdrawalId], time);
  }

  #release(withdrawalId: string, time: number): void {
    const known = this.#withdrawals.get(withdrawalId);
    if (known === undefined) return;
    const pending = this.#activity(known.vaultId).pending.filter((id) => id !== withdrawalId);
    this.#setPending(known.vaultId, pending, time);
  }

  #setPending(vaultId: bigint, pending: readonly string[], time: number): void {
    const reserved = pending.reduce((sum, id) => sum + (this.#withdrawals.get(id)?.quantity ?? 0n), 0n);
    this.#activities.set(vaultId, { ...this.#activity(vaultId), pending, reserved, updatedAt: time });
  }
}

function listedName(digest: string, { vaultId }: { readonly vaultId: bigint }): string {
  return `${digest} ${vaultId}`;
}

function inOrder(a: SeenEvent, b: SeenEvent): number {
  return a.blockNumber === b.blockNumber ? a.logIndex - b.logIndex : a.blockNumber < b.blockNumber ? -1 : 1;
}
