import type { Worker } from "node:worker_threads";
import type { RequestLimits } from "../mint/reader.ts";
import { startThread } from "../thread.ts";
import type { DropFormat } from "./rows.ts";
import type { DropDefaults, Survey } from "./windows.ts";

/** A file of rows to be surveyed, which may still grow. */
export interface SurveyTask {
  readonly path: string;
  readonly format: DropFormat;
  readonly defaults: DropDefaults;
  readonly limits: RequestLimits;
}

/** A message to the thread about one survey. */
export type SurveyMessage = { readonly id: number } & (
  | { readonly begin: SurveyTask }
  | { readonly written: number }
  | { readonly complete: true }
  | { readonly stop: true }
);

/** The thread's message about one survey: the rows read so far, or how it ended. */
export type SurveyNews = { readonly id: number } & (
  | { readonly rows: number }
  | { readonly survey: Survey }
  | { readonly failure: unknown }
);

/** A survey in progress. */
export interface Surveying {
  /** Rejects with the error of `onRows`, with that of {@link stop}, or when the thread fails. */
  readonly survey: Promise<Survey>;
  /** So many bytes of the file are written, from the first on. */
  grow(written: number): void;
  /** No more bytes will be written. */
  complete(): void;
  stop(error: unknown): void;
}

interface Pending {
  readonly onRows: (rows: number) => void;
  readonly resolve: (survey: Survey) => void;
  readonly reject: (error: unknown) => void;
}

/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(
  `./survey-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`,
  import.meta.url,
);

/**
 * Surveys the rows of drops on a thread, many at once: a million rows take seconds. It starts with
 * the first survey, and never keeps the process alive when idle. After its death the next survey
 * starts another.
 */
export class SurveyThread implements AsyncDisposable {
  readonly #script: URL;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | null = null;
  #lastId = 0;

  constructor(script: URL = WORKER) {
    this.#script = script;
  }

  /**
   * Begins a survey of a file that has no bytes yet.
   *
   * @param onRows - called with the rows read so far, after every few thousand; its error ends the
   *   survey
   */
  begin(task: SurveyTask, onRows: (rows: number) => void): Surveying {
    const id = ++this.#lastId;
    const worker = this.#started();
    const { promise, resolve, reject } = Promise.withResolvers<Survey>();
    // Its owner may first wait for the last byte.
    promise.catch(() => {});
    this.#pending.set(id, { onRows, resolve, reject });
    worker.ref();
    const tell = (message: SurveyMessage) => worker.postMessage(message);
    tell({ id, begin: task });
    return {
      survey: promise,
      grow: (written) => tell({ id, written }),
      complete: () => tell({ id, complete: true }),
      stop: (error) => {
        tell({ id, stop: true });
        this.#ended(id)?.reject(error);
      },
    };
  }

  /** Surveys in progress reject. */
  async [Symbol.asyncDispose](): Promise<void> {
    const worker = this.#worker;
    this.#lost(worker, new Error("The drops were closed."));
    await worker?.terminate();
  }

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = startThread(this.#script, "mintmark-drops")
      .on("error", (error) => this.#lost(worker, error))
      .on("exit", () => this.#lost(worker, new Error("The thread mintmark-drops has ended.")))
      .on("message", (news: SurveyNews) => this.#hear(news));
    this.#worker = worker;
    return worker;
  }

  #hear(news: SurveyNews): void {
    const { id } = news;
    if ("survey" in news) this.#ended(id)?.resolve(news.survey);
    else if ("failure" in news) this.#ended(id)?.reject(news.failure);
    else
      try {
        this.#pending.get(id)?.onRows(news.rows);
      } catch (error) {
        this.#worker?.postMessage({ id, stop: true } satisfies SurveyMessage);
        this.#ended(id)?.reject(error);
      }
  }

  #ended(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#worker?.unref();
    return pending;
  }

  #lost(worker: Worker | null, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
