import { slotsOf } from "../protocol/transfer-data.ts";
import { isRedemption } from "../protocol/transfers.ts";
import { unpackVaultId, type VaultPlace } from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import { encodeRecord } from "../store/layout.ts";
import {
  type ActivityRecord,
  type TransferListRecord,
  transferIdRecord,
  transferListRecord,
} from "../store/records.ts";
import * as keys from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-chunk.ts";
import type { ReferenceEvents } from "./events.ts";
import { type Expected, expectedRecord } from "./records.ts";

/** A vault of a sealed batch. */
export type VaultAt = (place: VaultPlace) => Promise<StoredVault | undefined>;

/** The vaults' later history, which transfers and withdrawals share. */
export interface Activities {
  activity(vaultId: bigint): ActivityRecord;
  changeActivity(vaultId: bigint, change: Partial<ActivityRecord>): void;
}

/** The part of the reference for transfers: every list in memory. */
export class ReferenceTransfers {
  readonly #report: (problem: string) => void;
  readonly #events: ReferenceEvents;
  readonly #activities: Activities;
  readonly #vaultAt: VaultAt;
  readonly #ownerOf: (userIndex: number) => { readonly applicationIndex: number; readonly owner: string } | undefined;
  readonly #lists = new Map<string, TransferListRecord>();
  /** The lists of each batch of transfers, in slot order. */
  readonly #batches = new Map<number, readonly string[]>();

  constructor(
    report: (problem: string) => void,
    events: ReferenceEvents,
    activities: Activities,
    vaultAt: VaultAt,
    ownerOf: (userIndex: number) => { readonly applicationIndex: number; readonly owner: string } | undefined,
  ) {
    this.#report = report;
    this.#events = events;
    this.#activities = activities;
    this.#vaultAt = vaultAt;
    this.#ownerOf = ownerOf;
  }

