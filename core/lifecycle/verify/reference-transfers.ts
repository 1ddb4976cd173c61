import { type Address, MODES } from "../../model.ts";
import { isRedemption } from "../../protocol/transfer.ts";
import { slotsOf } from "../../protocol/transfer-data.ts";
import {
  TRANSFER_FAULTS,
  type TransferFault,
  type TransferPowers,
  transferFault,
} from "../../protocol/transfer-rules.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../../protocol/vault.ts";
import type { EntryOf } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import {
  type ActivityRecord,
  type AdoptedList,
  type AssetRecord,
  type BatchRecord,
  type TransferListRecord,
  transferIdRecord,
  transferListRecord,
} from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import type { ReferenceEvents } from "./reference-events.ts";
import { chunksExpected, type Expected, expectedRecord } from "./reference-records.ts";

/** A vault of a sealed batch. */
export type VaultAt = (place: VaultPlace) => Promise<StoredVault | undefined>;

/** The vaults' later history, which transfers and withdrawals share. */
export interface Activities {
  activity(vaultId: bigint): ActivityRecord;
  changeActivity(vaultId: bigint, change: Partial<ActivityRecord>): void;
  failPending(vaultId: bigint, failure: string, time: number): Expected[];
}

/** What L1's rule asks of the state besides the lists. */
export interface JudgedState {
  assetAt(assetIndex: number): AssetRecord | undefined;
  batchAt(place: Pick<VaultPlace, "mode" | "batchNumber">): BatchRecord | undefined;
  isVoid(place: VaultPlace): boolean;
  /** Whether it is the settlement contract's. */
  isHome(chainId: bigint): boolean;
  powersOf(owner: Address, list: TransferListRecord): TransferPowers;
}

