import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { argumentError, invalid, MintmarkError } from "../errors.ts";
import { tell } from "../events/event-log.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { TenantLedger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions, tablePage } from "../ledger/list.ts";
import { enablementId } from "../ledger/tenant-tables.ts";
import type { Address, Asset, Hash, MintingBlobScheme, Mode, Standard, Uuid } from "../model.ts";
import { MINTING_BLOB_SCHEMES, STANDARDS } from "../model.ts";
import { assetType } from "../protocol/asset.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "../protocol/bounds.ts";
import type { Entry, EntryOf } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import { emptyOf } from "../store/layout.ts";
import { type AssetRecord, assetRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import {
  oneOf,
  requireAddress,
  requireFlag,
  requireModeOrNull,
  requireText,
  requireUuid,
} from "../validate.ts";
import { assetView, findAsset, visibleAsset, visibleNumbers } from "./asset-view.ts";

/** Most assets that belong to one application, with removed ones: each is kept in memory. */
const MAX_OWN_ASSETS = 1_000;

export async function addAsset(
  context: EngineContext,
  asset: NewAsset,
  wait?: WaitOptions,
): Promise<Asset> {
  const given = newAsset(context.ledger, asset);
  return context.change((ledger, group) => {
    const { applicationId } = asset;
    const applicationIndex =
      applicationId === undefined
        ? null
        : ledger.tenants.application(applicationId, group).applicationIndex;
    const named = ledger.tenants.assets.named(given.assetId, group);
    const isSame =
      named?.removed === false &&
      named.chainId === given.chainId &&
      named.assetType === given.assetType &&
      named.applicationIndex === applicationIndex;
    if (isSame) return assetView(ledger, named, applicationIndex);
    requireUnknown(ledger, group, given, applicationIndex);
    if (applicationIndex !== null) requireFew(ledger, applicationIndex);
    const record = putAdded(ledger, group, given, applicationIndex);
    if (applicationIndex === null) return assetView(ledger, record, null);
    const listed = putFields(ledger, group, record, "assetWhitelisted", { whitelisted: true });
    putEnabled(ledger, group, { ...record, applicationIndex }, true);
    // Readers see it enabled only after the write.
    return { ...assetView(ledger, listed, null), enabled: true };
  }, wait);
}

function putAdded(
  ledger: TenantLedger,
  group: Group,
  given: GivenAsset,
  applicationIndex: number | null,
): AssetRecord {
  const assetIndex = ledger.tenants.assets.view(group).size;
  const { time } = ledger.journal.record(group, { ...given, assetIndex, applicationIndex });
  const { kind: _, ...fields } = given;
  const record: AssetRecord = {
    ...emptyOf(assetRecord),
    ...fields,
    assetIndex,
    applicationIndex,
    createdAt: time,
  };
  ledger.tenants.putAsset(group, record);
  return record;
}

/** Journals fields of an asset, and writes it with them, unless it has them all. */
function putFields(
  ledger: TenantLedger,
  group: Group,
  asset: AssetRecord,
  kind: "assetWhitelisted" | "assetRegistered" | "assetChanged" | "assetFault",
  fields: Partial<AssetRecord>,
): AssetRecord {
  if (hasFields(asset, fields)) return asset;
  ledger.journal.record(group, { kind, assetIndex: asset.assetIndex, ...fields } as Entry);
  const changed = { ...asset, ...fields };
  ledger.tenants.putAsset(group, changed);
  return changed;
}

function hasFields(asset: AssetRecord, fields: Partial<AssetRecord>): boolean {
  const names = Object.keys(fields) as (keyof AssetRecord)[];
  return names.every((name) => fields[name] === asset[name]);
}

/** Changes an asset of an id. Resolves with it as the operator sees it. */
function change(
  context: EngineContext,
  assetId: Uuid,
  wait: WaitOptions | undefined,
  work: (ledger: TenantLedger, group: Group, asset: AssetRecord) => AssetRecord,
): Promise<Asset> {
  return context.change((ledger, group) => {
    const changed = work(ledger, group, findAsset(ledger, assetId, group));
    return assetView(ledger, changed, null);
  }, wait);
}

/**
 * Removes an asset without mints; returns the applications that had it enabled. Throws
 * `asset_minted`.
 */
function putRemoved(ledger: TenantLedger, group: Group, asset: AssetRecord): number[] {
  if (asset.minted !== 0n) throw new MintmarkError("asset_minted");
  const { assetIndex } = asset;
  const enabled = [...ledger.tenants.applications.view(group).values()]
    .map(({ applicationIndex }) => applicationIndex)
    .filter(
      (applicationIndex) =>
        ledger.tenants.enablements.view(group).get(enablementId(applicationIndex, assetIndex)) ===
        true,
    );
  for (const applicationIndex of enabled)
    putEnabled(ledger, group, { ...asset, applicationIndex }, false);
  ledger.journal.record(group, { kind: "assetRemoved", assetIndex });
  ledger.tenants.putAsset(group, { ...asset, removed: true });
  return enabled;
}

/**
 * Changes an asset. Changes that affect mints create another record under the same id, so older
 * records keep their meaning. The new one is whitelisted and enabled like the old one, and
 * registered if it is the same asset on L1.
 */
function changeAsset(
  context: EngineContext,
  assetId: Uuid,
  changes: AssetChanges,
  wait?: WaitOptions,
): Promise<Asset> {
  return change(context, assetId, wait, (ledger, group, known) => {
    const { assetId: id, nextTokenId: firstTokenId } = known;
    const given = newAsset(ledger, {
      ...known,
      ...defined(changes),
      assetId: id,
      applicationId: undefined,
      firstTokenId: changes.firstTokenId === undefined ? firstTokenId : changes.firstTokenId,
    });
    const { kind: _, rawMintingBlobs, dataAvailabilityMode, ...fixed } = given;
    if (hasFields(known, fixed))
      return putFields(ledger, group, known, "assetChanged", {
        rawMintingBlobs,
        dataAvailabilityMode,
      });
    requireUnknown(ledger, group, given, known.applicationIndex, known.assetIndex);
    const enabled = putRemoved(ledger, group, known);
    let asset = putAdded(ledger, group, given, known.applicationIndex);
    if (known.whitelisted)
      asset = putFields(ledger, group, asset, "assetWhitelisted", { whitelisted: true });
    const isSameOnL1 = known.chainId === asset.chainId && known.assetType === asset.assetType;
    if (isSameOnL1 && known.registered) {
      const { registered, minterLocked, transferable } = known;
      asset = putFields(ledger, group, asset, "assetRegistered", {
        registered,
        minterLocked,
        transferable,
      });
    }
    for (const applicationIndex of enabled)
      putEnabled(ledger, group, { ...asset, applicationIndex }, true);
    return asset;
  });
}

/** Throws `validation_failed` when the application has as many assets of its own as it may. */
function requireFew(ledger: TenantLedger, applicationIndex: number): void {
  if (ledger.tenants.assetsOf.numbers(applicationIndex).length >= MAX_OWN_ASSETS)
    throw invalid(`An application has at most ${MAX_OWN_ASSETS} assets of its own.`);
}

function defined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}

