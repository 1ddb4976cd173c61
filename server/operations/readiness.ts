import { BaseError, ContractFunctionRevertedError } from "viem";
import { type Engine, ERROR_CODES, MintmarkError, MODES, type Mode } from "../../core/index.ts";
import { within } from "./deadline.ts";

/** One look at something that must work for the server to be ready: resolves with what it found, rejects with what is wrong. */
export type ReadinessCheck = () => Promise<string>;

/** What is wrong, in words that anyone may read. */
export class NotReady extends Error {
  override readonly name = "NotReady";
}

/** What one check found. */
export interface Finding {
  readonly name: string;
  /** Fit to be shown to anyone. */
  readonly detail: string;
  /** Why it failed, for the log; undefined when it did not. */
  readonly error?: unknown;
}

/** Longer than a check may take, and a check counts as failed: a load balancer does not wait. */
const CHECK_MS = 5_000;
/** Anyone may ask, and what a chain's node answers may cost money; so what was found holds for this long. */
const HOLDS_MS = 1_000;

/** Runs the checks, all at once, and no more often than they are worth. */
export class Readiness {
  readonly #checks: () => Readonly<Record<string, ReadinessCheck>>;
  readonly #now: () => number;
  readonly #checkMs: number;
  #last: { readonly at: number; readonly found: Promise<readonly Finding[]> } | null = null;

  /** `now` gives milliseconds. */
  constructor(checks: () => Readonly<Record<string, ReadinessCheck>>, now: () => number, checkMs: number = CHECK_MS) {
    this.#checks = checks;
    this.#now = now;
    this.#checkMs = checkMs;
  }

  /** What each check found, at most a second ago. Never rejects. */
  look(): Promise<readonly Finding[]> {
    const at = this.#now();
    if (this.#last === null || at - this.#last.at >= HOLDS_MS) this.#last = { at, found: this.#lookAnew() };
    return this.#last.found;
  }

  #lookAnew(): Promise<readonly Finding[]> {
    return Promise.all(
      Object.entries(this.#checks()).map(async ([name, check]) => {
        try {
          const tooLate = () => new NotReady(`no answer within ${this.#checkMs / 1000} s`);
          return { name, detail: await within(this.#checkMs, check(), tooLate) };
        } catch (error) {
          return { name, detail: shown(error), error };
        }
      }),
    );
  }
}

/**
 * What may be shown of an error: the product's own words. Of a failure at L1 only what was tried, since nodes, members and contracts word the rest,
 * and a node's address may hold the key to it.
 */
export function shown(error: unknown): string {
  if (error instanceof NotReady) return error.message;
  if (error instanceof AggregateError) return [...new Set(error.errors.map(shown))].join("; ");
  if (!(error instanceof MintmarkError)) return "failed; the log tells why";
  if (error.code !== "l1_failed") return ERROR_CODES[error.code];
  const [tried = ""] = error.message.split(/: |[;(]/, 1);
  if (tried.includes("://")) return ERROR_CODES.l1_failed;
  return `${tried.trim()}${whyOnL1(error.cause)}; the log tells more`;
}

/** The name of the contract's own error, or that the chain could not be asked. */
function whyOnL1(cause: unknown): string {
  if (!(cause instanceof BaseError)) return "";
  const revert = cause.walk((inner) => inner instanceof ContractFunctionRevertedError);
  const name = revert instanceof ContractFunctionRevertedError ? revert.data?.errorName : undefined;
  return name === undefined ? ": L1 refused or did not answer" : `: the contract refused with ${name}`;
}

/** What can be asked of the engine alone: whether its store answers, and how long mints have been waiting in the open batches. */
export function engineChecks(engine: Engine): Readonly<Record<string, ReadinessCheck>> {
  return {
    store: async () => {
      const { countValidium, countRollup } = await engine.batches.committedState();
      const count = countValidium + countRollup;
      return count === 1 ? "1 batch committed" : `${count} batches committed`;
    },
    clock: async () => {
      const fault = engine.operator.clockFault();
      if (fault !== null) throw new NotReady(fault);
      return "fits the journal";
    },
    openBatches: async () => MODES.map((mode) => describeOpenBatch(engine, mode)).join(", "),
  };
}

function describeOpenBatch(engine: Engine, mode: Mode): string {
  const { vaultCount, timestamps } = engine.batches.getOpen(mode);
  if (vaultCount === 0 || timestamps.open === undefined) return `${mode}: empty`;
  return `${mode}: ${vaultCount} ${vaultCount === 1 ? "vault" : "vaults"} since ${new Date(timestamps.open).toISOString()}`;
}
