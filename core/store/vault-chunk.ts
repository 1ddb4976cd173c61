import { MintmarkError } from "../errors.ts";
import { ByteReader, record as scratch } from "./binary.ts";
import type { NewVault, StoredVault, VaultColumns } from "./columns/vault-columns.ts";
import { highWord, lowWord } from "./columns/vault-columns.ts";
import { checkedRecord } from "./layout.ts";

export type { StoredVault };

/** Vaults in one stored record. */
export const CHUNK_VAULTS = 64;

/** The hash of a vault's token; 0 unless ERC-721. */
export type TokenHashOf = (vault: NewVault) => number;

/**
 * Up to 64 vaults of consecutive slots. Neighbours mostly share owner and time, which are then written once:
 *
 * ```
 * chunk  = version:1 = 0x01 baseTime:6 holderCount:1 holderCount*holder vaultCount:1 vaultCount*vault crc32:4
 * holder = applicationIndex userIndex owner:20
 * vault  = holder:1 assetIndex amount createdAfter updatedAfter blobLength:1 blob
 * ```
 *
 * Numbers without a size are varints; `createdAfter` counts ms from `baseTime`, `updatedAfter` from that.
 */
export function encodeChunk(vaults: readonly StoredVault[]): Buffer {
  const holders = new Map<number, { readonly position: number; readonly vault: StoredVault }>();
  let base = Number.POSITIVE_INFINITY;
  for (const vault of vaults) {
    if (!holders.has(vault.userIndex)) holders.set(vault.userIndex, { position: holders.size, vault });
    if (vault.createdAt < base) base = vault.createdAt;
  }
  scratch.begin();
  scratch.u48(base);
  scratch.u8(holders.size);
  for (const { vault } of holders.values()) {
    scratch.varint(vault.applicationIndex);
    scratch.varint(vault.userIndex);
    scratch.hex(vault.owner);
  }
  scratch.u8(vaults.length);
  for (const vault of vaults) {
    scratch.u8(holders.get(vault.userIndex)?.position ?? 0);
    scratch.varint(vault.assetIndex);
    scratch.bigVarint(vault.amount);
    scratch.varint(vault.createdAt - base);
    scratch.varint(vault.updatedAt - vault.createdAt);
    scratch.u8((vault.blob.length - 2) / 2);
    scratch.hex(vault.blob);
  }
  return scratch.end();
}

/** {@link encodeChunk} of the vaults in slots `first` to before `end`, from their columns. */
export function encodeColumns(vaults: VaultColumns, first: number, end: number): Buffer {
  const { userIndex, assetIndex, amountHigh, amountLow, createdAt, updatedAt, blobEnd, blobs } = vaults;
  const positions = new Map<number, number>();
  const base = createdAt[first] as number;
  scratch.begin();
  // Vaults are created in slot order, and time never decreases.
  scratch.u48(base);
  for (let slot = first; slot < end; slot++) {
    const user = userIndex[slot] as number;
    if ((slot === first || user !== userIndex[slot - 1]) && !positions.has(user)) positions.set(user, slot);
  }
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
    const user = userIndex[slot] as number;
    if (slot === first || user !== userIndex[slot - 1]) position = positions.get(user) as number;
    const created = createdAt[slot] as number;
    const start = vaults.blobStart(slot);
    const behind = blobEnd[slot] as number;
    scratch.u8(position);
    scratch.varint(assetIndex[slot] as number);
    scratch.varintWords(amountHigh[slot] as number, amountLow[slot] as number);
    scratch.varint(created - base);
    scratch.varint((updatedAt[slot] as number) - created);
    scratch.u8(behind - start);
    scratch.bytes(blobs, start, behind);
  }
  return scratch.end();
}

/** The inverse of {@link encodeChunk}. Throws `store_corrupt`. */
export function decodeChunk(record: Uint8Array): StoredVault[] {
  const from = new ByteReader(checkedRecord(record, "A record of vaults"), 1);
  const base = from.u48();
  const holders = Array.from({ length: from.u8() }, () => ({
    applicationIndex: from.varint(),
    userIndex: from.varint(),
    owner: from.hex(20),
  }));
  const vaults = Array.from({ length: from.u8() }, (): StoredVault => {
    const holder = holders[from.u8()];
    if (holder === undefined) throw new MintmarkError("store_corrupt");
    const assetIndex = from.varint();
    const amount = from.bigVarint();
    const createdAt = base + from.varint();
    const updatedAt = createdAt + from.varint();
    return { ...holder, assetIndex, amount, blob: from.hex(from.u8()), createdAt, updatedAt };
  });
  from.end();
  return vaults;
}

/** {@link decodeChunk} into the next slots of a batch's columns. Throws `store_corrupt`. */
export function decodeIntoColumns(record: Uint8Array, vaults: VaultColumns, hashOf: TokenHashOf): void {
  const from = new ByteReader(checkedRecord(record, "A record of vaults"), 1);
  const base = from.u48();
  const holders = Array.from({ length: from.u8() }, () => ({
    applicationIndex: from.varint(),
    userIndex: from.varint(),
    owner: Uint8Array.from(from.bytes(20)),
  }));
  const vault = { assetIndex: 0, amountHigh: 0, amountLow: 0, blobs: record, start: 0, end: 0 };
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
    vault.start = from.position;
    vault.end = vault.start + length;
    from.bytes(length);
    vaults.push(holder, vault, createdAt, updatedAt, hashOf(vault));
  }
  from.end();
}