const LESS = "L1 has given this vault less, because its transfer counts for less or for nothing.";

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
  /** The vaults that each batch of transfers has made, also of one that was taken back. */
  readonly #outputs = new Map<number, StoredVault[]>();
  /** Minted vaults that transfers have taken. */
  readonly #minted = new Map<bigint, StoredVault>();
  readonly #state: JudgedState;

  constructor(
    report: (problem: string) => void,
    events: ReferenceEvents,
    activities: Activities,
    vaultAt: VaultAt,
    ownerOf: (userIndex: number) => { readonly applicationIndex: number; readonly owner: string } | undefined,
    state: JudgedState,
  ) {
    this.#state = state;
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
      const vault = this.#output(place) ?? (await this.#vaultAt(place));
      if (vault !== undefined && this.#output(place) === undefined) this.#minted.set(transfer.vaultId, vault);
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
      transfers.push({ ...transfer, userIndex, assetIndex, hops: this.#hopsOf(place) + 1, fault: null });
      this.#activities.changeActivity(transfer.vaultId, { spentBy: transferId, updatedAt: time });
    }
    const waiting = { status: "waiting", batchNumber: null, firstSlot: null, failure: null } as const;
    const times = { createdAt: time, updatedAt: time };
    const { digest, deadline, signature, sessionKey } = entry;
    const facts = { transferId, applicationIndex, firstSequence, digest, deadline, signature, sessionKey };
    this.#lists.set(transferId, { ...facts, transfers, journalSequence, ...waiting, ...times });
    const value = keys.journalKey(journalSequence).subarray(1);
    const name = `an index of transfer ${transferId}`;
    const users = new Set(transfers.flatMap(({ userIndex, payeeIndex }) => [userIndex, payeeIndex ?? userIndex]));
    const redeemed = transfers.filter(isRedemption);
    const told = { transfers: transfers.length, redemptions: redeemed.length };
    return {
      assets: transfers.map(({ assetIndex }) => assetIndex),
      modes: MODES,
      slots: slotCount(transfers),
      expected: [
        expectedRecord(keys.transactionKey(applicationIndex, firstSequence), value, name),
        ...[...users].map((user) =>
          expectedRecord(keys.userTransactionKey(applicationIndex, user, firstSequence), value, name),
        ),
        ...keys
          .transferIndexes(applicationIndex, transfers)
          .map((of) => expectedRecord(keys.requestByKey(of, firstSequence), value, name)),
        this.#events.tell(applicationIndex, time, { type: "transfer.accepted", transferId, ...told }),
        ...redeemed.map(({ userIndex, vaultId, amount }) =>
          this.#events.tell(applicationIndex, time, {
            type: "transfer.redeemed",
            transferId,
            userIndex,
            vaultId,
            amount,
          }),
        ),
      ],
    };
  }

  /** Puts lists into a batch. Returns its vaults. */
  batch({ batchNumber, transferIds }: EntryOf<"transfersBatched">, time: number): StoredVault[] {
    this.#batches.set(batchNumber, transferIds);
    const vaults: StoredVault[] = [];
    for (const transferId of transferIds) {
      const list = this.#lists.get(transferId);
      if (list?.status !== "waiting") this.#report(`transfer ${transferId} is put into a batch, and does not wait`);
      if (list === undefined) continue;
      const batched = { status: "batched", batchNumber, firstSlot: vaults.length, updatedAt: time } as const;
      this.#lists.set(transferId, { ...list, ...batched });
      for (const { vaultId, amount, to, payeeIndex, userIndex } of list.transfers) {
        const vault = this.#vault(vaultId);
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
    this.#outputs.set(batchNumber, vaults);
    return [...vaults];
  }

  /** L1 has committed a batch: decides its transfers. */
  judgeBatch(place: Pick<VaultPlace, "mode" | "batchNumber">, time: number): Expected[] {
    const batch = this.#state.batchAt(place);
    return batch?.transfers ? this.#judge(batch, this.ofBatch(place) ?? [], time) : [];
  }

  /** Other units are withdrawn from a vault: decides once more what has taken it. */
  judgeSpender(vaultId: bigint, time: number): Expected[] {
    const list = this.#lists.get(this.#activities.activity(vaultId).spentBy ?? "");
    if (list?.batchNumber == null) return [];
    const batch = this.#state.batchAt({ mode: "zk-rollup", batchNumber: list.batchNumber });
    return batch?.transfers && batch.l1Sequence !== null ? this.#judge(batch, [list], time) : [];
  }

  #judge(batch: BatchRecord, lists: readonly TransferListRecord[], time: number): Expected[] {
    const told: Expected[] = [];
    const changed: bigint[] = [];
    for (const list of lists) {
      let slot = list.firstSlot ?? 0;
      let failure: string | null = null;
      const transfers = list.transfers.map((transfer) => {
        const { vaultId, amount } = transfer;
        const fault = this.#faultOf(batch, list, transfer);
        const activity = this.#activities.activity(vaultId);
        const rest = fault === null ? (this.#vault(vaultId)?.amount ?? 0n) - activity.withdrawn : 0n;
        if (activity.transferred !== rest)
          this.#activities.changeActivity(vaultId, { transferred: rest, updatedAt: time });
        const paid = fault === null && amount !== 0n ? amount : rest;
        const parts = amount === 0n ? [paid] : [paid, rest - paid];
        if (transfer.payeeIndex === null) parts[0] = 0n;
        for (const units of parts) {
          const outId = packVaultId({ mode: "zk-rollup", batchNumber: batch.batchNumber, slot: slot });
          const vault = this.#outputs.get(batch.batchNumber)?.[slot];
          if (vault !== undefined && vault.amount !== units) {
            this.#outputs.get(batch.batchNumber)?.splice(slot, 1, { ...vault, amount: units, updatedAt: time });
            changed.push(outId);
            if (units < vault.amount) told.push(...this.#activities.failPending(outId, LESS, time));
          }
          slot++;
        }
        if (fault !== null && transfer.fault === null)
          failure ??= `L1 does not count the transfer of vault ${vaultId}: ${TRANSFER_FAULTS[fault]}`;
        return { ...transfer, fault: fault === null ? null : (transfer.fault ?? fault) };
      });
      if (transfers.some(({ fault }, i) => fault !== list.transfers[i]?.fault))
        this.#lists.set(list.transferId, { ...list, transfers, updatedAt: time });
      const { transferId, applicationIndex } = list;
      if (failure !== null)
        told.push(this.#events.tell(applicationIndex, time, { type: "transfer.failed", transferId, failure }));
    }
    return [...told, ...changed.flatMap((vaultId) => this.judgeSpender(vaultId, time))];
  }

  #faultOf(
    batch: BatchRecord,
    list: TransferListRecord,
    transfer: TransferListRecord["transfers"][number],
  ): TransferFault | null {
    const { vaultId, hops } = transfer;
    const place = unpackVaultId(vaultId);
    const vault = this.#vault(vaultId);
    const asset = this.#state.assetAt(vault?.assetIndex ?? -1);
    if (vault === undefined || asset === undefined) return "exhausted";
    const source = {
      vaultId,
      owner: vault.owner,
      amount: this.#state.isVoid(place) ? 0n : vault.amount,
      withdrawn: this.#activities.activity(vaultId).withdrawn,
      standard: asset.standard,
      assetType: asset.assetType,
      transferable: asset.transferable === true && this.#state.isHome(asset.chainId),
      hops: hops - 1,
    };
    const record = { transfer, deadline: list.deadline, committedAt: batch.committedAt ?? 0n };
    return transferFault(source, record, this.#state.powersOf(vault.owner, list));
  }

  /** A vault that a transfer takes. */
  #vault(vaultId: bigint): StoredVault | undefined {
    return this.#output(unpackVaultId(vaultId)) ?? this.#minted.get(vaultId);
  }

  #output({ mode, batchNumber, slot }: VaultPlace): StoredVault | undefined {
    return mode === "zk-rollup" ? this.#outputs.get(batchNumber)?.[slot] : undefined;
  }

  /** The records of the vaults that transfers have made, which L1 may give other units until now. */
  vaults(): Expected[] {
    return [...this.#outputs].flatMap(([batchNumber, vaults]) => {
      const batch = this.#state.batchAt({ mode: "zk-rollup", batchNumber });
      return batch === undefined ? [] : chunksExpected("zk-rollup", batchNumber, vaults);
    });
  }

  /** The lists of a batch that L1 does not take wait again. */
  takeBack(batchNumber: number, time: number): void {
    for (const list of this.ofBatch({ mode: "zk-rollup", batchNumber }) ?? []) {
      for (const { vaultId } of list.transfers)
        this.#activities.changeActivity(vaultId, { transferred: 0n, updatedAt: time });
      const waiting = { status: "waiting", batchNumber: null, firstSlot: null, updatedAt: time } as const;
      const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
      this.#lists.set(list.transferId, { ...list, transfers, ...waiting });
    }
    this.#batches.delete(batchNumber);
  }

  /** Drops the batches of transfers from this one on: their lists wait again. */
  drop(first: number, time: number): void {
    for (const batchNumber of [...this.#outputs.keys()].sort((a, b) => a - b)) {
      if (batchNumber < first) continue;
      this.takeBack(batchNumber, time);
      this.#outputs.delete(batchNumber);
    }
  }

  /** Vaults of L1's history replace those that had their places, and others are taken for the first time. */
  learn(vaults: ReadonlyMap<bigint, StoredVault>): void {
    const taken = new Set([...this.#lists.values()].flatMap((list) => list.transfers.map(({ vaultId }) => vaultId)));
    for (const [vaultId, vault] of vaults)
      if (taken.has(vaultId) && this.#output(unpackVaultId(vaultId)) === undefined) this.#minted.set(vaultId, vault);
  }

  /** L1's history holds these lists in a batch, with these vaults. */
  adopt(
    batchNumber: number,
    lists: readonly AdoptedList[],
    vaults: readonly StoredVault[],
    journalSequence: number,
    time: number,
  ): void {
    this.#outputs.set(batchNumber, [...vaults]);
    this.#batches.set(
      batchNumber,
      lists.map(({ transferId }) => transferId),
    );
    let firstSlot = 0;
    for (const list of lists) {
      const known = this.#lists.get(list.transferId);
      const { firstSequence, createdAt } = known ?? { firstSequence: 0, createdAt: time };
      const origin = { firstSequence, journalSequence: known?.journalSequence ?? journalSequence, createdAt };
      const batched = { status: "batched", batchNumber, firstSlot, failure: null, updatedAt: time } as const;
      const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
      this.#lists.set(list.transferId, { ...list, ...origin, ...batched, transfers });
      for (const transfer of list.transfers) {
        const { vaultId } = transfer;
        const parts = vaults.slice(firstSlot, firstSlot + slotsOf(transfer));
        firstSlot += parts.length;
        const transferred = parts.reduce((sum, { amount }) => sum + amount, 0n);
        this.#activities.changeActivity(vaultId, { spentBy: list.transferId, transferred, updatedAt: time });
      }
    }
  }

  fail({ transferId, failure }: EntryOf<"transfersFailed">, time: number): Expected[] {
    const list = this.#lists.get(transferId);
    if (list?.status !== "waiting") this.#report(`transfer ${transferId} fails, and does not wait`);
    if (list === undefined) return [];
    for (const { vaultId } of list.transfers)
      if (this.#activities.activity(vaultId).spentBy === transferId)
        this.#activities.changeActivity(vaultId, { spentBy: null, updatedAt: time });
    this.#lists.set(transferId, { ...list, status: "failed", failure, updatedAt: time });
    return [this.#events.tell(list.applicationIndex, time, { type: "transfer.failed", transferId, failure })];
  }

  finish(): Expected[] {
    return [...this.#lists.values()].flatMap((list) => {
      const { transferId, digest, status, batchNumber, firstSlot } = list;
      const name = `transfer ${transferId}`;
      const id = encodeRecord(transferIdRecord, transferId);
      const expected = [expectedRecord(keys.transferListKey(transferId), encodeRecord(transferListRecord, list), name)];
      if (status !== "failed")
        expected.push(expectedRecord(keys.transferDigestKey(digest), id, `the digest of ${name}`));
      if (status === "waiting") expected.push(expectedRecord(keys.waitingTransfersKey(list), id, name));
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
