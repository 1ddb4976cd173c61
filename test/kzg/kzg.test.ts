import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Hex } from "../../core/model.ts";
import { BLOB_BYTES, BLOB_ELEMENTS } from "../../core/protocol/blob-batch.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { FIELD_MODULUS, verifyBlob, verifyOpening } from "../../core/protocol/kzg.ts";
import type { BlobProof, Opening } from "../../core/protocol/versioned-hash.ts";
import { versionedHash } from "../../core/protocol/versioned-hash.ts";

let kzg: KzgThread;
beforeAll(() => {
  kzg = new KzgThread();
});
afterAll(() => kzg.close());

/** A blob whose elements differ, and are all below the field's modulus. */
function blobOf(seed: number): Uint8Array {
  const blob = new Uint8Array(BLOB_BYTES);
  for (let i = 0; i < BLOB_ELEMENTS; i++)
    new DataView(blob.buffer).setUint32(32 * i + 28, i * 7 + seed);
  return blob;
}

const flipped = (hex: Hex, at: number): Hex =>
  `${hex.slice(0, at)}${hex[at] === "0" ? "1" : "0"}${hex.slice(at + 1)}` as Hex;

describe("KZG", () => {
  test("proves each element of a blob, and JavaScript alone accepts it for that element and no other", async () => {
    const blob = blobOf(1);
    const commitment = await kzg.commitment(blob);
    const hash = versionedHash(commitment);
    expect(hash).toMatch(/^0x01[0-9a-f]{62}$/);
    const openings = await kzg.openings(blob, commitment, [0, 1, 4095]);
    expect(openings.map(({ element }) => BigInt(element))).toEqual([1n, 8n, 4095n * 7n + 1n]);
    for (const opening of openings) expect(verifyOpening(hash, opening)).toBe(true);
    const [first, second] = openings as [Opening, Opening];
    const point = (FIELD_MODULUS + BigInt(first.element)).toString(16).padStart(64, "0");
    const other = await kzg.commitment(blobOf(2));
    const bad: readonly (readonly [string, Hex, Opening])[] = [
      ["another element", hash, { ...first, element: second.element }],
      ["an element beyond the field", hash, { ...first, element: `0x${point}` }],
      ["another place", hash, { ...first, index: 2 }],
      ["a place outside of the blob", hash, { ...first, index: 4096 }],
      ["another proof", hash, { ...first, proof: second.proof }],
      ["a proof that is no point", hash, { ...first, proof: flipped(first.proof, 50) }],
      ["a short proof", hash, { ...first, proof: first.proof.slice(0, -2) as Hex }],
      ["another commitment", hash, { ...first, commitment: other }],
      ["another blob", versionedHash(other), { ...first, commitment: other }],
      ["another version", `0x02${hash.slice(4)}`, first],
    ];
    for (const [what, against, opening] of bad)
      expect(verifyOpening(against, opening), what).toBe(false);
  });

  test("proves all of a blob, and JavaScript alone accepts it for that blob and no other", async () => {
    const blob = blobOf(9);
    const commitment = await kzg.commitment(blob);
    const hash = versionedHash(commitment);
    const [proof] = (await kzg.proofs(blob, commitment, "blob")) as [Hex];
    expect(verifyBlob(hash, blob, { commitment, proof })).toBe(true);
    const other = blobOf(10);
    const bad: readonly (readonly [string, Hex, Uint8Array, BlobProof])[] = [
      ["another blob", hash, other, { commitment, proof }],
      ["another element", hash, blob.with(BLOB_BYTES - 1, 0), { commitment, proof }],
      ["an element beyond the field", hash, blobOf(9).fill(0xff, 0, 32), { commitment, proof }],
      ["a short blob", hash, blob.subarray(32), { commitment, proof }],
      ["another proof", hash, blob, { commitment, proof: commitment }],
      ["a proof that is no point", hash, blob, { commitment, proof: flipped(proof, 50) }],
      ["another commitment", hash, other, { commitment: await kzg.commitment(other), proof }],
      ["another version", `0x02${hash.slice(4)}`, blob, { commitment, proof }],
    ];
    for (const [what, against, bytes, shown] of bad)
      expect(verifyBlob(against, bytes, shown), what).toBe(false);
    const zeros = new Uint8Array(BLOB_BYTES);
    const infinity: Hex = `0xc0${"00".repeat(47)}`;
    expect(
      verifyBlob(versionedHash(infinity), zeros, { commitment: infinity, proof: infinity }),
    ).toBe(true);
  });

  test("makes 128 cell proofs of a blob, or one proof of all of it", async () => {
    const blob = blobOf(3);
    const commitment = await kzg.commitment(blob);
    const cells = await kzg.proofs(blob, commitment, "cells");
    const whole = await kzg.proofs(blob, commitment, "blob");
    expect(cells).toHaveLength(128);
    const { DasContextJs } = createRequire(import.meta.url)("@crate-crypto/node-eth-kzg");
    const own = DasContextJs.create({ usePrecomp: false });
    const bytes = (hex: Hex) => Buffer.from(hex.slice(2), "hex");
    expect(own.verifyBlobKzgProof(blob, bytes(commitment), bytes(whole[0] as Hex))).toBe(true);
    const indexes = cells.map((_, i) => i);
    const same = indexes.map(() => bytes(commitment));
    expect(
      own.verifyCellKzgProofBatch(same, indexes, own.computeCells(blob), cells.map(bytes)),
    ).toBe(true);
  });

  test("gives each asker its own answer", async () => {
    const slow = kzg.proofs(blobOf(6), "0x", "cells");
    const [a, b] = await Promise.all([7, 8].map((seed) => kzg.commitment(blobOf(seed))));
    expect(a).not.toBe(b);
    expect(await slow).toHaveLength(128);
    expect([await kzg.commitment(blobOf(7)), await kzg.commitment(blobOf(8))]).toEqual([a, b]);
  });

  test("refuses bad blobs, and goes on", async () => {
    const beyond = blobOf(4).fill(0xff, 32, 64);
    await expect(kzg.commitment(beyond)).rejects.toMatchObject({ code: "validation_failed" });
    await expect(kzg.commitment(new Uint8Array(32))).rejects.toMatchObject({
      code: "validation_failed",
    });
    await expect(kzg.openings(blobOf(4), "0x", [4096])).rejects.toMatchObject({
      code: "validation_failed",
    });
    expect(await kzg.commitment(blobOf(1))).not.toBe(await kzg.commitment(blobOf(2)));
  });

  test("leaves the event loop free, and ends what it has not answered when it closes", async () => {
    const own = new KzgThread();
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await own.proofs(blobOf(5), await own.commitment(blobOf(5)), "cells");
    clearInterval(timer);
    expect(turns).toBeGreaterThan(20);
    const unanswered = own.commitment(blobOf(5));
    await Promise.all([
      expect(unanswered).rejects.toMatchObject({ code: "engine_closed" }),
      own.close(),
    ]);
    await expect(own.commitment(blobOf(5))).rejects.toMatchObject({ code: "engine_closed" });
  });

  test("works in a program that node gets as text, under flags that threads refuse", async () => {
    const program = `import { KzgThread } from "./core/protocol/kzg/kzg-thread.ts";
      const kzg = new KzgThread();
      console.log(await kzg.commitment(new Uint8Array(${BLOB_BYTES})));
      await kzg.close();`;
    const cwd = new URL("../../", import.meta.url).pathname;
    const run = promisify(execFile)(
      process.execPath,
      ["--max-semi-space-size=64", "--input-type=module", "-e", program],
      { cwd },
    );
    expect((await run).stdout).toBe(`0xc0${"00".repeat(47)}\n`);
  });
});
