import type { VaultContent } from "../ports.ts";

/**
 * The batch data format, version 1 (docs/protocol.md 4): the vaults of a batch in slot order, as calldata and as what a committee stores.
 *
 * ```
 * version:u8  assetCount:u16 (chainId:u64 assetType:u256)*  ownerCount:u16 (address:20)*  run+
 *
 * run:  0xffff length:u24                                                           void slots
 *       assetIndex:u16 form:u8 length:u24 [ownerIndex:u16] [blobLength:u8] [first]  record*length
 * form: amountForm(4) blobForm(2) ownerForm(2)
 * ```
 */
export const BATCH_DATA_VERSION = 0x01;
/** Stands where a run has its asset index, so an asset index is below it. */
export const VOID_RUN = 0xffff;
/** Most owners in the dictionary: what its count can say. */
export const MAX_DICTIONARY = 0xffff;
/** Most characters of a blob that is packed into nibbles: digits, or others of 0x30 to 0x3f. */
export const MAX_PACKED_DIGITS = 32;

export const OwnerForm = { inline: 0, index8: 1, index16: 2, run: 3 } as const;
export const BlobForm = { empty: 0, raw: 1, packed: 2, consecutive: 3 } as const;
/** Amount forms above 0 are widths in bytes. */
export const MAX_AMOUNT_FORM = 8;

/** Bytes of a batch without assets, owners and runs. */
export const BATCH_DATA_BASE_BYTES = 5;
/** Bytes of one entry of the asset dictionary. */
export const ASSET_ENTRY_BYTES = 40;
/** Bytes of one entry of the owner dictionary, and of an owner that stands in its record. */
export const OWNER_BYTES = 20;
/** Bytes of a run's asset index, form and length. */
export const RUN_HEADER_BYTES = 6;
/** Bytes of a run of void slots. */
export const VOID_RUN_BYTES = 5;

/** What batch data says of one slot: a vault without its place, which follows from mode, batch number and slot. */
export type VaultEntry = Omit<VaultContent, "vaultId">;

/** Bytes of an amount in its narrowest form; 0 for an amount of 1, which takes none. */
export function amountWidth(amount: bigint): number {
  if (amount === 1n) return 0;
  return amount <= 0xffff_ffffn ? numberWidth(Number(amount)) : 4 + numberWidth(Number(amount >> 32n));
}

function numberWidth(value: number): number {
  return Math.ceil((32 - Math.clz32(value)) / 8);
}

/**
 * Most bytes that one more vault can add to the encoded data of a batch, whatever its neighbours are; an asset that is new to the
 * batch adds {@link ASSET_ENTRY_BYTES} to it. Sums of this, on {@link BATCH_DATA_BASE_BYTES}, decide when a batch is full.
 */
export function vaultBytesBound(amountWidth: number, blobBytes: number): number {
  return RUN_HEADER_BYTES + OWNER_BYTES + amountWidth + (blobBytes === 0 ? 0 : 2 + blobBytes);
}

/** Why batch data is refused. The reasons are stable: committee members and the engine show them. */
export const BATCH_DATA_REASONS = {
  version_unknown: "The first byte is not a known version.",
  truncated: "The data ends inside of what it announces.",
  no_run: "The batch has no run, so no slot.",
  run_empty: "A run has length 0.",
  too_many_slots: "The batch has more slots than is allowed.",
  too_many_assets: "The batch has more than 255 assets.",
  asset_order: "The assets are not strictly ascending by chain and asset type.",
  asset_unused: "No vault is of an asset that the batch names.",
  asset_index: "An asset index is outside of the asset dictionary.",
  owner_index: "An owner index is outside of the owner dictionary.",
  amount_form: "An amount form is above 8.",
  amount_out_of_range: "An amount is 0 or above 2^63 - 1.",
  blob_empty: "A raw blob that carries its own length has length 0.",
  digits_out_of_range: "A number of packed digits is not 1 to 32.",
  digit_invalid: "A digit of a range's first number is above 9, or the nibble before an odd number of digits is not 0.",
  leading_zero: "The first number of a range begins with 0.",
  range_overflow: "A consecutive run goes past the last number of its digits.",
  asset_unregistered: "An asset is not registered.",
  blob_form: "A blob form does not fit the asset's standard: empty for ERC-20 and for nothing else.",
  erc721_amount: "An ERC-721 run has an amount form other than 0.",
} as const;
/** Why data is no batch. */
export type BatchDataReason = keyof typeof BATCH_DATA_REASONS;

/** Batch data that is not of the grammar, or that L1 and the committee would refuse. */
export class BatchDataError extends Error {
  override readonly name = "BatchDataError";
  readonly reason: BatchDataReason;
  /** Byte offset of what is wrong. */
  readonly offset: number;

  constructor(reason: BatchDataReason, offset: number) {
    super(`${BATCH_DATA_REASONS[reason]} (${reason} at byte ${offset})`);
    this.reason = reason;
    this.offset = offset;
  }
}
