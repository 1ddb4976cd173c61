import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Hex, MAX_AMOUNT, type Mode, type Standard } from "../../../core/model.ts";
import * as batchData from "../../../core/protocol/batch-data.ts";
import {
  decodeBatch,
  decodeBatchData,
  decodeSlots,
  placeVaults,
} from "../../../core/protocol/batch-decoder.ts";
import { encodeBatchData } from "../../../core/protocol/batch-encoder.ts";
import { BatchTree } from "../../../core/protocol/batch-tree.ts";
import { bytesToHex, hexToBytes } from "../../../core/protocol/hex.ts";
import { manifestRoot, batchRoot as rootOf } from "../../../core/protocol/manifest.ts";
import { vaultLeaves } from "../../../core/protocol/vault.ts";
import { naiveDecode, naiveEncode } from "../naive/naive-batch-data.ts";
import { decimalBlob } from "../naive/naive-vault.ts";
import { anySlots } from "./arbitrary.ts";
import { vectors } from "./vectors.ts";

const file = vectors("batch-data");

const VAULT: batchData.VaultEntry = {
  chainId: 1n,
  owner: `0x${"11".repeat(20)}`,
  assetType: `0x${"22".repeat(32)}`,
  amount: 1n,
  blob: decimalBlob(1),
};
const vaults = (
  count: number,
  make: (i: number) => Partial<batchData.VaultEntry>,
): batchData.VaultEntry[] => Array.from({ length: count }, (_, i) => ({ ...VAULT, ...make(i) }));
const owner = (n: number): Hex => `0x${n.toString(16).padStart(40, "0")}`;
const widthOf = (amount: bigint) =>
  batchData.widthOfWords(Number(amount >> 32n), Number(amount & 0xffff_ffffn));
const refusal = (data: string, options = {}) => {
  try {
    decodeBatchData(hexToBytes(data), options);
    return null;
  } catch (error) {
    if (error instanceof batchData.BatchDataError) return error.reason;
    throw error;
  }
};
const standardOf = (chainId: bigint, assetType: Hex): Standard | null =>
  (file.assets.find((asset) => BigInt(asset.chainId) === chainId && asset.assetType === assetType)
    ?.standard as Standard) ?? null;

/** What {@link decodeBatch} gives for these slots. */
const picked = (entries: readonly (batchData.VaultEntry | null)[], slots: readonly number[]) =>
  new Map(slots.flatMap((slot) => (entries[slot] ? [[slot, entries[slot]] as const] : [])));

describe("single slots of batch data", () => {
  it.each(file.vectors)("of $name are those of the whole batch", ({ data }) => {
    const bytes = hexToBytes(data);
    const { slots } = decodeBatch(bytes);
    for (const slot of slots.keys())
      expect(decodeSlots(bytes, [slot])).toEqual(picked(slots, [slot]));
  });

  it("are those of the whole batch, whatever lies between them", () => {
    fc.assert(
      fc.property(
        anySlots,
        fc.array(fc.nat(300)),
        fc.constantFrom("bytes", "gas"),
        (entries, wanted, least) => {
          const slots = [...new Set(wanted)].sort((a, b) => a - b);
          const data = encodeBatchData([...entries, VAULT], least);
          expect(decodeSlots(data, slots)).toEqual(picked([...entries, VAULT], slots));
          expect(decodeSlots(data, slots, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])).toEqual(new Map());
        },
      ),
    );
  });
});

describe("batch data vectors", () => {
  it.each(file.vectors)("$name", ({ data, vaultCount, content, batchRoot, encoder }) => {
    const { slots, assets } = decodeBatch(hexToBytes(data), { standardOf });
    expect(slots.length).toBe(Number(vaultCount));
    expect(slots).toEqual(naiveDecode(data));
    const leaves = vaultLeaves(placeVaults(slots, file.mode as Mode, Number(file.batchNumber)));
    expect(bytesToHex(new BatchTree(leaves).root)).toBe(content);
    expect(rootOf("calldata", manifestRoot(assets), content)).toBe(batchRoot);
    const encoded = bytesToHex(encodeBatchData(slots));
    if (encoder) expect(encoded).toBe(data);
    else expect(decodeBatchData(hexToBytes(encoded))).toEqual(slots);
  });

  it.each(file.refused)("refused: $name ($reason)", ({ data, reason }) => {
    expect(refusal(data)).toBe(reason);
  });

  it.each(file.refusedByAsset)("refused for its asset: $name ($reason)", ({ data, reason }) => {
    expect(refusal(data, { standardOf })).toBe(reason);
    expect(refusal(data)).toBeNull();
  });

  it("hold a rejection for every reason", () => {
    const pinned = new Set(
      [...file.refused, ...file.refusedByAsset].map((vector) => vector.reason),
    );
    expect([...pinned].sort()).toEqual(Object.keys(batchData.BATCH_DATA_REASONS).sort());
  });

  it("refuse more slots than the caller allows", () => {
    const data = bytesToHex(
      encodeBatchData([...vaults(3, (i) => ({ blob: decimalBlob(i) })), null]),
    );
    expect(refusal(data, { maxSlots: 3 })).toBe("too_many_slots");
    expect(refusal(data, { maxSlots: 4 })).toBeNull();
  });
});

