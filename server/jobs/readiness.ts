import { BaseError, ContractFunctionRevertedError } from "viem";
import { type Engine, ERROR_CODES, MintmarkError, MODES, type Mode } from "../../core/index.ts";
import type { HeldBytes } from "../http/access/rate-account.ts";

/** One check that the server needs to be ready: resolves with a finding, rejects with the fault. */
export type ReadinessCheck = () => Promise<string>;

/** A fault, in words that anyone may read. */
export class NotReady extends Error {
  override readonly name = "NotReady";
}

export interface Finding {
  readonly name: string;
  /** Safe to show to anyone. */
  readonly detail: string;
  /** The error for the log; undefined after success. */
  readonly error?: unknown;
}

/** Timeout of a check. A load balancer does not wait longer. */
const CHECK_MS = 5_000;
const MIB = 1024 * 1024;
/**
 * Anyone may ask, and calls to a chain's node may cost money, so results are reused for this time.
 */
const HOLDS_MS = 1_000;

/**
 * Asks for the result of each check, at most a second old: runs all of them at once, and never
 * rejects. `now` returns milliseconds.
 */
export function recentFindings(
  checks: () => Readonly<Record<string, ReadinessCheck>>,
  now: () => number,
  checkMs: number = CHECK_MS,
): () => Promise<readonly Finding[]> {
  let last: { readonly at: number; readonly found: Promise<readonly Finding[]> } | null = null;
  const tooLate = () => new NotReady(`no answer within ${checkMs / 1000} s`);
  const run = async ([name, check]: [string, ReadinessCheck]): Promise<Finding> => {
    try {
      return { name, detail: await within(checkMs, check(), tooLate) };
    } catch (error) {
      return { name, detail: shown(error), error };
    }
  };
  return () => {
    const at = now();
    if (last === null || at - last.at >= HOLDS_MS)
      last = { at, found: Promise.all(Object.entries(checks()).map(run)) };
    return last.found;
  };
}

/**
 * The public part of an error: the product's own words. For a failure at L1, only the attempted
 * action: nodes, members and contracts write the rest, and a node's address may contain its key.
 */
export function shown(error: unknown): string {
  if (error instanceof NotReady) return error.message;
  if (error instanceof AggregateError) return [...new Set(error.errors.map(shown))].join("; ");
  if (!(error instanceof MintmarkError)) return "failed; the log has the reason";
  if (error.code === "kzg_unavailable")
    return `the KZG thread does not run${codeOf(error.cause)}: batches in blobs wait; the log has more`;
  if (error.code !== "l1_failed") return ERROR_CODES[error.code];
  const [tried = ""] = error.message.split(/: |[;(]/, 1);
  if (tried.includes("://")) return ERROR_CODES.l1_failed;
  return `${tried.trim()}${whyOnL1(error.cause)}; the log has more`;
}

/** Node's own code of an error: safe to show, unlike its text. */
function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? ` (${cause.code})` : "";
}

/** The name of the contract's own error, or that the chain was unreachable. */
function whyOnL1(cause: unknown): string {
  if (!(cause instanceof BaseError)) return "";
  const revert = cause.walk((inner) => inner instanceof ContractFunctionRevertedError);
  const name = revert instanceof ContractFunctionRevertedError ? revert.data?.errorName : undefined;
  return name === undefined
    ? ": L1 refused or did not answer"
    : `: the contract refused with ${name}`;
}

/**
 * The checks of every server: store, clock, KZG code, memory, and how long mints have waited for a
 * seal.
 */
export function engineChecks(
  engine: Engine,
  memory: HeldBytes,
): Readonly<Record<string, ReadinessCheck>> {
  return {
    memory: async () => {
      const held = `requests and responses hold ${Math.ceil(memory.total / MIB)} of ${memory.limit / MIB} MiB`;
      return unless(memory.isFull ? held : null, held);
    },
    store: async () => {
      const { countValidium, countRollup } = await engine.batches.committedState();
      const count = countValidium + countRollup;
      return count === 1 ? "1 batch committed" : `${count} batches committed`;
    },
    clock: async () => unless(engine.operator.clockFault(), "fits the journal"),
    kzg: async () => {
      const fault = engine.operator.kzgFault();
      if (fault !== null) throw fault;
      return "no batch waits for it";
    },
    threads: async () => {
      const fault = engine.operator.threadFault();
      if (fault !== null)
        throw new NotReady(`${fault.message}${codeOf(fault.cause)}`, { cause: fault });
      return "run when needed";
    },
    openBatches: async () => MODES.map((mode) => describeOpenBatch(engine, mode)).join(", "),
  };
}

/** Returns the sentence for a healthy state; throws `NotReady` for a fault. */
export function unless(fault: string | null, fine: string): string {
  if (fault !== null) throw new NotReady(fault);
  return fine;
}

function describeOpenBatch(engine: Engine, mode: Mode): string {
  const { vaultCount, timestamps } = engine.batches.getOpen(mode);
  if (vaultCount === 0 || timestamps.open === undefined) return `${mode}: empty`;
  return `${mode}: ${vaultCount} ${vaultCount === 1 ? "vault" : "vaults"} since ${new Date(timestamps.open).toISOString()}`;
}

/**
 * Resolves like `work` if it ends in time; else rejects with `tooLate`. The work itself continues.
 */
export async function within<T>(ms: number, work: Promise<T>, tooLate: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooLate()), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
