import fc from "fast-check";
import { expect, it } from "vitest";
import {
  type DerivedBatch,
  type DeriveOptions,
  deriveBatch,
  packBatch,
  unpackBatch,
} from "../../core/archive/derive.ts";
import { DerivingThread } from "../../core/archive/deriving-thread.ts";
import type { Mode } from "../../core/model.ts";
import { BatchDataError, batchDataOf, wordBatch } from "../../core/protocol/batch-data.ts";
import { blobBatchData, blobBatchOf } from "../../core/protocol/blob-batch.ts";
import { hexToBytes } from "../../core/protocol/hex.ts";
import { anySlots } from "../core/protocol/arbitrary.ts";
import { vectors } from "../core/protocol/vectors.ts";
import { entry } from "../settlement/signed-batches.ts";

const contentOf = ({ tree: _tree, blobs: _blobs, ...content }: DerivedBatch) => content;

async function expectPacked(
  mode: Mode,
  batchNumber: number,
  data: Uint8Array,
  options: DeriveOptions = {},
) {
  const own = contentOf(deriveBatch(mode, batchNumber, data, options));
  const packed = structuredClone(packBatch(mode, batchNumber, data, options));
  expect(await unpackBatch(mode, batchNumber, packed)).toEqual(own);
}

const places = fc.uniqueArray(fc.nat(3), { maxLength: 2 });

it("a batch on its way between threads keeps its roots and its vaults", () =>
  fc.assert(
    fc.asyncProperty(anySlots, fc.nat(30), places, places, async (slots, at, some, others) => {
      const words = wordBatch(slots);
      const count = words.assets.length;
      const within = (most: number) => (place: number) => place < most;
      const unnamed = some.filter(within(count));
      const leftOut = others.filter(within(count - unnamed.length)).sort();
      await expectPacked("validium", at, batchDataOf(words), { leftOut, unnamed });
      await expectPacked("zk-rollup", at, batchDataOf(words));
      const versionedHashes = [`0x${"01".repeat(32)}` as const];
      const inBlobs = blobBatchData(blobBatchOf(words));
      await expectPacked("zk-rollup", at, inBlobs, { versionedHashes });
    }),
  ));

it("so do batches whose slots are neither void nor a vault", async () => {
  const all = vectors("batch-data").vectors;
  expect(all.filter(({ name }) => name.startsWith("poison")).length).toBeGreaterThan(2);
  for (const { data } of all) await expectPacked("validium", 3, hexToBytes(data));
});

it("the thread derives what the caller's thread derives, and goes on after a refusal", async () => {
  const thread = new DerivingThread();
  try {
    const slots = Array.from({ length: 1_500 }, (_, i) =>
      i % 7 === 3 ? null : entry("erc721", `${i}`),
    );
    const data = batchDataOf(wordBatch(slots));
    const own = deriveBatch("validium", 4, data);
    // The view of a larger memory, as a body that was read from a connection.
    const view = Buffer.concat([Buffer.alloc(9), data, Buffer.alloc(9)]).subarray(9, -9);
    expect(await thread.derive("validium", 4, view)).toEqual(contentOf(own));
    for (const [bad, reason] of [
      [data.subarray(0, -1), "truncated"],
      [Buffer.concat([data, Buffer.alloc(1)]), "trailing"],
    ] as const) {
      const refused = await thread.derive("validium", 4, bad).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(BatchDataError);
      expect(refused).toMatchObject({ reason });
      expect(() => deriveBatch("validium", 4, bad)).toThrow((refused as Error).message);
    }
    expect(await thread.deriveCommitted({ mode: "zk-rollup", batchNumber: 5 }, data)).toEqual(
      contentOf(deriveBatch("zk-rollup", 5, data)),
    );
    expect(thread.fault).toBeNull();
  } finally {
    await thread.close();
  }
  await expect(thread.derive("validium", 0, new Uint8Array(1))).rejects.toMatchObject({
    code: "engine_closed",
  });
});