describe("encoding", () => {
  it("is undone by decoding, by the clever decoder and by the naive one", () => {
    fc.assert(
      fc.property(anySlots, (slots) => {
        const data = encodeBatchData(slots);
        expect(decodeBatchData(data)).toEqual(slots);
        expect(naiveDecode(bytesToHex(data))).toEqual(slots);
        expect(decodeBatchData(hexToBytes(naiveEncode(slots)))).toEqual(slots);
      }),
      { numRuns: 200 },
    );
  });

  it("never takes more than the bound by which a batch is sealed, nor more than the naive encoding", () => {
    fc.assert(
      fc.property(anySlots, (slots) => {
        const assets = new Set(slots.map((entry) => entry && `${entry.chainId} ${entry.assetType}`))
          .size;
        const bound = slots.reduce(
          (sum, entry) =>
            sum +
            (entry === null
              ? 5
              : batchData.vaultBytesBound(widthOf(entry.amount), (entry.blob.length - 2) / 2)),
          batchData.BATCH_DATA_BASE_BYTES + assets * batchData.ASSET_ENTRY_BYTES,
        );
        const size = encodeBatchData(slots).length;
        expect(size).toBeLessThanOrEqual(bound);
        expect(size).toBeLessThanOrEqual((naiveEncode(slots).length - 2) / 2);
      }),
      { numRuns: 200 },
    );
  });

  it("refuses what no encoding can hold", () => {
    const code = (value: string) => expect.objectContaining({ code: value });
    expect(() => encodeBatchData([])).toThrow(code("validation_failed"));
    expect(() => encodeBatchData([{ ...VAULT, amount: 0n }])).toThrow(code("amount_out_of_range"));
    expect(() => encodeBatchData([{ ...VAULT, amount: MAX_AMOUNT + 1n }])).toThrow(
      code("amount_out_of_range"),
    );
    expect(() => encodeBatchData([{ ...VAULT, blob: `0x${"31".repeat(256)}` }])).toThrow(
      code("blob_invalid"),
    );
    expect(() => encodeBatchData([{ ...VAULT, blob: "0x313" }])).toThrow(code("validation_failed"));
    expect(() => encodeBatchData([{ ...VAULT, owner: "0x11" }])).toThrow(code("validation_failed"));
    expect(() => encodeBatchData([{ ...VAULT, chainId: 1n << 64n }])).toThrow(
      code("validation_failed"),
    );
    expect(() => encodeBatchData([{ ...VAULT, assetType: "0x22" }])).toThrow(
      code("validation_failed"),
    );
    const manyAssets = vaults(256, (i) => ({ assetType: `0x${i.toString(16).padStart(64, "0")}` }));
    expect(() => encodeBatchData(manyAssets)).toThrow(code("batch_too_large"));
  });

  it("holds the largest batch: 2^20 slots, 255 assets, more owners than a dictionary has", () => {
    const slots: (batchData.VaultEntry | null)[] = new Array(1 << 20).fill(null);
    for (let i = 0; i < 140_000; i++) {
      slots[i] = {
        ...VAULT,
        assetType: `0x${(i % 255).toString(16).padStart(64, "0")}`,
        owner: owner(i >> 1),
      };
    }
    const data = encodeBatchData(slots);
    const decoded = decodeBatchData(data);
    expect(decoded.length).toBe(1 << 20);
    for (const slot of [0, 1, 65_534, 65_535, 139_999, 140_000, (1 << 20) - 1])
      expect(decoded[slot]).toEqual(slots[slot]);
    expect(bytesToHex(encodeBatchData(decoded)) === bytesToHex(data)).toBe(true);
  });
});
