import { v7 as uuidv7 } from "uuid";
import { zeroAddress } from "viem";
import type { Ledger, Recorded } from "../../ledger/ledger.ts";
import type { Address, Hash, VaultId } from "../../model.ts";
import type { ClaimedBatch } from "../../ports.ts";
import { isRedemption, type Transfer, transfersDigest } from "../../protocol/transfer.ts";
import { decodeTransferData, type TransferGroup } from "../../protocol/transfer-data.ts";
import { packVaultId } from "../../protocol/vault.ts";
import type { Group } from "../../store/group.ts";
import { decodeRecord, encodeRecord } from "../../store/layout.ts";
import { type AdoptedList, ownerRecord, type TransferListRecord, transferIdRecord } from "../../store/records.ts";
import { ownerKey, transferDigestKey } from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { changeActivity, readActivity } from "../../vaults/activity.ts";
import { latestTransferList, makerOf, putTransferList, slotCount } from "../../vaults/transfer-lists.ts";
import { placeOf, readVaults } from "../../vaults/vaults.ts";

/** The user who gets vaults without a known one. */
export type Holder = Pick<StoredVault, "applicationIndex" | "userIndex">;

/** A vault of L1's history, with the transfers between its mint and it. */
export interface AdoptedVault {
  /** null for an id that no earlier batch has made. L1 sets its bit all the same. */
  readonly vault: StoredVault | null;
  readonly hops: number;
}

/** What an adoption reads and writes. */
export interface Adopting {
  readonly ledger: Ledger;
  readonly group: Group;
  /** L1's vaults of the batches read so far. */
  readonly known: Map<VaultId, AdoptedVault>;
  /** Whether this store keeps the batch of a vault. */
  isKept(vaultId: VaultId): boolean;
  /** The user of an owner that no mint of this store names. */
  holderOf(owner: Address): Holder;
}

/**
 * A list that this store has keeps its id. The holder of a new vault is its owner's user in the application of the
 * spent vaults, or else one as for minted vaults. What the vaults hold is decided when L1's event of the commit is
 * read. L1 checks no record, so a hostile operator can commit one over an unknown vault, or over vaults of several
 * owners under one signature. Such a record takes its slots and moves nothing.
 */
export async function adoptedTransfers(adopting: Adopting, { batchNumber, data }: ClaimedBatch) {
  const { ledger, group, known } = adopting;
  const now = ledger.now();
  const vaults: StoredVault[] = [];
  const lists: AdoptedList[] = [];
  for (const signed of decodeTransferData(data)) {
    const sources: AdoptedVault[] = [];
    for (const { vaultId } of signed.transfers) sources.push(await sourceOf(adopting, vaultId));
    const { list, receivers } = await listOf(adopting, signed, sources);
    lists.push(list);
    for (const [i, transfer] of signed.transfers.entries()) {
      const { vault: source, hops } = sources[i] as AdoptedVault;
      const vault = source ?? nothing(adopting);
      const { withdrawn } = await readActivity(ledger, group, transfer.vaultId);
      const receiver = receivers[i] ?? null;
      const made = { ...vault, createdAt: now, updatedAt: now };
      const [paid, change] = partsOf(transfer, vault.amount - withdrawn);
      const parts = [
        receiver === null ? { ...made, amount: 0n } : { ...made, ...receiver, owner: transfer.to, amount: paid },
      ];
      if (transfer.amount !== 0n) parts.push({ ...made, amount: change });
      for (const part of parts) {
        const outId = packVaultId({ mode: "zk-rollup", batchNumber, slot: vaults.length });
        vaults.push(part);
        known.set(outId, { vault: part, hops: hops + 1 });
      }
    }
  }
  return { lists, vaults };
}

/** Units of receiver and owner, as far as they are known. */
function partsOf({ amount }: Transfer, rest: bigint): readonly [bigint, bigint] {
  if (rest <= 0n || amount >= rest) return [0n, 0n];
  return amount === 0n ? [rest, 0n] : [amount, rest - amount];
}

/** What stands for an unknown vault: no units, of the settlement contract, as in a void slot. */
export function nothing({ ledger, holderOf }: Pick<Adopting, "ledger" | "holderOf">): StoredVault {
  const owner = ledger.settlement.contract.toLowerCase() as Address;
  const time = ledger.now();
  return { ...holderOf(owner), owner, assetIndex: 0, amount: 0n, blob: "0x", createdAt: time, updatedAt: time };
}

