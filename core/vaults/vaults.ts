import { argumentError, MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { readUsers } from "../ledger/user-records.ts";
import type { Address, Hex, Mode, Principal, Status, Vault, VaultId } from "../model.ts";
import { batchIdOf } from "../model.ts";
import { decimalAmount } from "../protocol/quantized.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../protocol/vault.ts";
import { voidRunAt } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord } from "../store/layout.ts";
import type { ActivityRecord, AssetRecord, BatchRecord, VoidedRun } from "../store/records.ts";
import { activityRecord, UNTOUCHED } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { fastTokenIdOf } from "../store/token-id.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import {
  CHUNK_VAULTS,
  chunkKeyOf,
  decodeChunk,
  decodeIntoColumns,
  VaultColumns,
} from "../store/vault-columns.ts";
import { requireAddress } from "../validate.ts";

export interface LocatedVault {
  readonly place: VaultPlace;
  readonly vault: StoredVault;
}

/** Whether a vault is the caller's: an application's own, or an owner's of any application. */
function ownedBy(
  ledger: Ledger,
  caller: Principal | { readonly owner: Address },
): (vault: StoredVault) => boolean {
  if ("owner" in caller) {
    const owner = requireAddress("owner", caller.owner);
    return (vault) => vault.owner === owner;
  }
  const { applicationIndex } = ledger.tenants.application(caller.applicationId, null);
  return (vault) => vault.applicationIndex === applicationIndex;
}

/** Reason and time of a void slot; null when the slot is valid. */
export function voidAt(ledger: Ledger, place: VaultPlace): VoidedRun | null {
  return voidRunAt(ledger.batches.voids, place, null);
}

export type Placed = VaultPlace & { readonly amountBefore: bigint; readonly amount: bigint };

/** Why L1's history lacks the mint at a journal sequence; null when it has it. */
export function lostAt(ledger: Ledger, mint: Placed, sequence: number): VoidedRun | null {
  for (const { upTo, runs, failure, since: voidedAt } of ledger.l1.lost[mint.mode].durable.get(
    mint.batchNumber,
  ) ?? []) {
    if (sequence >= upTo) continue;
    const run = runs.find(
      ({ firstSlot, count }) => mint.slot >= firstSlot && mint.slot < firstSlot + count,
    );
    if (run === undefined || mint.amountBefore + mint.amount <= run.above) continue;
    return { firstSlot: run.firstSlot, count: run.count, failure, voidedAt, leftOut: false };
  }
  return null;
}

/** Reason and time of a failed mint; null when it has not failed. */
export function failureOf(ledger: Ledger, mint: Placed, sequence: number): VoidedRun | null {
  return lostAt(ledger, mint, sequence) ?? voidAt(ledger, mint);
}

/** The status of a mint, which follows from its batch. */
export function statusOf(ledger: Ledger, place: VaultPlace): Status {
  if (voidAt(ledger, place) !== null) return "failed";
  return statusOfBatch(batchOfRecord(ledger, place));
}

export function statusOfBatch({ status }: BatchRecord): Status {
  return status === "open" ? "accepted" : status === "sealed" ? "batched" : status;
}

/** The times of statuses that a batch or a transaction has reached. */
export function present<Name extends string>(times: Partial<Record<Name, number | null>>) {
  return Object.fromEntries(Object.entries(times).filter(([, time]) => time !== null)) as Partial<
    Record<Name, number>
  >;
}

/** The batch of a place. Throws `vault_not_found` when there is no such slot. */
export function batchAt(
  ledger: Ledger,
  { mode, batchNumber, slot }: VaultPlace,
  group: Group | null,
): BatchRecord {
  const batch = ledger.batches.records[mode].view(group).get(batchNumber);
  if (batch === undefined || slot >= batch.vaultCount) throw new MintmarkError("vault_not_found");
  return batch;
}

/**
 * Whether the store has a slot. The engine may have adopted another history after it reported the
 * slot.
 */
export function hasSlot(ledger: Ledger, place: VaultPlace, group: Group | null): boolean {
  return (
    place.slot <
    (ledger.batches.records[place.mode].view(group).get(place.batchNumber)?.vaultCount ?? 0)
  );
}

