import { parentPort } from "node:worker_threads";
import { answerQuestions, giveWay } from "../thread.ts";
import type { DerivingResult } from "./derive-batch.ts";

/**
 * The thread of core/sealing/sealing-thread.ts: derives batches one after the other and hands over
 * the results.
 */
if (parentPort !== null) giveWay("sealing");
// Imported here and not at the top, so that compiling the modules gives way too.
const { derivedOf } = await import("./sealing-thread.ts");

/** An array that owns its whole memory is moved, not copied. */
function movedOf(derived: DerivingResult): ArrayBuffer[] {
  const { data, tokens } = derived;
  return [data, tokens, ...("pageRoots" in derived ? [derived.pageRoots] : [])]
    .filter(({ buffer, byteLength }) => buffer.byteLength === byteLength)
    .map(({ buffer }) => buffer as ArrayBuffer);
}

answerQuestions(derivedOf, movedOf);
