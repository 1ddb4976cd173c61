import type { z } from "zod";
import type { Engine } from "../../core/index.ts";

/**
 * One thing that can be done to an engine. It is a command of the command line too, whose options and help derive from
 * `input`: a field's description is its help. Fields may say more by `.meta()`: `env` names a variable that holds the
 * value where no option gives it, and
 * `secret` a variable that is the only way besides standard input.
 */
export interface Operation {
  /** What the command does, for `--help`. */
  readonly summary: string;
  /** What may follow the command's name. */
  readonly examples: readonly [string, ...string[]];
  readonly input: z.ZodObject;
  /** Fields that are arguments, in this order; all others are options. */
  readonly args?: readonly string[];
  /** What a table shows of each entry of a list; everything when absent. With `--json` it is always everything. */
  readonly columns?: readonly string[];
  /** The field of the answer that is bytes in hex, which the command writes to a file. */
  readonly file?: string;
  /** Says of an answer that is bad news what to do; null of others. */
  readonly failed?: (answer: unknown) => string | null;
  /** Answers JSON. */
  run(engine: Engine, input: unknown, running: Running): Promise<unknown>;
}

/** How an operation that takes long tells where it is, and learns that nobody waits any longer. */
export interface Running {
  readonly signal: AbortSignal;
  /** A few words, such as `120000 journal entries`. */
  progress(where: string): void;
}

/** Ties what an operation does to the schema of its input. */
export function operation<S extends z.ZodObject>(
  definition: Omit<Operation, "input" | "args" | "run"> & {
    readonly input: S;
    readonly args?: readonly (keyof S["shape"] & string)[];
    run(engine: Engine, input: z.output<S>, running: Running): Promise<unknown>;
  },
): Operation {
  return { ...definition, run: (engine, given, running) => definition.run(engine, given as z.output<S>, running) };
}
