import type { WaitOptions } from "../abort.ts";
import { argumentError, type Issue, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { TenantLedger } from "../ledger/ledger.ts";
import type { Uuid } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { MAX_UINT256, requireBigint } from "../protocol/bounds.ts";
import { readMetadata } from "../protocol/metadata.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import {
  type AssetFacts,
  type AssetRecord,
  type CollectionRecord,
  type MetadataRecord,
  metadataRecord,
} from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { orNull } from "../validate.ts";
import { findAsset, visibleAsset } from "./asset-view.ts";

/** Most tokens of one call. */
export const MAX_METADATA_TOKENS = 1_000;

/** The record of a token's metadata; null without one. */
export function metadataAt(record: Buffer | undefined): MetadataRecord | null {
  return record === undefined ? null : decodeRecord(metadataRecord, record, "A token's metadata");
}

/** Writes the metadata of tokens that are not frozen, as one journal entry. */
export function putMetadata(
  ledger: TenantLedger,
  group: Group,
  { assetId }: Pick<AssetRecord, "assetId">,
  tokens: readonly { readonly tokenId: bigint; readonly metadata: string }[],
): void {
  if (tokens.length === 0) return;
  const { time: updatedAt } = ledger.journal.record(group, {
    kind: "metadataSet",
    assetId,
    tokens,
  });
  for (const { tokenId, metadata } of tokens)
    group.stage(
      keyOf.metadata(assetId, tokenId),
      encodeRecord(metadataRecord, { metadata, frozen: false, updatedAt }),
    );
}

/** Why the application can set no token's metadata of an asset; null when it can. */
export function metadataFault(
  ledger: TenantLedger,
  group: Group,
  asset: AssetFacts,
  applicationIndex: number,
): Pick<Issue, "code" | "detail"> | null {
  if (asset.standard === "erc20")
    return { code: "validation_failed", detail: "an ERC-20 asset has no tokens by id" };
  if (asset.applicationIndex !== applicationIndex)
    return { code: "asset_shared", detail: "the asset is not reserved for this application" };
  if (ledger.tenants.collections.view(group).get(asset.assetId)?.frozen === true)
    return {
      code: "metadata_frozen",
      detail: "the metadata of all tokens of this asset is frozen",
    };
  return null;
}

function requireTokens<T>(tokens: readonly T[], idOf: (token: T) => unknown): void {
  if (!Array.isArray(tokens) || tokens.length === 0 || tokens.length > MAX_METADATA_TOKENS)
    throw argumentError("tokens", `must be 1 to ${MAX_METADATA_TOKENS} tokens`);
  for (const token of tokens) requireBigint("tokenId", idOf(token) as bigint, 0n, MAX_UINT256);
}

/** Throws all faults as one error, if there are any. */
export function refuse(issues: readonly Issue[]): void {
  const [first] = issues;
  if (first !== undefined)
    throw new MintmarkError(first.code, `${first.pointer}: ${first.detail}`, { issues });
}

/** The JSON of metadata. Throws `validation_failed` with the fault's place, below `at`. */
function jsonOf(metadata: unknown, at: string): string {
  const read = readMetadata(metadata);
  if (typeof read === "string") return read;
  const issue = {
    pointer: `${at}${read.pointer}`,
    code: "validation_failed",
    detail: read.detail,
  } as const;
  throw new MintmarkError(issue.code, `${issue.pointer || "metadata"} ${issue.detail}`, {
    issues: [issue],
  });
}

function jsonOrNull(metadata: unknown, at: string): string | null {
  return metadata === null ? null : jsonOf(metadata, at);
}

/** The tokens that a call names, with their stored records, in the writer. */
type Change = (
  group: Group,
  asset: AssetRecord,
  records: readonly (MetadataRecord | null)[],
) => void;

async function change(
  context: EngineContext,
  [applicationId, assetId]: readonly [Uuid, Uuid],
  tokenIds: readonly bigint[],
  apply: Change,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { ledger, writer } = context;
  // The id as stored, because keys hold it.
  const keys = tokenIds.map((tokenId) =>
    keyOf.metadata(findAsset(ledger, assetId, null).assetId, tokenId),
  );
  await writer.run(
    {
      weight: keys.length,
      keys: () => keys,
      apply(group, stored) {
        const { applicationIndex, asset } = visibleAsset(ledger, applicationId, assetId, group);
        const fault = metadataFault(ledger, group, asset, applicationIndex);
        if (fault !== null)
          throw new MintmarkError(fault.code, `This is refused: ${fault.detail}.`);
        const records = keys.map((key, i) => metadataAt(group.resolve(key, stored[i])));
        apply(group, asset, records);
      },
    },
    signal,
  );
}

