import { parentPort } from "node:worker_threads";
import { MintmarkError, messageOf } from "../../errors.ts";
import { answerQuestions, giveWay } from "../../thread.ts";
import { BLOB_BYTES, ELEMENT_BYTES } from "../blob-batch.ts";
import { evaluationPoint } from "../kzg.ts";
import type { KzgJob } from "./kzg-thread.ts";

/**
 * The commitment to {@link probe} under Ethereum's trusted setup, computed from the published setup
 * by another library. It depends on each of the setup's 4096 points.
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

// Before the library starts threads of its own, which inherit it.
if (parentPort !== null) giveWay("sealing");
// Imported here and not at the top, because a platform without the native code must get an answer.
const { DasContextJs } = await import("@crate-crypto/node-eth-kzg");
let context = DasContextJs.create({ usePrecomp: false });
/**
 * Blobs whose cell proofs cost as much more without tables as it costs to make the tables. The
 * tables take 100 MB and save a third of each later blob's cell proofs.
 */
const TABLES_AFTER = 24;
let provenByCells = 0;
const made = Buffer.from(context.blobToKzgCommitment(probe())).toString("hex");
if (made !== PROBE_COMMITMENT) throw new Error("the library's trusted setup is not Ethereum's");

/**
 * Does one job after the other, by synchronous calls. After an asynchronous call, the library frees
 * the arguments on the thread that loaded it first. If that is another thread, the process can end
 * (napi-rs issue 3357).
 */
function answer(job: KzgJob): readonly Uint8Array[] {
  switch (job.type) {
    case "commitment":
      return [context.blobToKzgCommitment(job.blob)];
    case "cells":
      if (++provenByCells === TABLES_AFTER) context = DasContextJs.create({ usePrecomp: true });
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

/** The thread of core/protocol/kzg/kzg-thread.ts: answers jobs in their order. */
answerQuestions((job: KzgJob) => {
  try {
    return answer(job);
  } catch (error) {
    throw new MintmarkError("validation_failed", messageOf(error));
  }
});
