import type { Address, Hash, MintingBlobScheme, Mode, VaultId } from "../model.ts";
import type { BatchHeader, CommittedBlobs } from "../ports.ts";
import type { VaultPlace } from "../protocol/vault.ts";

/**
 * The records of an archive. Keys are text, so a dump of the store is readable. Numbers are hex of
 * fixed length, so keys sort.
 *
 * ```
 * meta                                   JSON: format, version, chain id, contract
 * position                               JSON: the last block and event applied, and the block's
 *                                        hash
 * commit/<mode>/<number>                 JSON: a committed batch
 * data/<data hash>                       batch data, as it was encoded
 * missing/<mode>/<number>                committed batches without data
 * indexed/<mode>/<number>                the data hash of a batch in the vault index, and its
 *                                        unpaid assets
 * unpayable/<vault id>                   why L1 never pays a vault of a registered asset
 * token/<chain>/<asset type>/<minting blob scheme>/<token id>
 *                                        ERC-721: the vault that holds it; ERC-1155: the minting
 *                                        blob bound to the id
 * bound/<chain>/<asset type>/<minting blob scheme>/<token id>/<mode>/<number>
 *                                        a batch's minting blob for an ERC-1155 id
 * owner/<address>/<vault id>             empty
 * minted/<chain>/<token>                 decimal: base units of an ERC-20 in all valid vaults
 * withdrawn/<vault id>                   decimal: units that L1 has paid
 * voided/<vault id>                      decimal: commits of L1 before it voided the mint as a
 *                                        duplicate
 * duplicate/<chain>/<asset type>/<minting blob scheme>/<vault id>
 *                                        the earlier vault of the same ERC-721 token
 * signed/<number>                        JSON: a committee member's signed validium batch
 * transferable/<chain>/<asset type>      empty: L1 has registered the asset as transferable
 * session/<owner>/<key>                  JSON: a session, as L1 keeps it
 * approved/<owner>/<digest>              JSON: when the owner approved and cancelled a `Transfers`
 *                                        message, in seconds
 * spent/<vault id>                       JSON: the committed record that spends the vault
 * output/<vault id>                      JSON: a vault that a valid record made
 * invalid/<vault id>                     JSON: a record that moves nothing, by its first output
 * making/<number>                        JSON: vaults that L1 made by itself
 * forgetting                             empty: a forgetting that was interrupted
 * unjudged/zk-rollup/<number>            a batch with a record that waits for the data of the vault
 *                                        that it spends
 * ```
 */
export const META = "meta";
export const POSITION = "position";
/** Present while what L1 told is being forgotten. */
export const FORGETTING = "forgetting";
/**
 * Kinds of records that follow from what L1 told. Others stay: data is named by its hash, and what
 * a member or an issuer has signed stays signed.
 */
export const TOLD_BY_L1 = [
  "approved",
  "bound",
  "commit",
  "duplicate",
  "indexed",
  "invalid",
  "making",
  "minted",
  "missing",
  "output",
  "owner",
  "session",
  "spent",
  "token",
  "transferable",
  "unjudged",
  "unpayable",
  "voided",
  "withdrawn",
] as const;

export const TEXT = { keyEncoding: "utf8", valueEncoding: "utf8" } as const;
export const BYTES = { keyEncoding: "utf8", valueEncoding: "view" } as const;
/**
 * For writes that must survive a crash of the machine. classic-level has `sync`; other stores
 * ignore it.
 */
export const DURABLE = { sync: true } as object;

/** Numbers are hex of fixed length. */
const numberKey = (batchNumber: number): string => batchNumber.toString(16).padStart(8, "0");
const vaultIdKey = (vaultId: VaultId): string => vaultId.toString(16).padStart(16, "0");

type BatchRecordKind = "commit" | "missing" | "indexed" | "unjudged" | "consent" | "unsettled";
export const batchKey = (kind: BatchRecordKind, mode: Mode, batchNumber: number) =>
  `${kind}/${mode}/${numberKey(batchNumber)}`;
export const batchNumberOf = (key: string): number =>
  Number.parseInt(key.slice(key.lastIndexOf("/") + 1), 16);
export const signedKey = (batchNumber: number) => `signed/${numberKey(batchNumber)}`;
export const makingKey = (making: number) => `making/${numberKey(making)}`;
export const dataKey = (dataHash: Hash) => `data/${dataHash}`;

