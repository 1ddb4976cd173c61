import { MODES } from "../model.ts";
import { isRedemption } from "../protocol/transfer.ts";
import { slotsOf } from "../protocol/transfer-data.ts";
import { TRANSFER_FAULTS, transferFault } from "../protocol/transfer-rules.ts";
import { type BatchPlace, packVaultId, unpackVaultId, type VaultPlace } from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import type { AdoptedList, BatchRecord, TransferListRecord } from "../store/records.ts";
import { transferIdRecord, transferListRecord } from "../store/records.ts";
import { keyOf, requestByKey, transferIndexes } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import type { ReferenceBatches } from "./reference-batches.ts";
import type { ReferencePortals } from "./reference-l1.ts";
import { type Handlers, ReferencePart } from "./reference-records.ts";
import type { ReferenceTenants } from "./reference-tenants.ts";
import { putChunks } from "./reference-vaults.ts";
import type { ReferenceWithdrawals } from "./reference-withdrawals.ts";

/** A vault of a sealed batch. */
export type VaultAt = (place: VaultPlace) => Promise<StoredVault | undefined>;

const LESS = "L1 has given this vault less, because its transfer counts for less or for nothing.";

/** The part of the reference for transfers: every list in memory. */
export class ReferenceTransfers extends ReferencePart<{
  readonly tenants: ReferenceTenants;
  readonly portals: ReferencePortals;
  readonly batches: ReferenceBatches;
  readonly withdrawals: ReferenceWithdrawals;
  /** A vault among the records that are final. */
  readonly vaultAt: VaultAt;
}> {
  readonly #lists = this.kept("transfer", keyOf.transferList, transferListRecord);
  // The lists of each batch of transfers, in slot order
  readonly #batches = new Map<number, readonly string[]>();
  /** The vaults that each batch of transfers has made, also of one that was taken back. */
  readonly #outputs = new Map<number, StoredVault[]>();
  readonly #minted = new Map<bigint, StoredVault>(); // Minted vaults that transfers have taken

  readonly on = {
    transfersRequested: async (entry) => {
      const { transferId, applicationIndex, firstSequence } = entry;
      const { out } = this;
      const { tenants, withdrawals } = this.parts;
      const transfers: TransferListRecord["transfers"][number][] = [];
      for (const transfer of entry.transfers) {
        const { vaultId, receiverIndex, to } = transfer;
        const place = unpackVaultId(vaultId);
        const vault = await this.heldAt(place);
        if (vault !== undefined && this.#output(place) === undefined)
          this.#minted.set(vaultId, vault);
        if (
          vault === undefined ||
          vault.applicationIndex !== applicationIndex ||
          vault.amount === 0n
        )
          out.report(
            `transfer ${transferId} takes vault ${vaultId}, which its application does not have`,
          );
        if (withdrawals.activity(vaultId).spentBy !== null)
          out.report(
            `transfer ${transferId} takes vault ${vaultId}, which another transfer has taken`,
          );
        const receiver = receiverIndex === null ? undefined : tenants.owner(receiverIndex);
        const isRight = isRedemption(transfer)
          ? receiverIndex === null
          : receiver?.owner === to && receiver.applicationIndex === applicationIndex;
        if (!isRight) out.report(`transfer ${transferId} gives vault ${vaultId} to another user`);
        const { userIndex = 0, assetIndex = 0 } = vault ?? {};
        transfers.push({
          ...transfer,
          userIndex,
          assetIndex,
          hops: this.#hopsOf(place) + 1,
          fault: null,
        });
        withdrawals.changeActivity(vaultId, { spentBy: transferId });
      }
      const count = transfers.reduce((sum, transfer) => sum + slotsOf(transfer), 0);
      const assets = transfers.map(({ assetIndex }) => assetIndex);
      tenants.advance(
        `transfer ${transferId}`,
        { applicationIndex, sequence: firstSequence, count },
        assets,
        MODES,
      );
      this.#lists.add(transferId, { ...entry, transfers, journalSequence: out.sequence });
      const users = new Set(
        transfers.flatMap(({ userIndex, receiverIndex }) => [
          userIndex,
          receiverIndex ?? userIndex,
        ]),
      );
      for (const key of [
        keyOf.transaction(applicationIndex, firstSequence),
        ...[...users].map((user) => keyOf.userTransaction(applicationIndex, user, firstSequence)),
        ...transferIndexes(applicationIndex, transfers).map((of) =>
          requestByKey(of, firstSequence),
        ),
      ])
        out.index(key, `an index of transfer ${transferId}`);
      const redeemed = transfers.filter(isRedemption);
      const counts = { transfers: transfers.length, redemptions: redeemed.length };
      out.tell(applicationIndex, { type: "transfer.accepted", transferId, ...counts });
      for (const { userIndex, vaultId, amount } of redeemed)
        out.tell(applicationIndex, {
          type: "transfer.redeemed",
          transferId,
          userIndex,
          vaultId,
          amount,
        });
    },
    transfersFailed: ({ transferId, failure }) => {
      const list = this.#lists.get(transferId);
      if (list?.status !== "waiting")
        this.out.report(`transfer ${transferId} fails, and does not wait`);
      if (list === undefined) return;
      for (const { vaultId } of list.transfers)
        if (this.parts.withdrawals.activity(vaultId).spentBy === transferId)
          this.parts.withdrawals.changeActivity(vaultId, { spentBy: null });
      this.#lists.change(transferId, { status: "failed", failure });
      this.out.tell(list.applicationIndex, { type: "transfer.failed", transferId, failure });
    },
  } satisfies Handlers;

  /** The lists of a batch of transfers; null for a batch of mints. */
  ofBatch({ mode, batchNumber }: BatchPlace): readonly TransferListRecord[] | null {
    const ids = mode === "zk-rollup" ? this.#batches.get(batchNumber) : undefined;
    return ids === undefined ? null : ids.flatMap((id) => this.#lists.get(id) ?? []);
  }

  /** A minted vault of a sealed batch. */
  async vaultAt(place: VaultPlace): Promise<StoredVault | undefined> {
    const kept = place.mode === "made" ? undefined : this.parts.batches.keptVault(place);
    return kept ?? (await this.parts.vaultAt(place));
  }

  /** A vault of a sealed batch: minted, or made by a transfer. */
  async heldAt(place: VaultPlace): Promise<StoredVault | undefined> {
    return this.#output(place) ?? (await this.vaultAt(place));
  }

  /** Puts lists into a batch. Returns its vaults. */
  batch({ batchNumber, transferIds }: EntryOf<"transfersBatched">): StoredVault[] {
    const { time } = this.out;
    this.#batches.set(batchNumber, transferIds);
    const vaults: StoredVault[] = [];
    for (const transferId of transferIds) {
      const list = this.#lists.get(transferId);
      if (list?.status !== "waiting")
        this.out.report(`transfer ${transferId} is put into a batch, and does not wait`);
      if (list === undefined) continue;
      this.#lists.change(transferId, { status: "batched", batchNumber, firstSlot: vaults.length });
      for (const { vaultId, amount, to, receiverIndex, userIndex } of list.transfers) {
        const vault = this.#vault(vaultId);
        if (vault === undefined) {
          this.out.report(`transfer ${transferId} moves vault ${vaultId}, which is missing`);
          continue;
        }
        const rest = vault.amount - this.parts.withdrawals.activity(vaultId).withdrawn;
        if (rest <= 0n || (amount !== 0n && amount >= rest))
          this.out.report(`transfer ${transferId} moves too much`);
        const made = { ...vault, createdAt: time, updatedAt: time };
        const paid = amount === 0n ? rest : amount;
        if (receiverIndex === null) vaults.push({ ...made, amount: 0n });
        else vaults.push({ ...made, userIndex: receiverIndex, owner: to, amount: paid });
        if (amount !== 0n) vaults.push({ ...made, userIndex, amount: rest - paid });
        this.parts.withdrawals.changeActivity(vaultId, { transferred: rest });
      }
    }
    this.#outputs.set(batchNumber, vaults);
    return [...vaults];
  }

  /** L1 has committed a batch: decides its transfers. */
  judgeBatch(place: BatchPlace): void {
    const batch = this.parts.batches.at(place);
    if (batch?.transfers) this.#judge(batch, this.ofBatch(place) ?? []);
  }

  /** L1 has told of a power late: decides the batches that it committed in later blocks. */
  judgeAfter(blockNumber: bigint): void {
    for (const batchNumber of [...this.#batches.keys()].sort((a, b) => a - b)) {
      const place = { mode: "zk-rollup", batchNumber } as const;
      const { l1BlockNumber } = this.parts.batches.at(place) ?? { l1BlockNumber: null };
      if (l1BlockNumber !== null && l1BlockNumber > blockNumber) this.judgeBatch(place);
    }
  }

  /** Other units are withdrawn from a vault: decides once more what has taken it. */
  judgeSpender(vaultId: bigint): void {
    const list = this.#lists.get(this.parts.withdrawals.activity(vaultId).spentBy ?? "");
    if (list?.batchNumber == null) return;
    const batch = this.parts.batches.at({ mode: "zk-rollup", batchNumber: list.batchNumber });
    if (batch?.transfers && batch.l1Sequence !== null) this.#judge(batch, [list]);
  }

  /** The vaults that follow from one mint of an ERC-721, in order; none for another standard. */
  lineOf(vaultId: bigint): bigint[] {
    const asset = this.parts.tenants.asset(this.#vault(vaultId)?.assetIndex ?? -1);
    if (asset?.standard !== "erc721") return [];
    const line = [vaultId];
    for (let from = this.#sourceOf(vaultId); from !== null; from = this.#sourceOf(from))
      line.unshift(from);
    for (let made = this.#madeOf(vaultId); made !== null; made = this.#madeOf(made))
      line.push(made);
    return line;
  }

  /** The vault of which a transfer has made this one; null for a minted one. */
  #sourceOf(vaultId: bigint): bigint | null {
    const place = unpackVaultId(vaultId);
    const source = this.#makerOf(place)?.vaultId ?? null;
    if (source === null) return null;
    const { mode, batchNumber } = unpackVaultId(source);
    // A hostile operator can make circles of records that spend later vaults.
    return mode === place.mode && batchNumber >= place.batchNumber ? null : source;
  }

  /** The vault that a transfer in a batch has made of this whole one; null without any. */
  #madeOf(vaultId: bigint): bigint | null {
    const list = this.#lists.get(this.parts.withdrawals.activity(vaultId).spentBy ?? "");
    if (list === undefined || list.batchNumber === null || list.firstSlot === null) return null;
    const before = list.transfers.slice(
      0,
      list.transfers.findIndex((transfer) => transfer.vaultId === vaultId),
    );
    const slot = before.reduce((sum, transfer) => sum + slotsOf(transfer), list.firstSlot);
    const made = packVaultId({ mode: "zk-rollup", batchNumber: list.batchNumber, slot });
    return made > vaultId ? made : null;
  }

  #judge(batch: BatchRecord, lists: readonly TransferListRecord[]): void {
    const { out } = this;
    const { withdrawals } = this.parts;
    const changed: bigint[] = [];
    for (const list of lists) {
      let slot = list.firstSlot ?? 0;
      let failure: string | null = null;
      const transfers = list.transfers.map((transfer) => {
        const { vaultId, amount } = transfer;
        const fault = this.#faultOf(batch, list, transfer);
        const activity = withdrawals.activity(vaultId);
        const rest =
          fault === null ? (this.#vault(vaultId)?.amount ?? 0n) - activity.withdrawn : 0n;
        if (activity.transferred !== rest)
          withdrawals.changeActivity(vaultId, { transferred: rest });
        const paid = fault === null && amount !== 0n ? amount : rest;
        const parts = amount === 0n ? [paid] : [paid, rest - paid];
        if (transfer.receiverIndex === null) parts[0] = 0n;
        for (const units of parts) {
          const outId = packVaultId({ mode: "zk-rollup", batchNumber: batch.batchNumber, slot });
          const vault = this.#outputs.get(batch.batchNumber)?.[slot];
          if (vault !== undefined && vault.amount !== units) {
            this.#outputs
              .get(batch.batchNumber)
              ?.splice(slot, 1, { ...vault, amount: units, updatedAt: out.time });
            changed.push(outId);
            if (units < vault.amount) withdrawals.failPending(outId, LESS);
          }
          slot++;
        }
        if (fault !== null && transfer.fault === null)
          failure ??= `L1 does not count the transfer of vault ${vaultId}: ${TRANSFER_FAULTS[fault]}`;
        return { ...transfer, fault: fault === null ? null : (transfer.fault ?? fault) };
      });
      const { transferId, applicationIndex } = list;
      if (transfers.some(({ fault }, i) => fault !== list.transfers[i]?.fault))
        this.#lists.change(transferId, { transfers });
      if (failure !== null)
        out.tell(applicationIndex, { type: "transfer.failed", transferId, failure });
    }
    for (const vaultId of changed) this.judgeSpender(vaultId);
  }

  #faultOf(
    batch: BatchRecord,
    list: TransferListRecord,
    transfer: TransferListRecord["transfers"][number],
  ) {
    const { vaultId, hops } = transfer;
    const place = unpackVaultId(vaultId);
    const vault = this.#vault(vaultId);
    const asset = this.parts.tenants.asset(vault?.assetIndex ?? -1);
    if (vault === undefined || asset === undefined) return "exhausted";
    const source = {
      vaultId,
      owner: vault.owner,
      amount: this.parts.batches.isVoid(place) ? 0n : vault.amount,
      withdrawn: this.parts.withdrawals.activity(vaultId).withdrawn,
      standard: asset.standard,
      assetType: asset.assetType,
      transferable: asset.transferable === true && this.parts.portals.isHome(asset.chainId),
      hops: hops - 1,
    };
    const record = { transfer, deadline: list.deadline, committedAt: batch.committedAt ?? 0n };
    return transferFault(source, record, this.parts.portals.powersOf(vault.owner, list));
  }

  /** A vault that a transfer takes. */
  #vault(vaultId: bigint): StoredVault | undefined {
    return this.#output(unpackVaultId(vaultId)) ?? this.#minted.get(vaultId);
  }

  #output({ mode, batchNumber, slot }: VaultPlace): StoredVault | undefined {
    return mode === "zk-rollup" ? this.#outputs.get(batchNumber)?.[slot] : undefined;
  }

  /** The lists of a batch that L1 does not take wait again. */
  takeBack(batchNumber: number): void {
    for (const list of this.ofBatch({ mode: "zk-rollup", batchNumber }) ?? []) {
      for (const { vaultId } of list.transfers)
        this.parts.withdrawals.changeActivity(vaultId, { transferred: 0n });
      const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
      this.#lists.change(list.transferId, {
        transfers,
        status: "waiting",
        batchNumber: null,
        firstSlot: null,
      });
    }
    this.#batches.delete(batchNumber);
  }

  /** Drops the batches of transfers from this one on: their lists wait again. */
  drop(first: number): void {
    for (const batchNumber of [...this.#outputs.keys()].sort((a, b) => a - b)) {
      if (batchNumber < first) continue;
      this.takeBack(batchNumber);
      this.#outputs.delete(batchNumber);
    }
  }

  /**
   * Vaults of L1's history replace those that had their places, and others are taken for the first
   * time.
   */
  learn(vaults: ReadonlyMap<bigint, StoredVault>): void {
    const taken = new Set(
      [...this.#lists.values()].flatMap((list) => list.transfers.map(({ vaultId }) => vaultId)),
    );
    for (const [vaultId, vault] of vaults)
      if (taken.has(vaultId) && this.#output(unpackVaultId(vaultId)) === undefined)
        this.#minted.set(vaultId, vault);
  }

  /** L1's history holds these lists in a batch, with these vaults. */
  adopt(batchNumber: number, lists: readonly AdoptedList[], vaults: readonly StoredVault[]): void {
    const ids = lists.map(({ transferId }) => transferId);
    this.#outputs.set(batchNumber, [...vaults]);
    this.#batches.set(batchNumber, ids);
    let firstSlot = 0;
    for (const list of lists) {
      const { transferId } = list;
      if (!this.#lists.has(transferId))
        this.#lists.add(transferId, { journalSequence: this.out.sequence });
      const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
      this.#lists.change(transferId, {
        ...list,
        transfers,
        status: "batched",
        batchNumber,
        firstSlot,
        failure: null,
      });
      for (const transfer of list.transfers) {
        const { vaultId } = transfer;
        const parts = vaults.slice(firstSlot, firstSlot + slotsOf(transfer));
        firstSlot += parts.length;
        const transferred = parts.reduce((sum, { amount }) => sum + amount, 0n);
        this.parts.withdrawals.changeActivity(vaultId, { spentBy: transferId, transferred });
      }
    }
  }

  override finish(): void {
    const { out } = this;
    super.finish();
    for (const list of this.#lists.values()) {
      const { transferId, journalSequence, digest, status, batchNumber, firstSlot } = list;
      const put = (key: Buffer, name: string) =>
        out.put(key, transferIdRecord, transferId, `${name} of transfer ${transferId}`);
      if (status !== "failed") put(keyOf.transferDigest(digest), "the digest");
      if (status === "waiting")
        put(keyOf.waitingTransfers(journalSequence, transferId), "the wait");
      if (batchNumber !== null && firstSlot !== null)
        put(keyOf.batchTransfers(batchNumber, firstSlot), "the slots");
    }
    // L1 may have given the vaults that transfers have made other units until now.
    for (const [batchNumber, vaults] of this.#outputs) {
      const batch = this.parts.batches.at({ mode: "zk-rollup", batchNumber });
      if (batch !== undefined) putChunks(out, batch, vaults);
      for (const [slot, { amount }] of vaults.entries()) {
        const vaultId = packVaultId({ mode: "zk-rollup", batchNumber, slot });
        if (this.parts.withdrawals.activity(vaultId).withdrawn > amount)
          out.report(`L1 has paid more of vault ${vaultId} than it holds`);
      }
    }
  }

  /** Transfers between the mint and a vault. */
  #hopsOf(place: VaultPlace): number {
    return this.#makerOf(place)?.hops ?? 0;
  }

  /** The transfer that has made a vault. */
  #makerOf({ mode, batchNumber, slot }: VaultPlace) {
    if (mode === "made") return undefined;
    let next = 0;
    for (const { transfers } of this.ofBatch({ mode, batchNumber }) ?? []) {
      for (const transfer of transfers) {
        next += slotsOf(transfer);
        if (slot < next) return transfer;
      }
    }
    return undefined;
  }
}
