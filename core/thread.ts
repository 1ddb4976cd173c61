import { setPriority } from "node:os";
import { parentPort, Worker, type WorkerOptions } from "node:worker_threads";
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

/**
 * How far a thread gives way to the event loop where both want a core, as Linux's nice value: a
 * third of the loop's share, and a tenth.
 */
const GIVE_WAY = {
  /** In the end new mints wait for it. */
  sealing: 5,
  /** Its caller expects that it takes long. */
  long: 10,
} as const;

/**
 * Leaves the calling thread a smaller share of a core, because requests wait for the event loop.
 */
export function giveWay(thread: keyof typeof GIVE_WAY): void {
  // Linux counts a priority by thread.
  if (process.platform === "linux") setPriority(0, GIVE_WAY[thread]);
}

/** An error on its way to another thread, where a clone of it would lose its class and its code. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** Its own properties, such as a code. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause: Failure | null;
}

type ErrorClass = new (...all: never[]) => Error;

export function failureOf(thrown: unknown): Failure {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const { name, message, stack, cause } = error;
  const fields = Object.fromEntries(Object.entries(error).filter(([, value]) => isClonable(value)));
  return { name, message, stack, fields, cause: cause === undefined ? null : failureOf(cause) };
}

/**
 * The error that {@link failureOf} packed, of the same class when that is {@link MintmarkError} or
 * one of `classes`.
 */
export function errorOf(failure: Failure, classes: readonly ErrorClass[] = []): Error {
  const { name, message, stack, fields, cause } = failure;
  const error = new Error(message, cause === null ? {} : { cause: errorOf(cause, classes) });
  const known = [MintmarkError, RangeError, TypeError, ...classes].find(
    (each) => each.name === name,
  );
  if (known !== undefined) Object.setPrototypeOf(error, known.prototype);
  if (stack !== undefined) error.stack = stack;
  return Object.assign(error, fields);
}

function isClonable(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

/** The answer to a question, or the error of a question that failed. */
type Answered<Answer> = { readonly answer: Answer } | { readonly failure: Failure };

/**
 * Answers the questions of an {@link AnsweringThread} on the calling thread. An error fails its
 * question and not the thread.
 *
 * @param moved - memory that goes over with an answer and is not copied; default none
 */
export function answerQuestions<Question, Answer>(
  answer: (question: Question) => Answer,
  moved: (answer: Answer) => readonly ArrayBuffer[] = () => [],
): void {
  const port = parentPort;
  port?.on("message", (question: Question) => {
    try {
      const found = answer(question);
      port.postMessage({ answer: found } satisfies Answered<Answer>, moved(found));
    } catch (error) {
      port.postMessage({ failure: failureOf(error) } satisfies Answered<Answer>);
    }
  });
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
  readonly #errors: readonly ErrorClass[];
  readonly #asked: PendingQuestion<Question, Answer>[] = [];
  #worker: Worker | null = null;
  #closed = false;

  /**
   * @param errors - classes of errors beside {@link MintmarkError} that a question can fail with
   */
  constructor(script: URL, name: string, errors: readonly ErrorClass[] = []) {
    this.#script = script;
    this.name = name;
    this.#errors = errors;
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

  /**
   * Rejects with the error that the question fails with on the thread, and with `engine_closed`
   * when the thread is closed first.
   */
  async ask(question: Question): Promise<Answer> {
    this.requireOpen();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#asked.push({ question, resolve, reject });
    const worker = this.#started();
    worker?.ref();
    try {
      worker?.postMessage(question);
    } catch (error) {
      // It cannot be cloned, so the next answer is another question's.
      this.#asked.pop();
      if (this.#asked.length === 0) worker?.unref();
      throw error;
    }
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
        .on("message", (answered: Answered<Answer>) => this.#answer(worker, answered));
      this.#worker = worker;
    } catch (cause) {
      this.#ended(null, cause);
    }
    return this.#worker;
  }

  #answer(worker: Worker, answered: Answered<Answer>): void {
    // The end of a thread keeps the process alive, which `unref` would undo.
    if (this.#closed) return;
    const asked = this.#asked.shift();
    if ("failure" in answered) asked?.reject(errorOf(answered.failure, this.#errors));
    else asked?.resolve(answered.answer);
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
 * Starts of a thread without an answer before the caller's thread does its work for good. A
 * question can end a thread by chance, as where memory is short for a moment; one that ends each
 * thread would hold up those behind it.
 */
const MOST_STARTS = 3;

/**
 * An {@link AnsweringThread} that starts again after it died, with the same questions. The caller's
 * thread does its work for good when it does not start, or has died three times without an answer.
 */
export class HelperThread<Question, Answer> extends AnsweringThread<Question, Answer> {
  readonly #here: (question: Question) => Answer | Promise<Answer>;
  #fault: Error | null = null;
  #starts = 0;

  /**
   * @param here - answers a question on the caller's thread
   * @param errors - as {@link AnsweringThread} takes them
   */
  constructor(
    script: URL,
    name: string,
    here: (question: Question) => Answer | Promise<Answer>,
    errors: readonly ErrorClass[] = [],
  ) {
    super(script, name, errors);
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
    if (this.#fault !== null) return this.#here(question);
    try {
      return await super.ask(question);
    } finally {
      this.#starts = 0;
    }
  }

  protected override lost(
    asked: readonly PendingQuestion<Question, Answer>[],
    cause: unknown,
  ): void {
    if (++this.#starts === MOST_STARTS) this.#giveUp(cause);
    for (const { question, resolve } of asked) resolve(this.ask(question));
  }

  #giveUp(cause: unknown): void {
    const message = `The thread ${this.name} does not run, which slows requests down. Restart the process.`;
    process.emitWarning(message, { type: "MintmarkWarning", detail: `${cause}` });
    this.#fault = new Error(message, { cause });
  }
}
