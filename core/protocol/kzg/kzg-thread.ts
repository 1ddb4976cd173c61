import { invalid, MintmarkError } from "../../errors.ts";
import type { Hex } from "../../model.ts";
import { AnsweringThread, type PendingQuestion } from "../../thread.ts";
import { BLOB_BYTES, ELEMENT_BYTES } from "../blob-batch.ts";
import { bytesToHex, hexToBytes } from "../hex.ts";
import { type Opening, POINT_BYTES } from "../versioned-hash.ts";

/**
 * Proofs of a blob for a transaction: 128 cell proofs (EIP-7594), which networks want since Fusaka,
 * or one proof of the whole blob (EIP-4844).
 */
export type ProofForm = "cells" | "blob";

/** Computes commitments and proofs of blobs. Each blob has 131,072 bytes. */
export interface Kzg {
  /**
   * Whether the native code loads on this machine. Takes milliseconds, since it computes nothing.
   */
  isAvailable(): Promise<boolean>;
  /**
   * The blob's KZG commitment, 48 bytes. Rejects with `validation_failed` for an element that is
   * not in the field.
   */
  commitment(blob: Uint8Array): Promise<Hex>;
  /** The blob's proofs for a transaction, 48 bytes each. */
  proofs(blob: Uint8Array, commitment: Hex, form: ProofForm): Promise<readonly Hex[]>;
  /** Elements of a blob with their proofs, in the order of `indexes`. */
  openings(
    blob: Uint8Array,
    commitment: Hex,
    indexes: readonly number[],
  ): Promise<readonly Opening[]>;
}

export type KzgJob =
  | { readonly type: "commitment" | "cells"; readonly blob: Uint8Array }
  | { readonly type: "blob"; readonly blob: Uint8Array; readonly commitment: Uint8Array }
  | { readonly type: "openings"; readonly blob: Uint8Array; readonly indexes: readonly number[] };

/** Points of G1. A bad job fails with `validation_failed` and the library's words. */
export type KzgAnswer = readonly Uint8Array[];

/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(
  `./kzg-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`,
  import.meta.url,
);

class Jobs extends AnsweringThread<KzgJob, KzgAnswer> {
  protected override lost(
    asked: readonly PendingQuestion<KzgJob, KzgAnswer>[],
    cause: unknown,
  ): void {
    const why = cause instanceof Error ? cause.message.split("\n", 1)[0] : String(cause);
    const message = `The thread of the native KZG code does not run (${why}).`;
    for (const { reject } of asked)
      reject(new MintmarkError("kzg_unavailable", message, { cause }));
  }
}

/**
 * A {@link Kzg} over native code, so that the event loop goes on. Its thread starts with the first
 * job, for which it computes a second or two. It works on one job after the other, and never keeps
 * the process alive when idle.
 *
 * Cell proofs build 100 MB of tables, kept until it closes; they are worth it for many blobs.
 *
 * It checks its trusted setup with a blob whose commitment is known. A job rejects with
 * `kzg_unavailable` when the library has no native code for this platform, or another setup, or
 * when its thread dies under the job twice. The next job starts a new thread.
 *
 * @example
 * // One thread for the engine and the chain. Its opener closes it, after both.
 * const kzg = new KzgThread();
 * const engine = await openEngine({ ...options, kzg });
 * const l1 = await connectL1({ rpc, contract, account, finality, kzg });
 */
export class KzgThread implements Kzg {
  readonly #thread: Jobs;

  /** @param script - the thread's code; default this library's own */
  constructor(script: URL = WORKER) {
    this.#thread = new Jobs(script, "mintmark-kzg");
  }

  isAvailable(): Promise<boolean> {
    return import("@crate-crypto/node-eth-kzg").then(
      () => true,
      () => false,
    );
  }

  async commitment(blob: Uint8Array): Promise<Hex> {
    const [point] = await this.#ask({ type: "commitment", blob: checked(blob) });
    return bytesToHex(point as Uint8Array);
  }

  async proofs(blob: Uint8Array, commitment: Hex, form: ProofForm): Promise<readonly Hex[]> {
    checked(blob);
    const job =
      form === "cells"
        ? { type: form, blob }
        : { type: form, blob, commitment: hexToBytes(commitment, POINT_BYTES) };
    return (await this.#ask(job)).map(bytesToHex);
  }

  async openings(
    blob: Uint8Array,
    commitment: Hex,
    indexes: readonly number[],
  ): Promise<readonly Opening[]> {
    const proofs = await this.#ask({ type: "openings", blob: checked(blob), indexes });
    return proofs.map((proof, i) => {
      const index = indexes[i]!;
      const element = bytesToHex(blob.subarray(index * ELEMENT_BYTES, (index + 1) * ELEMENT_BYTES));
      return { index, element, commitment, proof: bytesToHex(proof) };
    });
  }

  /**
   * Ends the thread once the native code is done with its present job. All jobs reject with
   * `engine_closed` at once.
   */
  async close(): Promise<void> {
    await this.#thread.close();
  }

  async #ask(job: KzgJob): Promise<readonly Uint8Array[]> {
    return this.#thread.ask(job).catch((error: unknown) => {
      // Perhaps another job ended the thread, or the memory was short for a moment.
      if (error instanceof MintmarkError && error.code === "kzg_unavailable")
        return this.#thread.ask(job);
      throw error;
    });
  }
}

/**
 * Runs the work with the given {@link Kzg}, or with a thread of its own, which is closed
 * afterwards.
 */
export async function withKzg<T>(
  given: Kzg | undefined,
  work: (kzg: Kzg) => Promise<T>,
): Promise<T> {
  if (given !== undefined) return work(given);
  const own = new KzgThread();
  try {
    return await work(own);
  } finally {
    await own.close();
  }
}

function checked(blob: Uint8Array): Uint8Array {
  if (blob.length !== BLOB_BYTES) {
    throw invalid(`a blob has ${BLOB_BYTES} bytes, not ${blob.length}`);
  }
  return blob;
}
