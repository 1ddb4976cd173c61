import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Hex } from "../../../core/model.ts";
import { BatchDataError, type VaultEntry } from "../../../core/protocol/batch-data.ts";
import * as blobBatch from "../../../core/protocol/blob-batch.ts";
import {
  continuationOf,
  ELEMENT_BYTES,
  elementCount,
  readElements,
} from "../../../core/protocol/elements.ts";
import { bytesToHex, hexToBytes } from "../../../core/protocol/hex.ts";
import { naiveElements } from "../naive/naive-elements.ts";
import { decimalBlob } from "../naive/naive-vault.ts";
import { anySlots, textBlob } from "./arbitrary.ts";
import { vectors } from "./vectors.ts";

const file = vectors("blob-elements");
const VAULT: VaultEntry = {
  chainId: 1n,
  owner: `0x${"11".repeat(20)}`,
  assetType: `0x${"22".repeat(32)}`,
  amount: 1n,
  blob: decimalBlob(1),
};
const ids = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
  fc
    .integer({ min: 0, max: 256 })
    .chain((bits) => fc.constantFrom(2n ** BigInt(bits) - 1n, 2n ** BigInt(bits) % 2n ** 256n)),
);
const blobs: fc.Arbitrary<Hex> = fc.oneof(
  fc.constant<Hex>("0x"),
  ids.map(decimalBlob),
  ids.map((id) => textBlob(`{${id}}:{}`)),
  ids.map((id): Hex => `0x${id.toString(16).padStart(64, "0")}`),
  fc.uint8Array({ minLength: 1, maxLength: 61 }).map(bytesToHex),
  fc.constantFrom("00", "{}:{}", "{01}:{}", "{1}:{x}", "}:{}").map(textBlob),
);
const amounts = fc.oneof(
  fc.constant(1n),
  fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
  fc.bigInt({ min: 2n, max: 2n ** 41n }),
);
const vaults = fc
  .record({
    chainId: fc.constantFrom(1n, 7n),
    amount: amounts,
    blob: blobs,
    owner: fc.uint8Array({ minLength: 20, maxLength: 20 }).map(bytesToHex),
  })
  .map((parts): VaultEntry => ({ ...VAULT, ...parts }))
  .filter(({ amount, blob }) => elementCount(amount, hexToBytes(blob)) > 0);
const slots = fc.array(fc.option(vaults), { minLength: 1, maxLength: 30 });

/** A batch of these elements, the others zero. */
function batchOf(elements: readonly string[], vaultCount: number): blobBatch.BlobBatch {
  const all = new Uint8Array(blobBatch.BLOB_BYTES);
  for (const [i, element] of elements.entries())
    all.set(hexToBytes(element, 32), i * ELEMENT_BYTES);
  return { vaultCount, assets: [VAULT, { ...VAULT, chainId: 2n }], elements: all };
}

