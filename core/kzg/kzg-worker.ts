import { parentPort } from "node:worker_threads";
import { BLOB_BYTES } from "../protocol/blob-batch.ts";
import { ELEMENT_BYTES } from "../protocol/elements.ts";
import { evaluationPoint } from "../protocol/kzg.ts";
import type { KzgAnswer, KzgJob } from "./kzg.ts";

/**
 * The commitment to {@link probe} under Ethereum's trusted setup, computed from the published setup by another library.
 * It depends on each of the setup's 4096 points.
 */
const PROBE_COMMITMENT =
  "a1169d8cbb878075924886a55987a6092f19e35c6151e7b5a3a654350e88610ef50b8715ead92ace49ed342e700374a4";

/** A blob without zero elements, each below the modulus. */
function probe(): Uint8Array {
  const blob = new Uint8Array(BLOB_BYTES);
  for (let i = 0; i < BLOB_BYTES; i++) {
    const byte = i % ELEMENT_BYTES;
    if (byte > 0) blob[i] = ((i - byte) / ELEMENT_BYTES) * 31 + byte * 7;
  }
  return blob;
}

// Not imported at the top: a platform without the native code must get an answer.
const { DasContextJs } = await import("@crate-crypto/node-eth-kzg");
const context = DasContextJs.create({ usePrecomp: false });
const made = Buffer.from(context.blobToKzgCommitment(probe())).toString("hex");
if (made !== PROBE_COMMITMENT) throw new Error("the library's trusted setup is not Ethereum's");
parentPort?.postMessage("ready");

function answer(job: KzgJob): KzgAnswer {
  switch (job.type) {
    case "commitment":
      return [context.blobToKzgCommitment(job.blob)];
    case "cells":
      return context.computeCellsAndKzgProofs(job.blob).proofs;
    case "blob":
      return [context.computeBlobKzgProof(job.blob, job.commitment)];
    case "openings":
      return job.indexes.map((index) => {
        const point = evaluationPoint(index)
          .toString(16)
          .padStart(2 * ELEMENT_BYTES, "0");
        return context.computeKzgProof(job.blob, Buffer.from(point, "hex"))[0] as Uint8Array;
      });
  }
}

/** The thread of core/kzg/kzg.ts: answers jobs one after the other. */
parentPort?.on("message", (job: KzgJob) => {
  try {
    parentPort?.postMessage(answer(job));
  } catch (error) {
    parentPort?.postMessage(error instanceof Error ? error.message : String(error));
  }
});