/** The facts of a new asset, without those that the ledger counts. */
type GivenFacts = Omit<EntryOf<"assetAdded">, "assetIndex" | "applicationIndex">;
interface GivenAsset extends GivenFacts {
  readonly assetType: Hash;
}

function newAsset(ledger: TenantLedger, asset: NewAsset): GivenAsset {
  oneOf(STANDARDS)("standard", asset.standard);
  const assetId = asset.assetId === undefined ? uuidv7() : requireUuid("assetId", asset.assetId);
  const decimals = asset.decimals ?? 0;
  requireInteger("decimals", decimals, 0, 255);
  const {
    chainId = ledger.services.settlement.chainId,
    mintingBlobScheme = "mintmark",
    rawMintingBlobs = false,
  } = asset;
  requireBigint("chainId", chainId, 1n, MAX_UINT64);
  oneOf(MINTING_BLOB_SCHEMES)("mintingBlobScheme", mintingBlobScheme);
  const supplyCap = asset.supplyCap ?? null;
  if (supplyCap !== null && (typeof supplyCap !== "bigint" || supplyCap < 0n))
    throw argumentError("supplyCap", "must be a bigint, not negative, or null");
  const given: GivenFacts = {
    kind: "assetAdded",
    assetId,
    standard: asset.standard,
    chainId,
    contractAddress: requireAddress("contractAddress", asset.contractAddress),
    quantum: asset.quantum ?? 1n,
    name: requireText("name", asset.name, 200),
    symbol: requireText("symbol", asset.symbol, 50),
    decimals,
    mintingBlobScheme,
    supplyCap,
    rawMintingBlobs: requireFlag("rawMintingBlobs", rawMintingBlobs),
    dataAvailabilityMode: requireModeOrNull(asset.dataAvailabilityMode ?? null),
    nextTokenId: firstIdOf(asset),
  };
  return { ...given, assetType: assetType(given.standard, given.contractAddress, given.quantum) };
}

