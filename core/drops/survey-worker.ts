import { parentPort } from "node:worker_threads";
import { failureOf, giveWay } from "../thread.ts";
import type { SurveyMessage, SurveyNews, SurveyTask } from "./survey-thread.ts";

/** Milliseconds between two messages about the progress of a survey. */
const TOLD_MS = 100;

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
/** Surveys that wait for their turn, by application; the next application is the first. */
const waiting = new Map<string, (() => void)[]>();
const tell = (news: SurveyNews) => parentPort?.postMessage(news);

/** Resolves after a turn of each other application that waits. Messages are heard meanwhile. */
function turnOf(applicationId: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (waiting.size === 0) setImmediate(giveTurn);
  waiting.set(applicationId, [...(waiting.get(applicationId) ?? []), resolve]);
  return promise;
}

function giveTurn(): void {
  const [next] = waiting;
  if (next === undefined) return;
  const [applicationId, [go, ...others]] = next;
  waiting.delete(applicationId);
  if (others.length > 0) waiting.set(applicationId, others);
  if (waiting.size > 0) setImmediate(giveTurn);
  go?.();
}

async function survey(id: number, task: SurveyTask): Promise<void> {
  const { path, applicationId, format, defaults, limits } = task;
  const own: Running = { file: new GrowingFile(path), isStopped: false };
  running.set(id, own);
  let told = performance.now();
  const turn = async (rows: number) => {
    if (performance.now() - told >= TOLD_MS) {
      told = performance.now();
      tell({ id, rows });
    }
    await turnOf(applicationId);
    if (own.isStopped) throw new Error("The survey was stopped.");
  };
  try {
    const found = await surveyOf(own.file.pieces(), format, defaults, limits, turn);
    tell({ id, rows: found.rows });
    tell({ id, survey: found });
  } catch (error) {
    tell({ id, failure: failureOf(error) });
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
    own.isStopped ||= "stop" in message;
    own.file.complete();
  }
});
