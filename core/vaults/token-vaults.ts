import { argumentError } from "../errors.ts";
import { readBatchVaults } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { PageEntries, PageStart } from "../ledger/list.ts";
import { FIRST_PENDING } from "../ledger/vault-refs.ts";
import { MAX_BATCH_VAULTS, MODES, type Mode, type Uuid, type Vault } from "../model.ts";
import { MAX_UINT256, requireBigint } from "../protocol/bounds.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import { MAX_MAKING_VAULTS, type VaultPlace } from "../protocol/vault.ts";
import { decodeRecord } from "../store/layout.ts";
import { type AssetRecord, itemSlotsRecord } from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import type { VaultColumns } from "../store/vault-columns.ts";
import { isVisible, visibleNumbers } from "../tenants/asset-view.ts";
import type { VaultFilter } from "./transaction-range.ts";
import {
  READ_PER_UNIT,
  type ScanOptions,
  ScanProgress,
  SEEK_WEIGHT,
  WITHDRAWAL_WEIGHT,
} from "./transaction-scan.ts";
import { tipOf } from "./transfer-lists.ts";
import { hasSlot, readVaults, vaultViews } from "./vaults.ts";

// Places of batches come before: the index of tokens in memory has fewer than 2^32
const FIRST_MADE = 2 ** 52;
const MOST_ASSETS = 100; // Most assets that a search by token id alone covers
/** Vaults of an open batch in memory that are looked through for one unit of work. */
const SCANNED_PER_UNIT = 500;

/**
 * A page of a token's vaults, batch by batch. Searches all assets unless the filter names one, and
 * each open batch once.
 */
export async function vaultsOfToken(
  ledger: Ledger,
  applicationId: Uuid,
  filter: VaultFilter & { readonly tokenId: bigint },
  { after, limit }: PageStart,
  options: ScanOptions,
): Promise<PageEntries<Vault>> {
  const { tokenId } = filter;
  requireBigint("tokenId", tokenId, 0n, MAX_UINT256);
  const work = new ScanProgress(options);
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const places: VaultPlace[] = [];
  const items: BoundItems = new Map();
  for (const asset of assetsOf(ledger, applicationIndex, filter.assetId)) {
    work.done += SEEK_WEIGHT;
    await work.pause();
    if (asset.standard === "erc721") {
      places.push(...(await placesOfUnique(ledger, asset, tokenId, work)));
      continue;
    }
    const mintingBlob = await ledger.store.get(keyOf.binding(asset.assetIndex, tokenId));
    if (mintingBlob !== undefined) items.set(asset.assetIndex, mintingBlob);
  }
  const start = { after, limit: limit + 1 };
  // Memory comes first: what is sealed meanwhile is found twice, instead of not at all.
  if (items.size > 0)
    for (const mode of MODES)
      places.push(...(await unsealedPlaces(ledger, mode, items, start, work)));
  for (const assetIndex of items.keys())
    places.push(...(await sealedPlaces(ledger, assetIndex, tokenId, start, work)));
  // The index in memory can be a moment ahead of the disk.
  const known = new Map(
    places
      .filter((place) => hasSlot(ledger, place, null) && isAfter(place, after))
      .map((place) => [positionOf(place), place]),
  );
  const ordered = [...known].sort(([a], [b]) => a - b);
  const page = ordered.slice(0, limit);
  work.done += page.length;
  await work.tell();
  const located = await readVaults(
    ledger,
    page.map(([, place]) => place),
    null,
  );
  const own = located.filter(({ vault }) => vault.applicationIndex === applicationIndex);
  const vaults = await vaultViews(ledger, applicationIndex, own);
  const last = page.at(-1);
  const next = ordered.length > limit && last !== undefined ? last[0] : null;
  return { data: vaults.filter((vault) => isWanted(vault, filter)), next };
}

/** The assets with token ids that an application sees, or the named one. */
function assetsOf(
  ledger: Ledger,
  applicationIndex: number,
  assetId: Uuid | undefined,
): AssetRecord[] {
  const assets =
    assetId === undefined
      ? visibleNumbers(ledger.tenants, applicationIndex).map((number) =>
          ledger.tenants.assets.durable.get(number),
        )
      : [ledger.tenants.assets.named(assetId, null)];
  const seen = assets.flatMap((asset) =>
    asset !== undefined && asset.standard !== "erc20" && isVisible(asset, applicationIndex)
      ? [asset]
      : [],
  );
  if (seen.length <= MOST_ASSETS) return seen;
  throw argumentError("assetId", `is needed: tokenId alone is looked for in ${MOST_ASSETS} assets`);
}

/**
 * The place of an ERC-721 token: its hash leads to candidates, and its transfers to the vault that
 * holds it now.
 */
async function placesOfUnique(
  ledger: Ledger,
  asset: AssetRecord,
  tokenId: bigint,
  work: ScanProgress,
): Promise<VaultPlace[]> {
  const refs =
    ledger.minting.tokens.candidates(ledger.minting.hasher.ofId(asset.assetIndex, tokenId)) ?? [];
  const places = refs
    .filter((ref) => ref < FIRST_PENDING)
    .map((ref) => ledger.batches.refs.placeOf(ref))
    .filter((place) => hasSlot(ledger, place, null));
  const located = await readVaults(ledger, places, null);
  const minted = located.filter(({ vault: { assetIndex, mintingBlob } }) => {
    return (
      assetIndex === asset.assetIndex &&
      tokenIdOf(asset.standard, asset.mintingBlobScheme, mintingBlob) === tokenId
    );
  });
  const tips: VaultPlace[] = [];
  for (const { place } of minted)
    tips.push(
      await tipOf(ledger, place, () => {
        work.done += WITHDRAWAL_WEIGHT;
        return work.pause();
      }),
    );
  return tips;
}

