import { parentPort } from "node:worker_threads";
import { answerQuestions, giveWay } from "../thread.ts";

/** The thread of core/archive/deriving-thread.ts: derives batches one after the other. */
if (parentPort !== null) giveWay("sealing");
// Imported here and not at the top, so that compiling the modules gives way too.
const { packedOf } = await import("./deriving-thread.ts");

answerQuestions(packedOf, ({ vaults }) => Object.values(vaults).map(({ buffer }) => buffer));
