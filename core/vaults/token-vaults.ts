import { argumentError } from "../errors.ts";
import { readBatchVaults } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { PageEntries, PageStart } from "../ledger/list.ts";
import { FIRST_PENDING } from "../ledger/vault-refs.ts";
import { MAX_BATCH_VAULTS, MODES, type Mode, type Uuid, type Vault } from "../model.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import { MAX_UINT256, requireBigint } from "../protocol/bounds.ts";
import { MAX_MAKING_VAULTS, type VaultPlace } from "../protocol/vault.ts";
import { decodeRecord } from "../store/layout.ts";
import { type AssetRecord, itemSlotsRecord } from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import type { VaultColumns } from "../store/vault-columns.ts";
import { isVisible, visibleNumbers } from "../tenants/asset-view.ts";
import type { VaultFilter } from "./transaction-range.ts";
import { tipOf } from "./transfer-lists.ts";
import { hasSlot, readVaults, vaultViews } from "./vaults.ts";

// Places of batches come before: the index of tokens in memory has fewer than 2^32
const FIRST_MADE = 2 ** 52;
const MOST_ASSETS = 100; // Most assets that a search by token id alone covers

/** A page of a token's vaults, batch by batch. Searches all assets unless the filter names one. */
export async function vaultsOfToken(
  ledger: Ledger,
  applicationId: Uuid,
  filter: VaultFilter & { readonly tokenId: bigint },
  { after, limit }: PageStart,
): Promise<PageEntries<Vault>> {
  requireBigint("tokenId", filter.tokenId, 0n, MAX_UINT256);
  const { applicationIndex } = ledger.tenants.application(applicationId);
  const places: VaultPlace[] = [];
  for (const asset of assetsOf(ledger, applicationIndex, filter.assetId)) {
    if (asset.standard === "erc721")
      places.push(...(await placesOfUnique(ledger, asset, filter.tokenId)));
    else
      places.push(
        ...(await placesOfItem(ledger, asset, filter.tokenId, { after, limit: limit + 1 })),
      );
  }
  // The index in memory can be a moment ahead of the disk.
  const ordered = places
    .filter((place) => hasSlot(ledger, place, "durable") && positionOf(place) > (after ?? -1))
    .sort((a, b) => positionOf(a) - positionOf(b));
  const page = ordered.slice(0, limit);
  const own = (await readVaults(ledger, page)).filter(
    ({ vault }) => vault.applicationIndex === applicationIndex,
  );
  const vaults = await vaultViews(ledger, applicationIndex, own);
  const last = page.at(-1);
  const next = ordered.length > limit && last !== undefined ? positionOf(last) : null;
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
      : [ledger.tenants.assets.named(assetId)];
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
): Promise<VaultPlace[]> {
  const refs =
    ledger.minting.tokens.candidates(ledger.minting.hasher.ofId(asset.assetIndex, tokenId)) ?? [];
  const places = refs
    .filter((ref) => ref < FIRST_PENDING)
    .map((ref) => ledger.batches.refs.placeOf(ref))
    .filter((place) => hasSlot(ledger, place, "durable"));
  const located = await readVaults(ledger, places);
  const minted = located.filter(({ vault: { assetIndex, blob } }) => {
    return (
      assetIndex === asset.assetIndex &&
      tokenIdOf(asset.standard, asset.blobScheme, blob) === tokenId
    );
  });
  return Promise.all(minted.map(({ place }) => tipOf(ledger, place)));
}

/**
 * The places of an ERC-1155 id after a position: from records of sealed batches, and from vaults in
 * memory.
 */
async function placesOfItem(
  ledger: Ledger,
  { assetIndex }: AssetRecord,
  tokenId: bigint,
  { after, limit }: PageStart,
) {
  const blob = await ledger.store.get(keyOf.binding(assetIndex, tokenId));
  if (blob === undefined) return [];
  const places: VaultPlace[] = [];
  for (const mode of MODES) {
    const start = after === null ? 0 : Math.floor(after / (2 * MAX_BATCH_VAULTS));
    const prefix = prefixOf.item(assetIndex, tokenId, mode);
    const range = { gte: keyOf.item(assetIndex, tokenId, mode, start), lt: endOf(prefix) };
    const found: VaultPlace[] = [];
    for await (const [key, record] of ledger.store.entries(range)) {
      const batchNumber = key.readUInt32BE(key.length - 4);
      for (const slot of decodeRecord(itemSlotsRecord, record, "The vaults of a token")) {
        const place = { mode, batchNumber, slot };
        if (found.length < limit && positionOf(place) > (after ?? -1)) found.push(place);
      }
      if (found.length === limit) break;
    }
    if (found.length < limit) found.push(...(await unsealedPlaces(ledger, mode, assetIndex, blob)));
    places.push(...found);
  }
  return places;
}

async function unsealedPlaces(
  ledger: Ledger,
  mode: Mode,
  assetIndex: number,
  blob: Buffer,
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
    for (const slot of slotsWith(vaults, assetIndex, blob))
      places.push({ mode, batchNumber, slot });
  }
  return places;
}

function slotsWith(vaults: VaultColumns, assetIndex: number, blob: Buffer): number[] {
  const slots: number[] = [];
  for (let slot = 0; slot < vaults.count; slot++) {
    if (vaults.assetIndex[slot] !== assetIndex) continue;
    const start = vaults.blobStart(slot);
    const end = vaults.blobEnd[slot]!;
    if (end - start === blob.length && blob.equals(vaults.blobs.subarray(start, end)))
      slots.push(slot);
  }
  return slots;
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