function firstIdOf({ standard, firstTokenId = null }: NewAsset): bigint | null {
  if (firstTokenId === null) return null;
  if (standard !== "erc721")
    throw argumentError("firstTokenId", "is only for ERC-721: the engine numbers their tokens");
  requireBigint("firstTokenId", firstTokenId, 0n, MAX_UINT64);
  return firstTokenId;
}

/**
 * A contract has one standard and one asset; the uniqueness of tokens relies on it. The refusal
 * names an asset that the application can see.
 *
 * @param changed - the asset that the entry replaces
 */
function requireUnknown(
  ledger: TenantLedger,
  group: Group,
  { assetId, chainId, contractAddress }: GivenAsset,
  applicationIndex: number | null,
  changed?: number,
): void {
  const named = ledger.tenants.assets.named(assetId, group);
  if (changed === undefined && named?.removed === false)
    throw new MintmarkError(
      "asset_exists",
      "An asset with this id exists, of another contract or application.",
    );
  const [known] = ledger.tenants.assetsByContract
    .numbers(`${chainId} ${contractAddress}`)
    .filter((assetIndex) => assetIndex !== changed);
  if (known === undefined) return;
  const { assetId: id, symbol, applicationIndex: owner } = ledger.tenants.assetAt(known);
  if (owner !== null && owner !== applicationIndex) throw new MintmarkError("asset_exists");
  throw new MintmarkError("asset_exists", `This contract is known as the asset ${id} (${symbol}).`);
}

export function markAssetRegistered(
  context: EngineContext,
  assetId: Uuid,
  { minterLocked = null, transferable }: RegisteredFacts,
  wait?: WaitOptions,
): Promise<Asset> {
  return change(context, assetId, wait, (ledger, group, asset) => {
    return putFields(ledger, group, asset, "assetRegistered", {
      registered: true,
      minterLocked,
      transferable: transferable ?? asset.transferable,
    });
  });
}

/** L1's facts about a registered asset. */
export interface RegisteredFacts {
  /** Whether the token's minter role is locked for ever; null when the token does not say. */
  readonly minterLocked?: boolean | null;
  /** Whether vaults of it can be transferred; default as known before. */
  readonly transferable?: boolean;
}

/** Records why L1 would refuse mints of an asset; null when it no longer would. */
export async function setMintingFault(
  context: EngineContext,
  assetId: Uuid,
  fault: string | null,
  wait?: WaitOptions,
) {
  const reason = fault === null ? null : requireText("fault", fault, 2000);
  return change(context, assetId, wait, (ledger, group, asset) =>
    putFields(ledger, group, asset, "assetFault", { fault: reason }),
  );
}