/** The batch of a stored record. The store can be a moment ahead of the readers' view. */
export function batchOfRecord(
  ledger: Ledger,
  { mode, batchNumber }: Pick<VaultPlace, "mode" | "batchNumber">,
) {
  const batch =
    ledger.batches.records[mode].durable.get(batchNumber) ??
    ledger.batches.records[mode].ahead(batchNumber);
  if (batch === undefined)
    throw new MintmarkError("store_corrupt", `${batchIdOf(mode, batchNumber)} is missing.`);
  return batch;
}

/** The place of a caller's vault id. Throws `vault_not_found`, also for a malformed id. */
export function placeOf(vaultId: VaultId): VaultPlace {
  try {
    return unpackVaultId(vaultId);
  } catch {
    throw new MintmarkError("vault_not_found");
  }
}

/** The vault with the group's changes. Throws `store_corrupt` when it is missing. */
export async function latestVault(
  ledger: Ledger,
  group: Group,
  place: VaultPlace,
): Promise<StoredVault> {
  return ((await readVaults(ledger, [place], group))[0] as LocatedVault).vault;
}

export async function readVault(ledger: Ledger, place: VaultPlace): Promise<StoredVault> {
  batchAt(ledger, place, null);
  return ((await readVaults(ledger, [place], null))[0] as LocatedVault).vault;
}

/** Each vault, in order; null for one that is not the caller's. Throws for a malformed id. */
export async function ownVaults(
  ledger: Ledger,
  caller: Principal | { readonly owner: Address },
  asked: readonly { readonly vaultId: VaultId }[],
): Promise<(LocatedVault | null)[]> {
  const isOwn = ownedBy(ledger, caller);
  const places = asked.map(({ vaultId }) => placeOf(vaultId));
  const present = places.filter((place) => hasSlot(ledger, place, null));
  const found = await readVaults(ledger, present, null);
  const own = new Map(
    found.filter(({ vault }) => isOwn(vault)).map((located) => [located.place, located]),
  );
  return places.map((place) => own.get(place) ?? null);
}

/**
 * Whose vaults they are, and where they are paid: one signature is one owner's, for the contract of
 * one chain.
 */
export function commonTo(ledger: Ledger, located: readonly (LocatedVault | null)[]) {
  const vaults = located.flatMap((each) => each?.vault ?? []);
  const [first] = vaults;
  if (first === undefined) throw new MintmarkError("vault_not_found");
  const { chainId } = ledger.tenants.assetAt(first.assetIndex);
  if (vaults.some(({ owner }) => owner !== first.owner))
    throw argumentError("vaults", "must have one owner; sign one list for each owner");
  if (vaults.some(({ assetIndex }) => ledger.tenants.assetAt(assetIndex).chainId !== chainId))
    throw argumentError("vaults", "must have tokens of one chain; sign one list for each chain");
  return { owner: first.owner, chainId };
}

/**
 * Reads vaults with the group's changes, in this order, each record once. Throws `store_corrupt` if
 * one is missing.
 */
export async function readVaults(
  ledger: Ledger,
  places: readonly VaultPlace[],
  group: Group | null,
) {
  const keys = new Map<string, Buffer>();
  for (const place of places) keys.set(chunkIdOf(place), chunkKeyOf(place));
  const records = await ledger.store.getMany([...keys.values()]);
  const chunks = new Map<string, StoredVault[]>();
  for (const [i, [id, key]] of [...keys].entries()) {
    const record = group === null ? records[i] : group.resolve(key, records[i]);
    if (record === undefined)
      throw new MintmarkError("store_corrupt", `The vaults of ${id} are missing.`);
    chunks.set(id, decodeChunk(record));
  }
  return places.map((place) => {
    const vault = chunks.get(chunkIdOf(place))?.[place.slot % CHUNK_VAULTS];
    if (vault === undefined)
      throw new MintmarkError("store_corrupt", `Vault ${packVaultId(place)} is missing.`);
    return { place, vault };
  });
}

/** Keys of the vaults of a page's slots. A page begins where a record begins. */
export function pageKeys(
  mode: Mode,
  batchNumber: number,
  firstSlot: number,
  count: number,
): Buffer[] {
  const first = firstSlot / CHUNK_VAULTS;
  return Array.from({ length: Math.ceil(count / CHUNK_VAULTS) }, (_, i) =>
    keyOf.chunk(mode, batchNumber, first + i),
  );
}

