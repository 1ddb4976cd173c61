import { findBatch } from "../batches/batches.ts";
import { failWithdrawals } from "../batches/void-slots.ts";
import { tell } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Address, VaultId } from "../model.ts";
import {
  TRANSFER_FAULTS,
  type TransferFault,
  type TransferPowers,
  transferFault,
} from "../protocol/transfer-rules.ts";
import { packVaultId } from "../protocol/vault.ts";
import { voidRunAt } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import type {
  ActivityRecord,
  BatchRecord,
  TransferListRecord,
  VoidedRun,
} from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import {
  CHUNK_VAULTS,
  decodeChunk,
  encodeChunk,
  type StoredVault,
} from "../store/vault-columns.ts";
import { putActivity, readActivities, readActivity } from "../vaults/activity.ts";
import * as lists from "../vaults/transfer-lists.ts";
import { hasSlot, placeOf, readVault, readVaults } from "../vaults/vaults.ts";
import { powersOf } from "./powers.ts";

// Least seconds between L1's newest block and a deadline, when a commit is sent
const COMMIT_SECONDS = 600n;
const MISSING = "L1's history lacks a vault of the transfers.";

/** A vault that a transfer takes, as L1 has it now. */
export interface Spent {
  readonly vault: StoredVault;
  readonly activity: ActivityRecord;
  /** Why its slot is void; null when it is not. */
  readonly voided: VoidedRun | null;
}

/**
 * Examines a list for a commit at this time in seconds. Returns the vaults that it takes, and why
 * L1 would not count all transfers; null when it would. A deep reorganisation may have taken a
 * vault's batch back: then the list waits until it is final again.
 */
export async function examine(
  ledger: Ledger,
  list: TransferListRecord,
  commitAt: bigint,
  group: Group | null,
) {
  const ids = list.transfers.map(({ vaultId }) => vaultId);
  const places = ids.map(placeOf);
  const activities = await readActivities(ledger, ids, group);
  const isFinal = places.every(
    ({ mode, batchNumber }) =>
      ledger.batches.records[mode].view(group).get(batchNumber)?.status === "finalized",
  );
  const known = { activities, isFinal };
  if (!places.every((place) => hasSlot(ledger, place, group)))
    return { spent: [], failure: MISSING, ...known };
  const located = await readVaults(ledger, places, group);
  const spent = located.map(({ place, vault }, i) => ({
    vault,
    activity: activities[i]!,
    voided: voidRunAt(ledger.batches.voids, place, group),
  }));
  const read = (key: Buffer) =>
    group === null ? ledger.store.get(key) : group.read(ledger.store, key);
  const powers = await powersOf(read, spent[0]!.vault.owner, list);
  return { spent, failure: failureOf(ledger, list, spent, powers, commitAt, group), ...known };
}

function failureOf(
  ledger: Ledger,
  list: TransferListRecord,
  spent: readonly Spent[],
  powers: TransferPowers,
  commitAt: bigint,
  group: Group | null,
): string | null {
  if (list.deadline < commitAt) return "The deadline came before L1 could take the transfers.";
  for (const [i, transfer] of list.transfers.entries()) {
    const taken = spent[i]!;
    const { vault, activity, voided } = taken;
    if (vault.userIndex !== transfer.userIndex || vault.assetIndex !== transfer.assetIndex)
      return `Vault ${transfer.vaultId} is another one in L1's history.`;
    if (vault.owner !== spent[0]?.vault.owner) return "The vaults of the list have several owners.";
    if (activity.spentBy !== list.transferId)
      return `Another transfer of vault ${transfer.vaultId} is on L1.`;
    const fault = faultAt(ledger, list, transfer, taken, powers, commitAt, group);
    if (fault === null) continue;
    const why = voided?.failure ?? TRANSFER_FAULTS[fault];
    return `L1 would not count the transfer of vault ${transfer.vaultId}: ${why}`;
  }
  return null;
}

/**
 * Why a sealed batch of transfers must not go to L1 after this time (seconds); null when it may. L1
 * takes a record that does not count, and then the vault's owner can never transfer it again.
 */
export async function faultOfBatch(
  ledger: Ledger,
  batchNumber: number,
  l1Time: bigint,
): Promise<string | null> {
  for (const list of await lists.listsOfBatch(
    ledger,
    findBatch(ledger, "zk-rollup", batchNumber),
  )) {
    const { failure, isFinal } = await examine(ledger, list, l1Time + COMMIT_SECONDS, null);
    if (failure !== null) return failure;
    if (!isFinal) return "A vault of the transfers is not final on L1 now.";
  }
  return null;
}

/**
 * A vault that a record spends; null for an id that no batch has made, which L1 marks as spent all
 * the same.
 */
interface Judged extends Pick<Spent, "activity"> {
  readonly vault: StoredVault | null;
}