export const assetKey = (chainId: bigint, assetType: Hash) => `${chainId}/${assetType}`;
/** An asset, and one way to read its blobs: the `reading` of the next keys. */
export const readingKey = (chainId: bigint, assetType: Hash, scheme: MintingBlobScheme) =>
  `${assetKey(chainId, assetType)}/${scheme}`;
export const tokenKey = (reading: string, tokenId: bigint) =>
  `token/${reading}/${tokenId.toString(16)}`;
export const boundPrefix = (reading: string, tokenId: bigint) =>
  `bound/${reading}/${tokenId.toString(16)}/`;
export const boundKey = (reading: string, tokenId: bigint, { mode, batchNumber }: VaultPlace) =>
  `${boundPrefix(reading, tokenId)}${mode}/${numberKey(batchNumber)}`;
export const duplicateKey = (reading: string, vaultId: VaultId) =>
  `duplicate/${reading}/${vaultIdKey(vaultId)}`;
export const mintedKey = (chainId: bigint, token: Address) => `minted/${chainId}/${token}`;

export const ownerKey = (owner: Address, vaultId: VaultId) =>
  `owner/${owner}/${vaultIdKey(vaultId)}`;
export const transferableKey = (chainId: bigint, assetType: Hash) =>
  `transferable/${assetKey(chainId, assetType)}`;
export const sessionKey = (owner: Address, key: Address) => `session/${owner}/${key}`;
export const approvedKey = (owner: Address, digest: Hash) => `approved/${owner}/${digest}`;

type VaultRecordKind = "withdrawn" | "voided" | "unpayable" | "spent" | "output" | "invalid";
export const vaultKey = (kind: VaultRecordKind, vaultId: VaultId) =>
  `${kind}/${vaultIdKey(vaultId)}`;
export const vaultIdOf = (key: string): VaultId =>
  BigInt(`0x${key.slice(key.lastIndexOf("/") + 1)}`);

/** The keys that begin with a prefix, which ends in a slash. */
export function within(prefix: string) {
  return { ...TEXT, gte: prefix, lt: `${prefix.slice(0, -1)}0` } as const;
}

/** Fields of the records in JSON that are decimal strings there. */
const BIGINTS: ReadonlySet<string> = new Set([
  ...[
    "chainId",
    "block",
    "blockNumber",
    "sequence",
    "committedAt",
    "vaultId",
    "outId",
    "origin",
    "spent",
    "amount",
  ],
  ...["authorizedAt", "until", "revokedAt", "limit", "approvedAt", "cancelledAt"],
]);

export function toText(record: object): string {
  return JSON.stringify(record, (_, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
}

/** The inverse of {@link toText}; null for a missing record. */
export function fromText<T>(text: string | undefined): T | null {
  if (text === undefined) return null;
  return JSON.parse(text, (key, value) => (BIGINTS.has(key) ? BigInt(value) : value));
}

/** A batch as committed on L1. */
export interface Commit extends BatchHeader {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly dataHash: Hash;
  readonly txHash: Hash;
  readonly blockNumber: bigint;
  /** Places in the batch's manifest of the assets that L1 has left out. */
  readonly leftOut: readonly number[];
  /**
   * Places in the data's list of assets of those that the manifest lacks; absent when it has all.
   */
  readonly unnamed?: readonly number[];
  /** Its blobs, when L1 has the data in blobs. */
  readonly blobs?: CommittedBlobs;
}

/** The progress of reading L1: everything up to this event is applied. */
export interface Position {
  readonly block: bigint;
  /** -1 before the first event of the block; Infinity, stored as null, after the last. */
  readonly logIndex: number | null;
  /** Hash of the block once all its events are applied. */
  readonly hash: Hash | null;
}

/** The first block with events that may not be applied. */
export function nextBlock({ block, hash }: Position): bigint {
  return hash === null ? block : block + 1n;
}

/** Leaves out mode and number, which are in the record's key. */
export function commitToText({ mode: _mode, batchNumber: _number, ...rest }: Commit): string {
  return toText(rest);
}

export function commitFromText(
  mode: Mode,
  batchNumber: number,
  text: string | undefined,
): Commit | null {
  const stored = fromText<Omit<Commit, "mode" | "batchNumber">>(text);
  return stored && { mode, batchNumber, ...stored };
}