  /** The lists of a batch of transfers; null for a batch of mints. */
  ofBatch({ mode, batchNumber }: Pick<VaultPlace, "mode" | "batchNumber">): readonly TransferListRecord[] | null {
    const ids = mode === "zk-rollup" ? this.#batches.get(batchNumber) : undefined;
    return ids === undefined ? null : ids.flatMap((id) => this.#lists.get(id) ?? []);
  }

  /** Takes a list. Returns its index records and its event, and the assets and modes of its vaults. */
  async request(entry: EntryOf<"transfersRequested">, journalSequence: number, time: number) {
    const { kind: _, transferId, applicationIndex, firstSequence } = entry;
    const transfers: TransferListRecord["transfers"][number][] = [];
    for (const transfer of entry.transfers) {
      const place = unpackVaultId(transfer.vaultId);
      const vault = await this.#vaultAt(place);
      if (vault === undefined || vault.applicationIndex !== applicationIndex || vault.amount === 0n)
        this.#report(`transfer ${transferId} takes vault ${transfer.vaultId}, which its application does not have`);
      if (this.#activities.activity(transfer.vaultId).spentBy !== null)
        this.#report(`transfer ${transferId} takes vault ${transfer.vaultId}, which another transfer has taken`);
      const payee = transfer.payeeIndex === null ? undefined : this.#ownerOf(transfer.payeeIndex);
      const isRight = isRedemption(transfer)
        ? transfer.payeeIndex === null
        : payee?.owner === transfer.to && payee.applicationIndex === applicationIndex;
      if (!isRight) this.#report(`transfer ${transferId} gives vault ${transfer.vaultId} to another user`);
      const { userIndex = 0, assetIndex = 0 } = vault ?? {};
      transfers.push({ ...transfer, userIndex, assetIndex, hops: this.#hopsOf(place) + 1 });
      this.#activities.changeActivity(transfer.vaultId, { spentBy: transferId, updatedAt: time });
    }
    const waiting = { status: "waiting", batchNumber: null, firstSlot: null, failure: null } as const;
    const times = { createdAt: time, updatedAt: time };
    const { digest, deadline, signature } = entry;
    const facts = { transferId, applicationIndex, firstSequence, digest, deadline, signature };
    this.#lists.set(transferId, { ...facts, transfers, journalSequence, ...waiting, ...times });
    const value = keys.journalKey(journalSequence).subarray(1);
    const name = `an index of transfer ${transferId}`;
    const users = new Set(transfers.flatMap(({ userIndex, payeeIndex }) => [userIndex, payeeIndex ?? userIndex]));
    const told = { transfers: transfers.length, redemptions: transfers.filter(isRedemption).length };
    return {
      assets: transfers.map(({ assetIndex }) => assetIndex),
      modes: ["zk-rollup" as const, ...transfers.map(({ vaultId }) => unpackVaultId(vaultId).mode)],
      slots: slotCount(transfers),
      expected: [
        expectedRecord(keys.transactionKey(applicationIndex, firstSequence), value, name),
        ...[...users].map((user) =>
          expectedRecord(keys.userTransactionKey(applicationIndex, user, firstSequence), value, name),
        ),
        this.#events.tell(applicationIndex, time, { type: "transfer.accepted", transferId, ...told }),
      ],
    };
  }

  /** Puts lists into a batch. Returns its vaults. */
  async batch({ batchNumber, transferIds }: EntryOf<"transfersBatched">, time: number): Promise<StoredVault[]> {
    this.#batches.set(batchNumber, transferIds);
    const vaults: StoredVault[] = [];
    for (const transferId of transferIds) {
      const list = this.#lists.get(transferId);
      if (list?.status !== "waiting") this.#report(`transfer ${transferId} is put into a batch, and does not wait`);
      if (list === undefined) continue;
      const batched = { status: "batched", batchNumber, firstSlot: vaults.length, updatedAt: time } as const;
      this.#lists.set(transferId, { ...list, ...batched });
      for (const { vaultId, amount, to, payeeIndex, userIndex } of list.transfers) {
        const vault = await this.#vaultAt(unpackVaultId(vaultId));
        if (vault === undefined) {
          this.#report(`transfer ${transferId} moves vault ${vaultId}, which is missing`);
          continue;
        }
        const rest = vault.amount - this.#activities.activity(vaultId).withdrawn;
        if (rest <= 0n || (amount !== 0n && amount >= rest)) this.#report(`transfer ${transferId} moves too much`);
        const made = { ...vault, createdAt: time, updatedAt: time };
        const paid = amount === 0n ? rest : amount;
        vaults.push(
          payeeIndex === null ? { ...made, amount: 0n } : { ...made, userIndex: payeeIndex, owner: to, amount: paid },
        );
        if (amount !== 0n) vaults.push({ ...made, userIndex, amount: rest - paid });
        this.#activities.changeActivity(vaultId, { transferred: rest, updatedAt: time });
      }
    }
    return vaults;
  }

  /** The lists of a batch that L1 does not take wait again. */
  takeBack(batchNumber: number, time: number): void {
    for (const list of this.ofBatch({ mode: "zk-rollup", batchNumber }) ?? []) {
      for (const { vaultId } of list.transfers)
        this.#activities.changeActivity(vaultId, { transferred: 0n, updatedAt: time });
      const waiting = { status: "waiting", batchNumber: null, firstSlot: null, updatedAt: time } as const;
      this.#lists.set(list.transferId, { ...list, ...waiting });
    }
    this.#batches.delete(batchNumber);
  }

  fail({ transferId, failure }: EntryOf<"transfersFailed">, time: number): Expected[] {
    const list = this.#lists.get(transferId);
    if (list?.status !== "waiting") this.#report(`transfer ${transferId} fails, and does not wait`);
    if (list === undefined) return [];
    for (const { vaultId } of list.transfers)
      this.#activities.changeActivity(vaultId, { spentBy: null, updatedAt: time });
    this.#lists.set(transferId, { ...list, status: "failed", failure, updatedAt: time });
    return [this.#events.tell(list.applicationIndex, time, { type: "transfer.failed", transferId, failure })];
  }

  finish(): Expected[] {
    return [...this.#lists.values()].flatMap((list) => {
      const { transferId, digest, journalSequence, status, batchNumber, firstSlot } = list;
      const name = `transfer ${transferId}`;
      const id = encodeRecord(transferIdRecord, transferId);
      const expected = [expectedRecord(keys.transferListKey(transferId), encodeRecord(transferListRecord, list), name)];
      if (status !== "failed")
        expected.push(expectedRecord(keys.transferDigestKey(digest), id, `the digest of ${name}`));
      if (status === "waiting") expected.push(expectedRecord(keys.waitingTransfersKey(journalSequence), id, name));
      if (batchNumber !== null && firstSlot !== null)
        expected.push(expectedRecord(keys.batchTransfersKey(batchNumber, firstSlot), id, `the slots of ${name}`));
      return expected;
    });
  }

  /** Transfers between the mint and a vault. */
  #hopsOf({ mode, batchNumber, slot }: VaultPlace): number {
    let next = 0;
    for (const { transfers } of this.ofBatch({ mode, batchNumber }) ?? []) {
      for (const transfer of transfers) {
        next += slotsOf(transfer);
        if (slot < next) return transfer.hops;
      }
    }
    return 0;
  }
}

function slotCount(transfers: readonly { readonly amount: bigint }[]): number {
  return transfers.reduce((sum, transfer) => sum + slotsOf(transfer), 0);
}
