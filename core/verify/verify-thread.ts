import type { ResourceLimits } from "node:worker_threads";
import type { Settlement } from "../ports.ts";
import type { Store, StoreReader } from "../store/ports.ts";
import { errorOf, type Failure, failureOf, startThread } from "../thread.ts";
import type { CommitToBlob } from "./reference-derive.ts";
import { type AnswerMessage, type QuestionMessage, StoreAnswers } from "./remote-reader.ts";
import type { Target } from "./restore-records.ts";
import type { VerifyOptions, VerifyReport } from "./verify.ts";

export type Progressed = { readonly entries: number } | { readonly share: number };

export type Ended =
  | { readonly result: VerifyReport | number; readonly failure: null }
  | { readonly result: null; readonly failure: Failure };

/** The settlement of the store to be verified; null to restore a store. */
export interface Task {
  readonly settlement: Settlement | null;
}

/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(
  `./verify-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`,
  import.meta.url,
);
/** The thread makes and drops objects all the time, so a larger young generation only grows. */
const YOUNG_MB = 12;
/**
 * Old generations, in MB. Without a bound, the garbage alone grows to hundreds of MB. Vaults do not
 * need more than the first; a store of a million withdrawals does, and is tried again.
 */
const OLD_MB = [512, 4_096, 32_768] as const;

/**
 * `verifyStore` on a thread of its own, so that the event loop goes on. The store is read here: a
 * few records at a time, on one snapshot.
 */
export function verifyOnThread(
  opened: Store,
  settlement: Settlement,
  options: VerifyOptions,
  commit: CommitToBlob,
  oldGenerations: readonly number[] = OLD_MB,
): Promise<VerifyReport> {
  return opened.atSnapshot((store) =>
    onThread<VerifyReport>({ settlement }, store, options, commit, oldGenerations),
  );
}

/** `restoreRecords` on a thread of its own, because only a thread's heap can be bounded. */
export function restoreOnThread(
  target: Target,
  options: VerifyOptions,
  commit: CommitToBlob,
  oldGenerations: readonly number[] = OLD_MB,
): Promise<number> {
  return onThread<number>({ settlement: null }, target, options, commit, oldGenerations);
}

async function onThread<T extends VerifyReport | number>(
  task: Task,
  store: StoreReader | Target,
  options: VerifyOptions,
  commit: CommitToBlob,
  oldGenerations: readonly number[],
): Promise<T> {
  const following = { signal: options.signal, ...onlyForward(options) };
  for (const [i, maxOldGenerationSizeMb] of oldGenerations.entries()) {
    const limits = { maxOldGenerationSizeMb, maxYoungGenerationSizeMb: YOUNG_MB };
    try {
      return (await onThreadOnce(task, store, following, commit, limits)) as T;
    } catch (error) {
      const isFull = (error as { readonly code?: unknown }).code === "ERR_WORKER_OUT_OF_MEMORY";
      if (!isFull || i === oldGenerations.length - 1) throw error;
    }
  }
  throw new Error("there is no old generation to try");
}

/**
 * Tells of progress beyond the furthest so far: a second try begins anew, and tells nothing twice.
 */
export function onlyForward({ onProgress, onShare }: VerifyOptions) {
  const beyond = (tell: (reached: number) => void = () => {}) => {
    let furthest = 0;
    return (reached: number) => {
      if (reached <= furthest) return;
      furthest = reached;
      tell(reached);
    };
  };
  return { onProgress: beyond(onProgress), onShare: beyond(onShare) };
}

async function onThreadOnce(
  task: Task,
  store: StoreReader | Target,
  { signal, onProgress, onShare }: VerifyOptions,
  commit: CommitToBlob,
  resourceLimits: ResourceLimits,
): Promise<VerifyReport | number> {
  signal?.throwIfAborted();
  const answers = new StoreAnswers(store, commit);
  const ended = Promise.withResolvers<VerifyReport | number>();
  const name = task.settlement === null ? "mintmark-restore" : "mintmark-verify";
  const worker = startThread(WORKER, name, { workerData: task, resourceLimits });
  const stop = () => ended.reject(signal?.reason);
  signal?.addEventListener("abort", stop);
  let answering = Promise.resolve();
  const answer = async ({ id, question }: QuestionMessage) => {
    const answered = await answers.answer(question).then(
      (found): AnswerMessage => ({ id, answer: found, failure: null }),
      (error: unknown): AnswerMessage => ({ id, answer: null, failure: failureOf(error) }),
    );
    const moved = answered.answer instanceof Uint8Array ? [answered.answer.buffer] : [];
    worker.postMessage(answered, moved);
  };
  worker.on("error", ended.reject);
  worker.on("exit", () => ended.reject(new Error(`The thread ${name} has ended.`)));
  worker.on("message", (message: QuestionMessage | Progressed | Ended) => {
    if ("question" in message) answering = Promise.all([answering, answer(message)]).then(() => {});
    else if ("entries" in message) onProgress?.(message.entries);
    else if ("share" in message) onShare?.(message.share);
    else if (message.failure !== null) ended.reject(errorOf(message.failure));
    else ended.resolve(message.result);
  });
  try {
    return await ended.promise;
  } finally {
    signal?.removeEventListener("abort", stop);
    await worker.terminate();
    await answering.catch(() => {});
    await answers.close();
  }
}
