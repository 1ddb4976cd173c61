import { v7 as uuidv7 } from "uuid";
import { MintmarkError } from "../errors.ts";
import { completed, derivedAgain, tokenHashOf } from "../ledger/batch-vaults.ts";
import type { RecordedEntry } from "../ledger/journal-head.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type Address, batchIdOf, type Hash, type Hex, type Mode, type VaultId } from "../model.ts";
import type { AssetId, ProposedBatch } from "../ports.ts";
import { slotsOf, type VaultEntry, type WordBatch } from "../protocol/batch-data.ts";
import { isBlobBatchData, wordsIn } from "../protocol/blob-batch.ts";
import { bytesToHex, ZERO_ADDRESS } from "../protocol/hex.ts";
import { unpayable } from "../protocol/minting-blob.ts";
import { isRedemption, transfersDigest } from "../protocol/transfer.ts";
import {
  decodeTransferData,
  isTransferData,
  type TransferGroup,
} from "../protocol/transfer-data.ts";
import { type BatchPlace, packVaultId } from "../protocol/vault.ts";
import { type CompleteRecords, deriveGiven, deriveTransfers } from "../sealing/derive-batch.ts";
import { runsOf } from "../sealing/void-runs.ts";
import type { EntryOf } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import type { AdoptedList, BatchRecord, TransferListRecord } from "../store/records.ts";
import { ownerRecord, transferIdRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { HolderIndexes, StoredVault } from "../store/vault-columns.ts";
import {
  CHUNK_VAULTS,
  decodeIntoColumns,
  encodeChunk,
  VaultColumns,
} from "../store/vault-columns.ts";
import { orNull } from "../validate.ts";
import { changeActivity, readActivity } from "../vaults/activity.ts";
import * as transferLists from "../vaults/transfer-lists.ts";
import { placeOf, readVaults } from "../vaults/vaults.ts";

export interface AdoptedBatch extends ProposedBatch {
  /** The batch's manifest on L1, if the data name more assets. */
  readonly assets?: readonly AssetId[];
  /** Assets that this store cannot hold, by {@link assetName}. */
  readonly unheld?: ReadonlySet<string>;
}

/** L1's batches of a mode, from the first one that differs from the store's or is missing there. */
export interface AdoptedBatches {
  readonly mode: Mode;
  readonly first: number;
  readonly batches: readonly AdoptedBatch[];
}

export type AdoptedEntry = EntryOf<"historyAdopted">["batches"][number];

const VOID = "L1 has this slot void";

/** A batch of this store that L1's history replaces. */
export interface Dropped {
  readonly record: BatchRecord;
  readonly vaults: VaultColumns;
}

export interface Incoming {
  readonly entry: Omit<AdoptedEntry, "stateRoot">;
  readonly vaults: readonly StoredVault[];
  readonly columns: VaultColumns;
  readonly derived: CompleteRecords;
  /** null for a batch of mints. */
  readonly lists: readonly AdoptedList[] | null;
}

/**
 * All batches in the order given. Transfers are read last, because they take vaults of both modes.
 */
export async function incomingBatches(
  context: Pick<Adopting, "ledger" | "group" | "holderOf">,
  adopted: readonly AdoptedBatches[],
  dropped: readonly Dropped[],
): Promise<Incoming[]> {
  const { ledger } = context;
  const adopting: Adopting = { ...context, dropped, known: new Map() };
  const arrived = adopted.flatMap(({ batches }) => batches);
  const incoming = new Map<AdoptedBatch, Incoming>();
  for (const batch of arrived) {
    if (isTransferData(batch.mode, batch.data)) continue;
    const made = await incomingBatch(adopting, batch);
    incoming.set(batch, made);
    const { mode, batchNumber } = batch;
    for (const [slot, vault] of made.vaults.entries())
      adopting.known.set(packVaultId({ mode, batchNumber, slot }), { vault, hops: 0 });
  }
  for (const batch of arrived) {
    if (!isTransferData(batch.mode, batch.data)) continue;
    const { lists, vaults } = await adoptedTransfers(adopting, batch);
    const stored = storedOf(ledger, vaults);
    const groups = decodeTransferData(batch.data);
    const derived = deriveTransfers(batch.batchNumber, groups, stored.columns, (index) =>
      ledger.tenants.assetAt(index),
    );
    incoming.set(batch, incomingOf(batch, stored, derived, { lists }));
  }
  return arrived.map((batch) => incoming.get(batch) as Incoming);
}

/** A vault that L1 can pay. */
export interface PaidSlot {
  readonly entry: VaultEntry;
  readonly assetIndex: number;
}

/** The slots of a batch of mints: a vault that L1 can pay, or why nobody is paid for the slot. */
export function slotsIn(ledger: Ledger, batch: AdoptedBatch): (PaidSlot | string)[] {
  const { unheld } = batch;
  const assetIndexOf = assetIndices(ledger);
  return slotsOf(wordBatchOf(batch)).map((entry) => {
    if (entry === null) return VOID;
    if (unheld?.has(assetName(entry)))
      return "This store has another asset of the vault's contract.";
    const assetIndex = assetIndexOf(entry);
    const { standard, mintingBlobScheme } = ledger.tenants.assetAt(assetIndex);
    const fault = unpayable(entry, standard, mintingBlobScheme);
    return fault === null ? { entry, assetIndex } : `L1 pays nobody: ${fault}.`;
  });
}

/** The batch's words, which name assets by their places in L1's manifest. */
function wordBatchOf({ data, assets }: AdoptedBatch): WordBatch {
  const read = wordsIn(data);
  return { words: read.words, assets: assets ?? read.assets };
}

/**
 * A batch's vaults. A vault that this store has in the same slot keeps its user; the others get one
 * by owner.
 */
async function incomingBatch(adopting: Adopting, batch: AdoptedBatch): Promise<Incoming> {
  const { ledger, group, dropped, holderOf } = adopting;
  const { mode, batchNumber, data } = batch;
  const here = dropped.find(({ record }) => isPlace(record, batch) && !record.transfers)?.vaults;
  const now = ledger.journal.now(group);
  const slots = slotsIn(ledger, batch);
  const voids = runsOf(
    slots.flatMap((found, slot) => (typeof found === "string" ? [[slot, found] as const] : [])),
  );
  const vaults = slots.map((found, slot): StoredVault => {
    const own = here !== undefined && slot < here.count ? here.at(slot) : null;
    if (typeof found === "string") return own ?? { ...unknownVault(adopting), amount: 1n };
    const { entry, assetIndex } = found;
    const { amount, mintingBlob } = entry;
    const owner = entry.owner.toLowerCase() as Address;
    if (own?.assetIndex === assetIndex && own.mintingBlob === mintingBlob && own.owner === owner)
      return { ...own, amount };
    return {
      ...holderOf(owner),
      owner,
      assetIndex,
      amount,
      mintingBlob,
      createdAt: now,
      updatedAt: now,
    };
  });
  const stored = storedOf(ledger, vaults);
  const { columns } = stored;
  // Vaults of hostile blobs can share continuations, so blobs of this engine may not hold them.
  const again = () =>
    derivedAgain(ledger, { mode, batchNumber, inBlobs: isBlobBatchData(data) }, columns, voids);
  const derived = await orNull("batch_too_large", again);
  if (derived !== null && isOf(derived, batch))
    return incomingOf(batch, stored, derived, { voids });
  // No engine makes this batch of these vaults, or L1 holds vaults that it never pays.
  const { assets } = wordBatchOf(batch);
  const made = deriveGiven(
    batch,
    { data, assets },
    columns,
    (index) => ledger.tenants.assetAt(index),
    voids,
  );
  const given = { data: bytesToHex(data), assets };
  return incomingOf(batch, stored, await completed(ledger, made), { voids, given });
}

export function isPlace(one: BatchPlace, { mode, batchNumber }: BatchPlace): boolean {
  return one.mode === mode && one.batchNumber === batchNumber;
}

/** Vaults as the store and as the engine have them. */
function storedOf(ledger: Ledger, vaults: readonly StoredVault[]) {
  const columns = new VaultColumns();
  const chunks: Hex[] = [];
  for (let first = 0; first < vaults.length; first += CHUNK_VAULTS) {
    const chunk = encodeChunk(vaults.slice(first, first + CHUNK_VAULTS));
    decodeIntoColumns(chunk, columns, (vault) => tokenHashOf(ledger, vault));
    chunks.push(bytesToHex(chunk));
  }
  return { vaults, columns, chunks };
}

function isOf(derived: CompleteRecords, { batchRoot, dataHash }: AdoptedBatch): boolean {
  return derived.batchRoot === batchRoot && derived.dataHash === dataHash;
}

function incomingOf(
  batch: AdoptedBatch,
  { chunks, ...stored }: ReturnType<typeof storedOf>,
  derived: CompleteRecords,
  {
    voids = [],
    given = null,
    lists = null,
  }: Partial<Pick<AdoptedEntry, "voids" | "given"> & Pick<Incoming, "lists">>,
): Incoming {
  const { mode, batchNumber, batchRoot, dataHash, data } = batch;
  if (!isOf(derived, batch)) {
    const name = batchIdOf(mode, batchNumber);
    throw new MintmarkError(
      "l1_failed",
      `The data of ${name} do not make the root that L1 has of it.`,
    );
  }
  const inBlobs = lists === null && isBlobBatchData(data);
  const entry = { mode, batchNumber, inBlobs, chunks, voids, given, batchRoot, dataHash };
  return { entry, ...stored, derived, lists };
}

/** The asset of a vault, by type. Throws `asset_not_found` when the operator must add it first. */
function assetIndices(ledger: Ledger): (asset: AssetId) => number {
  const indices = new Map<string, number>();
  for (const { removed, chainId, assetType, assetIndex } of ledger.tenants.assets.durable.values())
    if (!removed) indices.set(assetName({ chainId, assetType }), assetIndex);
  return (asset) => {
    const assetIndex = indices.get(assetName(asset));
    if (assetIndex !== undefined) return assetIndex;
    const { chainId, assetType } = asset;
    const detail = `L1's history has vaults of asset type ${assetType} of chain ${chainId}. Add this asset, then adopt again.`;
    throw new MintmarkError("asset_not_found", detail);
  };
}

export const assetName = ({ chainId, assetType }: AssetId): string => `${chainId} ${assetType}`;

/** A vault of L1's history, with the transfers between its mint and it. */
export interface AdoptedVault {
  /** null for an id that no earlier batch has made. L1 sets its bit all the same. */
  readonly vault: StoredVault | null;
  readonly hops: number;
}

/** An adoption reads and writes these. */
export interface Adopting {
  readonly ledger: Ledger;
  readonly group: Group;
  /** L1's vaults of the batches read so far. */
  readonly known: Map<VaultId, AdoptedVault>;
  readonly dropped: readonly Dropped[];
  /** The user of an owner that no mint of this store names. */
  holderOf(owner: Address): HolderIndexes;
}

/**
 * A list that this store has keeps its id. The holder of a new vault is its owner's user in the
 * application of the spent vaults, or else one as for minted vaults. What the vaults hold is
 * decided when L1's event of the commit is read. L1 checks no record, so a hostile operator can
 * commit one over an unknown vault, or over vaults of several owners under one signature. Such a
 * record takes its slots and moves nothing.
 */
async function adoptedTransfers(adopting: Adopting, { batchNumber, data }: ProposedBatch) {
  const { ledger, group, known } = adopting;
  const now = ledger.journal.now(group);
  const vaults: StoredVault[] = [];
  const lists: AdoptedList[] = [];
  for (const signed of decodeTransferData(data)) {
    const sources: AdoptedVault[] = [];
    for (const { vaultId } of signed.transfers) sources.push(await sourceOf(adopting, vaultId));
    const { list, receivers } = await listOf(adopting, signed, sources);
    lists.push(list);
    const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
    for (const output of transferLists.outputsOf({ transfers })) {
      const { index, transfer, isChange, holderIndex } = output;
      const { vault: source, hops } = sources[index]!;
      const vault = source ?? unknownVault(adopting);
      const rest = vault.amount - (await readActivity(ledger, group, transfer.vaultId)).withdrawn;
      const holder =
        isChange || holderIndex === null ? {} : { ...receivers[index], owner: transfer.to };
      // Overdrawn or empty: the amount is 0 until L1's event decides.
      const amount = transfer.amount >= rest ? 0n : transferLists.unitsOf(output, rest);
      const made = { ...vault, ...holder, amount, createdAt: now, updatedAt: now };
      known.set(packVaultId({ mode: "zk-rollup", batchNumber, slot: vaults.length }), {
        vault: made,
        hops: hops + 1,
      });
      vaults.push(made);
    }
  }
  return { lists, vaults };
}

/** Stands for an unknown vault: no units, of the settlement contract, as in a void slot. */
function unknownVault({
  ledger,
  group,
  holderOf,
}: Pick<Adopting, "ledger" | "group" | "holderOf">): StoredVault {
  const owner = ledger.services.settlement.contract.toLowerCase() as Address;
  const time = ledger.journal.now(group);
  return {
    ...holderOf(owner),
    owner,
    assetIndex: 0,
    amount: 0n,
    mintingBlob: "0x",
    createdAt: time,
    updatedAt: time,
  };
}

async function sourceOf(
  { ledger, group, known, dropped }: Adopting,
  vaultId: VaultId,
): Promise<AdoptedVault> {
  const adopted = known.get(vaultId);
  if (adopted !== undefined) return adopted;
  const place = placeOf(vaultId);
  const batch = ledger.batches.records[place.mode].view(group).get(place.batchNumber);
  const isKept = place.mode === "made" || !dropped.some(({ record }) => isPlace(record, place));
  if (!isKept || batch === undefined || place.slot >= batch.vaultCount)
    return { vault: null, hops: 0 };
  const [located] = await readVaults(ledger, [place], group);
  const maker = await transferLists.makerOf(ledger, place);
  return { vault: located?.vault as StoredVault, hops: maker?.output.transfer.hops ?? 0 };
}

/** A list with its receivers; null for a redemption. */
async function listOf(adopting: Adopting, signed: TransferGroup, sources: readonly AdoptedVault[]) {
  const { ledger, group, holderOf } = adopting;
  const { deadline, signature } = signed;
  const digest = transfersDigest(ledger.services.settlement, signed);
  const vaults = sources.map(({ vault }) => vault ?? unknownVault(adopting));
  const { owner, applicationIndex: first } =
    sources.find(({ vault }) => vault !== null)?.vault ?? vaults[0]!;
  const own = await listOfDigest(ledger, group, digest);
  const applicationIndex = own?.applicationIndex ?? first;
  const receivers: (HolderIndexes | null)[] = [];
  for (const [i, transfer] of signed.transfers.entries()) {
    const userIndex =
      own?.transfers[i]?.receiverIndex ??
      (await userOf(ledger, group, applicationIndex, transfer.to));
    if (isRedemption(transfer)) receivers.push(null);
    else
      receivers.push(userIndex === null ? holderOf(transfer.to) : { applicationIndex, userIndex });
  }
  // The zero address stands for nobody's signature. When vaults of others are spent too, the
  // owner's key counts as a session's.
  const signer =
    signature === "0x"
      ? null
      : ((await ledger.services.signers.recover(digest, signature)) ?? ZERO_ADDRESS);
  const isOwners = vaults.every((vault) => vault.owner === owner && signer === owner);
  const list: AdoptedList = {
    transferId: own?.transferId ?? uuidv7(),
    applicationIndex,
    digest,
    deadline,
    signature,
    sessionKey: isOwners ? null : signer,
    transfers: signed.transfers.map((transfer, i) => {
      const { userIndex, assetIndex } = vaults[i]!;
      const hops = sources[i]!.hops + 1;
      return {
        ...transfer,
        receiverIndex: receivers[i]?.userIndex ?? null,
        userIndex,
        assetIndex,
        hops,
      };
    }),
  };
  return { list, receivers };
}

async function listOfDigest(
  ledger: Ledger,
  group: Group,
  digest: Hash,
): Promise<TransferListRecord | null> {
  const stored = await group.read(ledger.store, keyOf.transferDigest(digest));
  if (stored === undefined) return null;
  const transferId = decodeRecord(transferIdRecord, stored, "The transfers of a digest");
  return transferLists.latestTransferList(ledger, group, transferId);
}

async function userOf(
  ledger: Ledger,
  group: Group,
  application: number,
  owner: Address,
): Promise<number | null> {
  const stored = await group.read(ledger.store, keyOf.owner(owner, application));
  return stored === undefined
    ? null
    : decodeRecord(ownerRecord, stored, "An owner's user").userIndex;
}

/** Writes the lists of an adopted batch, and what they take. */
export async function putAdoptedLists(
  ledger: Ledger,
  group: Group,
  batchNumber: number,
  lists: readonly AdoptedList[],
  vaults: readonly StoredVault[],
  { sequence: journalSequence, time }: RecordedEntry,
): Promise<void> {
  let firstSlot = 0;
  for (const list of lists) {
    const before = await listOfDigest(ledger, group, list.digest);
    const record: TransferListRecord = {
      firstSequence: 0,
      journalSequence,
      createdAt: time,
      ...before,
      ...list,
      status: "batched",
      batchNumber,
      firstSlot,
      failure: null,
      updatedAt: time,
      transfers: list.transfers.map((transfer) => ({ ...transfer, fault: null })),
    };
    transferLists.putTransferList(group, record, before);
    group.stage(keyOf.transferDigest(list.digest), encodeRecord(transferIdRecord, list.transferId));
    for (const { vaultId, userIndex, amount } of list.transfers) {
      const parts = vaults.slice(firstSlot, firstSlot + transferLists.slotCount([{ amount }]));
      firstSlot += parts.length;
      const transferred = parts.reduce((sum, part) => sum + part.amount, 0n);
      const spent = { spentBy: list.transferId, transferred, updatedAt: time };
      await changeActivity(ledger, group, { vaultId, userIndex }, spent);
    }
  }
}
