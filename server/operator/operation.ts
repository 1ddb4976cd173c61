import type { z } from "zod";
import type { Engine } from "../../core/index.ts";

/** One thing an operator does: what it takes, and what it does to an engine. Answers are JSON. */
export interface Operation {
  readonly input: z.ZodType;
  run(engine: Engine, input: unknown, running: Running): Promise<unknown>;
}

/** How an operation that takes long tells where it is, and learns that nobody waits any longer. */
export interface Running {
  readonly signal: AbortSignal;
  /** A few words, such as `120000 journal entries`. */
  progress(where: string): void;
}

/** Ties an operation's input to its schema. */
export function operation<S extends z.ZodType>(
  input: S,
  run: (engine: Engine, input: z.output<S>, running: Running) => Promise<unknown>,
): Operation {
  return { input, run: (engine, given, running) => run(engine, given as z.output<S>, running) };
}
