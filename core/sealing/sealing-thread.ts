import type { Worker } from "node:worker_threads";
import { MintmarkError } from "../errors.ts";
import { VaultColumns, type VaultParts } from "../store/vault-columns.ts";
import { brokenThread, helperThread } from "../thread.ts";
import type { AssetAt, BatchPlace, Derived, DerivedAsset, DerivedVoid } from "./derive-batch.ts";
import { deriveBatch } from "./derive-batch.ts";

export interface DerivingJob {
  readonly batch: BatchPlace;
  readonly vaults: VaultParts;
  readonly assets: ReadonlyMap<number, DerivedAsset>;
  readonly voids: readonly DerivedVoid[];
}

interface Waiting {
  readonly job: DerivingJob;
  readonly resolve: (derived: Derived) => void;
  readonly reject: (reason: unknown) => void;
}

const MAX_WAITING = 4; // Most batches that wait for the thread before the writer waits too. Bounds their memory.
const NAME = "mintmark-sealing";
/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(`./sealing-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);

/**
 * Derives closed batches on a thread, one after the other, which takes as long as minting them. It starts with the
 * first batch, and when idle keeps no process alive. Without it, or after it died, the caller derives batches itself.
 */
export class SealingThread {
  readonly #script: URL;
  #worker: Worker | null = null;
  #fault: Error | null = null;
  #closed = false;
  readonly #waiting: Waiting[] = []; // Batches given to the thread, oldest first. It answers in this order.
  #letOn: (() => void) | null = null;
  room: Promise<void> | null = null; // Resolves when another batch may be closed; null when it may be now

  constructor(script: URL = WORKER) {
    this.#script = script;
  }

  /** Why the caller derives all batches; null while the thread runs, or can. */
  get fault(): Error | null {
    return this.#fault;
  }

  /** The derived records of a closed batch. Rejects with `engine_closed` when the engine closes first. */
  derive<B extends BatchPlace>(place: B, vaults: VaultColumns, assetAt: AssetAt, voids: readonly DerivedVoid[] = []) {
    const assets = new Map(vaults.assetIndices().map((index) => [index, assetAt(index)]));
    const { mode, batchNumber, inBlobs = false } = place;
    const job = { batch: { mode, batchNumber, inBlobs }, vaults: vaults.parts(), assets, voids };
    return new Promise<Derived<B>>((resolve, reject) => {
      const waiting = { job, resolve: resolve as Waiting["resolve"], reject };
      const worker = this.#started();
      if (worker === null) {
        deriveHere(waiting);
        return;
      }
      this.#waiting.push(waiting);
      if (this.#waiting.length >= MAX_WAITING && this.room === null) {
        const room = Promise.withResolvers<void>();
        this.room = room.promise;
        this.#letOn = room.resolve;
      }
      worker.ref();
      worker.postMessage(job);
    });
  }

  /** Stops the thread. Its unfinished work is done again at the next opening. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(new MintmarkError("engine_closed"));
    this.#makeRoom();
    await this.#worker?.terminate();
  }

  #started(): Worker | null {
    if (this.#closed) throw new MintmarkError("engine_closed");
    if (this.#worker !== null || this.#fault !== null) return this.#worker;
    const answered = (_: Worker, derived: Derived) => this.#answered(derived);
    this.#worker = helperThread(this.#script, NAME, answered, (cause) => this.#died(cause));
    return this.#worker;
  }

  #answered(derived: Derived): void {
    // The end of a thread keeps the process alive, which `unref` would undo.
    if (this.#closed) return;
    this.#waiting.shift()?.resolve(derived);
    if (this.#waiting.length === 0) this.#worker?.unref();
    this.#makeRoom();
  }

  #died(cause?: unknown): void {
    this.#worker = null;
    if (!this.#closed) this.#fault ??= brokenThread(NAME, cause);
    for (const waiting of this.#waiting.splice(0)) deriveHere(waiting);
    this.#makeRoom();
  }

  #makeRoom(): void {
    if (this.#waiting.length >= MAX_WAITING) return;
    this.#letOn?.();
    this.room = null;
  }
}

function deriveHere({ job: { batch, vaults, assets, voids }, resolve, reject }: Waiting): void {
  try {
    resolve(deriveBatch(batch, VaultColumns.of(vaults), (index) => assets.get(index) as DerivedAsset, voids));
  } catch (error) {
    reject(error);
  }
}