async function sourceOf({ ledger, known, isKept }: Adopting, vaultId: VaultId): Promise<AdoptedVault> {
  const adopted = known.get(vaultId);
  if (adopted !== undefined) return adopted;
  const place = placeOf(vaultId);
  const batch = isKept(vaultId) ? ledger.batches[place.mode].latest(place.batchNumber) : undefined;
  if (batch === undefined || place.slot >= batch.vaultCount) return { vault: null, hops: 0 };
  const [located] = await readVaults(ledger, [place]);
  const maker = await makerOf(ledger, place);
  return { vault: located?.vault as StoredVault, hops: maker?.output.transfer.hops ?? 0 };
}

/** A list with its receivers; null for a redemption. */
async function listOf(adopting: Adopting, signed: TransferGroup, sources: readonly AdoptedVault[]) {
  const { ledger, group, holderOf } = adopting;
  const { deadline, signature } = signed;
  const digest = transfersDigest(ledger.settlement, signed);
  const vaults = sources.map(({ vault }) => vault ?? nothing(adopting));
  const { owner, applicationIndex: first } =
    sources.find(({ vault }) => vault !== null)?.vault ?? (vaults[0] as StoredVault);
  const own = await listOfDigest(ledger, group, digest);
  const applicationIndex = own?.applicationIndex ?? first;
  const receivers: (Holder | null)[] = [];
  for (const [i, transfer] of signed.transfers.entries()) {
    const userIndex = own?.transfers[i]?.receiverIndex ?? (await userOf(ledger, group, applicationIndex, transfer.to));
    if (isRedemption(transfer)) receivers.push(null);
    else receivers.push(userIndex === null ? holderOf(transfer.to) : { applicationIndex, userIndex });
  }
  // The zero address stands for nobody's signature. When vaults of others are spent too, the owner's key counts as a
  // session's.
  const signer = signature === "0x" ? null : ((await ledger.signers.recover(digest, signature)) ?? zeroAddress);
  const isOwners = vaults.every((vault) => vault.owner === owner && signer === owner);
  const list: AdoptedList = {
    transferId: own?.transferId ?? uuidv7(),
    applicationIndex,
    digest,
    deadline,
    signature,
    sessionKey: isOwners ? null : signer,
    transfers: signed.transfers.map((transfer, i) => {
      const { userIndex, assetIndex } = vaults[i] as StoredVault;
      const hops = (sources[i] as AdoptedVault).hops + 1;
      return { ...transfer, receiverIndex: receivers[i]?.userIndex ?? null, userIndex, assetIndex, hops };
    }),
  };
  return { list, receivers };
}

async function listOfDigest(ledger: Ledger, group: Group, digest: Hash): Promise<TransferListRecord | null> {
  const stored = await group.read(ledger.store, transferDigestKey(digest));
  if (stored === undefined) return null;
  return latestTransferList(ledger, group, decodeRecord(transferIdRecord, stored, "The transfers of a digest"));
}

async function userOf(ledger: Ledger, group: Group, application: number, owner: Address): Promise<number | null> {
  const stored = await group.read(ledger.store, ownerKey(application, owner));
  return stored === undefined ? null : decodeRecord(ownerRecord, stored, "An owner's user").userIndex;
}

/** Writes the lists of an adopted batch, and what they take. */
export async function putAdoptedLists(
  ledger: Ledger,
  group: Group,
  batchNumber: number,
  lists: readonly AdoptedList[],
  vaults: readonly StoredVault[],
  { sequence: journalSequence, time }: Recorded,
): Promise<void> {
  let firstSlot = 0;
  for (const list of lists) {
    const before = await listOfDigest(ledger, group, list.digest);
    const fresh = { firstSequence: 0, journalSequence, createdAt: time };
    const batched = { status: "batched", batchNumber, firstSlot, failure: null, updatedAt: time } as const;
    const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
    const record: TransferListRecord = { ...fresh, ...before, ...list, ...batched, transfers };
    putTransferList(group, record, before);
    group.stage(transferDigestKey(list.digest), encodeRecord(transferIdRecord, list.transferId));
    for (const { vaultId, userIndex, amount } of list.transfers) {
      const parts = vaults.slice(firstSlot, firstSlot + slotCount([{ amount }]));
      firstSlot += parts.length;
      const transferred = parts.reduce((sum, part) => sum + part.amount, 0n);
      const spent = { spentBy: list.transferId, transferred, updatedAt: time };
      await changeActivity(ledger, group, { vaultId, userIndex }, spent);
    }
  }
}