function putEnabled(
  ledger: TenantLedger,
  group: Group,
  {
    applicationIndex,
    assetIndex,
    assetId,
  }: { applicationIndex: number; assetIndex: number; assetId: Uuid },
  enabled: boolean,
): void {
  const { time } = ledger.journal.record(group, {
    kind: "assetEnabled",
    applicationIndex,
    assetIndex,
    enabled,
  });
  tell(ledger, group, applicationIndex, time, {
    type: enabled ? "asset.enabled" : "asset.disabled",
    assetId,
  });
  ledger.tenants.enablements.put(group, enablementId(applicationIndex, assetIndex), enabled);
  const key = keyOf.enablement(applicationIndex, assetIndex);
  if (enabled) group.onDurable(() => ledger.tenants.claimDeposits(null));
  if (enabled) group.put(key, Buffer.from([1]));
  else group.remove(key);
}

function assetMatches(asset: Asset, filter: AssetFilter): boolean {
  return (
    (filter.standard === undefined ||
      filter.standard.length === 0 ||
      filter.standard.includes(asset.standard)) &&
    (filter.mintable === undefined || asset.mintable === filter.mintable) &&
    (filter.enabled === undefined || asset.enabled === filter.enabled) &&
    (filter.symbol === undefined || asset.symbol === filter.symbol)
  );
}

/** The filter of a list of assets. */
export interface AssetFilter extends PageOptions {
  /** Any of these. */
  readonly standard?: readonly Standard[] | undefined;
  readonly mintable?: boolean | undefined;
  readonly enabled?: boolean | undefined;
  readonly symbol?: string | undefined;
}

/** Input of {@link Assets.add}. */
export interface NewAsset {
  readonly assetId?: Uuid;
  readonly standard: Standard;
  /** The token's chain; default the settlement's. */
  readonly chainId?: bigint;
  readonly contractAddress: Address;
  /** Base units of one quantized unit; 1 for ERC-721 and ERC-1155. Default 1. */
  readonly quantum?: bigint;
  readonly name: string;
  readonly symbol: string;
  /** Default 0. */
  readonly decimals?: number;
  /** Default `mintmark`. */
  readonly mintingBlobScheme?: MintingBlobScheme;
  /**
   * Whether minting blobs can be any bytes. Default false: each is the hex of a text without
   * control characters.
   */
  readonly rawMintingBlobs?: boolean;
  /** The mode of mints that name none; null, the default: the application's. */
  readonly dataAvailabilityMode?: Mode | null;
  /**
   * ERC-721: the engine numbers tokens from this id on, below 2^64, by `quantity`. Default null:
   * mints name their ids.
   */
  readonly firstTokenId?: bigint | null;
  readonly supplyCap?: bigint | null;
  /**
   * The only application that can enable it; it is whitelisted and enabled for it. Default: any,
   * once whitelisted.
   */
  readonly applicationId?: Uuid;
}

/** The changes of an asset; missing fields stay. */
export type AssetChanges = Partial<Omit<NewAsset, "assetId" | "applicationId">>;

