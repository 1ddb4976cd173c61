import { parentPort } from "node:worker_threads";
import { giveWay } from "../thread.ts";
import type { DerivingJob } from "./sealing-thread.ts";

/**
 * The thread of core/sealing/sealing-thread.ts: derives batches one after the other and hands over
 * the results.
 */
if (parentPort !== null) giveWay();
// Imported here and not at the top, so that compiling the modules gives way too.
const { derivedOf } = await import("./sealing-thread.ts");
parentPort?.on("message", (job: DerivingJob) => {
  const derived = derivedOf(job);
  // An array that owns its whole memory is moved, not copied.
  const moved = [
    derived.data,
    derived.tokens,
    ...("pageRoots" in derived ? [derived.pageRoots] : []),
  ]
    .filter(({ buffer, byteLength }) => buffer.byteLength === byteLength)
    .map(({ buffer }) => buffer as ArrayBuffer);
  parentPort?.postMessage(derived, moved);
});