async function setAll(
  context: EngineContext,
  of: readonly [Uuid, Uuid],
  tokens: readonly NewMetadata[],
  at: (i: number) => string,
  signal?: AbortSignal,
): Promise<void> {
  requireTokens(tokens, ({ tokenId }) => tokenId);
  const given = tokens.map(({ tokenId, metadata }, i) => ({
    tokenId,
    metadata: jsonOf(metadata, at(i)),
  }));
  const tokenIds = given.map(({ tokenId }) => tokenId);
  if (new Set(tokenIds).size < given.length)
    throw argumentError("tokens", "must name each token once");
  const apply: Change = (group, asset, records) => {
    const changed = given.filter(({ metadata }, i) => records[i]?.metadata !== metadata);
    const frozen = given.flatMap(({ metadata }, i): Issue[] => {
      const record = records[i];
      if (record?.frozen !== true || record.metadata === metadata) return [];
      return [
        { pointer: at(i), code: "metadata_frozen", detail: "this token's metadata is frozen" },
      ];
    });
    refuse(frozen);
    putMetadata(context.ledger, group, asset, changed);
  };
  await change(context, of, tokenIds, apply, signal);
}

async function freezeTokens(
  context: EngineContext,
  of: readonly [Uuid, Uuid],
  tokenIds: readonly bigint[],
  signal?: AbortSignal,
): Promise<void> {
  requireTokens(tokenIds, (tokenId) => tokenId);
  const { ledger } = context;
  const unique = [...new Set(tokenIds)];
  const apply: Change = (group, { assetId, nextTokenId }, records) => {
    const missing = unique.flatMap((tokenId, i): Issue[] => {
      const refused = {
        pointer: `/tokenIds/${tokenIds.indexOf(tokenId)}`,
        code: "metadata_not_found",
      } as const;
      if (records[i] === null) return [{ ...refused, detail: "the token has no metadata" }];
      // The engine chooses ids without looking at their metadata, so a mint must be able to set it.
      if (nextTokenId !== null && tokenId >= nextTokenId)
        return [{ ...refused, detail: "the engine has not given this id to a token yet" }];
      return [];
    });
    refuse(missing);
    const open = unique.filter((_, i) => records[i]?.frozen === false);
    if (open.length === 0) return;
    if (ledger.tenants.collections.view(group).get(assetId)?.placeholder)
      throw new MintmarkError("metadata_hidden");
    ledger.journal.record(group, { kind: "metadataFrozen", assetId, tokenIds: open });
    for (const [i, tokenId] of unique.entries()) {
      const record = records[i];
      if (!record || record.frozen) continue;
      group.stage(
        keyOf.metadata(assetId, tokenId),
        encodeRecord(metadataRecord, { ...record, frozen: true }),
      );
    }
  };
  await change(context, of, unique, apply, signal);
}

async function changeCollection(
  context: EngineContext,
  [applicationId, assetId]: readonly [Uuid, Uuid],
  given: CollectionChanges & { readonly frozen?: true },
  wait?: WaitOptions,
): Promise<Collection> {
  const changes = {
    ...(given.contractMetadata !== undefined && {
      contractMetadata: jsonOrNull(given.contractMetadata, "/contractMetadata"),
    }),
    ...(given.placeholder !== undefined && {
      placeholder: jsonOrNull(given.placeholder, "/placeholder"),
    }),
    ...(given.frozen && { frozen: true }),
  };
  return context.change((ledger, group) => {
    const { applicationIndex, asset } = visibleAsset(ledger, applicationId, assetId, group);
    if (asset.applicationIndex !== applicationIndex) throw new MintmarkError("asset_shared");
    const known =
      ledger.tenants.collections.view(group).get(asset.assetId) ?? emptyCollection(asset);
    const changed = { ...known, ...changes };
    if (known.frozen && changed.placeholder !== null && changed.placeholder !== known.placeholder)
      throw new MintmarkError(
        "metadata_frozen",
        "The asset's metadata is frozen: a placeholder can only be removed.",
      );
    const names = ["contractMetadata", "placeholder", "frozen"] as const;
    if (names.every((name) => known[name] === changed[name])) return collectionView(known);
    const { contractMetadata, placeholder, frozen } = changed;
    const collection = { assetId: asset.assetId, contractMetadata, placeholder, frozen };
    const { time: updatedAt } = ledger.journal.record(group, {
      kind: "collectionChanged",
      ...collection,
    });
    ledger.tenants.collections.set(group, { ...collection, updatedAt });
    return collectionView({ ...collection, updatedAt });
  }, wait);
}

/** Clients of ERC-1155 put 64 hex digits in the place of `{id}`. */
function idInAddress({ standard }: AssetRecord, text: string): bigint {
  if (standard === "erc1155" && /^[0-9a-f]{64}$/i.test(text)) return BigInt(`0x${text}`);
  const id = /^(?:0|[1-9][0-9]{0,77})$/.test(text) ? BigInt(text) : MAX_UINT256 + 1n;
  if (id > MAX_UINT256)
    throw new MintmarkError("metadata_not_found", "The address does not end with a token's id.");
  return id;
}

