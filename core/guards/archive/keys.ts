import type { Address, BlobScheme, Hash, Mode, VaultId } from "../../model.ts";
import type { VaultPlace } from "../../protocol/vault.ts";

/**
 * The records of an archive. Keys are text, so a dump of the store is readable. Numbers are hex of fixed length, so
 * keys sort.
 *
 * ```
 * meta                                   JSON: format, version, chain id, contract
 * position                               JSON: the last block and event applied, and the block's hash
 * commit/<mode>/<number>                 JSON: a committed batch
 * data/<data hash>                       batch data, as it was encoded
 * missing/<mode>/<number>                committed batches without data
 * indexed/<mode>/<number>                the data hash of a batch in the vault index, and its unpaid assets
 * unpayable/<vault id>                   why L1 never pays a vault of a registered asset
 * token/<chain>/<asset type>/<blob scheme>/<token id>
 *                                        ERC-721: the vault that holds it; ERC-1155: the blob bound to the id
 * bound/<chain>/<asset type>/<blob scheme>/<token id>/<mode>/<number>
 *                                        a batch's blob for an ERC-1155 id
 * owner/<address>/<vault id>             empty
 * minted/<chain>/<token>                 decimal: base units of an ERC-20 in all valid vaults
 * withdrawn/<vault id>                   decimal: units
 * duplicate/<chain>/<asset type>/<blob scheme>/<vault id>
 *                                        the earlier vault of the same ERC-721 token
 * signed/<number>                        JSON: a committee member's signed validium batch
 * transferable/<chain>/<asset type>      empty: L1 has registered the asset as transferable
 * session/<owner>/<key>                  JSON: a session, as L1 keeps it
 * approved/<owner>/<digest>              JSON: when the owner approved and cancelled a `Transfers` message, in seconds
 * spent/<vault id>                       JSON: the committed record that spends the vault
 * output/<vault id>                      JSON: a vault that a valid record made
 * invalid/<vault id>                     JSON: a record that moves nothing, by its first output
 * unjudged/zk-rollup/<number>            a batch with a record that waits for the data of the vault that it spends
 * ```
 */
export const META = "meta";
export const POSITION = "position";

export const TEXT = { keyEncoding: "utf8", valueEncoding: "utf8" } as const;
export const BYTES = { keyEncoding: "utf8", valueEncoding: "view" } as const;
/** For writes that must survive a crash of the machine. classic-level has `sync`; other stores ignore it. */
export const DURABLE = { sync: true } as object;

type BatchRecordKind = "commit" | "missing" | "indexed" | "unjudged";

export function batchKey(kind: BatchRecordKind, mode: Mode, batchNumber: number): string {
  return `${kind}/${mode}/${numberKey(batchNumber)}`;
}

export function batchNumberOf(key: string): number {
  return Number.parseInt(key.slice(key.lastIndexOf("/") + 1), 16);
}

export function signedKey(batchNumber: number): string {
  return `signed/${numberKey(batchNumber)}`;
}

export function dataKey(dataHash: Hash): string {
  return `data/${dataHash}`;
}

export function assetKey(chainId: bigint, assetType: Hash): string {
  return `${chainId}/${assetType}`;
}

/** An asset, and one way to read its blobs. */
export function readingKey(chainId: bigint, assetType: Hash, scheme: BlobScheme): string {
  return `${assetKey(chainId, assetType)}/${scheme}`;
}

/** @param reading - a {@link readingKey} */
export function tokenKey(reading: string, tokenId: bigint): string {
  return `token/${reading}/${tokenId.toString(16)}`;
}

/** @param reading - a {@link readingKey} */
export function boundPrefix(reading: string, tokenId: bigint): string {
  return `bound/${reading}/${tokenId.toString(16)}/`;
}

/** @param reading - a {@link readingKey} */
export function boundKey(reading: string, tokenId: bigint, { mode, batchNumber }: VaultPlace): string {
  return `${boundPrefix(reading, tokenId)}${mode}/${numberKey(batchNumber)}`;
}

/** @param reading - a {@link readingKey} */
export function duplicateKey(reading: string, vaultId: VaultId): string {
  return `duplicate/${reading}/${vaultIdKey(vaultId)}`;
}

export function mintedKey(chainId: bigint, token: Address): string {
  return `minted/${chainId}/${token}`;
}

export function ownerKey(owner: Address, vaultId: VaultId): string {
  return `owner/${owner}/${vaultIdKey(vaultId)}`;
}

export function withdrawnKey(vaultId: VaultId): string {
  return `withdrawn/${vaultIdKey(vaultId)}`;
}

export function unpayableKey(vaultId: VaultId): string {
  return `unpayable/${vaultIdKey(vaultId)}`;
}

export function transferableKey(chainId: bigint, assetType: Hash): string {
  return `transferable/${assetKey(chainId, assetType)}`;
}

export function sessionKey(owner: Address, key: Address): string {
  return `session/${owner}/${key}`;
}

export function approvedKey(owner: Address, digest: Hash): string {
  return `approved/${owner}/${digest}`;
}

export function transferKey(kind: "spent" | "output" | "invalid", vaultId: VaultId): string {
  return `${kind}/${vaultIdKey(vaultId)}`;
}

export function vaultIdOf(key: string): VaultId {
  return BigInt(`0x${key.slice(key.lastIndexOf("/") + 1)}`);
}

/** The keys that begin with a prefix, which ends in a slash. */
export function within(prefix: string) {
  return { ...TEXT, gte: prefix, lt: `${prefix.slice(0, -1)}0` } as const;
}

export function numberKey(batchNumber: number): string {
  return batchNumber.toString(16).padStart(8, "0");
}

function vaultIdKey(vaultId: VaultId): string {
  return vaultId.toString(16).padStart(16, "0");
}