/** Decides the transfers of a batch that L1 has just committed, by L1's own rule. */
export async function judgeBatch(
  ledger: Ledger,
  group: Group,
  batch: BatchRecord,
  time: number,
): Promise<void> {
  await judge(ledger, group, batch, await lists.listsOfBatch(ledger, batch), time);
}

/** Decides once more what has taken a vault, because L1 tells of other units withdrawn from it. */
export async function judgeSpender(
  ledger: Ledger,
  group: Group,
  vaultId: VaultId,
  time: number,
): Promise<void> {
  const { spentBy } = await readActivity(ledger, group, vaultId);
  const list = spentBy === null ? null : await lists.latestTransferList(ledger, group, spentBy);
  const batch =
    list?.batchNumber == null
      ? undefined
      : ledger.batches.records["zk-rollup"].view(group).get(list.batchNumber);
  if (list === null || batch?.l1Sequence == null || !batch.transfers) return;
  await judge(ledger, group, batch, [list], time);
}

/** Whether L1 has paid a vault that transfers have made of this one, an ERC-721 vault. */
export async function isPaidBehind(
  ledger: Ledger,
  group: Group,
  vaultId: VaultId,
): Promise<boolean> {
  for (let made = await madeOf(ledger, group, vaultId); made !== null; ) {
    if ((await readActivity(ledger, group, made)).withdrawn > 0n) return true;
    made = await madeOf(ledger, group, made);
  }
  return false;
}

/** The vault that a transfer has made of a whole one; null without a transfer in a batch. */
async function madeOf(ledger: Ledger, group: Group, vaultId: VaultId): Promise<VaultId | null> {
  const { spentBy } = await readActivity(ledger, group, vaultId);
  if (spentBy === null) return null;
  const list = await lists.latestTransferList(ledger, group, spentBy);
  const output = lists.outputsOf(list).find(({ transfer }) => transfer.vaultId === vaultId);
  const place = output === undefined ? null : lists.placeIn(list, output.position);
  // A record of a hostile operator can spend a vault that comes later.
  return place === null || packVaultId(place) <= vaultId ? null : packVaultId(place);
}

/**
 * L1 pays nothing behind a voided mint. So where it has paid a vault that transfers have made of an
 * ERC-721 mint, the mint was voided afterwards, in vain, even if a node tells of that first.
 */
export async function keepPaid(
  ledger: Ledger,
  group: Group,
  paid: VaultId,
  time: number,
): Promise<void> {
  const place = await lists.originOf(ledger, placeOf(paid));
  const minted = packVaultId(place);
  if (minted === paid || !hasSlot(ledger, place, group)) return;
  const { userIndex, assetIndex } = await readVault(ledger, place);
  const activity = await readActivity(ledger, group, minted);
  if (activity.withdrawn === 0n || ledger.tenants.assetAt(assetIndex).standard !== "erc721") return;
  const kept = { ...activity, withdrawn: 0n, updatedAt: time };
  putActivity(ledger, group, { vaultId: minted, userIndex }, kept);
  await judgeSpender(ledger, group, minted, time);
}

async function judge(
  ledger: Ledger,
  group: Group,
  batch: BatchRecord,
  committed: TransferListRecord[],
  time: number,
) {
  const ids = committed.flatMap(({ transfers }) => transfers.map(({ vaultId }) => vaultId));
  const places = ids.map(placeOf).filter((place) => hasSlot(ledger, place, group));
  const located = await readVaults(ledger, places, group);
  const vaults = new Map(located.map(({ place, vault }) => [packVaultId(place), vault]));
  const activities = await readActivities(ledger, ids, group);
  const outputs = outputsIn(ledger, group, batch);
  const changed: VaultId[] = [];
  let next = 0;
  for (const list of committed) {
    const spent = list.transfers.map(
      ({ vaultId }): Judged => ({
        vault: vaults.get(vaultId) ?? null,
        activity: activities[next++]!,
      }),
    );
    // A hostile operator can put vaults of several owners under one signature.
    const powers = new Map<Address, TransferPowers>();
    for (const { vault } of spent)
      if (vault !== null && !powers.has(vault.owner))
        powers.set(
          vault.owner,
          await powersOf((key) => group.read(ledger.store, key), vault.owner, list),
        );
    const faults = list.transfers.map((transfer, i) => {
      const { vault, activity } = spent[i]!;
      if (vault === null) return transfer.fault ?? "exhausted";
      const its = powers.get(vault.owner) as TransferPowers;
      const voided = voidRunAt(ledger.batches.voids, placeOf(transfer.vaultId), group);
      const fault = faultAt(
        ledger,
        list,
        transfer,
        { vault, activity, voided },
        its,
        batch.committedAt ?? 0n,
        group,
      );
      // A fault stays as it was first seen.
      return fault && (transfer.fault ?? fault);
    });
    for (const [i, transfer] of list.transfers.entries()) {
      const { vault, activity } = spent[i]!;
      const transferred =
        faults[i] === null && vault !== null ? vault.amount - activity.withdrawn : 0n;
      if (transferred === activity.transferred) continue;
      putActivity(ledger, group, transfer, { ...activity, transferred, updatedAt: time });
    }
    const amounts = lists.outputsOf(list).map((output) => {
      const { vault, activity } = spent[output.index]!;
      return faults[output.index] !== null || vault === null
        ? 0n
        : lists.unitsOf(output, vault.amount - activity.withdrawn);
    });
    for (const vaultId of await outputs.set(list, amounts, time)) changed.push(vaultId);
    putFaults(ledger, group, list, faults, time);
  }
  outputs.flush();
  // A vault that holds other units now may have been transferred on.
  for (const vaultId of changed) await judgeSpender(ledger, group, vaultId, time);
}