export function assetsOf(context: EngineContext): Assets {
  const get: Assets["get"] = async (applicationId, assetId) => {
    const { ledger } = context;
    const { applicationIndex, asset } = visibleAsset(ledger, applicationId, assetId, null);
    return assetView(ledger, asset, applicationIndex);
  };
  const setWhitelisted = (whitelisted: boolean) => (assetId: Uuid, wait?: WaitOptions) =>
    change(context, assetId, wait, (ledger, group, asset) =>
      putFields(ledger, group, asset, "assetWhitelisted", { whitelisted }),
    );
  const setEnabled =
    (enabled: boolean) => async (applicationId: Uuid, assetId: Uuid, wait?: WaitOptions) => {
      await context.change((ledger, group) => {
        const { applicationIndex, asset } = visibleAsset(ledger, applicationId, assetId, group);
        const { assetIndex, whitelisted, assetId: known } = asset;
        const id = enablementId(applicationIndex, assetIndex);
        if ((ledger.tenants.enablements.view(group).get(id) ?? false) === enabled) return;
        if (enabled && !whitelisted) throw new MintmarkError("asset_not_whitelisted");
        putEnabled(ledger, group, { applicationIndex, assetIndex, assetId: known }, enabled);
      }, wait);
      return get(applicationId, assetId);
    };
  return {
    add: (asset, wait) => addAsset(context, asset, wait),
    change: (assetId, changes, wait) => changeAsset(context, assetId, changes, wait),
    remove: (assetId, wait) =>
      context.change(
        (ledger, group) => void putRemoved(ledger, group, findAsset(ledger, assetId, group)),
        wait,
      ),
    whitelist: setWhitelisted(true),
    unlist: setWhitelisted(false),
    enable: setEnabled(true),
    disable: setEnabled(false),
    get,
    list: (applicationId, filter = {}) =>
      listOf(context, "assets", applicationId, filter, (start, ledger) => {
        const { applicationIndex } = ledger.tenants.application(applicationId, null);
        const view = (record: AssetRecord) => {
          const asset = record.removed ? null : assetView(ledger, record, applicationIndex);
          return asset !== null && assetMatches(asset, filter) ? asset : null;
        };
        const numbers = visibleNumbers(ledger.tenants, applicationIndex);
        return tablePage(ledger.tenants.assets.durable, start, view, "asc", numbers);
      }),
  };
}

/** Every known asset, as shown to the operator: `enabled` is false. */
export function allAssets(context: EngineContext, page: PageOptions): List<Asset> {
  return listOf(context, "all assets", "", page, (start, ledger) =>
    tablePage(ledger.tenants.assets.durable, start, (asset) =>
      asset.removed ? null : assetView(ledger, asset, null),
    ),
  );
}

/**
 * The assets, and who can mint them.
 *
 * @example
 * const token = { standard: "erc721", contractAddress, name: "Swords", symbol: "SWRD" } as const;
 * const { assetId } = await engine.assets.add({ ...token, applicationId });
 */
export interface Assets {
  /**
   * Adds a token. It is mintable once whitelisted, registered and enabled; one application's asset
   * is enabled at once. Idempotent for the same id, contract and application. Rejects with
   * `asset_exists`, which names the asset that has the contract.
   */
  add(asset: NewAsset, wait?: WaitOptions): Promise<Asset>;
  /**
   * Changes an asset: its default mode and `rawMintingBlobs` at any time, all else before the first
   * mint. If it is another asset on L1 then, it needs a new registration. Rejects with
   * `asset_minted`, `asset_exists`, `asset_not_found`.
   */
  change(assetId: Uuid, changes: AssetChanges, wait?: WaitOptions): Promise<Asset>;
  /**
   * Removes an asset without mints; its contract can be added again. Rejects with `asset_minted`,
   * `asset_not_found`.
   */
  remove(assetId: Uuid, wait?: WaitOptions): Promise<void>;
  /** Lets applications enable the asset. */
  whitelist(assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  /** Ends mints of the asset by all applications. */
  unlist(assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  /**
   * Allows the application to mint the asset. Rejects with `asset_not_found`,
   * `asset_not_whitelisted`.
   */
  enable(applicationId: Uuid, assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  /** Ends mints of the asset by the application. */
  disable(applicationId: Uuid, assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  /** The asset as shown to the application. Rejects with `asset_not_found`. */
  get(applicationId: Uuid, assetId: Uuid): Promise<Asset>;
  /** The assets that the application can see, in the order of their addition. */
  list(applicationId: Uuid, filter?: AssetFilter): List<Asset>;
}
