import { type ErrorCode, MintmarkError } from "../errors.ts";
import type { TenantLedger } from "../ledger/ledger.ts";
import { enablementId, type TenantTables } from "../ledger/tenant-tables.ts";
import type { Asset, Standard, Uuid } from "../model.ts";
import type { Settlement } from "../ports.ts";
import type { Group } from "../store/group.ts";
import type { AssetRecord } from "../store/records.ts";

/** First engine version of a settlement contract that supports a standard. */
const SINCE_VERSION: Readonly<Record<Standard, number>> = { erc721: 4, erc20: 5, erc1155: 5 };

/** The reason why nobody can mint the asset now; null when it is available. */
export function availability(
  settlement: Settlement,
  asset: AssetRecord,
  enabled: boolean,
): { readonly code: ErrorCode; readonly detail: string } | null {
  if (asset.removed) return { code: "asset_not_found", detail: "no such asset" };
  const since = SINCE_VERSION[asset.standard];
  if (settlement.engineVersion < since) {
    const detail = `${asset.standard} needs a settlement contract of engine version ${since}; this one is ${settlement.engineVersion}`;
    return { code: "standard_not_available", detail };
  }
  if (!asset.whitelisted)
    return { code: "asset_not_whitelisted", detail: "the operator has not whitelisted the asset" };
  if (!asset.registered)
    return { code: "asset_not_registered", detail: "the asset is not registered on L1" };
  if (asset.fault !== null) return { code: "mint_unwithdrawable", detail: asset.fault };
  if (!enabled)
    return { code: "asset_not_enabled", detail: "the asset is not enabled for this application" };
  return null;
}

/**
 * An asset as shown to an application; `application` null for the operator, who has none enabled.
 */
export function assetView(
  ledger: TenantLedger,
  asset: AssetRecord,
  applicationIndex: number | null,
): Asset {
  const enabled =
    applicationIndex !== null &&
    (ledger.tenants.enablements.durable.get(enablementId(applicationIndex, asset.assetIndex)) ??
      false);
  const reason = availability(ledger.services.settlement, asset, enabled);
  const exhausted = asset.supplyCap !== null && asset.minted >= asset.supplyCap;
  // The rest of the record is the ledger's own.
  const { assetIndex, applicationIndex: reservedFor, fault, createdAt, removed, ...shown } = asset;
  return {
    ...shown,
    enabled,
    // Every asset that can be added is minted by a withdrawal.
    mintable: true,
    mintingAvailable: reason === null && !exhausted,
    unavailableReason:
      reason?.detail ?? (exhausted ? "the asset has reached its supply cap" : null),
  };
}

/**
 * Whether an application can see an asset: the operator can reserve one for another application.
 */
export function isVisible(
  { applicationIndex: ofOne, removed }: AssetRecord,
  applicationIndex: number,
): boolean {
  return !removed && (ofOne === null || ofOne === applicationIndex);
}

/** The numbers of the assets that an application can see, in ascending order, with removed ones. */
export function visibleNumbers(
  { assetsOf }: TenantTables,
  applicationIndex: number,
): readonly number[] {
  const own = assetsOf.numbers(applicationIndex);
  return [...assetsOf.numbers(null), ...own].sort((a, b) => a - b);
}

/**
 * An application, and an asset that it can see. Throws `application_not_found`, `asset_not_found`.
 */
export function visibleAsset(
  ledger: TenantLedger,
  applicationId: Uuid,
  assetId: Uuid,
  group: Group | null,
) {
  const { applicationIndex } = ledger.tenants.application(applicationId, group);
  const asset = findAsset(ledger, assetId, group);
  if (!isVisible(asset, applicationIndex)) throw new MintmarkError("asset_not_found");
  return { applicationIndex, asset };
}

/** The asset in the writer's view, or as durable now. Throws `asset_not_found`. */
export function findAsset(ledger: TenantLedger, assetId: Uuid, group: Group | null): AssetRecord {
  const asset = ledger.tenants.assets.named(assetId, group);
  if (asset === undefined || asset.removed) throw new MintmarkError("asset_not_found");
  return asset;
}
