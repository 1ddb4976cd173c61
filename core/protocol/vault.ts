import { MintmarkError } from "../errors.ts";
import { MAX_AMOUNT, MAX_BATCH_VAULTS, MODES, type Mode, type VaultId } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { MAX_BLOB_BYTES } from "./blob.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { HASH_BYTES, hashAt, hashMessages, keccak256, writeHex } from "./hex.ts";

/** Batch numbers are below 2^32. */
export const MAX_BATCH_NUMBER = 0xffff_ffff;

/**
 * Bytes of a leaf's preimage before its blob: prefix 1, vault id 8, chain id 8, owner 20, asset
 * type 32, amount 8.
 */
export const LEAF_HEADER_BYTES = 77;
/** Most bytes of a leaf's preimage. */
export const MAX_LEAF_BYTES = LEAF_HEADER_BYTES + MAX_BLOB_BYTES;

const LEAF_PREFIX = 0x00;
/** Top bit of the vault ids of rollup batches. */
const ROLLUP_BIT = 1n << 63n;
/** Number of places of one mode: batch number and slot together are below it. */
const PLACES = 1n << 52n;
/** Leaves packed and hashed at once: few enough to stay in the cache. */
const LEAVES_PER_CHUNK = 1024;

/** The place of a vault. Determines its id. */
export interface VaultPlace {
  readonly mode: Mode;
  /** 0 to 2^32 - 1. */
  readonly batchNumber: number;
  /** 0 to 2^20 - 1. */
  readonly slot: number;
}

/**
 * The id of a place: u64 `mode << 63 | batchNumber << 20 | slot`.
 *
 * @throws MintmarkError `validation_failed` when a part is out of its bounds
 *
 * @example
 * packVaultId({ mode: "validium", batchNumber: 12, slot: 3 }); // 12_582_915n
 */
export function packVaultId({ mode, batchNumber, slot }: VaultPlace): VaultId {
  const bit = MODES.indexOf(mode);
  if (bit < 0)
    throw new MintmarkError(
      "validation_failed",
      `mode must be one of ${MODES.join(", ")}, got ${mode}`,
    );
  requireInteger("batchNumber", batchNumber, 0, MAX_BATCH_NUMBER);
  requireInteger("slot", slot, 0, MAX_BATCH_VAULTS - 1);
  return (BigInt(bit) << 63n) | BigInt(batchNumber * MAX_BATCH_VAULTS + slot);
}

/**
 * The place of a vault id.
 *
 * @throws MintmarkError `validation_failed` when it is not a u64, or sets one of the unused bits 52
 *   to 62
 *
 * @example
 * const { mode, batchNumber, slot } = unpackVaultId(12_582_915n); // "validium", 12, 3
 */
export function unpackVaultId(vaultId: VaultId): VaultPlace {
  requireVaultId(vaultId);
  const within = Number(vaultId & (PLACES - 1n));
  return {
    mode: vaultId < ROLLUP_BIT ? "validium" : "zk-rollup",
    batchNumber: Math.floor(within / MAX_BATCH_VAULTS),
    slot: within % MAX_BATCH_VAULTS,
  };
}

/**
 * Writes the preimage of a vault's leaf: `0x00 ‖ vaultId(8) ‖ chainId(8) ‖ owner(20) ‖
 * assetType(32) ‖ amount(8) ‖ blob`, integers big-endian.
 *
 * @param into - has space for {@link MAX_LEAF_BYTES} from `offset`
 * @returns the offset after the preimage
 * @throws MintmarkError `validation_failed`, `amount_out_of_range` or `blob_invalid` when the
 *   content is out of bounds
 */
export function writeLeafPreimage(vault: VaultContent, into: Uint8Array, offset: number): number {
  requireVaultId(vault.vaultId);
  requireBigint("chainId", vault.chainId, 0n, MAX_UINT64);
  const { amount, blob } = vault;
  if (typeof amount !== "bigint" || amount < 1n || amount > MAX_AMOUNT)
    throw new MintmarkError("amount_out_of_range");
  const view = new DataView(into.buffer, into.byteOffset + offset, LEAF_HEADER_BYTES);
  view.setUint8(0, LEAF_PREFIX);
  view.setBigUint64(1, vault.vaultId);
  view.setBigUint64(9, vault.chainId);
  writeHex(vault.owner, 20, into, offset + 17);
  writeHex(vault.assetType, 32, into, offset + 37);
  view.setBigUint64(69, amount);
  const blobBytes = (blob.length - 2) / 2;
  if (blobBytes > MAX_BLOB_BYTES) throw new MintmarkError("blob_invalid");
  return writeHex(blob, blobBytes, into, offset + LEAF_HEADER_BYTES);
}

/**
 * The leaf of one vault; 32 bytes. Throws as {@link writeLeafPreimage} does.
 *
 * @example
 * bytesToHex(vaultLeaf(proof.vault)) === proof.leaf; // true
 */
export function vaultLeaf(vault: VaultContent): Uint8Array {
  const preimage = new Uint8Array(MAX_LEAF_BYTES);
  return keccak256(preimage.subarray(0, writeLeafPreimage(vault, preimage, 0)));
}

/**
 * The leaves of a batch, 32 bytes a slot, packed; a void slot (null) is a zero leaf. Throws as
 * {@link writeLeafPreimage} does.
 *
 * @example
 * const tree = new BatchTree(vaultLeaves(vaults));
 */
export function vaultLeaves(vaults: readonly (VaultContent | null)[]): Uint8Array {
  const leaves = new Uint8Array(vaults.length * HASH_BYTES);
  const chunk = Math.min(LEAVES_PER_CHUNK, vaults.length);
  const preimages = new Uint8Array(chunk * MAX_LEAF_BYTES);
  const ends = new Uint32Array(chunk);
  for (let start = 0; start < vaults.length; start += chunk) {
    const count = Math.min(chunk, vaults.length - start);
    let end = 0;
    for (let i = 0; i < count; i++) {
      const vault = vaults[start + i] ?? null;
      if (vault !== null) end = writeLeafPreimage(vault, preimages, end);
      ends[i] = end;
    }
    const digests = leaves.subarray(start * HASH_BYTES, (start + count) * HASH_BYTES);
    hashMessages(preimages.subarray(0, end), ends.subarray(0, count), digests);
    for (let i = 0; i < count; i++)
      if ((vaults[start + i] ?? null) === null) hashAt(digests, i).fill(0);
  }
  return leaves;
}

function requireVaultId(vaultId: VaultId): void {
  requireBigint("vaultId", vaultId, 0n, MAX_UINT64);
  if ((vaultId >= PLACES && vaultId < ROLLUP_BIT) || vaultId >= ROLLUP_BIT + PLACES) {
    throw new MintmarkError("validation_failed", `vault id ${vaultId} has unused bits set`);
  }
}
