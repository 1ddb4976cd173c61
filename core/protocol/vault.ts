import { argumentError, invalid } from "../errors.ts";
import { MAX_BATCH_VAULTS, type Mode, SERIES, type VaultId } from "../model.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";

/** Batch numbers are below 2^32. */
export const MAX_BATCH_NUMBER = 0xffff_ffff;

/** Top bit of the vault ids of rollup batches. */
export const ROLLUP_BIT = 1n << 63n;
/** Number of places of one mode: batch number and slot together are below it. */
const PLACES = 1n << 52n;
/** The bit of the ids of vaults that L1 has made. */
const MADE_BIT = 1n << 62n;
/** Makings have the numbers 1 to 2^42 - 1. */
const MAX_MAKING = (1n << 42n) - 1n;
/** Most vaults of one making. */
export const MAX_MAKING_VAULTS = 256;
/** The place of a batch. Determines its id. */
export interface BatchPlace {
  readonly mode: Mode;
  /** 0 to 2^32 - 1. */
  readonly batchNumber: number;
}

/** The place of a vault of a batch. */
export interface BatchVaultPlace extends BatchPlace {
  /** 0 to 2^20 - 1. */
  readonly slot: number;
}

/** The place of a vault that L1 has made, as one of the series `made`. */
export interface MadeVaultPlace {
  readonly mode: "made";
  /** The making, 1 to 2^42 - 1. */
  readonly batchNumber: number;
  /** 0 to 255. */
  readonly slot: number;
}

/** The place of a vault. Determines its id. */
export type VaultPlace = BatchVaultPlace | MadeVaultPlace;

/**
 * The id of a place: u64 `mode << 63 | batchNumber << 20 | slot`; for a made vault as {@link
 * packMadeVaultId}.
 *
 * @throws MintmarkError `validation_failed` when a part is out of its bounds
 *
 * @example
 * packVaultId({ mode: "validium", batchNumber: 12, slot: 3 }); // 12_582_915n
 */
export function packVaultId({ mode, batchNumber, slot }: VaultPlace): VaultId {
  const bit = SERIES.indexOf(mode);
  if (bit < 0) throw invalid(`mode must be one of ${SERIES.join(", ")}, got ${mode}`);
  if (mode === "made") return packMadeVaultId({ making: BigInt(batchNumber), slot });
  requireInteger("batchNumber", batchNumber, 0, MAX_BATCH_NUMBER);
  requireInteger("slot", slot, 0, MAX_BATCH_VAULTS - 1);
  return (BigInt(bit) << 63n) | BigInt(batchNumber * MAX_BATCH_VAULTS + slot);
}

/**
 * The place of a vault's id.
 *
 * @throws MintmarkError `validation_failed` when it is not a u64, or has unused bits set
 *
 * @example
 * const { mode, batchNumber, slot } = unpackVaultId(12_582_915n); // "validium", 12, 3
 */
export function unpackVaultId(vaultId: VaultId): VaultPlace {
  requireVaultId("vaultId", vaultId);
  if (isMadeVaultId(vaultId)) {
    const { making, slot } = unpackMadeVaultId(vaultId);
    return { mode: "made", batchNumber: Number(making), slot };
  }
  const within = Number(vaultId & (PLACES - 1n));
  return {
    mode: vaultId < ROLLUP_BIT ? "validium" : "zk-rollup",
    batchNumber: Math.floor(within / MAX_BATCH_VAULTS),
    slot: within % MAX_BATCH_VAULTS,
  };
}

/** {@link unpackVaultId} of a batch's vault. Throws `validation_failed` for a made one too. */
export function unpackBatchVaultId(vaultId: VaultId): BatchVaultPlace {
  const place = unpackVaultId(vaultId);
  if (place.mode === "made")
    throw argumentError("vaultId", "is of no batch: L1 has made the vault");
  return place;
}

/** The place of a vault that L1 has made. */
export interface MadePlace {
  /** 1 to 2^42 - 1. */
  readonly making: bigint;
  /** 0 to 255. */
  readonly slot: number;
}

/**
 * The id of a made vault: u64 `1 << 62 | making << 20 | slot`. A reorganisation of L1 can give the
 * number to another making, so an id is good only when its making is final.
 *
 * @throws MintmarkError `validation_failed` when a part is out of its bounds
 *
 * @example
 * packMadeVaultId({ making: 1n, slot: 0 }); // 4_611_686_018_428_436_480n
 */
export function packMadeVaultId({ making, slot }: MadePlace): VaultId {
  requireBigint("making", making, 1n, MAX_MAKING);
  requireInteger("slot", slot, 0, MAX_MAKING_VAULTS - 1);
  return MADE_BIT | (making << 20n) | BigInt(slot);
}

/**
 * The place of a made vault's id.
 *
 * @throws MintmarkError `validation_failed` when it is not {@link isMadeVaultId}
 *
 * @example
 * unpackMadeVaultId(4_611_686_018_428_436_480n); // { making: 1n, slot: 0 }
 */
export function unpackMadeVaultId(vaultId: VaultId): MadePlace {
  if (!isMadeVaultId(vaultId)) throw argumentError("vaultId", "is none that L1 makes");
  return { making: (vaultId & ~MADE_BIT) >> 20n, slot: Number(vaultId & 0xf_ffffn) };
}

/**
 * Whether the id is one of L1's makings. L1 takes records that transfer any slot of a making, so a
 * slot that no making has counts too.
 *
 * @example
 * const made = vaultIds.filter(isMadeVaultId);
 */
export function isMadeVaultId(vaultId: VaultId): boolean {
  return vaultId >> 62n === 1n && (vaultId & ~MADE_BIT) >> 20n > 0n;
}

/** Whether a batch or L1 itself can have a vault of this id. */
export function isVaultId(vaultId: VaultId): boolean {
  const place = vaultId & ~ROLLUP_BIT;
  return vaultId >= 0n && vaultId <= MAX_UINT64 && (place < PLACES || isMadeVaultId(vaultId));
}

/** Throws `validation_failed` unless {@link isVaultId}, and calls the id by this name. */
export function requireVaultId(name: string, vaultId: VaultId): void {
  requireBigint(name, vaultId, 0n, MAX_UINT64);
  if (!isVaultId(vaultId))
    throw argumentError(name, "has unused bits set, so no vault has this id");
}

/** Where L1 keeps the header of a vault's batch or making: its `Mode`, and a number. */
export function headerPlaceOf(vaultId: VaultId): {
  readonly mode: 0 | 1;
  readonly batchNumber: bigint;
} {
  return { mode: vaultId < ROLLUP_BIT ? 0 : 1, batchNumber: (vaultId & (ROLLUP_BIT - 1n)) >> 20n };
}