function emptyCollection({ assetId, createdAt }: AssetRecord): CollectionRecord {
  return {
    assetId,
    contractMetadata: null,
    placeholder: null,
    frozen: false,
    updatedAt: createdAt,
  };
}

function collectionView({
  contractMetadata,
  placeholder,
  frozen,
  updatedAt,
}: CollectionRecord): Collection {
  return {
    contractMetadata: parsed(contractMetadata),
    placeholder: parsed(placeholder),
    frozen,
    updatedAt,
  };
}

function parsed(json: string | null): JsonObject | null {
  return json === null ? null : (JSON.parse(json) as JsonObject);
}

export function metadataOf(context: EngineContext): Metadata {
  /** The asset for readers without credentials. */
  const publicAsset = (assetId: Uuid): AssetRecord => {
    const asset = findAsset(context.ledger, assetId, null);
    if (asset.removed) throw new MintmarkError("asset_not_found");
    return asset;
  };
  const stored = async (assetId: Uuid, tokenId: bigint): Promise<MetadataRecord | null> => {
    requireBigint("tokenId", tokenId, 0n, MAX_UINT256);
    return metadataAt(await context.ledger.store.get(keyOf.metadata(assetId, tokenId)));
  };
  const served: Metadata["served"] = async (assetId, token) => {
    const asset = publicAsset(assetId);
    const tokenId = typeof token === "bigint" ? token : idInAddress(asset, token);
    const { placeholder = null, frozen = false } =
      context.ledger.tenants.collections.durable.get(asset.assetId) ?? {};
    const record = await stored(asset.assetId, tokenId);
    // A frozen token was shown as final, so a later placeholder cannot hide it.
    if (placeholder !== null && asset.standard !== "erc20" && !record?.frozen)
      return { json: placeholder, final: false };
    if (record === null) throw new MintmarkError("metadata_not_found");
    return { json: record.metadata, final: frozen || record.frozen };
  };
  const servedContract: Metadata["servedContract"] = async (assetId) => {
    const { assetId: id, name, symbol } = publicAsset(assetId);
    const own = parsed(
      context.ledger.tenants.collections.durable.get(id)?.contractMetadata ?? null,
    );
    return { json: JSON.stringify({ name, symbol, ...own }), final: false };
  };
  return {
    set: (applicationId, assetId, { tokenId, metadata }, wait) =>
      setAll(context, [applicationId, assetId], [{ tokenId, metadata }], () => "", wait?.signal),
    setAll: (applicationId, assetId, tokens, wait) =>
      setAll(
        context,
        [applicationId, assetId],
        tokens,
        (i) => `/tokens/${i}/metadata`,
        wait?.signal,
      ),
    async get(applicationId, assetId, tokenId) {
      const { ledger } = context;
      const { applicationIndex, asset } = visibleAsset(ledger, applicationId, assetId, null);
      if (asset.applicationIndex !== applicationIndex) throw new MintmarkError("asset_shared");
      const record = await stored(asset.assetId, tokenId);
      if (record === null) throw new MintmarkError("metadata_not_found");
      const { placeholder = null, frozen = false } =
        ledger.tenants.collections.durable.get(asset.assetId) ?? {};
      const metadata = parsed(record.metadata) ?? {};
      const hidden = placeholder !== null && !record.frozen;
      return {
        tokenId,
        metadata,
        frozen: frozen || record.frozen,
        hidden,
        updatedAt: record.updatedAt,
      };
    },
    freezeTokens: (applicationId, assetId, tokenIds, wait) =>
      freezeTokens(context, [applicationId, assetId], tokenIds, wait?.signal),
    async getCollection(applicationId, assetId) {
      const { asset } = visibleAsset(context.ledger, applicationId, assetId, null);
      return collectionView(
        context.ledger.tenants.collections.durable.get(asset.assetId) ?? emptyCollection(asset),
      );
    },
    changeCollection: (applicationId, assetId, { contractMetadata, placeholder }, wait) =>
      changeCollection(context, [applicationId, assetId], { contractMetadata, placeholder }, wait),
    freeze: (applicationId, assetId, wait) =>
      changeCollection(context, [applicationId, assetId], { frozen: true }, wait),
    served,
    async servedVault({ chainId, assetType, mintingBlob }) {
      const of = context.ledger.tenants.assetsByType
        .records(`${chainId} ${assetType}`, null)
        .find(({ removed }) => !removed);
      if (of === undefined) throw new MintmarkError("asset_not_found");
      const tokenId = tokenIdOf(of.standard, of.mintingBlobScheme, mintingBlob);
      if (tokenId === null) {
        const { json, final } = await servedContract(of.assetId);
        const { decimals, quantum } = of;
        return {
          json: JSON.stringify({ ...JSON.parse(json), decimals, quantum: `${quantum}` }),
          final,
        };
      }
      return (
        (await orNull("metadata_not_found", () => served(of.assetId, tokenId))) ??
        servedContract(of.assetId)
      );
    },
    servedContract,
  };
}

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * A token and its new metadata, which is untrusted: a JSON object in the form of ERC-721 or
 * ERC-1155.
 */
