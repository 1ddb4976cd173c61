import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Hex, MAX_AMOUNT, MODES } from "../../../core/model.ts";
import * as batchData from "../../../core/protocol/batch-data.ts";
import { BatchTree } from "../../../core/protocol/batch-tree.ts";
import { bytesToHex, hexToBytes } from "../../../core/protocol/hex.ts";
import { manifestRoot, batchRoot as rootOf } from "../../../core/protocol/manifest.ts";
import { packVaultId } from "../../../core/protocol/vault.ts";
import {
  payloadBytes,
  shortPayloadBytes,
  WORD_BYTES,
  writePayload,
} from "../../../core/protocol/words.ts";
import { decimalMintingBlob } from "../naive/naive-vault.ts";
import {
  naiveAssets,
  naiveContent,
  naiveData,
  naiveRead,
  naiveSlots,
  naiveWordsOf,
} from "../naive/naive-words.ts";
import { anySlots } from "./arbitrary.ts";
import { vectors } from "./vectors.ts";

const file = vectors("batch-data");
const { decodeBatch, encodeBatchData } = batchData;

const VAULT: batchData.VaultEntry = {
  chainId: 1n,
  owner: `0x${"11".repeat(20)}`,
  assetType: `0x${"22".repeat(32)}`,
  amount: 1n,
  mintingBlob: decimalMintingBlob(1),
};
const vaults = (
  count: number,
  make: (i: number) => Partial<batchData.VaultEntry>,
): batchData.VaultEntry[] => Array.from({ length: count }, (_, i) => ({ ...VAULT, ...make(i) }));
const owner = (n: number): Hex => `0x${n.toString(16).padStart(40, "0")}`;
const refusal = (data: string) => {
  try {
    decodeBatch(hexToBytes(data));
    return null;
  } catch (error) {
    if (error instanceof batchData.BatchDataError) return error.reason;
    throw error;
  }
};

describe("single slots of a batch", () => {
  it("are those of the whole batch, without assets that are left out", () => {
    fc.assert(
      fc.property(anySlots, fc.array(fc.nat(300)), (entries, wanted) => {
        const slots = [...new Set(wanted)];
        const batch = decodeBatch(encodeBatchData(entries));
        const picked = slots.flatMap((slot) => (entries[slot] ? [[slot, entries[slot]]] : []));
        expect([...batchData.slotsAt(batch, slots)]).toEqual(picked);
        const places = [...batch.assets.keys()];
        expect(batchData.slotsAt(batch, slots, places)).toEqual(new Map());
      }),
    );
  });
});

describe("batch data vectors", () => {
  it.each(file.vectors)("$name", ({ data, vaultCount, content, batchRoot, encoder }) => {
    const batch = decodeBatch(hexToBytes(data));
    const { slots, assets } = batch;
    expect(slots.length).toBe(Number(vaultCount));
    const naive = naiveRead(data);
    expect(slots).toEqual(naiveSlots(naive.assets, naive.words));
    const leaves = batchData.batchLeaves(batch, file.mode, Number(file.batchNumber));
    expect(bytesToHex(new BatchTree(leaves).root)).toBe(content);
    expect(rootOf("calldata", manifestRoot(assets), content)).toBe(batchRoot);
    const encoded = bytesToHex(batchData.batchDataOf(batch));
    if (encoder) expect(encoded).toBe(data);
    else expect(decodeBatch(hexToBytes(encoded)).slots).toEqual(slots);
  });

  it.each(file.refused)("refused: $name ($reason)", ({ data, reason }) => {
    expect(refusal(data)).toBe(reason);
  });

  it.each(file.refusedByAsset)("refused by L1 alone: $name ($reason)", ({ data }) => {
    expect(refusal(data)).toBeNull();
  });

  it("hold a rejection for every reason", () => {
    const pinned = new Set(file.refused.map((vector) => vector.reason));
    expect([...pinned].sort()).toEqual(Object.keys(batchData.BATCH_DATA_REASONS).sort());
  });
});

describe("a record that is no vault", () => {
  const poisoned = file.vectors.filter(({ name }) => name.startsWith("poison"));

  it.each(poisoned)("is void and keeps its width: $name", ({ data }) => {
    const batch = decodeBatch(hexToBytes(data));
    expect(batch.slots.map((slot) => slot !== null)).toEqual([true, false, true]);
    expect(batchData.firstMalformed(batch)).toBe(1);
  });

  it("is none of a batch that the encoder makes", () => {
    fc.assert(
      fc.property(anySlots, (slots) => {
        expect(batchData.firstMalformed(batchData.wordBatch(slots))).toBeNull();
      }),
    );
  });
});

