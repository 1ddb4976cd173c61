import { type Command, Option } from "commander";
import { safeParse, type z } from "zod";
import { readSettings } from "../../server/process/settings/config.ts";
import { isSecret } from "../../server/process/settings/settings.ts";
import { EXIT, exitCodeOf } from "./errors.ts";
import { print, printError, progressLine } from "./output.ts";

/** Options as commander parsed them, by name; arguments in their order. */
export type Options = Readonly<Record<string, string | string[] | boolean | undefined>>;
type Work = (options: Options, args: readonly string[], running: Running) => Promise<unknown>;
export interface Running {
  readonly signal: AbortSignal;
  progress(where: string): void;
}

/** One command with `--json` and examples, each of which follows `mintmark `. */
export function leaf(parent: Command, usage: string, description: string, examples: readonly string[]): Command {
  const lines = examples.map((example) => `\n  $ mintmark ${example}`);
  return parent
    .command(usage)
    .description(description)
    .option("--json", "print JSON")
    .addHelpText("after", `\nExamples:${lines.join("")}`);
}

/**
 * A command, or a process, with settings: from its options, then the environment, then the file of MINTMARK_CONFIG or
 * `--config`. Secrets have no option, because other users of a machine can read arguments.
 */
export function configured<S extends z.ZodObject>(
  parent: Command,
  usage: string,
  description: string,
  examples: readonly string[],
  schema: S,
  work: (settings: z.output<S>, given: Given) => Promise<unknown>,
  { failed, known }: ConfiguredOptions = {},
): Command {
  const command = leaf(parent, usage, description, examples);
  const secrets: string[] = [];
  for (const [name, setting] of Object.entries<z.ZodType>(schema.shape)) {
    if (isSecret(name)) secrets.push(`\n  ${name}  ${meaningOf(setting.description)}`);
    else command.option(`${flagOf(name)} <value>`, `${meaningOf(setting.description)} (${name}${defaultOf(setting)})`);
  }
  command.addOption(new Option("--config <file>", "JSON file of further settings (MINTMARK_CONFIG)"));
  if (secrets.length > 0) command.addHelpText("after", `\nFrom the environment only:${secrets.join("")}`);
  return command.action(
    acting((options, args, running) => {
      const names = ["MINTMARK_CONFIG", ...Object.keys(schema.shape)];
      const flags = names.flatMap((name) => {
        const given = options[new Option(flagOf(name)).attributeName()];
        return typeof given === "string" ? [[name, given] as const] : [];
      });
      const named = Object.fromEntries(flags.map(([name]) => [name, flagOf(name)]));
      const settings = readSettings(schema, { ...process.env, ...Object.fromEntries(flags) }, known, named);
      return work(settings, { options, args, ...running });
    }, failed && { failed }),
  );
}

interface ConfiguredOptions {
  /** The next step for a bad result; null for others. */
  readonly failed?: (answer: unknown) => string | null;
  /** The only variables allowed in the environment; others are likely typing errors. */
  readonly known?: readonly string[];
}

/** The arguments of a command besides settings. */
export interface Given extends Running {
  readonly options: Options;
  readonly args: readonly string[];
}

/** `MINTMARK_FROM_BLOCK` is `--from-block`, `MINTMARK_RPC_URL` is `--rpc`. */
function flagOf(name: string): string {
  return `--${name.replace("MINTMARK_", "").replace(/_URL$/, "").toLowerCase().replaceAll("_", "-")}`;
}

export function meaningOf(description = ""): string {
  return description.replace(/\.$/, "").replaceAll("`", "");
}

function defaultOf(setting: z.core.$ZodType): string {
  const { success, data } = safeParse(setting, undefined);
  if (!success) return "; required";
  return data === undefined || (Array.isArray(data) && data.length === 0) ? "" : `; default ${String(data)}`;
}

/**
 * An action for commander: prints the result of `work`, or its error, and sets the exit code. Ctrl-C aborts the signal.
 *
 * @param showing - `failed` gives the next step for a bad result; null for others
 */
export function acting(
  work: Work,
  {
    failed = () => null,
    columns,
  }: { readonly failed?: (answer: unknown) => string | null; readonly columns?: readonly string[] } = {},
) {
  return async (...given: unknown[]): Promise<void> => {
    const command = given.pop() as Command;
    const options = command.opts() as Options;
    const asJson = options.json === true;
    const line = progressLine();
    const stopping = new AbortController();
    const stop = () => stopping.abort(new Error("interrupted"));
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
    try {
      const running = { signal: stopping.signal, progress: line.show };
      const answer = await work(options, command.args, running);
      line.clear();
      if (answer !== undefined) print(answer, asJson, columns);
      const advice = failed(answer);
      if (advice === null) return;
      process.stderr.write(`${advice}\n`);
      process.exitCode = EXIT.refused;
    } catch (error) {
      line.clear();
      printError(error, asJson);
      process.exitCode = stopping.signal.aborted ? EXIT.interrupted : exitCodeOf(error);
    } finally {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
    }
  };
}
