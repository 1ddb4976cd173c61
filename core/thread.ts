import { Worker } from "node:worker_threads";
import { MintmarkError } from "./errors.ts";

/** Node's flags that a thread needs as its program does: how modules are found and read, and which warnings show. */
const PASSED_ON = new Set([
  "--disable-warning",
  "--enable-source-maps",
  "--experimental-strip-types",
  "--no-warnings",
  ...["--conditions", "-C", "--experimental-loader", "--loader", "--import", "--require", "-r"],
]);
const WITHOUT_VALUE = new Set(["--enable-source-maps", "--experimental-strip-types", "--no-warnings"]);

/** Starts a thread. Node refuses threads the process's other flags, such as those of its memory. */
export function startThread(script: URL, name: string): Worker {
  return new Worker(script, { name, execArgv: passedOn(process.execArgv) });
}

function passedOn(flags: readonly string[]): string[] {
  return flags.flatMap((flag, i) => {
    const [name = "", ...value] = flag.split("=");
    if (!PASSED_ON.has(name)) return [];
    return value.length > 0 || WITHOUT_VALUE.has(name) ? [flag] : flags.slice(i, i + 2);
  });
}

interface Asked<Question, Answer> {
  readonly question: Question;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * A thread that answers questions in their order, so that the event loop goes on. It starts with the first one, and
 * never keeps the process alive when idle. If it does not start, or after it died, the caller's thread does the work.
 */
export class HelperThread<Question, Answer> {
  readonly #script: URL;
  readonly #name: string;
  readonly #here: (question: Question) => Answer | Promise<Answer>;
  readonly #asked: Asked<Question, Answer>[] = [];
  #worker: Worker | null = null;
  #fault: Error | null = null;
  #closed = false;

  /** @param here - answers a question on the caller's thread */
  constructor(script: URL, name: string, here: (question: Question) => Answer | Promise<Answer>) {
    this.#script = script;
    this.#name = name;
    this.#here = here;
  }

  /** Why the caller's thread answers all questions; null while this thread runs, or can. The process also warns of it. */
  get fault(): Error | null {
    return this.#fault;
  }

  /** Number of questions that the thread has not answered. */
  protected get waiting(): number {
    return this.#asked.length;
  }

  /** Called when `waiting` has become less. */
  protected answered(): void {}

  /** Rejects with `engine_closed` when the thread is closed first. */
  async ask(question: Question): Promise<Answer> {
    this.requireOpen();
    const worker = this.#started();
    if (worker === null) return this.#here(question);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#asked.push({ question, resolve, reject });
    worker.ref();
    worker.postMessage(question);
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
    if (this.#worker !== null || this.#fault !== null) return this.#worker;
    try {
      const worker = startThread(this.#script, this.#name)
        .on("error", (cause) => this.#died(cause))
        .on("exit", () => this.#died());
      this.#worker = worker.on("message", (answer: Answer) => this.#answer(worker, answer));
    } catch (cause) {
      this.#died(cause);
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

  #died(cause: unknown = new Error("The thread has ended.")): void {
    this.#worker = null;
    if (!this.#closed && this.#fault === null) {
      const message = `The thread ${this.#name} does not run, which slows requests down. Restart the process.`;
      process.emitWarning(message, { type: "MintmarkWarning", detail: `${cause}` });
      this.#fault = new Error(message, { cause });
    }
    for (const { question, resolve, reject } of this.#asked.splice(0)) {
      try {
        resolve(this.#here(question));
      } catch (error) {
        reject(error);
      }
    }
    this.answered();
  }
}
