import { Worker } from "node:worker_threads";

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

/**
 * Starts a thread whose idle time never keeps the process alive. Returns null if it does not start.
 *
 * @param died - called with the thread's own error when it does not start, or ends by one; without one when it ends
 */
export function helperThread<Answer>(
  script: URL,
  name: string,
  answered: (worker: Worker, answer: Answer) => void,
  died: (cause?: unknown) => void,
): Worker | null {
  try {
    const worker = startThread(script, name)
      .on("error", died)
      .on("exit", () => died());
    worker.on("message", (answer: Answer) => answered(worker, answer)).unref();
    return worker;
  } catch (cause) {
    died(cause);
    return null;
  }
}

/** The error of a thread that does not run, which the process also warns of. Its work is done on the event loop. */
export function brokenThread(name: string, cause: unknown = new Error("The thread has ended.")): Error {
  const message = `The thread ${name} does not run, which slows requests down. Restart the process.`;
  process.emitWarning(message, { type: "MintmarkWarning", detail: `${cause}` });
  return new Error(message, { cause });
}
