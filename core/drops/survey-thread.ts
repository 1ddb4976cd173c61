import type { Worker } from "node:worker_threads";
import { MintmarkError } from "../errors.ts";
import type { RequestLimits } from "../mint/reader.ts";
import { errorOf, type Failure, startThread } from "../thread.ts";
import type { DropFormat } from "./rows.ts";
import type { DropDefaults, Survey } from "./windows.ts";

/** A file of rows to be surveyed, which may still grow. */
export interface SurveyTask {
  readonly path: string;
  /** Surveys of one application share its turns. */
  readonly applicationId: string;
  readonly format: DropFormat;
  readonly defaults: DropDefaults;
  readonly limits: RequestLimits;
}

/** A message to the thread about one survey. */
export type SurveyMessage = { readonly id: number } & (
  | { readonly begin: SurveyTask }
  /** So many bytes of the file are written, from the first on. */
  | { readonly written: number }
  | { readonly complete: true }
  | { readonly stop: true }
);

/** The thread's message about one survey: the rows read so far, or how it ended. */
export type SurveyNews = { readonly id: number } & (
  | { readonly rows: number }
  | { readonly survey: Survey }
  | { readonly failure: Failure }
);

/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(
  `./survey-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`,
  import.meta.url,
);
/** How often a survey begins anew on another thread, because its own has died. */
const MOST_RESTARTS = 1;

/** A survey in progress. */
export class Surveying {
  readonly task: SurveyTask;
  readonly #tell: (message: SurveyMessage) => void;
  readonly #onRows: (rows: number) => void;
  readonly #ended = Promise.withResolvers<Survey>();
  readonly #id: number;
  #written = 0;
  #isComplete = false;
  #restarts = 0;
  #stopped: { readonly reason: unknown } | null = null;
  #hasEnded = false;

  constructor(
    id: number,
    task: SurveyTask,
    onRows: (rows: number) => void,
    tell: (message: SurveyMessage) => void,
  ) {
    this.#id = id;
    this.task = task;
    this.#onRows = onRows;
    this.#tell = tell;
    // Its owner may first wait for the last byte.
    this.#ended.promise.catch(() => {});
  }

  /**
   * Rejects with the error of `onRows` or of {@link stop}, once the file is closed, or with the
   * thread's failure.
   */
  get survey(): Promise<Survey> {
    return this.#ended.promise;
  }

  /** So many bytes of the file are written, from the first on. */
  grow(written: number): void {
    this.#written = written;
    this.#tell({ id: this.#id, written });
  }

  /** No more bytes will be written. */
  complete(): void {
    this.#isComplete = true;
    this.#tell({ id: this.#id, complete: true });
  }

  stop(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#tell({ id: this.#id, stop: true });
  }

  /** Begins on a thread, and goes on with what is known of the file. */
  begin(): void {
    const id = this.#id;
    this.#tell({ id, begin: this.task });
    if (this.#written > 0) this.#tell({ id, written: this.#written });
    if (this.#isComplete) this.#tell({ id, complete: true });
  }

  /** Begins again after the death of its thread, unless that is hopeless. */
  restart(cause: Error): boolean {
    const goesOn = this.#stopped === null && this.#restarts++ < MOST_RESTARTS;
    if (!goesOn) this.end(cause);
    return goesOn;
  }

  hear(news: SurveyNews): void {
    if ("survey" in news) this.end(news.survey);
    else if ("failure" in news) this.end(errorOf(news.failure));
    else if (this.#stopped === null)
      try {
        this.#onRows(news.rows);
      } catch (error) {
        this.stop(error);
      }
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  end(outcome: Survey | Error): void {
    this.#hasEnded = true;
    if (this.#stopped !== null) this.#ended.reject(this.#stopped.reason);
    else if (outcome instanceof Error) this.#ended.reject(outcome);
    else this.#ended.resolve(outcome);
  }
}

/**
 * Surveys the rows of drops on a thread, many at once: a million rows take seconds. It starts with
 * the first survey, and never keeps the process alive when idle. Surveys whose thread dies begin
 * again on another.
 */
export class SurveyThread implements AsyncDisposable {
  readonly #script: URL;
  readonly #all = new Map<number, Surveying>();
  #worker: Worker | null = null;
  #lastId = 0;
  #closed = false;

  constructor(script: URL = WORKER) {
    this.#script = script;
  }

  /**
   * Begins a survey of a file that need not have any bytes yet. Throws `engine_closed`.
   *
   * @param onRows - called with the rows read so far, about ten times a second and at the end; its
   *   error ends the survey
   */
  begin(task: SurveyTask, onRows: (rows: number) => void): Surveying {
    if (this.#closed) throw new MintmarkError("engine_closed");
    const id = ++this.#lastId;
    const tell = (message: SurveyMessage) => this.#worker?.postMessage(message);
    const surveying = new Surveying(id, task, onRows, tell);
    this.#start();
    surveying.begin();
    this.#all.set(id, surveying);
    this.#worker?.ref();
    return surveying;
  }

  /** Surveys in progress reject with `engine_closed`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
    for (const surveying of this.#all.values()) surveying.end(new MintmarkError("engine_closed"));
    this.#all.clear();
  }

  #start(): void {
    if (this.#worker !== null) return;
    const worker = startThread(this.#script, "mintmark-drops")
      .on("error", (error) => this.#lost(worker, error))
      .on("exit", () => this.#lost(worker, new Error("The thread mintmark-drops has ended.")))
      .on("message", (news: SurveyNews) => this.#hear(news));
    this.#worker = worker;
  }

  #hear(news: SurveyNews): void {
    this.#all.get(news.id)?.hear(news);
    if ("rows" in news) return;
    this.#all.delete(news.id);
    if (this.#all.size === 0) this.#worker?.unref();
  }

  #lost(worker: Worker, cause: Error): void {
    if (this.#worker !== worker || this.#closed) return;
    this.#worker = null;
    for (const [id, surveying] of this.#all) {
      if (!surveying.restart(cause)) this.#all.delete(id);
      else
        try {
          this.#start();
          surveying.begin();
        } catch (error) {
          surveying.end(error as Error);
          this.#all.delete(id);
        }
    }
  }
}