/**
 * The vaults in the records of {@link pageKeys}. Throws `store_corrupt` unless there are `count`.
 */
export function decodePage(
  records: readonly (Buffer | undefined)[],
  count: number,
  batchId: string,
): VaultColumns {
  const vaults = new VaultColumns();
  for (const record of records)
    if (record !== undefined) decodeIntoColumns(record, vaults, () => 0);
  if (vaults.count === count) return vaults;
  throw new MintmarkError("store_corrupt", `Vaults of ${batchId} are missing.`);
}

/** Changes of a vault since it was sealed. */
export function decodeActivity(record: Buffer | undefined): ActivityRecord {
  return record === undefined
    ? UNTOUCHED
    : decodeRecord(activityRecord, record, "A vault's activity");
}

export async function vaultViews(
  ledger: Ledger,
  applicationIndex: number,
  located: readonly LocatedVault[],
) {
  const userIndices = [...new Set(located.map(({ vault }) => vault.userIndex))];
  const [users, activities] = await Promise.all([
    readUsers(ledger, applicationIndex, userIndices),
    ledger.store.getMany(located.map(({ place }) => keyOf.activity(packVaultId(place)))),
  ]);
  const userIds = new Map(userIndices.map((index, i) => [index, users[i]?.userId ?? ""]));
  return located.map(({ place, vault }, i): Vault => {
    const activity = decodeActivity(activities[i]);
    const asset = ledger.tenants.assetAt(vault.assetIndex);
    const batch = batchOfRecord(ledger, place);
    const status = statusOf(ledger, place);
    const { sealedAt, submittedAt, settledAt, finalizedAt } = batch;
    const times = [voidAt(ledger, place)?.voidedAt, sealedAt, submittedAt, settledAt, finalizedAt];
    return {
      vaultId: packVaultId(place),
      userId: userIds.get(vault.userIndex) ?? "",
      ownerAddress: vault.owner,
      assetId: asset.assetId,
      assetType: asset.assetType,
      mintingBlob: vault.mintingBlob,
      tokenId: tokenIn(asset, vault.mintingBlob),
      dataAvailabilityMode: place.mode,
      ...amountIn(asset, vault.amount),
      availableBalance: status === "failed" ? 0n : vault.amount - heldBack(vault.amount, activity),
      withdrawnBalance: activity.withdrawn,
      transferredBalance: activity.transferred,
      batchId: batchIdOf(place.mode, place.batchNumber),
      status,
      ...(activity.refusal !== null && { refusal: activity.refusal }),
      createdAt: vault.createdAt,
      updatedAt: Math.max(vault.updatedAt, activity.updatedAt, ...times.map((time) => time ?? 0)),
    };
  });
}

/** An amount of an asset in units and in whole tokens, with what its reader needs of the asset. */
export function amountIn(
  asset: Pick<AssetRecord, "quantum" | "decimals" | "name" | "symbol">,
  amount: bigint,
) {
  const { quantum, decimals, name, symbol } = asset;
  return { quantum, decimals, name, symbol, amount, amountDecimal: decimalAmount(amount, asset) };
}

/**
 * The token that a minting blob names; null for an ERC-20, and for the slot of a void mint or an
 * unknown vault's transfer.
 */
export function tokenIn(
  { standard, mintingBlobScheme }: Pick<AssetRecord, "standard" | "mintingBlobScheme">,
  mintingBlob: Hex,
) {
  return mintingBlob === "0x" ? null : fastTokenIdOf(standard, mintingBlobScheme, mintingBlob);
}

/**
 * Units that are withdrawn, reserved or spent. An owner who withdraws alone can take a pending
 * request's reserve.
 */
export function heldBack(amount: bigint, { withdrawn, reserved, spentBy }: ActivityRecord): bigint {
  if (spentBy !== null) return amount;
  const taken = withdrawn + reserved;
  return taken < amount ? taken : amount;
}

function chunkIdOf({ mode, batchNumber, slot }: VaultPlace): string {
  return `${batchIdOf(mode, batchNumber)}, slots from ${slot - (slot % CHUNK_VAULTS)}`;
}
