import { argumentError, MintmarkError } from "../errors.ts";
import { MAX_BATCH_VAULTS, MODES, type Mode, type VaultId } from "../model.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";

/** Batch numbers are below 2^32. */
export const MAX_BATCH_NUMBER = 0xffff_ffff;

/** Top bit of the vault ids of rollup batches. */
const ROLLUP_BIT = 1n << 63n;
/** Number of places of one mode: batch number and slot together are below it. */
const PLACES = 1n << 52n;
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
  requireVaultId("vaultId", vaultId);
  const within = Number(vaultId & (PLACES - 1n));
  return {
    mode: vaultId < ROLLUP_BIT ? "validium" : "zk-rollup",
    batchNumber: Math.floor(within / MAX_BATCH_VAULTS),
    slot: within % MAX_BATCH_VAULTS,
  };
}

/** Throws `validation_failed` as {@link unpackVaultId} does, and calls the id by this name. */
export function requireVaultId(name: string, vaultId: VaultId): void {
  requireBigint(name, vaultId, 0n, MAX_UINT64);
  if ((vaultId >= PLACES && vaultId < ROLLUP_BIT) || vaultId >= ROLLUP_BIT + PLACES)
    throw argumentError(name, "has unused bits set, so no vault has this id");
}
