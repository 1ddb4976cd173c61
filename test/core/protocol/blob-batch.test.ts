import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { slotsOf, type VaultEntry } from "../../../core/protocol/batch-data.ts";
import * as blobBatch from "../../../core/protocol/blob-batch.ts";
import { bytesToHex, hexToBytes } from "../../../core/protocol/hex.ts";
import { readWords } from "../../../core/protocol/words.ts";
import { decimalMintingBlob } from "../naive/naive-vault.ts";
import { naiveElements, naiveWords } from "../naive/naive-words.ts";
import { anySlots, anyVault, textMintingBlob } from "./arbitrary.ts";
import { vectors } from "./vectors.ts";

const file = vectors("blob-elements");
const { ELEMENT_BYTES } = blobBatch;
const VAULT: VaultEntry = {
  chainId: 1n,
  owner: `0x${"11".repeat(20)}`,
  assetType: `0x${"22".repeat(32)}`,
  amount: 1n,
  mintingBlob: decimalMintingBlob(1),
};
const slots = fc.array(
  fc.option(
    fc
      .record({ chainId: fc.constantFrom(1n, 7n), vault: anyVault })
      .map(({ chainId, vault }): VaultEntry => ({ ...VAULT, chainId, ...vault })),
  ),
  { minLength: 1, maxLength: 30 },
);
const vaultIn = (elements: Uint8Array, slot: number, vaultCount: number) => {
  const { words } = blobBatch.wordsInBlobs({ vaultCount, assets: [], elements });
  return readWords({ head: words.headAt(slot), rest: words.restAt(slot) });
};
const elementsOf = (vault: Parameters<typeof naiveWords>[0], assetIndex: number, place: number) =>
  naiveElements(naiveWords(vault, assetIndex), place);
const slotsIn = (batch: blobBatch.BlobBatch) => slotsOf(blobBatch.wordsInBlobs(batch));

/** A batch of these elements, the others zero. */
function batchOf(elements: readonly string[], vaultCount: number): blobBatch.BlobBatch {
  const all = new Uint8Array(blobBatch.BLOB_BYTES);
  for (const [i, element] of elements.entries())
    all.set(hexToBytes(element, 32), i * ELEMENT_BYTES);
  return { vaultCount, assets: [VAULT, { ...VAULT, chainId: 2n }], elements: all };
}

describe("the vectors of elements", () => {
  it.each(file.vectors)("$name", ({ assetIndex, amount, mintingBlob, elements }) => {
    const at = Number(file.continuation);
    const vault = {
      assetIndex: Number(assetIndex),
      owner: file.owner,
      amount: BigInt(amount),
      mintingBlob,
    };
    expect(elementsOf(vault, vault.assetIndex, at)).toEqual(elements);
    const all = new Uint8Array(2 * blobBatch.BLOB_BYTES);
    for (const [i, element] of elements.entries())
      all.set(hexToBytes(element), (i === 0 ? 0 : at + i - 1) * ELEMENT_BYTES);
    const read = vaultIn(all, 0, 1);
    expect(read).toEqual({
      ...vault,
      owner: hexToBytes(file.owner),
      mintingBlob: hexToBytes(mintingBlob),
    });
    // Behind the last slot or nowhere.
    if (elements.length > 1) expect(vaultIn(all, 0, at + 1)).toBeNull();
  });

  it.each(file.nobodys)("nobody's: $name", ({ elements }) => {
    expect(slotsIn(batchOf(elements, 1))).toEqual([null]);
  });

  it.each(file.contents)(
    "the content of $vaultCount slots",
    ({ vaultCount, assets, versionedHashes, content, ...rest }) => {
      const hash = blobBatch.manifestHash(
        assets.map(({ chainId, assetType }) => ({ chainId: BigInt(chainId), assetType })),
      );
      expect(hash).toBe(rest.manifestHash);
      expect(blobBatch.blobContent(Number(vaultCount), hash, versionedHashes)).toBe(content);
    },
  );
});

