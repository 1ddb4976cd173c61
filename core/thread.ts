import { setPriority } from "node:os";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { MintmarkError } from "./errors.ts";

/**
 * Node's flags that a thread needs as its program does: how modules are found and read, and which
 * warnings show.
 */
const PASSED_ON = new Set([
  "--disable-warning",
  "--enable-source-maps",
  "--experimental-strip-types",
  "--no-warnings",
  ...["--conditions", "-C", "--experimental-loader", "--loader", "--import", "--require", "-r"],
]);
const WITHOUT_VALUE = new Set([
  "--enable-source-maps",
  "--experimental-strip-types",
  "--no-warnings",
]);

/**
 * Starts a thread. Workers accept only some flags of Node; others, such as memory flags, are
 * dropped.
 */
export function startThread(
  script: URL,
  name: string,
  options: Pick<WorkerOptions, "workerData" | "resourceLimits"> = {},
): Worker {
  return new Worker(script, { ...options, name, execArgv: passedOn(process.execArgv) });
}

function passedOn(flags: readonly string[]): string[] {
  return flags.flatMap((flag, i) => {
    const [name = "", ...value] = flag.split("=");
    if (!PASSED_ON.has(name)) return [];
    return value.length > 0 || WITHOUT_VALUE.has(name) ? [flag] : flags.slice(i, i + 2);
  });
}

const NICE = 5;

/**
 * Leaves the calling thread a third of the share of a core that the event loop gets where both want
 * it: nobody waits for this thread, and each request for the event loop.
 */
export function giveWay(): void {
  // Linux counts a priority by thread.
  if (process.platform === "linux") setPriority(0, NICE);
}

/** A question that the thread has not answered. */
export interface PendingQuestion<Question, Answer> {
  readonly question: Question;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * A thread that answers questions in their order, so that the event loop goes on. It starts with
 * the first one, and never keeps the process alive when idle.
 */
export abstract class AnsweringThread<Question, Answer> {
  readonly #script: URL;
  protected readonly name: string;
  readonly #asked: PendingQuestion<Question, Answer>[] = [];
  #worker: Worker | null = null;
  #closed = false;

  constructor(script: URL, name: string) {
    this.#script = script;
    this.name = name;
  }

  /**
   * Called with the open questions when the thread does not start, or has died. The next question
   * starts another.
   */
  protected abstract lost(
    asked: readonly PendingQuestion<Question, Answer>[],
    cause: unknown,
  ): void;

  /** Number of questions that the thread has not answered. */
  protected get waiting(): number {
    return this.#asked.length;
  }

  /** Called when `waiting` has become less. */
  protected answered(): void {}

  /** Rejects with `engine_closed` when the thread is closed first. */
  async ask(question: Question): Promise<Answer> {
    this.requireOpen();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#asked.push({ question, resolve, reject });
    const worker = this.#started();
    worker?.ref();
    worker?.postMessage(question);
    return promise;
  }

  protected requireOpen(): void {
    if (this.#closed) throw new MintmarkError("engine_closed");
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#asked.splice(0)) reject(new MintmarkError("engine_closed"));
    this.answered();
    await this.#worker?.terminate();
  }

  #started(): Worker | null {
    if (this.#worker !== null) return this.#worker;
    try {
      const worker = startThread(this.#script, this.name)
        .on("error", (cause) => this.#ended(worker, cause))
        .on("exit", () => this.#ended(worker, new Error("The thread has ended.")))
        .on("message", (answer: Answer) => this.#answer(worker, answer));
      this.#worker = worker;
    } catch (cause) {
      this.#ended(null, cause);
    }
    return this.#worker;
  }

  #answer(worker: Worker, answer: Answer): void {
    // The end of a thread keeps the process alive, which `unref` would undo.
    if (this.#closed) return;
    this.#asked.shift()?.resolve(answer);
    if (this.#asked.length === 0) worker.unref();
    this.answered();
  }

  #ended(worker: Worker | null, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    if (!this.#closed) this.lost(this.#asked.splice(0), cause);
    this.answered();
  }
}

/**
 * An {@link AnsweringThread} whose work the caller's thread does for good when it does not start,
 * or after it died.
 */
export class HelperThread<Question, Answer> extends AnsweringThread<Question, Answer> {
  readonly #here: (question: Question) => Answer | Promise<Answer>;
  #fault: Error | null = null;

  /** @param here - answers a question on the caller's thread */
  constructor(script: URL, name: string, here: (question: Question) => Answer | Promise<Answer>) {
    super(script, name);
    this.#here = here;
  }

  /**
   * Why the caller's thread answers all questions; null while this thread runs, or can. The process
   * also warns of it.
   */
  get fault(): Error | null {
    return this.#fault;
  }

  override async ask(question: Question): Promise<Answer> {
    this.requireOpen();
    return this.#fault === null ? super.ask(question) : this.#here(question);
  }

  protected override lost(
    asked: readonly PendingQuestion<Question, Answer>[],
    cause: unknown,
  ): void {
    const message = `The thread ${this.name} does not run, which slows requests down. Restart the process.`;
    process.emitWarning(message, { type: "MintmarkWarning", detail: `${cause}` });
    this.#fault = new Error(message, { cause });
    for (const { question, resolve, reject } of asked) {
      try {
        resolve(this.#here(question));
      } catch (error) {
        reject(error);
      }
    }
  }
}
