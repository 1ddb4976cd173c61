import { parentPort } from "node:worker_threads";
import { VaultColumns } from "../store/vault-columns.ts";
import { type DerivedAsset, deriveBatch } from "./derive-batch.ts";
import type { DerivingJob } from "./sealing-thread.ts";

/** The thread of core/sealing/sealing-thread.ts: derives batches one after the other and hands over the results. */
parentPort?.on("message", ({ batch, vaults, assets, voids }: DerivingJob) => {
  const derived = deriveBatch(batch, VaultColumns.of(vaults), (index) => assets.get(index) as DerivedAsset, voids);
  // An array that owns its whole memory is moved, not copied.
  const moved = [derived.data, derived.tokens, ...("pageRoots" in derived ? [derived.pageRoots] : [])]
    .filter(({ buffer, byteLength }) => buffer.byteLength === byteLength)
    .map(({ buffer }) => buffer as ArrayBuffer);
  parentPort?.postMessage(derived, moved);
});
