import type { z } from "zod";
import type { Engine } from "../../../core/index.ts";
import { type Shown, writerOf } from "../../routes/api/writer.ts";

/**
 * One operation on an engine. It is also a command, whose options and help derive from `input`: a
 * field's description is its help. `.meta()` adds `env`, a variable for the value, and `secret`,
 * the only variable besides standard input.
 */
export interface Operation {
  /** The help of a command in a group. The table of commands has that of others. */
  readonly summary?: string;
  /** Examples of the text after the command's name. */
  readonly examples: readonly [string, ...string[]];
  readonly input: z.ZodObject;
  /** Fields that are arguments, in this order; all others are options. */
  readonly args?: readonly string[];
  /** Columns of the table for a list; default all. `--json` always gives everything. */
  readonly columns?: readonly string[];
  /** The result field with bytes in hex, which the command writes to a file. */
  readonly file?: string;
  /** The next step for a bad result; null for others. */
  readonly failed?: (answer: unknown) => string | null;
  run(engine: Engine, input: unknown, running: Running): Promise<unknown>;
}

/** Progress and cancellation of a long operation. */
export interface Running {
  readonly signal: AbortSignal;
  /** The address of the running server, for browsers. */
  readonly origin?: string | undefined;
  /** A few words, such as `120000 journal entries`. */
  progress(where: string): void;
}

/**
 * Ties an operation to the schema of its input, and to that of its answer, which is JSON already
 * without one.
 */
export function operation<S extends z.ZodObject, A extends z.ZodType = z.ZodUnknown>({
  answer,
  run,
  ...definition
}: Omit<Operation, "input" | "args" | "run"> & {
  readonly input: S;
  readonly args?: readonly (keyof S["shape"] & string)[];
  readonly answer?: A;
  run(engine: Engine, input: z.output<S>, running: Running): Promise<Shown<z.output<A>>>;
}): Operation {
  const write = answer === undefined ? (made: unknown) => made : writerOf(answer);
  return {
    ...definition,
    run: async (engine, given, running) => write(await run(engine, given as z.output<S>, running)),
  };
}
