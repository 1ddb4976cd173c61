import { expect, test } from "vitest";
import { BLOB_BYTES, BLOB_ELEMENTS } from "../../core/protocol/blob-batch.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";

/** More than the thread proves before it makes tables. */
const MANY = 30;

test("the tables that many cell proofs bring change no proof", async () => {
  const kzg = new KzgThread();
  try {
    const blob = new Uint8Array(BLOB_BYTES);
    for (let i = 0; i < BLOB_ELEMENTS; i++)
      new DataView(blob.buffer).setUint32(32 * i + 28, i * 7 + 1);
    const commitment = await kzg.commitment(blob);
    const first = await kzg.proofs(blob, commitment, "cells");
    for (let i = 1; i < MANY; i++)
      await kzg.proofs(new Uint8Array(BLOB_BYTES).fill(i, 1, 9), commitment, "cells");
    expect(await kzg.proofs(blob, commitment, "cells")).toEqual(first);
    expect(await kzg.commitment(blob)).toBe(commitment);
  } finally {
    await kzg.close();
  }
});
