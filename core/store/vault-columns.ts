import { MintmarkError } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { ByteReader, record as scratch } from "./binary.ts";
import { checkedRecord } from "./layout.ts";
import { keyOf } from "./store-keys.ts";

// Amounts are two 32-bit words in typed arrays instead of a bigint object. All are below 2^63.

const WORD = 2 ** 32;
const MAX_HIGH = 0x7fff_ffff; // The high word of 2^63 - 1

export function highWord(amount: bigint): number {
  return Number(amount >> 32n);
}

export function lowWord(amount: bigint): number {
  return Number(amount & 0xffff_ffffn);
}

/** The amount of two words, or the sum of up to 2^20 amounts of the sums of their words. */
export function amountOf(high: number, low: number): bigint {
  return high === 0 ? BigInt(low) : (BigInt(high) << 32n) + BigInt(low);
}

/** Whether the sum of two amounts is a valid amount. */
export function addsUp(highA: number, lowA: number, highB: number, lowB: number): boolean {
  return highA + highB + (lowA + lowB >= WORD ? 1 : 0) <= MAX_HIGH;
}

/** The user who holds a vault. */
export interface HolderIndexes {
  readonly applicationIndex: number;
  readonly userIndex: number;
}

/** The holder of a vault: the values that all vaults of a user share. */
export interface Holder extends HolderIndexes {
  readonly owner: Uint8Array; // 20 bytes
}

/** The content of a vault without its holder. */
export interface NewVault {
  readonly assetIndex: number;
  readonly amountHigh: number;
  readonly amountLow: number;
  readonly mintingBlobs: Uint8Array; // Holds the minting blob from `start` to `end`
  readonly start: number;
  readonly end: number;
}

/**
 * The columns that sealing reads, with their holders: a closed batch on its way to another thread.
 */
export type VaultParts = ReturnType<VaultColumns["parts"]>;

const OWNER_BYTES = 20;
const FIRST_CAPACITY = 64;
const USUAL_MINTING_BLOB_BYTES = 16;
const SEALED_COLUMNS = [
  "userIndex",
  "assetIndex",
  "amountHigh",
  "amountLow",
  "tokenHash",
  "mintingBlobEnd",
] as const;

/**
 * The vaults of a batch in slot order, one typed array a property: {@link StoredVault}s without an
 * object each.
 */
export class VaultColumns {
  count = 0;
  userIndex = new Uint32Array(FIRST_CAPACITY);
  assetIndex = new Uint32Array(FIRST_CAPACITY);
  amountHigh = new Uint32Array(FIRST_CAPACITY);
  amountLow = new Uint32Array(FIRST_CAPACITY);
  createdAt = new Float64Array(FIRST_CAPACITY);
  updatedAt = new Float64Array(FIRST_CAPACITY);
  tokenHash = new Uint32Array(FIRST_CAPACITY); // Hash of the token; 0 unless ERC-721
  mintingBlobEnd = new Uint32Array(FIRST_CAPACITY); // Where each ends in `mintingBlobs`, and the next begins
  mintingBlobs = new Uint8Array(FIRST_CAPACITY * USUAL_MINTING_BLOB_BYTES);
  readonly #holders = new Map<number, Holder>();
  // The holder of each user index that occurs
  readonly holders: ReadonlyMap<number, Holder> = this.#holders;
  #lastHolder: Holder | null = null;

  /** Puts a vault into the next slot and returns the slot. */
  push(
    holder: Holder,
    vault: NewVault,
    createdAt: number,
    updatedAt: number,
    tokenHash: number,
  ): number {
    const slot = this.count;
    if (slot === this.userIndex.length) this.#resize(2 * slot);
    if (this.#lastHolder?.userIndex !== holder.userIndex) {
      this.#lastHolder = holder;
      this.#holders.set(holder.userIndex, holder);
    }
    this.userIndex[slot] = holder.userIndex;
    this.assetIndex[slot] = vault.assetIndex;
    this.amountHigh[slot] = vault.amountHigh;
    this.amountLow[slot] = vault.amountLow;
    this.createdAt[slot] = createdAt;
    this.updatedAt[slot] = updatedAt;
    this.tokenHash[slot] = tokenHash;
    let at = this.mintingBlobStart(slot);
    const end = at + vault.end - vault.start;
    if (end > this.mintingBlobs.length)
      this.mintingBlobs = larger(this.mintingBlobs, Math.max(2 * this.mintingBlobs.length, end));
    for (let i = vault.start; i < vault.end; i++) this.mintingBlobs[at++] = vault.mintingBlobs[i]!;
    this.mintingBlobEnd[slot] = end;
    this.count = slot + 1;
    return slot;
  }

  /** Adds to a vault's amount. The caller has checked the sum. */
  grow(slot: number, high: number, low: number, updatedAt: number): void {
    const sum = this.amountLow[slot]! + low;
    this.amountLow[slot] = sum;
    this.amountHigh[slot] = this.amountHigh[slot]! + high + (sum >= 2 ** 32 ? 1 : 0);
    this.updatedAt[slot] = updatedAt;
  }