export interface NewMetadata {
  readonly tokenId: bigint;
  readonly metadata: unknown;
}

/** A token's metadata as its application sees it. */
export interface TokenMetadata {
  readonly tokenId: bigint;
  readonly metadata: JsonObject;
  /** Whether it never changes again. */
  readonly frozen: boolean;
  /** Whether the asset's placeholder is served in its place. */
  readonly hidden: boolean;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
}

/** The metadata of a whole asset. */
export interface Collection {
  /** The contract's metadata in the form of ERC-7572; null for the asset's name and symbol only. */
  readonly contractMetadata: JsonObject | null;
  /** A placeholder. Removing it reveals the tokens. Null if there is none. */
  readonly placeholder: JsonObject | null;
  /** Whether no token's metadata can change, and no placeholder can be set. */
  readonly frozen: boolean;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
}

/** The changes of a collection; missing fields stay. */
export interface CollectionChanges {
  readonly contractMetadata?: unknown;
  readonly placeholder?: unknown;
}

/** Metadata for everybody. */
export interface ServedMetadata {
  readonly json: string;
  /** Whether it never changes again, so that it can be cached for ever. */
  readonly final: boolean;
}

/**
 * Wallets and marketplaces read this of tokens: JSON in the form of ERC-721, ERC-1155 and ERC-7572.
 * Only the application for which an asset is reserved can change its metadata; others get
 * `asset_shared`. Metadata is public as soon as it is set, unless a placeholder hides it, also
 * before its token is minted. It needs no mint.
 *
 * @example
 * await engine.metadata.set(applicationId, assetId, { tokenId: 1n, metadata: { name: "One", image:
 * "ipfs://…/1.png" } }); const { json } = await engine.metadata.served(assetId, 1n);
 */
export interface Metadata {
  /**
   * Sets one token's metadata, at most 8,192 bytes of JSON. Rejects with `metadata_frozen`,
   * `asset_shared`, `asset_not_found`, `validation_failed`.
   */
  set(applicationId: Uuid, assetId: Uuid, token: NewMetadata, wait?: WaitOptions): Promise<void>;
  /** Sets the metadata of at most 1,000 tokens, all or none. */
  setAll(
    applicationId: Uuid,
    assetId: Uuid,
    tokens: readonly NewMetadata[],
    wait?: WaitOptions,
  ): Promise<void>;
  /** Rejects with `metadata_not_found`. */
  get(applicationId: Uuid, assetId: Uuid, tokenId: bigint): Promise<TokenMetadata>;
  /**
   * Makes the metadata of at most 1,000 tokens final; no placeholder hides them from then on.
   * Rejects with `metadata_not_found` for a token without any, `metadata_hidden` while a
   * placeholder hides them.
   */
  freezeTokens(
    applicationId: Uuid,
    assetId: Uuid,
    tokenIds: readonly bigint[],
    wait?: WaitOptions,
  ): Promise<void>;
  /** The metadata of the asset itself. */
  getCollection(applicationId: Uuid, assetId: Uuid): Promise<Collection>;
  /**
   * Changes it. A placeholder hides all tokens that are not frozen; `placeholder: null` reveals
   * them.
   */
  changeCollection(
    applicationId: Uuid,
    assetId: Uuid,
    changes: CollectionChanges,
    wait?: WaitOptions,
  ): Promise<Collection>;
  /**
   * Makes the metadata of all tokens final, of tokens to come too. A placeholder can still be
   * removed.
   */
  freeze(applicationId: Uuid, assetId: Uuid, wait?: WaitOptions): Promise<Collection>;
  /**
   * A token's metadata for everybody: the placeholder while there is one. Rejects with
   * `metadata_not_found`.
   *
   * @param token - its id, or the id as the token's address ends with it: decimal digits, or for
   *   ERC-1155 64 hex digits
   */
  served(assetId: Uuid, token: bigint | string): Promise<ServedMetadata>;
  /**
   * The metadata of the token in a vault for everybody; the contract's where the token has none.
   * Rejects with `asset_not_found`.
   */
  servedVault(
    vault: Pick<VaultContent, "chainId" | "assetType" | "mintingBlob">,
  ): Promise<ServedMetadata>;
  /**
   * The contract's metadata for everybody, with the asset's name and symbol unless it has its own.
   */
  servedContract(assetId: Uuid): Promise<ServedMetadata>;
}
