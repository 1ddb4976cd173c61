import { type BatchPlace, packVaultId, unpackVaultId } from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import type { WithdrawalEventType } from "../store/event-record.ts";
import * as records from "../store/records.ts";
import { keyOf, PRESENT, prefixOf, requestByKey } from "../store/store-keys.ts";
import { type Handlers, ReferencePart } from "./reference-records.ts";
import type { ReferenceTenants } from "./reference-tenants.ts";

interface SeenEvent {
  readonly chainId: bigint;
  readonly blockNumber: bigint;
  readonly logIndex: number;
  readonly vaultId: bigint | null; // null for an import of a batch to a mirror
  readonly total: bigint | null; // null for an event without a withdrawal
  readonly withdrawalIds: readonly string[];
  readonly imported: EntryOf<"batchImported"> | null;
  readonly cancelled: records.L1EventRecord["cancelled"];
}

const NOTHING_SEEN = {
  vaultId: null,
  total: null,
  withdrawalIds: [],
  imported: null,
  cancelled: null,
};
const NOT_YET = { settledAt: null, finalizedAt: null, failedAt: null };
const OVERTAKEN =
  "The owner has withdrawn from this vault on L1, so the authorization is no longer good.";
const CANCELLED = "The owner has cancelled the authorization on L1.";

const isPending = ({ status }: records.WithdrawalRecord) =>
  status === "accepted" || status === "submitted";

/**
 * The part of the reference for withdrawals and the later history of vaults: every request and L1
 * event, in memory.
 */
