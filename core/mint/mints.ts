import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Principal, Uuid } from "../model.ts";
import { requireScope } from "../tenants/api-keys.ts";
import { onceForKey } from "./idempotency.ts";
import { AcceptedResult, type MintResult, presentResult, replayedResult } from "./mint-results.ts";
import { type Decision, MintTransition } from "./mint-transition.ts";
import { readMint } from "./reader.ts";

/** Every check of a mint, without minting. */
export async function checkMint(
  { ledger, writer }: EngineContext,
  principal: Principal,
  request: unknown,
  signal: AbortSignal | undefined,
): Promise<{ readonly users: number; readonly mints: number }> {
  requireScope(principal, "mint");
  for (;;) {
    const read = readMint(ledger, principal, request);
    const { recipients, minted } = read.columns;
    const outcome = await writer.run(
      new MintTransition(ledger, principal, read, { isDry: true }),
      signal,
    );
    if (outcome !== null) return { users: recipients.length, mints: minted };
  }
}

/** Mints a request; with a decision at most once, by the record that decides it. */
export async function mint(
  { ledger, writer }: EngineContext,
  principal: Principal,
  request: unknown,
  {
    idempotencyKey,
    signal,
    decision = null,
  }: MintOptions & { readonly decision?: Decision | null } = {},
): Promise<MintResult> {
  const key = idempotencyKey === undefined ? null : requireIdempotencyKey(idempotencyKey);
  requireScope(principal, "mint");
  const underWay = key && `${principal.applicationId} ${key}`;
  if (underWay !== null && ledger.minting.keyedMints.has(underWay))
    throw new MintmarkError("idempotency_in_progress");
  if (underWay !== null) ledger.minting.keyedMints.add(underWay);
  try {
    for (;;) {
      const read = readMint(ledger, principal, request);
      const digest = key === null || !read.issues.empty ? "0x" : read.columns.digest();
      const once =
        key === null ? decision : onceForKey(ledger, principal.applicationId, key, digest);
      const transition = new MintTransition(ledger, principal, read, { decision: once });
      const outcome = await writer.run(transition, signal);
      if (outcome === null) continue;
      const { sequence, minted } = outcome;
      return minted === null
        ? replayedResult(ledger, sequence)
        : new AcceptedResult(ledger, minted, false);
    }
  } finally {
    if (underWay !== null) ledger.minting.keyedMints.delete(underWay);
  }
}

export function mintsOf(context: EngineContext): Mints {
  return {
    check: async (principal, request, wait) => checkMint(context, principal, request, wait?.signal),
    get: async (applicationId, mintId) => presentResult(context.ledger, applicationId, mintId),
  };
}

function requireIdempotencyKey(key: string): string {
  if (typeof key !== "string" || !/^[\x20-\x7e]{1,255}$/.test(key))
    throw new MintmarkError(
      "validation_failed",
      "an idempotency key is 1 to 255 printable ASCII characters",
    );
  return key;
}

/** Options that make a mint safe to repeat, and that cancel it. */
export interface MintOptions extends WaitOptions {
  /** At most 255 printable ASCII characters. */
  readonly idempotencyKey?: string;
}

/**
 * Accepted mints, and a dry run.
 *
 * @example
 * const { mints } = await engine.mints.check(principal, request); // throws what mint would
 * const { transactions } = await engine.mints.get(applicationId, mintId);
 */
export interface Mints {
  /**
   * Runs every check of `mint` without minting. Rejects with the reasons for which `mint` would
   * reject, and with `backpressure`, `l1_not_compared` or `history_diverged`.
   */
  check(
    principal: Principal,
    request: unknown,
    wait?: WaitOptions,
  ): Promise<{ readonly users: number; readonly mints: number }>;
  /** The answer of an earlier `mint`, with current statuses. Rejects with `mint_not_found`. */
  get(applicationId: Uuid, mintId: Uuid): Promise<MintResult>;
}
