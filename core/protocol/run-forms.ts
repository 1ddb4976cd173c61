import { NOT_PACKABLE } from "./batch-columns.ts";
import { BlobForm, MAX_AMOUNT_FORM, OWNER_BYTES, OwnerForm } from "./batch-data.ts";

/** The blob forms. Raw blobs have two: one length for the run, or a length for each blob. */
export const BlobKind = { ...BlobForm, rawOfOneLength: 4 } as const;

/** The dictionary class of an owner, in the order of `BatchColumns.owners`. */
export const OwnerClass = {
  /** Among the first 256 of the dictionary. */
  near: 0,
  /** Later in the dictionary. */
  far: 1,
  /** Occurs once. A dictionary entry costs as much as the owner itself, but can still be cheaper than a new run. */
  once: 2,
  /** The dictionary is full. */
  inlineOnly: 3,
} as const;

export const NEAR_OWNERS = 256;
/** More than the cost of any batch. Adding a record to it does not overflow a 32-bit integer. */
export const IMPOSSIBLE = 1 << 29;

/** The kinds of blobs in a segment, a bit each. */
export const Seen = { consecutive: 1, packable: 2, filled: 4, empty: 8 } as const;

/** The blob kinds worth trying, by the sum of {@link Seen}. */
export const BLOB_KINDS: readonly (readonly number[])[] = Array.from({ length: 16 }, (_, seen) => [
  ...(seen & Seen.consecutive ? [BlobKind.consecutive] : []),
  ...(seen & Seen.packable ? [BlobKind.packed] : []),
  ...(seen & Seen.filled ? [BlobKind.rawOfOneLength, BlobKind.raw] : []),
  ...(seen & Seen.empty ? [BlobKind.empty] : []),
]);

/** Amount widths in ascending order, by the bits of the widths seen. */
export const WIDTHS: readonly (readonly number[])[] = Array.from({ length: 1 << (MAX_AMOUNT_FORM + 1) }, (_, seen) =>
  Array.from({ length: MAX_AMOUNT_FORM + 1 }, (__, width) => width).filter((width) => seen & (1 << width)),
);

/** Most combinations of forms in a segment. */
export const MAX_STATES = Object.keys(OwnerForm).length * Object.keys(BlobKind).length * (MAX_AMOUNT_FORM + 1);

/** An owner that occurs once pays for its dictionary entry at its only use. */
export function ownerCosts(isSmall: boolean): readonly Int32Array[] {
  const inline = OWNER_BYTES;
  const costs: readonly (readonly number[])[] = [
    [inline, 1, 2, 0],
    [inline, IMPOSSIBLE, 2, 0],
    [inline, isSmall ? OWNER_BYTES + 1 : IMPOSSIBLE, OWNER_BYTES + 2, IMPOSSIBLE],
    [inline, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE],
  ];
  return costs.map((byForm) => Int32Array.from(byForm));
}

/** Bytes that the blob kind adds to a run's header. */
export function blobHeader(kind: number, digits: number): number {
  if (kind === BlobKind.empty) return 0;
  return kind === BlobKind.consecutive ? 1 + ((digits + 1) >> 1) : 1;
}

/** Bytes of one slot's blob. */
export function blobCost(kind: number, digits: number, bytes: number, isDecimal: boolean): number {
  if (kind === BlobKind.empty) return bytes === 0 ? 0 : IMPOSSIBLE;
  if (bytes === 0) return IMPOSSIBLE;
  if (kind === BlobKind.raw) return 1 + bytes;
  if (kind === BlobKind.rawOfOneLength) return bytes;
  if (kind === BlobKind.consecutive) return isDecimal ? 0 : IMPOSSIBLE;
  return digits === NOT_PACKABLE ? IMPOSSIBLE : (digits + 1) >> 1;
}

/** Whether a slot can continue a run of the kind. */
export function blobContinues(kind: number, sameLength: boolean, following: boolean): boolean {
  if (kind === BlobKind.consecutive) return following;
  return sameLength || kind === BlobKind.raw || kind === BlobKind.empty;
}