describe("a blob batch", () => {
  it("has each vault's elements where the naive writer puts them", () => {
    fc.assert(
      fc.property(slots, (made) => {
        const { elements, assets, vaultCount } = blobBatch.encodeBlobBatch(made);
        let next = vaultCount;
        const at = (place: number) =>
          bytesToHex(elements.subarray(place * ELEMENT_BYTES, (place + 1) * ELEMENT_BYTES));
        for (const [slot, vault] of made.entries()) {
          if (vault === null) {
            expect(BigInt(at(slot))).toBe(0n);
            continue;
          }
          const assetIndex = assets.findIndex(({ chainId }) => chainId === vault.chainId);
          const [head, ...rest] = elementsOf(vault, assetIndex, next);
          expect(at(slot)).toBe(head);
          for (const element of rest) expect(at(next++)).toBe(element);
        }
        expect(elements.subarray(next * ELEMENT_BYTES).every((byte) => byte === 0)).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it("reads no changed element as the same vault, and what it reads is written so", () => {
    const change = fc.tuple(fc.nat(351), fc.integer({ min: 1, max: 255 }));
    fc.assert(
      fc.property(anyVault, change, (vault, [byte, flip]) => {
        const batch = blobBatch.encodeBlobBatch([{ ...VAULT, ...vault }]);
        const own = blobBatch.elementPlaces(batch, 0).length * ELEMENT_BYTES;
        batch.elements[byte] = (batch.elements[byte] ?? 0) ^ flip;
        const read = vaultIn(batch.elements, 0, 1);
        if (read === null) return;
        const text = {
          ...read,
          owner: bytesToHex(read.owner),
          mintingBlob: bytesToHex(read.mintingBlob),
        };
        const isSame =
          text.owner === vault.owner &&
          text.amount === vault.amount &&
          text.mintingBlob === vault.mintingBlob &&
          read.assetIndex === 0;
        expect(byte < own && isSame).toBe(false);
        const [, place = 0] = blobBatch.elementPlaces(batch, 0);
        const [head] = elementsOf(text, read.assetIndex, place);
        expect(head).toBe(bytesToHex(batch.elements.subarray(0, 32)));
      }),
      { numRuns: 300 },
    );
  });

  it("reads any 32 bytes without a fault, and as the naive writer would write them", () => {
    const tagged = fc
      .tuple(fc.nat(255), fc.uint8Array({ minLength: 31, maxLength: 31 }))
      .map(([tag, rest]) => bytesToHex(Uint8Array.of(tag, ...rest)));
    fc.assert(
      fc.property(fc.array(tagged, { minLength: 3, maxLength: 3 }), (elements) => {
        const batch = batchOf(elements, 1);
        const read = vaultIn(batch.elements, 0, 1);
        if (read === null) return;
        const [, place = 0] = blobBatch.elementPlaces(batch, 0);
        const text = {
          ...read,
          owner: bytesToHex(read.owner),
          mintingBlob: bytesToHex(read.mintingBlob),
        };
        expect(elementsOf(text, read.assetIndex, place)[0]).toBe(elements[0]);
      }),
      { numRuns: 500 },
    );
  });

  it("holds 24,576 vaults in six blobs and not one more", () => {
    const full = Array<VaultEntry>(24_576).fill(VAULT);
    const batch = blobBatch.encodeBlobBatch(full);
    expect(blobBatch.blobsIn(batch).map(({ length }) => length)).toEqual(
      Array(6).fill(blobBatch.BLOB_BYTES),
    );
    expect(slotsIn(batch).every((slot) => slot?.owner === VAULT.owner)).toBe(true);
    expect(() => blobBatch.encodeBlobBatch([...full, VAULT])).toThrow("number of slots");
    const long = { ...VAULT, mintingBlob: textMintingBlob("x".repeat(40)) };
    expect(() => blobBatch.encodeBlobBatch([...full.slice(2), long])).toThrow(
      expect.objectContaining({ code: "batch_too_large" }),
    );
    expect(blobBatch.encodeBlobBatch([...full.slice(3), long]).elements.length).toBe(
      6 * blobBatch.BLOB_BYTES,
    );
  });

  it("pays nobody for a place that the manifest does not have", () => {
    const { elements } = blobBatch.encodeBlobBatch([VAULT, { ...VAULT, chainId: 2n }]);
    expect(slotsIn({ vaultCount: 2, assets: [VAULT], elements })).toEqual([VAULT, null]);
  });

  it("holds every minting blob of 1 to 255 bytes", () => {
    for (let length = 1; length <= 255; length++) {
      const vault = { ...VAULT, mintingBlob: textMintingBlob("x".repeat(length)) };
      expect(slotsIn(blobBatch.encodeBlobBatch([vault, null, vault]))).toEqual([
        vault,
        null,
        vault,
      ]);
    }
  });
});

describe("the data of a blob batch", () => {
  const data = blobBatch.blobBatchData(blobBatch.encodeBlobBatch([VAULT]));
  const changed = (at: number, byte: number) => data.map((each, i) => (i === at ? byte : each));
  it.each([
    ["no byte", new Uint8Array(), "version_unknown"],
    ["the version of other data", changed(0, 1), "version_unknown"],
    ["a head that ends early", data.subarray(0, 6), "truncated"],
    ["assets that end early", data.subarray(0, 40), "truncated"],
    ["no blob", data.subarray(0, 47), "truncated"],
    ["a byte too few", data.subarray(0, -1), "truncated"],
    ["a byte too many", Uint8Array.from([...data, 0]), "truncated"],
    ["no slot", changed(4, 0), "no_slot"],
    ["more slots than elements", changed(3, 0x11), "truncated"],
    ["more slots than six blobs have", changed(2, 1), "too_many_slots"],
    [
      "seven blobs",
      Uint8Array.from([...data, ...new Uint8Array(6 * blobBatch.BLOB_BYTES)]),
      "too_many_slots",
    ],
    ["256 assets", changed(5, 1), "too_many_assets"],
  ])("is refused with %s", (_, bytes, reason) => {
    expect(() => blobBatch.readBlobBatchData(bytes)).toThrow(
      expect.objectContaining({ name: "BatchDataError", reason }),
    );
  });

  it("is refused with assets that do not ascend", () => {
    const two = blobBatch.blobBatchData(
      blobBatch.encodeBlobBatch([VAULT, { ...VAULT, chainId: 2n }]),
    );
    const twice = two.slice();
    twice.copyWithin(47, 7, 47);
    expect(() => blobBatch.readBlobBatchData(twice)).toThrow(
      expect.objectContaining({ reason: "asset_order", offset: 47 }),
    );
  });
});

describe("vaults of other kinds of batches", () => {
  it("come back from a blob batch", () => {
    fc.assert(
      fc.property(anySlots, (made) => {
        expect(slotsIn(blobBatch.encodeBlobBatch(made))).toEqual(made);
      }),
      { numRuns: 100 },
    );
  });
});