  mintingBlobStart(slot: number): number {
    return slot === 0 ? 0 : this.mintingBlobEnd[slot - 1]!;
  }

  holderOf(slot: number): Holder {
    const holder = this.#holders.get(this.userIndex[slot]!);
    if (holder === undefined) throw new Error(`the holder of slot ${slot} is unknown`);
    return holder;
  }

  assetIndices(): number[] {
    const found = new Set<number>();
    for (let slot = 0; slot < this.count; slot++) {
      if (slot === 0 || this.assetIndex[slot] !== this.assetIndex[slot - 1])
        found.add(this.assetIndex[slot]!);
    }
    return [...found];
  }

  /**
   * Copies for {@link of}, all in arrays: another thread gets them many times faster than an object
   * for each holder.
   */
  parts() {
    const { count } = this;
    const columns = SEALED_COLUMNS.map((name) => this[name].slice(0, count));
    const users = new Uint32Array(this.#holders.size);
    const applications = new Uint32Array(this.#holders.size);
    const owners = new Uint8Array(this.#holders.size * OWNER_BYTES);
    let place = 0;
    for (const { userIndex, applicationIndex, owner } of this.#holders.values()) {
      users[place] = userIndex;
      applications[place] = applicationIndex;
      const at = place++ * OWNER_BYTES;
      for (let i = 0; i < OWNER_BYTES; i++) owners[at + i] = owner[i]!;
    }
    const mintingBlobs = this.mintingBlobs.slice(0, this.mintingBlobStart(count));
    return { count, columns, mintingBlobs, users, applications, owners };
  }

  /** Rebuilds vaults from their parts, without their times. */
  static of({
    count,
    columns,
    mintingBlobs,
    users,
    applications,
    owners,
  }: VaultParts): VaultColumns {
    const vaults = new VaultColumns();
    vaults.count = count;
    for (const [i, name] of SEALED_COLUMNS.entries())
      vaults[name] = columns[i] as Uint32Array<ArrayBuffer>;
    vaults.mintingBlobs = mintingBlobs;
    for (const [place, userIndex] of users.entries()) {
      const owner = owners.subarray(place * OWNER_BYTES, (place + 1) * OWNER_BYTES);
      const applicationIndex = applications[place]!;
      vaults.#holders.set(userIndex, { applicationIndex, userIndex, owner });
    }
    return vaults;
  }

  at(slot: number): StoredVault {
    const { applicationIndex, userIndex, owner } = this.holderOf(slot);
    return {
      applicationIndex,
      userIndex,
      owner: hexOf(owner, 0, owner.length),
      assetIndex: this.assetIndex[slot]!,
      amount: amountOf(this.amountHigh[slot]!, this.amountLow[slot]!),
      mintingBlob: this.mintingBlobAt(slot),
      createdAt: this.createdAt[slot]!,
      updatedAt: this.updatedAt[slot]!,
    };
  }

  mintingBlobAt(slot: number): Hex {
    return hexOf(this.mintingBlobs, this.mintingBlobStart(slot), this.mintingBlobEnd[slot]!);
  }

  /**
   * Makes room for as many vaults as another batch has: growing by and by would copy each column
   * again and again.
   */
  reserveLike({ count, mintingBlobEnd }: VaultColumns): void {
    if (count <= this.userIndex.length) return;
    this.#resize(count);
    this.mintingBlobs = larger(
      this.mintingBlobs,
      Math.max(this.mintingBlobs.length, mintingBlobEnd[count - 1]!),
    );
  }

  #resize(capacity: number): void {
    for (const name of SEALED_COLUMNS) this[name] = larger(this[name], capacity);
    this.createdAt = larger(this.createdAt, capacity);
    this.updatedAt = larger(this.updatedAt, capacity);
  }
}

function larger<T extends Uint8Array | Uint32Array | Float64Array>(column: T, length: number): T {
  const copy = new (column.constructor as new (length: number) => T)(length);
  copy.set(column);
  return copy;
}

/** `0x` hex of a range of bytes. */
export function hexOf(bytes: Uint8Array, start: number, end: number): Hex {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex", start, end)}`;
}

/** The engine's record of one slot. In an open batch, `amount` and `updatedAt` can change. */
export interface StoredVault {
  readonly applicationIndex: number;
  readonly userIndex: number;
  readonly owner: Address;
  readonly assetIndex: number;
  amount: bigint;
  readonly mintingBlob: Hex;
  readonly createdAt: number;
  updatedAt: number;
}

export const CHUNK_VAULTS = 64; // Vaults in one stored record

/** The key of the record with the vault of a place. */
export const chunkKeyOf = ({ mode, batchNumber, slot }: VaultPlace): Buffer =>
  keyOf.chunk(mode, batchNumber, Math.floor(slot / CHUNK_VAULTS));

/** The hash of a vault's token; 0 unless ERC-721. */
export type TokenHashOf = (vault: NewVault) => number;

/**
 * Up to 64 vaults of consecutive slots. Neighbours mostly share owner and time, which are then
 * written once:
 *
 * ```
 * chunk  = version:1 = 0x01 baseTime:6 holderCount:1 holderCount*holder vaultCount:1 vaultCount*vault crc32:4
 * holder = applicationIndex userIndex owner:20
 * vault  = holder:1 assetIndex amount createdAfter updatedAfter mintingBlobLength:1 mintingBlob
 * ```
 *
 * Numbers without a size are varints; `createdAfter` counts ms from `baseTime`, `updatedAfter` from
 * that. It shares no code with {@link encodeColumns}, so that `verify` finds that one's mistakes.
 */
export function encodeChunk(vaults: readonly StoredVault[]): Buffer {
  const base = Math.min(...vaults.map(({ createdAt }) => createdAt));
  const holders = new Map(vaults.map((vault) => [vault.userIndex, vault]));
  const users = [...holders.keys()];
  scratch.begin();
  scratch.u48(base);
  scratch.u8(users.length);
  for (const { applicationIndex, userIndex, owner } of holders.values()) {
    scratch.varint(applicationIndex);
    scratch.varint(userIndex);
    scratch.hex(owner);
  }
  scratch.u8(vaults.length);
  for (const { userIndex, assetIndex, amount, createdAt, updatedAt, mintingBlob } of vaults) {
    scratch.u8(users.indexOf(userIndex));
    scratch.varint(assetIndex);
    scratch.bigVarint(amount);
    scratch.varint(createdAt - base);
    scratch.varint(updatedAt - createdAt);
    scratch.u8((mintingBlob.length - 2) / 2);
    scratch.hex(mintingBlob);
  }
  return scratch.end();
}

/** {@link encodeChunk} of the vaults in slots `first` to before `end`, from their columns. */
export function encodeColumns(vaults: VaultColumns, first: number, end: number): Buffer {
  const {
    userIndex,
    assetIndex,
    amountHigh,
    amountLow,
    createdAt,
    updatedAt,
    mintingBlobEnd,
    mintingBlobs,
  } = vaults;
  const positions = new Map<number, number>();
  // Vaults are created in slot order, and time never decreases.
  const base = createdAt[first]!;
  for (let slot = first; slot < end; slot++) {
    const user = userIndex[slot]!;
    if ((slot === first || user !== userIndex[slot - 1]) && !positions.has(user))
      positions.set(user, slot);
  }
  scratch.begin();
  scratch.u48(base);
  scratch.u8(positions.size);
  let position = 0;
  for (const [user, slot] of positions) {
    const holder = vaults.holderOf(slot);
    scratch.varint(holder.applicationIndex);
    scratch.varint(user);
    scratch.bytes(holder.owner);
    positions.set(user, position++);
  }
  scratch.u8(end - first);
  for (let slot = first; slot < end; slot++) {
    const user = userIndex[slot]!;
    if (slot === first || user !== userIndex[slot - 1]) position = positions.get(user)!;
    const created = createdAt[slot]!;
    const start = vaults.mintingBlobStart(slot);
    const behind = mintingBlobEnd[slot]!;
    scratch.u8(position);
    scratch.varint(assetIndex[slot]!);
    scratch.varintWords(amountHigh[slot]!, amountLow[slot]!);
    scratch.varint(created - base);
    scratch.varint(updatedAt[slot]! - created);
    scratch.u8(behind - start);
    scratch.bytes(mintingBlobs, start, behind);
  }
  return scratch.end();
}

/** The inverse of {@link encodeChunk}. Throws `store_corrupt`. */
export function decodeChunk(record: Uint8Array): StoredVault[] {
  const vaults = new VaultColumns();
  decodeIntoColumns(record, vaults, () => 0);
  return Array.from({ length: vaults.count }, (_, slot) => vaults.at(slot));
}

/** {@link decodeChunk} into the next slots of a batch's columns. Throws `store_corrupt`. */
export function decodeIntoColumns(
  record: Uint8Array,
  vaults: VaultColumns,
  hashOf: TokenHashOf,
): void {
  const from = new ByteReader(checkedRecord(record, "A record of vaults"), 1);
  const base = from.u48();
  const holders = Array.from({ length: from.u8() }, () => ({
    applicationIndex: from.varint(),
    userIndex: from.varint(),
    owner: Uint8Array.from(from.bytes(20)),
  }));
  const vault = {
    assetIndex: 0,
    amountHigh: 0,
    amountLow: 0,
    mintingBlobs: record,
    start: 0,
    end: 0,
  };
  for (let count = from.u8(); count > 0; count--) {
    const holder = holders[from.u8()];
    if (holder === undefined) throw new MintmarkError("store_corrupt");
    vault.assetIndex = from.varint();
    const amount = from.bigVarint();
    vault.amountHigh = highWord(amount);
    vault.amountLow = lowWord(amount);
    const createdAt = base + from.varint();
    const updatedAt = createdAt + from.varint();
    const length = from.u8();
    vault.start = from.skip(length);
    vault.end = vault.start + length;
    vaults.push(holder, vault, createdAt, updatedAt, hashOf(vault));
  }
  from.end();
}