export class ReferenceWithdrawals extends ReferencePart<{
  /** Called when units withdrawn of a vault have changed. */
  readonly whenWithdrawn: (vaultId: bigint) => void;
  /** The ERC-721 vaults from a mint on, this one among them, each made of the one before. */
  readonly lineOf: (vaultId: bigint) => readonly bigint[];
  readonly tenants: ReferenceTenants;
}> {
  readonly #withdrawals = this.kept("withdrawal", keyOf.withdrawal, records.withdrawalRecord);
  readonly #activities = this.kept<bigint, records.ActivityRecord>(
    "the activity of vault",
    keyOf.activity,
    records.activityRecord,
  );
  readonly #assets = new Map<string, number>(); // The asset of each withdrawal
  readonly #lists = new Map<string, EntryOf<"withdrawalListSigned">>();
  readonly #listed = new Map<string, string>(); // The withdrawals of their vaults
  #events: SeenEvent[] = [];

  readonly on = {
    withdrawalSubmitted: ({ withdrawalId, txHash: l1TxHash }) => {
      const submittedAt = this.#withdrawals.get(withdrawalId)?.submittedAt ?? this.out.time;
      this.#change("withdrawal.submitted", withdrawalId, {
        status: "submitted",
        l1TxHash,
        submittedAt,
      });
    },
    withdrawalAttempted: ({ withdrawalId, failure }) =>
      this.#change("withdrawal.attempt_refused", withdrawalId, { failure }),
    withdrawalFailed: ({ withdrawalId, failure }) => this.#fail(withdrawalId, failure),
    vaultsRefused: ({ mode, batchNumber, refusals }) => {
      for (const { slot, refusal } of refusals)
        this.changeActivity(packVaultId({ mode, batchNumber, slot }), { refusal });
    },
    withdrawalListSigned: (entry) => void this.#lists.set(entry.digest, entry),
    authorizationCancelled: (entry) => {
      const { signer, id } = entry;
      const isCancelled = (withdrawal: records.WithdrawalRecord) =>
        isPending(withdrawal) &&
        (withdrawal.digest === id || withdrawal.vaultId === BigInt(id)) &&
        this.parts.tenants.owner(withdrawal.userIndex)?.owner === signer;
      const cancelled = [...this.#withdrawals.values()].filter(isCancelled);
      const withdrawalIds = cancelled.map(({ withdrawalId }) => withdrawalId);
      this.#see(entry, { withdrawalIds, cancelled: { signer, id } });
      for (const withdrawalId of withdrawalIds) this.#fail(withdrawalId, CANCELLED);
    },
    vaultWithdrawn: (entry) => {
      const {
        vaultId,
        total,
        quantity,
        recipient,
        blockNumber: l1BlockNumber,
        txHash: l1TxHash,
      } = entry;
      const { withdrawn } = this.activity(vaultId);
      const [minted = vaultId, ...made] = this.parts.lineOf(vaultId);
      const isPaid = made.some((id) => this.activity(id).withdrawn > 0n);
      const isVoidInVain = recipient === null && isPaid;
      this.changeActivity(vaultId, {
        withdrawn: total > withdrawn && !isVoidInVain ? total : withdrawn,
        refusal: null,
      });
      const decided: string[] = [];
      for (const withdrawalId of this.activity(vaultId).pending) {
        const known = this.#withdrawals.get(withdrawalId);
        if (known === undefined || known.withdrawnBefore >= total) continue;
        decided.push(withdrawalId);
        const isAsked =
          known.quantity === quantity &&
          known.recipient === recipient &&
          known.withdrawnBefore + quantity === total;
        if (!isAsked) {
          this.#fail(withdrawalId, OVERTAKEN);
          continue;
        }
        this.#release(withdrawalId);
        const { time } = this.out;
        const onL1 = {
          l1TxHash,
          l1BlockNumber,
          submittedAt: known.submittedAt ?? time,
          settledAt: time,
        };
        this.#change("withdrawal.settled", withdrawalId, {
          ...onL1,
          status: "settled",
          failure: null,
        });
      }
      this.#see(entry, { vaultId, total, withdrawalIds: decided });
      this.parts.whenWithdrawn(vaultId);
      if (made.includes(vaultId) && this.activity(minted).withdrawn > 0n) {
        this.changeActivity(minted, { withdrawn: 0n });
        this.parts.whenWithdrawn(minted);
      }
    },
    batchImported: (entry) => this.#see(entry, { imported: entry }),
  } satisfies Handlers;

  request(entry: EntryOf<"withdrawalRequested">, assetIndex: number): void {
    const { withdrawalId, applicationIndex, userIndex, sequence, digest, vaultId } = entry;
    const { sequence: journalSequence } = this.out;
    this.#assets.set(withdrawalId, assetIndex);
    this.#withdrawals.add(withdrawalId, { ...entry, journalSequence });
    this.#reserve(vaultId, withdrawalId);
    this.#listed.set(listedName(digest, entry), withdrawalId);
    const name = `an index of withdrawal ${withdrawalId}`;
    this.out.index(keyOf.transaction(applicationIndex, sequence), name);
    this.out.index(keyOf.userTransaction(applicationIndex, userIndex, sequence), name);
    this.out.index(keyOf.applicationWithdrawal(applicationIndex, sequence), name);
    this.#tell("withdrawal.accepted", withdrawalId);
  }

  /** The vaults of these slots became void, so their pending withdrawals have failed. */
  failVoided({ mode, batchNumber }: BatchPlace, voids: readonly records.VoidRun[]): void {
    const isVoid = `The vault of ${mode}-${batchNumber} is void:`;
    const runs = voids.map((run) => ({ ...run, failure: `${isVoid} ${run.failure}` }));
    this.failIn({ mode, batchNumber }, runs);
  }

  /** The pending withdrawals of these slots have failed, in vault order. */
  failIn({ mode, batchNumber }: BatchPlace, runs: readonly records.VoidRun[]): void {
    for (const [vaultId, { pending }] of [...this.#activities].sort(([a], [b]) =>
      a < b ? -1 : 1,
    )) {
      const place = unpackVaultId(vaultId);
      const run = runs.find(
        ({ firstSlot, count }) => place.slot >= firstSlot && place.slot < firstSlot + count,
      );
      if (place.mode !== mode || place.batchNumber !== batchNumber || run === undefined) continue;
      for (const withdrawalId of pending) this.#fail(withdrawalId, run.failure);
    }
  }

  /** A vault holds less than its pending withdrawals counted on. */
  failPending(vaultId: bigint, failure: string): void {
    for (const withdrawalId of this.activity(vaultId).pending) this.#fail(withdrawalId, failure);
  }

  /** Settles withdrawals, in the order of the chain's events. */
  finalize({ chainId, blockNumber }: EntryOf<"l1Finalized">): void {
    const events = this.#events.filter((event) => event.chainId === chainId).sort(inOrder);
    for (const withdrawalId of events.flatMap((event) => event.withdrawalIds)) {
      const { status, l1BlockNumber = null } = this.#withdrawals.get(withdrawalId) ?? {};
      if (status !== "settled" || l1BlockNumber === null || l1BlockNumber > blockNumber) continue;
      this.#change("withdrawal.finalized", withdrawalId, {
        status: "finalized",
        finalizedAt: this.out.time,
      });
    }
  }

  revert({ chainId, blockNumber }: EntryOf<"l1Reorganised">): void {
    const isGone = (event: SeenEvent) =>
      event.chainId === chainId && event.blockNumber >= blockNumber;
    const gone = this.#events.filter(isGone);
    this.#events = this.#events.filter((event) => !isGone(event));
    for (const { vaultId, withdrawalIds } of gone.sort(inOrder).reverse()) {
      if (vaultId !== null) {
        const totals = this.#events
          .filter((event) => event.vaultId === vaultId && event.total !== null)
          .sort(inOrder);
        this.changeActivity(vaultId, { withdrawn: totals.at(-1)?.total ?? 0n });
      }
      for (const withdrawalId of withdrawalIds) {
        const known = this.#withdrawals.get(withdrawalId);
        if (known === undefined) continue;
        this.#reserve(known.vaultId, withdrawalId);
        const status = known.submittedAt === null ? "accepted" : "submitted";
        this.#change("withdrawal.reverted", withdrawalId, {
          l1BlockNumber: null,
          failure: null,
          ...NOT_YET,
          status,
        });
      }
      if (vaultId !== null) this.parts.whenWithdrawn(vaultId);
    }
  }

  /** A making is an event without a withdrawal. */
  seeMaking(chainId: bigint, entry: EntryOf<"vaultsMade">): void {
    this.#see({ ...entry, chainId }, {});
  }

  activity(vaultId: bigint): records.ActivityRecord {
    return this.#activities.get(vaultId) ?? records.UNTOUCHED;
  }

  changeActivity(vaultId: bigint, change: Partial<records.ActivityRecord>): void {
    this.#activities.set(vaultId, {
      ...this.activity(vaultId),
      updatedAt: this.out.time,
      ...change,
    });
  }

  override finish(): void {
    const { out } = this;
    super.finish();
    for (const record of this.#withdrawals.values()) this.#finishIndexes(record);
    for (const { digest, signature, vaults } of this.#lists.values()) {
      const listed = vaults.map((vault) => {
        return { ...vault, withdrawalId: this.#listed.get(listedName(digest, vault)) ?? null };
      });
      const record = { signature, vaults: listed };
      out.put(
        keyOf.withdrawalList(digest),
        records.withdrawalListRecord,
        record,
        `the list of digest ${digest}`,
      );
    }
    for (const seen of this.#events) {
      const { chainId, blockNumber, logIndex, vaultId, withdrawalIds, total } = seen;
      const { imported, cancelled } = seen;
      const name = `event ${logIndex} of block ${blockNumber} of chain ${chainId}`;
      const event = { ...records.NO_EVENT, vaultId, withdrawalIds, imported, cancelled };
      out.put(keyOf.l1Event(chainId, blockNumber, logIndex), records.l1EventRecord, event, name);
      if (vaultId !== null && total !== null)
        out.put(keyOf.vaultEvent(vaultId, blockNumber, logIndex), records.bigRecord, total, name);
      if (cancelled !== null)
        out.bytes(keyOf.cancellation(chainId, cancelled.signer, cancelled.id), PRESENT, name);
      if (imported !== null)
        out.put(
          keyOf.import(chainId, imported.mode, imported.batchNumber),
          records.importRecord,
          imported,
          name,
        );
    }
  }

  #finishIndexes(record: records.WithdrawalRecord): void {
    const { withdrawalId, journalSequence, chainId, status, applicationIndex, userIndex, vaultId } =
      record;
    const name = `withdrawal ${withdrawalId}`;
    for (const of of [
      prefixOf.userWithdrawal(applicationIndex, userIndex),
      prefixOf.assetWithdrawal(applicationIndex, this.#assets.get(withdrawalId) ?? 0),
      prefixOf.vaultWithdrawal(applicationIndex, vaultId),
      prefixOf.statusWithdrawal(applicationIndex, records.WITHDRAWAL_STATUSES.indexOf(status)),
    ])
      this.out.index(requestByKey(of, record.sequence), `an index of ${name}`, journalSequence);
    if (!isPending(record)) return;
    const key = keyOf.pendingWithdrawal(chainId, journalSequence);
    this.out.put(key, records.withdrawalIdRecord, withdrawalId, `pending ${name}`);
  }

  #see(
    entry: Pick<SeenEvent, "chainId" | "blockNumber" | "logIndex">,
    what: Partial<SeenEvent>,
  ): void {
    const { chainId, blockNumber, logIndex } = entry;
    this.#events.push({ chainId, blockNumber, logIndex, ...NOTHING_SEEN, ...what });
  }

  #fail(withdrawalId: string, failure: string): void {
    this.#release(withdrawalId);
    this.#change("withdrawal.failed", withdrawalId, {
      status: "failed",
      failure,
      failedAt: this.out.time,
    });
  }

  #change(
    type: WithdrawalEventType,
    withdrawalId: string,
    change: Partial<records.WithdrawalRecord>,
  ): void {
    this.#withdrawals.change(withdrawalId, change);
    this.#tell(type, withdrawalId);
  }

  #tell(type: WithdrawalEventType, withdrawalId: string): void {
    const known = this.#withdrawals.get(withdrawalId);
    if (known !== undefined) this.out.tell(known.applicationIndex, { type, ...known });
  }

  #reserve(vaultId: bigint, withdrawalId: string): void {
    this.#setPending(vaultId, [...this.activity(vaultId).pending, withdrawalId]);
  }

  #release(withdrawalId: string): void {
    const known = this.#withdrawals.get(withdrawalId);
    if (known === undefined) return;
    const pending = this.activity(known.vaultId).pending.filter((id) => id !== withdrawalId);
    this.#setPending(known.vaultId, pending);
  }

  #setPending(vaultId: bigint, pending: readonly string[]): void {
    const reserved = pending.reduce(
      (sum, id) => sum + (this.#withdrawals.get(id)?.quantity ?? 0n),
      0n,
    );
    this.changeActivity(vaultId, { pending, reserved });
  }
}

function listedName(digest: string, { vaultId }: { readonly vaultId: bigint }): string {
  return `${digest} ${vaultId}`;
}

function inOrder(a: SeenEvent, b: SeenEvent): number {
  return a.blockNumber === b.blockNumber
    ? a.logIndex - b.logIndex
    : a.blockNumber < b.blockNumber
      ? -1
      : 1;
}