describe("the vectors of elements", () => {
  it.each(file.vectors)("$name", ({ assetIndex, amount, blob, elements }) => {
    const at = Number(file.continuation);
    const vault = {
      assetIndex: Number(assetIndex),
      owner: file.owner,
      amount: BigInt(amount),
      blob,
    };
    expect(naiveElements(vault, at)).toEqual(elements);
    expect(elementCount(BigInt(amount), hexToBytes(blob))).toBe(elements.length);
    const all = new Uint8Array(2 * blobBatch.BLOB_BYTES);
    for (const [i, element] of elements.entries())
      all.set(hexToBytes(element), (i === 0 ? 0 : at + i - 1) * ELEMENT_BYTES);
    const read = readElements(all, 0, 1);
    expect(read).toEqual({ ...vault, owner: hexToBytes(file.owner), blob: hexToBytes(blob) });
    // Behind the last slot or nowhere.
    if (elements.length > 1) expect(readElements(all, 0, at + 1)).toBeNull();
  });

  it.each(file.tooLong)("no element holds $name", ({ amount, blob }) => {
    expect(elementCount(BigInt(amount), hexToBytes(blob))).toBe(0);
    expect(naiveElements({ ...VAULT, assetIndex: 0, amount: BigInt(amount), blob }, 1)).toBeNull();
    expect(() => blobBatch.encodeBlobBatch([{ ...VAULT, amount: BigInt(amount), blob }])).toThrow(
      expect.objectContaining({ code: "batch_too_large" }),
    );
  });

  it.each(file.nobodys)("nobody's: $name", ({ elements }) => {
    expect(blobBatch.blobSlots(batchOf(elements, 1))).toEqual([null]);
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
          const [head, ...rest] = naiveElements({ ...vault, assetIndex }, next) ?? [];
          expect(at(slot)).toBe(head);
          for (const element of rest) expect(at(next++)).toBe(element);
        }
        expect(elements.subarray(next * ELEMENT_BYTES).every((byte) => byte === 0)).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it("reads no changed element as the same vault, and what it reads is written so", () => {
    fc.assert(
      fc.property(vaults, fc.nat(95), fc.integer({ min: 1, max: 255 }), (vault, byte, flip) => {
        const batch = blobBatch.encodeBlobBatch([vault]);
        batch.elements[byte] = (batch.elements[byte] ?? 0) ^ flip;
        const changedOwn =
          byte < elementCount(vault.amount, hexToBytes(vault.blob)) * ELEMENT_BYTES;
        const read = readElements(batch.elements, 0, 1);
        if (read === null) return;
        const text = { ...read, owner: bytesToHex(read.owner), blob: bytesToHex(read.blob) };
        expect(
          changedOwn &&
            text.owner === vault.owner &&
            text.amount === vault.amount &&
            text.blob === vault.blob &&
            read.assetIndex === 0,
        ).toBe(false);
        const places = [0, continuationOf(batch.elements.subarray(0, 32)) ?? 0];
        const [head] = naiveElements(text, places[1] ?? 0) ?? [];
        expect(head).toBe(bytesToHex(batch.elements.subarray(0, 32)));
      }),
      { numRuns: 300 },
    );
  });

  it("reads any 32 bytes without a fault, and as the naive writer would write them", () => {
    const tagged = fc
      .tuple(fc.integer({ min: 0, max: 12 }), fc.uint8Array({ minLength: 31, maxLength: 31 }))
      .map(([tag, rest]) => bytesToHex(Uint8Array.of(tag, ...rest)));
    fc.assert(
      fc.property(fc.array(tagged, { minLength: 3, maxLength: 3 }), (elements) => {
        const { elements: all } = batchOf(elements, 1);
        const read = readElements(all, 0, 1);
        if (read === null) return;
        const continuation = continuationOf(all.subarray(0, 32)) ?? 0;
        const text = { ...read, owner: bytesToHex(read.owner), blob: bytesToHex(read.blob) };
        expect(naiveElements(text, continuation)?.[0]).toBe(elements[0]);
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
    expect(blobBatch.blobSlots(batch).every((slot) => slot?.owner === VAULT.owner)).toBe(true);
    expect(() => blobBatch.encodeBlobBatch([...full, VAULT])).toThrow("number of slots");
    const long = { ...VAULT, blob: textBlob("x".repeat(40)) };
    expect(() => blobBatch.encodeBlobBatch([...full.slice(2), long])).toThrow(
      expect.objectContaining({ code: "batch_too_large" }),
    );
    expect(blobBatch.encodeBlobBatch([...full.slice(3), long]).elements.length).toBe(
      6 * blobBatch.BLOB_BYTES,
    );
  });

  it("pays nobody for a place that the manifest does not have, nor for what the asset's standard forbids", () => {
    const { elements } = blobBatch.encodeBlobBatch([
      VAULT,
      { ...VAULT, chainId: 2n },
      { ...VAULT, blob: "0x" },
      { ...VAULT, amount: 2n },
    ]);
    const batch = { vaultCount: 4, assets: [VAULT], elements };
    expect(blobBatch.blobSlots(batch).map((slot) => slot !== null)).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect(blobBatch.blobSlots(batch, () => "erc721").map((slot) => slot !== null)).toEqual([
      true,
      false,
      false,
      false,
    ]);
    expect(blobBatch.blobSlots(batch, () => "erc20").map((slot) => slot !== null)).toEqual([
      false,
      false,
      true,
      false,
    ]);
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
    ["no slot", changed(4, 0), "no_run"],
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

  it("is refused with assets that do not ascend, or that are not registered", () => {
    const two = blobBatch.blobBatchData(
      blobBatch.encodeBlobBatch([VAULT, { ...VAULT, chainId: 2n }]),
    );
    const twice = two.slice();
    twice.copyWithin(47, 7, 47);
    expect(() => blobBatch.readBlobBatchData(twice)).toThrow(
      expect.objectContaining({ reason: "asset_order", offset: 47 }),
    );
    const standardOf = (chainId: bigint) => (chainId === 1n ? ("erc721" as const) : null);
    expect(() => blobBatch.decodeBlobBatch(two, { standardOf })).toThrow(
      new BatchDataError("asset_unregistered", 47),
    );
    expect(() => blobBatch.decodeBlobBatch(two, { maxSlots: 1 })).toThrow(
      new BatchDataError("too_many_slots", 1),
    );
  });
});

describe("vaults of other kinds of batches", () => {
  it("come back from a blob batch whenever it holds them", () => {
    fc.assert(
      fc.property(anySlots, (made) => {
        const held = made.map((slot) =>
          slot !== null && elementCount(slot.amount, hexToBytes(slot.blob)) > 0 ? slot : null,
        );
        expect(blobBatch.blobSlots(blobBatch.encodeBlobBatch(held))).toEqual(held);
      }),
      { numRuns: 100 },
    );
  });
});
