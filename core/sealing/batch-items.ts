import type { Mode } from "../model.ts";
import { tokenIdOfBytes } from "../protocol/minting-blob.ts";
import { encodeRecord } from "../store/layout.ts";
import { type AssetRecord, itemSlotsRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { VaultColumns } from "../store/vault-columns.ts";

/**
 * The slots of a batch by ERC-1155 id, as store records in four arrays, which are cheap to pass
 * between threads.
 */
export interface BatchItems {
  readonly keys: Uint8Array; // Keys back to back, and the end of each
  readonly keyEnds: Uint32Array;
  readonly values: Uint8Array;
  readonly valueEnds: Uint32Array;
}

/** Lists the vaults of each ERC-1155 id in a batch, without void slots. */
export function itemsOf(
  { mode, batchNumber }: { readonly mode: Mode; readonly batchNumber: number },
  vaults: VaultColumns,
  assetAt: (assetIndex: number) => Pick<AssetRecord, "standard" | "mintingBlobScheme">,
  voids: Uint8Array | null,
): BatchItems {
  const slotsOf = new Map<string, { readonly first: number; readonly slots: number[] }>();
  let asset = -1;
  let isItem = false;
  for (let slot = 0; slot < vaults.count; slot++) {
    const assetIndex = vaults.assetIndex[slot]!;
    if (assetIndex !== asset) {
      asset = assetIndex;
      isItem = assetAt(assetIndex).standard === "erc1155";
    }
    if (!isItem || voids?.[slot] === 1) continue;
    const bytes = vaults.mintingBlobs.subarray(
      vaults.mintingBlobStart(slot),
      vaults.mintingBlobEnd[slot],
    );
    const name = `${assetIndex} ${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")}`;
    const known = slotsOf.get(name);
    if (known === undefined) slotsOf.set(name, { first: slot, slots: [slot] });
    else known.slots.push(slot);
  }
  const keys: Buffer[] = [];
  const values: Buffer[] = [];
  for (const { first, slots } of slotsOf.values()) {
    const assetIndex = vaults.assetIndex[first]!;
    const mintingBlob = vaults.mintingBlobs.subarray(
      vaults.mintingBlobStart(first),
      vaults.mintingBlobEnd[first],
    );
    const tokenId =
      tokenIdOfBytes("erc1155", assetAt(assetIndex).mintingBlobScheme, mintingBlob) ?? 0n;
    keys.push(keyOf.item(assetIndex, tokenId, mode, batchNumber));
    values.push(encodeRecord(itemSlotsRecord, slots));
  }
  return {
    keys: new Uint8Array(Buffer.concat(keys)),
    keyEnds: endsOf(keys),
    values: new Uint8Array(Buffer.concat(values)),
    valueEnds: endsOf(values),
  };
}

export function* itemRecords({ keys, keyEnds, values, valueEnds }: BatchItems) {
  for (let i = 0; i < keyEnds.length; i++)
    yield { key: piece(keys, keyEnds, i), value: piece(values, valueEnds, i) };
}

function piece(bytes: Uint8Array, ends: Uint32Array, i: number): Buffer {
  const start = i === 0 ? 0 : ends[i - 1]!;
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, ends[i]! - start);
}

function endsOf(pieces: readonly Buffer[]): Uint32Array {
  let end = 0;
  return Uint32Array.from(pieces, ({ length }) => (end += length));
}