/** Why L1 does not count a transfer of a list that is committed at this time; null when it does. */
function faultAt(
  ledger: Ledger,
  { deadline }: TransferListRecord,
  transfer: TransferListRecord["transfers"][number],
  { vault, activity, voided }: Spent,
  powers: TransferPowers,
  committedAt: bigint,
  group: Group | null,
): TransferFault | null {
  const { standard, assetType, chainId, transferable } = ledger.tenants.assetNow(
    vault.assetIndex,
    group,
  );
  const source = {
    vaultId: transfer.vaultId,
    owner: vault.owner,
    amount: voided === null ? vault.amount : 0n,
    withdrawn: activity.withdrawn,
    standard,
    assetType,
    transferable: transferable === true && chainId === ledger.services.settlement.chainId,
    hops: transfer.hops - 1,
  };
  return transferFault(source, { transfer, deadline, committedAt }, powers);
}

function putFaults(
  ledger: Ledger,
  group: Group,
  list: TransferListRecord,
  faults: readonly (TransferFault | null)[],
  time: number,
): void {
  if (list.transfers.every(({ fault }, i) => fault === faults[i])) return;
  const transfers = list.transfers.map((transfer, i) => ({
    ...transfer,
    fault: faults[i] ?? null,
  }));
  lists.putTransferList(group, { ...list, transfers, updatedAt: time }, list);
  const newlyFailed = transfers.find(
    ({ fault }, i) => fault !== null && list.transfers[i]?.fault === null,
  );
  if (newlyFailed === undefined) return;
  const event = {
    type: "transfer.failed",
    transferId: list.transferId,
    failure: lists.failureOfFault(newlyFailed),
  } as const;
  tell(ledger, group, list.applicationIndex, time, event);
}

/** The vaults that a batch of transfers has made, a record of them at a time. */
function outputsIn(ledger: Ledger, group: Group, { batchNumber }: BatchRecord) {
  const chunks = new Map<number, { readonly vaults: StoredVault[]; isChanged: boolean }>();
  const keyAt = (index: number) => keyOf.chunk("zk-rollup", batchNumber, index);
  const chunkAt = async (index: number) => {
    const known = chunks.get(index);
    if (known !== undefined) return known;
    const record = await group.read(ledger.store, keyAt(index));
    const chunk = { vaults: record === undefined ? [] : decodeChunk(record), isChanged: false };
    chunks.set(index, chunk);
    return chunk;
  };
  return {
    /** Gives the outputs of a list these units. Returns the vaults that had others. */
    async set(
      { firstSlot }: TransferListRecord,
      amounts: readonly bigint[],
      time: number,
    ): Promise<VaultId[]> {
      const changed: VaultId[] = [];
      for (const [position, amount] of amounts.entries()) {
        const slot = (firstSlot as number) + position;
        const chunk = await chunkAt(Math.floor(slot / CHUNK_VAULTS));
        const vault = chunk.vaults[slot % CHUNK_VAULTS]!;
        if (vault.amount === amount) continue;
        chunk.isChanged = true;
        chunk.vaults[slot % CHUNK_VAULTS] = { ...vault, amount, updatedAt: time };
        const vaultId = packVaultId({ mode: "zk-rollup", batchNumber, slot });
        changed.push(vaultId);
        group.onDurable(() => ledger.readers.tokenSums.forget(vault.userIndex));
        if (amount < vault.amount) await failWithdrawals(ledger, group, vaultId, LESS, time);
      }
      return changed;
    },
    flush(): void {
      for (const [index, { vaults, isChanged }] of chunks)
        if (isChanged) group.stage(keyAt(index), encodeChunk(vaults));
    },
  };
}

const LESS = "L1 has given this vault less, because its transfer counts for less or for nothing.";