/** The minting blob to which each ERC-1155 asset binds the id that is looked for. */
type BoundItems = Map<number, Buffer>;

/** The next places of an ERC-1155 id, in each mode, from the records of sealed batches. */
async function sealedPlaces(
  ledger: Ledger,
  assetIndex: number,
  tokenId: bigint,
  { after, limit }: PageStart,
  work: ScanProgress,
): Promise<VaultPlace[]> {
  const places: VaultPlace[] = [];
  for (const mode of MODES) {
    const start = after === null ? 0 : Math.floor(after / (2 * MAX_BATCH_VAULTS));
    const prefix = prefixOf.item(assetIndex, tokenId, mode);
    const range = { gte: keyOf.item(assetIndex, tokenId, mode, start), lt: endOf(prefix) };
    const found: VaultPlace[] = [];
    work.done += SEEK_WEIGHT;
    for await (const [key, record] of ledger.store.entries(range)) {
      const batchNumber = key.readUInt32BE(key.length - 4);
      const slots = decodeRecord(itemSlotsRecord, record, "The vaults of a token");
      for (const slot of slots) {
        const place = { mode, batchNumber, slot };
        if (found.length < limit && isAfter(place, after)) found.push(place);
      }
      work.done += 1 + Math.floor(slots.length / READ_PER_UNIT);
      await work.pause();
      if (found.length === limit) break;
    }
    places.push(...found);
  }
  return places;
}

/** The next places of ERC-1155 ids in each open batch. */
async function unsealedPlaces(
  ledger: Ledger,
  mode: Mode,
  items: BoundItems,
  { after, limit }: PageStart,
  work: ScanProgress,
): Promise<VaultPlace[]> {
  const places: VaultPlace[] = [];
  for (
    let batchNumber = ledger.batches.records[mode].durable.size - 1;
    batchNumber >= 0;
    batchNumber--
  ) {
    const batch = ledger.batches.records[mode].durable.get(batchNumber);
    if (batch === undefined || batch.status !== "open") break;
    const inMemory = ledger.batches.unsealed.at({ mode, batchNumber, slot: 0 })?.vaults;
    // A standby has the token index of an open batch, and not its vaults.
    const isWhole = inMemory !== undefined && inMemory.count >= batch.vaultCount;
    const vaults = isWhole ? inMemory : await readBatchVaults(ledger, batch);
    const isNext = (slot: number) => isAfter({ mode, batchNumber, slot }, after);
    for (const slot of slotsWith(vaults, items, isNext, limit))
      places.push({ mode, batchNumber, slot });
    work.done += Math.floor(vaults.count / (isWhole ? SCANNED_PER_UNIT : READ_PER_UNIT));
    await work.pause();
  }
  return places;
}

function slotsWith(
  vaults: VaultColumns,
  items: BoundItems,
  isNext: (slot: number) => boolean,
  limit: number,
): number[] {
  const slots: number[] = [];
  for (let slot = 0; slot < vaults.count && slots.length < limit; slot++) {
    const mintingBlob = items.get(vaults.assetIndex[slot]!);
    if (mintingBlob === undefined) continue;
    const start = vaults.mintingBlobStart(slot);
    const end = vaults.mintingBlobEnd[slot]!;
    if (
      end - start !== mintingBlob.length ||
      !mintingBlob.equals(vaults.mintingBlobs.subarray(start, end))
    )
      continue;
    if (isNext(slot)) slots.push(slot);
  }
  return slots;
}

function isAfter(place: VaultPlace, after: number | null): boolean {
  return positionOf(place) > (after ?? -1);
}

/** Order of places: by batch and slot, the modes in turn; then made vaults. Below 2^53. */
function positionOf(place: VaultPlace): number {
  const { mode, batchNumber, slot } = place;
  if (mode === "made") return FIRST_MADE + batchNumber * MAX_MAKING_VAULTS + slot;
  return 2 * (batchNumber * MAX_BATCH_VAULTS + slot) + MODES.indexOf(mode);
}

/** Whether a vault matches the parts of a filter that its place does not tell. */
export function isWanted(vault: Vault, filter: VaultFilter): boolean {
  const {
    userId,
    ownerAddress,
    batchId,
    dataAvailabilityMode,
    status,
    createdAfter,
    createdBefore,
  } = filter;
  return (
    (userId === undefined || vault.userId === userId.toLowerCase()) &&
    (ownerAddress === undefined || vault.ownerAddress === ownerAddress.toLowerCase()) &&
    (batchId === undefined || vault.batchId === batchId) &&
    (dataAvailabilityMode === undefined || vault.dataAvailabilityMode === dataAvailabilityMode) &&
    (status === undefined || vault.status === status) &&
    (createdAfter === undefined || vault.createdAt > createdAfter) &&
    (createdBefore === undefined || vault.createdAt < createdBefore)
  );
}
