import { setImmediate } from "node:timers/promises";
import { parentPort } from "node:worker_threads";
import { giveWay } from "../thread.ts";
import type { SurveyMessage, SurveyNews, SurveyTask } from "./survey-thread.ts";

/** Rows between two messages about the progress of a survey. */
const TOLD_ROWS = 4_096;

/** The thread of core/drops/survey-thread.ts: surveys files, many at once. */
if (parentPort !== null) giveWay("long");
// Imported here and not at the top, so that compiling the modules gives way too.
const { GrowingFile } = await import("./growing-file.ts");
const { surveyOf } = await import("./windows.ts");

/** A survey in progress. */
interface Running {
  readonly file: InstanceType<typeof GrowingFile>;
  isStopped: boolean;
}

const running = new Map<number, Running>();
const tell = (news: SurveyNews) => parentPort?.postMessage(news);

async function survey(id: number, { path, format, defaults, limits }: SurveyTask): Promise<void> {
  const own: Running = { file: new GrowingFile(path), isStopped: false };
  running.set(id, own);
  let told = 0;
  const turn = async (rows: number) => {
    if (rows >= told + TOLD_ROWS) {
      told = rows;
      tell({ id, rows });
    }
    // Other surveys go on, and messages are heard.
    await setImmediate();
    if (own.isStopped) throw new Error("The survey was stopped.");
  };
  try {
    const found = await surveyOf(own.file.pieces(), format, defaults, limits, turn);
    tell({ id, rows: found.rows });
    tell({ id, survey: found });
  } catch (failure) {
    tell({ id, failure });
  } finally {
    running.delete(id);
  }
}

parentPort?.on("message", (message: SurveyMessage) => {
  if ("begin" in message) {
    void survey(message.id, message.begin);
    return;
  }
  const own = running.get(message.id);
  if (own === undefined) return;
  if ("written" in message) own.file.grow(message.written);
  else {
    own.isStopped = "stop" in message;
    own.file.complete();
  }
});
