import type { ByteReader, ByteWriter } from "./binary.ts";
import { uuidBytes, uuidText } from "./layout.ts";
import { type Hex, MODES, type Mode, type Uuid, type VaultId } from "./model.ts";
import { packVaultId } from "./vault.ts";

/** Where a mode's open batch stood before the request: the number of the batch and its next free slot. */
export interface OpenPlace {
  readonly batchNumber: number;
  readonly slot: number;
}

/** One entry of a request and where it went. */
export interface PlacedMint {
  readonly assetIndex: number;
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly slot: number;
  /** What the vault held before this entry; 0 for a new vault. */
  readonly amountBefore: bigint;
  /** ms since the vault was made; 0 for a new vault. */
  readonly age: number;
  readonly amount: bigint;
  readonly blob: Hex;
}

/** A whole accepted mint request: one journal entry, and the only record of its transactions. */
export interface MintEntry {
  readonly kind: "mint";
  readonly applicationIndex: number;
  readonly keyIndex: number;
  /** The application's sequence number of the first transaction; the others follow one by one. */
  readonly firstSequence: number;
  readonly mintId: Uuid;
  /** SHA-256 of the idempotency key and of the request, when the caller sent a key. */
  readonly idempotency: { readonly key: Hex; readonly digest: Hex } | null;
  readonly openPlaces: Readonly<Record<Mode, OpenPlace>>;
  /** Users in request order, each with the number of its entries in `mints`. */
  readonly users: readonly { readonly userIndex: number; readonly count: number }[];
  readonly mints: readonly PlacedMint[];
}

export function vaultIdOf(mint: PlacedMint): VaultId {
  return packVaultId({ mode: mint.mode, batchNumber: mint.batchNumber, slot: mint.slot });
}

const MODE_BIT = 1;
const NEXT_BATCH_BIT = 2;
const EXISTING_BIT = 4;
const AMOUNT_BIT = 8;

/**
 * The content of a mint's journal entry. Slots of new vaults follow one another, so only vaults that existed are named:
 *
 * ```
 * mint       = applicationIndex keyIndex firstSequence mintId:16 open open idempotent:1 [ key:32 digest:32 ]
 *              userCount userCount*( userIndex count ) 1*entry
 * open       = batchNumber slot                       ; validium, then zk-rollup
 * entry      = assetIndex flags:1 [ slot amountBefore age ] [ amount ] blobLength:1 blob
 * flags      = 1 mode · 2 the mode's next batch starts here · 4 an existing vault · 8 amount follows, else 1
 * ```
 *
 * Numbers without a size are varints.
 */
export function encodeMint(to: ByteWriter, entry: MintEntry): void {
  to.varint(entry.applicationIndex);
  to.varint(entry.keyIndex);
  to.varint(entry.firstSequence);
  to.bytes(uuidBytes(entry.mintId));
  const batches = { validium: 0, "zk-rollup": 0 };
  for (const mode of MODES) {
    batches[mode] = entry.openPlaces[mode].batchNumber;
    to.varint(entry.openPlaces[mode].batchNumber);
    to.varint(entry.openPlaces[mode].slot);
  }
  to.u8(entry.idempotency === null ? 0 : 1);
  if (entry.idempotency !== null) {
    to.hex(entry.idempotency.key);
    to.hex(entry.idempotency.digest);
  }
  to.varint(entry.users.length);
  for (const { userIndex, count } of entry.users) {
    to.varint(userIndex);
    to.varint(count);
  }
  for (const mint of entry.mints) {
    const existing = mint.amountBefore !== 0n;
    const nextBatch = mint.batchNumber !== batches[mint.mode];
    batches[mint.mode] = mint.batchNumber;
    to.varint(mint.assetIndex);
    to.u8(
      (mint.mode === "zk-rollup" ? MODE_BIT : 0) |
        (nextBatch ? NEXT_BATCH_BIT : 0) |
        (existing ? EXISTING_BIT : 0) |
        (mint.amount === 1n ? 0 : AMOUNT_BIT),
    );
    if (existing) {
      to.varint(mint.slot);
      to.bigVarint(mint.amountBefore);
      to.varint(mint.age);
    }
    if (mint.amount !== 1n) to.bigVarint(mint.amount);
    to.u8((mint.blob.length - 2) / 2);
    to.hex(mint.blob);
  }
}

/** The inverse of {@link encodeMint}. */
export function decodeMint(from: ByteReader): MintEntry {
  const applicationIndex = from.varint();
  const keyIndex = from.varint();
  const firstSequence = from.varint();
  const mintId = uuidText(from.bytes(16));
  const openPlaces = { validium: decodeOpen(from), "zk-rollup": decodeOpen(from) };
  const idempotency = from.u8() === 1 ? { key: from.hex(32), digest: from.hex(32) } : null;
  const users = Array.from({ length: from.varint() }, () => ({ userIndex: from.varint(), count: from.varint() }));
  const count = users.reduce((sum, user) => sum + user.count, 0);
  const mints: PlacedMint[] = [];
  const next = { validium: { ...openPlaces.validium }, "zk-rollup": { ...openPlaces["zk-rollup"] } };
  for (let i = 0; i < count; i++) mints.push(decodePlaced(from, next));
  return { kind: "mint", applicationIndex, keyIndex, firstSequence, mintId, idempotency, openPlaces, users, mints };
}

function decodeOpen(from: ByteReader): OpenPlace {
  return { batchNumber: from.varint(), slot: from.varint() };
}

function decodePlaced(from: ByteReader, next: Record<Mode, { batchNumber: number; slot: number }>): PlacedMint {
  const assetIndex = from.varint();
  const flags = from.u8();
  const mode: Mode = flags & MODE_BIT ? "zk-rollup" : "validium";
  const place = next[mode];
  if (flags & NEXT_BATCH_BIT) {
    place.batchNumber++;
    place.slot = 0;
  }
  const existing = (flags & EXISTING_BIT) !== 0;
  const slot = existing ? from.varint() : place.slot++;
  const amountBefore = existing ? from.bigVarint() : 0n;
  const age = existing ? from.varint() : 0;
  const amount = flags & AMOUNT_BIT ? from.bigVarint() : 1n;
  return {
    assetIndex,
    mode,
    batchNumber: place.batchNumber,
    slot,
    amountBefore,
    age,
    amount,
    blob: from.hex(from.u8()),
  };
}
