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

/** The error of a thread that does not run, which the process also warns of. Its work is done on the event loop. */
export function brokenThread(name: string, cause: unknown): Error {
  const message = `The thread ${name} does not run, which slows requests down. Restart the process.`;
  process.emitWarning(message, { type: "MintmarkWarning", detail: `${cause ?? "The thread has ended."}` });
  return new Error(message, { cause });
}