describe("encoding", () => {
  it("is undone by decoding, by the clever decoder and by the naive one", () => {
    fc.assert(
      fc.property(anySlots, fc.boolean(), fc.constantFrom(...MODES), (slots, listed, mode) => {
        const data = encodeBatchData(slots);
        const batch = decodeBatch(data);
        expect(batch.slots).toEqual(slots);
        const { assets, words } = naiveRead(bytesToHex(data));
        expect(naiveSlots(assets, words)).toEqual(slots);
        const naive = naiveData(naiveAssets(slots), naiveWordsOf(slots), listed);
        expect(decodeBatch(hexToBytes(naive)).slots).toEqual(slots);
        const firstId = packVaultId({ mode, batchNumber: 9, slot: 0 });
        const tree = new BatchTree(batchData.batchLeaves(batch, mode, 9));
        expect(bytesToHex(tree.root)).toBe(naiveContent(naiveWordsOf(slots), firstId));
      }),
      { numRuns: 200 },
    );
  });

  it("takes the shorter naive form, and never more than the bound by which a batch is sealed", () => {
    fc.assert(
      fc.property(anySlots, (slots) => {
        const size = encodeBatchData(slots).length;
        const naive = [false, true].map(
          (listed) => naiveData(naiveAssets(slots), naiveWordsOf(slots), listed).length / 2 - 1,
        );
        expect(size).toBe(Math.min(...naive));
        const { assets, words } = batchData.wordBatch(slots);
        const widths = slots.map((_, slot) => payloadBytes(words.heads, slot * 32));
        const bound = batchData.batchDataBound(
          assets.length,
          slots.length,
          Math.max(...widths),
          words.restBytes / 31,
        );
        expect(size).toBeLessThanOrEqual(bound);
      }),
      { numRuns: 200 },
    );
  });

  it("takes the bytes that are known beforehand for a short number as an id", () => {
    const word = fc.oneof(fc.constantFrom(0, 1, 2, 0xff, 0x100, 2 ** 32 - 1), fc.nat(2 ** 32 - 1));
    const id = fc.oneof(
      fc.constantFrom(0, 1, 255, 256, 2 ** 32 - 1, 2 ** 32, 2 ** 40 - 1, 2 ** 40, 10 ** 15 - 1),
      fc.nat(10 ** 15 - 1),
    );
    const head = new Uint8Array(WORD_BYTES);
    const short = fc.oneof(word, fc.nat(300));
    fc.assert(
      fc.property(short, word, id, (high, low, id) => {
        fc.pre(high > 0 || low > 0);
        const mintingBlob = Buffer.from(`${id}`);
        const more = writePayload(head, 0, high, low, mintingBlob, 0, mintingBlob.length);
        const known = shortPayloadBytes(high, low, id);
        expect(known).toBe(more > 0 ? -1 : payloadBytes(head, 0));
      }),
      { numRuns: 2_000 },
    );
    expect(shortPayloadBytes(0, 1, -1)).toBe(-1);
    expect(shortPayloadBytes(0, 2, -1)).toBe(-1);
  });

  it("refuses what no encoding can hold", () => {
    const code = (value: string) => expect.objectContaining({ code: value });
    expect(() => encodeBatchData([])).toThrow(code("validation_failed"));
    expect(() => encodeBatchData([{ ...VAULT, amount: 0n }])).toThrow(code("amount_out_of_range"));
    expect(() => encodeBatchData([{ ...VAULT, amount: MAX_AMOUNT + 1n }])).toThrow(
      code("amount_out_of_range"),
    );
    expect(() => encodeBatchData([{ ...VAULT, mintingBlob: `0x${"31".repeat(256)}` }])).toThrow(
      code("minting_blob_invalid"),
    );
    expect(() => encodeBatchData([{ ...VAULT, mintingBlob: "0x313" }])).toThrow(
      code("validation_failed"),
    );
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
    const decoded = decodeBatch(data);
    expect(decoded.slots.length).toBe(1 << 20);
    for (const slot of [0, 1, 65_534, 65_535, 139_999, 140_000, (1 << 20) - 1])
      expect(decoded.slots[slot]).toEqual(slots[slot]);
    expect(bytesToHex(batchData.batchDataOf(decoded)) === bytesToHex(data)).toBe(true);
  });
});
