import type { WaitOptions } from "../abort.ts";
import { argumentError, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type Address, MAX_AMOUNT, type Uuid } from "../model.ts";
import { requireBigint, requireInteger } from "../protocol/bounds.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { LISTINGS, type OrderTermsRecord, orderTermsRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { visibleAsset } from "../tenants/asset-view.ts";
import { oneOf, requireAddress } from "../validate.ts";
import type { VaultCaller } from "../vaults/signed-requests.ts";

/**
 * Who may list and take orders: nobody; the application by its keys; or signed-in owners, too.
 */
export type Listing = (typeof LISTINGS)[number];

/** A part of what a seller receives, and who gets it. */
export interface Part {
  /** 1 to 2,500 hundredths of a percent. */
  readonly basisPoints: number;
  readonly to: Address;
}

/** The rules for one asset. */
export interface AssetTerms {
  readonly assetId: Uuid;
  /** Goes to somebody else whenever the asset is sold for fungible tokens; null for nothing. */
  readonly royalty: Part | null;
  /** The fewest units of the asset in an order, on either side; null for no bound. */
  readonly minimum: bigint | null;
}

/** The rules of an application's orders. */
export interface OrderTerms {
  readonly listing: Listing;
  /** A part of the fungible tokens that a signer receives; null for none. */
  readonly fee: Part | null;
  /** At most 100, each asset once. */
  readonly assets: readonly AssetTerms[];
}

const MAX_BASIS_POINTS = 2_500;
const MAX_ASSET_TERMS = 100;
/** Hundredths of a percent in the whole. */
export const WHOLE = 10_000n;

const NO_TERMS: OrderTermsRecord = { listing: "nobody", fee: null, assets: [], updatedAt: 0 };

export async function readTerms(
  ledger: Ledger,
  applicationIndex: number,
): Promise<OrderTermsRecord> {
  return decodeTerms(await ledger.store.get(keyOf.orderTerms(applicationIndex)));
}

export function decodeTerms(stored: Buffer | undefined): OrderTermsRecord {
  return stored === undefined
    ? NO_TERMS
    : decodeRecord(orderTermsRecord, stored, "The terms of orders");
}

/** Throws unless the terms let the caller list and take orders. */
export function requireListing({ listing }: OrderTermsRecord, caller: VaultCaller): void {
  if (listing === "owners" || (listing === "application" && !("owner" in caller))) return;
  const whom = listing === "nobody" ? "has no orders" : "lists orders by its own keys only";
  throw new MintmarkError("order_not_allowed", `The application ${whom}; see its order terms.`);
}

export async function termsOf(ledger: Ledger, applicationId: Uuid): Promise<OrderTerms> {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  return termsView(ledger, await readTerms(ledger, applicationIndex));
}

export async function setTerms(
  context: EngineContext,
  applicationId: Uuid,
  terms: OrderTerms,
  wait?: WaitOptions,
): Promise<OrderTerms> {
  const given = checkedTerms(context.ledger, applicationId, terms);
  return context.change((ledger, group) => {
    const { applicationIndex } = ledger.tenants.application(applicationId, group);
    const entry = { kind: "orderTermsSet", applicationIndex, ...given } as const;
    const { time } = ledger.journal.record(group, entry);
    const record = { ...given, updatedAt: time };
    group.stage(keyOf.orderTerms(applicationIndex), encodeRecord(orderTermsRecord, record));
    return termsView(ledger, record);
  }, wait);
}

function checkedTerms(ledger: Ledger, applicationId: Uuid, { listing, fee, assets }: OrderTerms) {
  oneOf(LISTINGS)("listing", listing);
  if (!Array.isArray(assets) || assets.length > MAX_ASSET_TERMS)
    throw argumentError("assets", `must be at most ${MAX_ASSET_TERMS} assets`);
  const checked = assets.map(({ assetId, royalty, minimum }: AssetTerms, i) => {
    const { asset } = visibleAsset(ledger, applicationId, assetId, null);
    if (minimum !== null) requireBigint(`assets[${i}].minimum`, minimum, 1n, MAX_AMOUNT);
    const { assetIndex } = asset;
    return { assetIndex, royalty: checkedPart(`assets[${i}].royalty`, royalty), minimum };
  });
  if (new Set(checked.map(({ assetIndex }) => assetIndex)).size !== checked.length)
    throw argumentError("assets", "must name each asset once");
  return { listing, fee: checkedPart("fee", fee), assets: checked };
}

function checkedPart(name: string, part: Part | null): Part | null {
  if (part === null) return null;
  const { basisPoints, to } = part;
  requireInteger(`${name}.basisPoints`, basisPoints, 1, MAX_BASIS_POINTS);
  return { basisPoints, to: requireAddress(`${name}.to`, to) };
}

function termsView(ledger: Ledger, { listing, fee, assets }: OrderTermsRecord): OrderTerms {
  return {
    listing,
    fee,
    assets: assets.map(({ assetIndex, royalty, minimum }) => {
      const { assetId } = ledger.tenants.assetAt(assetIndex);
      return { assetId, royalty, minimum };
    }),
  };
}
