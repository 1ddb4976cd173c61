import { type Command, Option } from "commander";
import { safeParse, ZodOptional, type z } from "zod";
import { orAborted } from "../../core/abort.ts";
import type { Running } from "../../server/process/operator/operation.ts";
import { readSettings } from "../../server/process/settings/config.ts";
import { isSecret } from "../../server/process/settings/settings.ts";
import { exitCodeOf } from "./errors.ts";
import { EXIT, Interrupted } from "./exit.ts";
import { type Flags, print, printError, progressLine } from "./output.ts";

/** An interrupted command has so long to end in order. What it wrote by then, it finds again. */
const GRACE_MS = 500;

export type Options = Readonly<Record<string, string | string[] | boolean | undefined>>;

/**
 * A call of a command, besides its settings. Work that does not end soon after `signal` aborts is
 * left where it is, and the process ends.
 */
export interface Given extends Running {
  readonly options: Options;
  readonly args: readonly string[];
}

/** A command without its name, which the table of commands has. All have `--json`. */
interface CommandSpec<S extends z.ZodObject> {
  /** Each follows `mintmark `. */
  readonly examples: readonly string[];
  /**
   * Given by options, then the environment, then the file of MINTMARK_CONFIG or `--config`. Secrets
   * have no option, because other users of a machine can read arguments.
   */
  readonly settings?: S;
  /** The only variables allowed in the environment; others are likely typing errors. */
  readonly known?: readonly string[];
  /** The meaning of each option, by its flags. */
  readonly required?: Readonly<Record<string, string>>;
  readonly options?: Readonly<Record<string, string>>;
  /** Shown below the examples. */
  readonly notes?: string;
  /** The options by the fields that errors name; default none. */
  readonly flags?: Flags;
  /** The columns of a table; default all. */
  readonly columns?: readonly string[] | undefined;
  /** It ends by itself at SIGINT or SIGTERM, however long that takes. */
  readonly isProcess?: boolean;
  work(given: Given, settings: z.output<S>): Promise<unknown>;
  /** The next step for a bad result; null for others. */
  failed?(answer: unknown): string | null;
}

/** Adds to a command of the table of commands, which has its name and its description. */
export type Complete = (command: Command) => void;

/** Returns a function that completes a command with its options, its help and its work. */
export function command<S extends z.ZodObject>(spec: CommandSpec<S>): Complete {
  const { examples, settings, required = {}, options = {}, notes } = spec;
  return (added) => {
    const lines = examples.map((example) => `\n  $ mintmark ${example}`);
    added.option("--json", "print JSON").addHelpText("after", `\nExamples:${lines.join("")}`);
    if (settings !== undefined) addSettings(added, settings);
    for (const [flags, meaning] of Object.entries(required)) added.requiredOption(flags, meaning);
    for (const [flags, meaning] of Object.entries(options)) added.option(flags, meaning);
    if (notes !== undefined) added.addHelpText("after", `\n${notes}`);
    added.action(acting(spec));
  };
}

/** Returns a function that adds a command to its group. */
export function subcommand<S extends z.ZodObject>({
  usage,
  description,
  ...spec
}: CommandSpec<S> & { readonly usage: string; readonly description: string }): Complete {
  return (group) => command(spec)(group.command(usage).description(description));
}

function addSettings(command: Command, { shape }: z.ZodObject): void {
  const secrets: string[] = [];
  for (const [name, setting] of Object.entries<z.ZodType>(shape)) {
    if (isSecret(name)) secrets.push(`\n  ${name}  ${aboutOf(setting)}`);
    else
      command.option(
        `${flagOf(name)} <value>`,
        `${aboutOf(setting)} (${name}${defaultOf(setting)})`,
      );
  }
  command.option("--config <file>", "JSON file of further settings (MINTMARK_CONFIG)");
  if (secrets.length > 0)
    command.addHelpText("after", `\nFrom the environment only:${secrets.join("")}`);
}

function settingsOf<S extends z.ZodObject>(
  options: Options,
  schema: S,
  known?: readonly string[],
): z.output<S> {
  const flags = ["MINTMARK_CONFIG", ...Object.keys(schema.shape)].flatMap((name) => {
    const given = options[new Option(flagOf(name)).attributeName()];
    return typeof given === "string" ? [[name, given] as const] : [];
  });
  const named = Object.fromEntries(flags.map(([name]) => [name, flagOf(name)]));
  return readSettings(schema, { ...process.env, ...Object.fromEntries(flags) }, known, named);
}

/** `MINTMARK_FROM_BLOCK` is `--from-block`, `MINTMARK_RPC_URL` is `--rpc`. */
function flagOf(name: string): string {
  return `--${name.replace("MINTMARK_", "").replace(/_URL$/, "").toLowerCase().replaceAll("_", "-")}`;
}

/** A setting that a command makes optional keeps its meaning inside. */
function aboutOf(setting: z.ZodType): string {
  const inner = setting instanceof ZodOptional ? (setting.unwrap() as z.ZodType) : setting;
  return meaningOf(setting.description ?? inner.description);
}

export function meaningOf(description = ""): string {
  return description.replace(/\.$/, "").replaceAll("`", "");
}

function defaultOf(setting: z.core.$ZodType): string {
  const { success, data } = safeParse(setting, undefined);
  if (!success) return "; required";
  return data === undefined || (Array.isArray(data) && data.length === 0)
    ? ""
    : `; default ${String(data)}`;
}

/** Prints the result of a command's work, or its error, and sets the exit code. */
function acting<S extends z.ZodObject>({
  work,
  settings,
  known,
  flags,
  columns,
  isProcess = false,
  failed,
}: CommandSpec<S>) {
  return async (...called: unknown[]): Promise<void> => {
    const command = called.pop() as Command;
    const options = command.opts() as Options;
    const asJson = options.json === true;
    const line = progressLine();
    const stopping = new AbortController();
    const leaving = new AbortController();
    let grace: NodeJS.Timeout | undefined;
    const stop = () => {
      stopping.abort(new Interrupted());
      if (!isProcess) grace = setTimeout(() => leaving.abort(new Interrupted()), GRACE_MS);
    };
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
    try {
      const read = (settings ? settingsOf(options, settings, known) : {}) as z.output<S>;
      const { signal } = stopping;
      const given = { options, args: command.args, signal, progress: line.show };
      const answer = await orAborted(work(given, read), leaving.signal);
      line.clear();
      if (answer !== undefined) print(answer, asJson, columns);
      const advice = failed?.(answer) ?? null;
      if (advice === null) return;
      process.stderr.write(`${advice}\n`);
      process.exitCode = EXIT.refused;
    } catch (error) {
      line.clear();
      const isInterrupted = stopping.signal.aborted;
      printError(isInterrupted ? new Interrupted() : error, asJson, flags);
      process.exitCode = isInterrupted ? EXIT.interrupted : exitCodeOf(error);
    } finally {
      clearTimeout(grace);
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
    }
  };
}
