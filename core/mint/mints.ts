import type { WaitOptions } from "../abort.ts";
import { argumentError, invalid, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Address, Mode, Principal, Uuid } from "../model.ts";
import { requireScope } from "../tenants/api-keys.ts";
import type { JsonObject } from "../tenants/metadata.ts";
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
): Promise<MintCounts> {
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
  options: MintOptions & { readonly decision?: Decision | null } = {},
): Promise<MintResult> {
  if (options === null) throw argumentError("options", "must be an object");
  const { idempotencyKey, signal, decision = null } = options;
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
      return typeof outcome === "number"
        ? replayedResult(ledger, outcome)
        : new AcceptedResult(ledger, outcome, false);
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
    throw invalid("an idempotency key is 1 to 255 printable ASCII characters");
  return key;
}

/** A request is the body of `POST /api/v1/mint`. */
export interface MintRequest {
  readonly users: readonly MintRecipient[];
}

/** A user, by its id or its owner's address, and what is minted for it. */
export interface MintRecipient {
  readonly userId?: Uuid | undefined;
  /** Instead of `userId`: the address's first user, who is made with the mint if there is none. */
  readonly ownerAddress?: Address | undefined;
  readonly mints: readonly MintEntry[];
}

/** A mint of one token, of an amount, or of tokens that the engine numbers. */
export interface MintEntry {
  readonly assetId: Uuid;
  /** ERC-721 and ERC-1155: below 2^256, as decimal text or an integer up to 2^53 - 1. */
  readonly tokenId?: number | string;
  /** ERC-721 that the engine numbers: how many tokens; default 1. */
  readonly quantity?: number;
  /** Names the token instead of `tokenId`: hex of 1 to 255 bytes. */
  readonly mintingBlob?: string;
  /** Units of `quantum` base units, 1 to 2^63 - 1; absent or 1 for ERC-721. */
  readonly amount?: number | string;
  /** Instead of `amount`: whole tokens, such as "12.5". */
  readonly amountDecimal?: string;
  /** Your own name for the mint; it need not be unique. */
  readonly reference?: string;
  readonly metadata?: JsonObject;
  /** Can be absent when the asset or the application has a default. */
  readonly dataAvailabilityMode?: Mode;
}

/**
 * The type of a request that is given as `R`: what nobody has typed, such as parsed JSON, goes as
 * it is, because the engine checks it anyway. Everything else must be a {@link MintRequest}.
 */
export type MintRequestOr<R> = unknown extends R ? R : MintRequest;

/** Options that make a mint safe to repeat, and that cancel it. */
export interface MintOptions extends WaitOptions {
  /** At most 255 printable ASCII characters. */
  readonly idempotencyKey?: string;
}

/** The size of a request that {@link Mints.check} has found good. */
export interface MintCounts {
  readonly users: number;
  /** Entries, where one of `quantity` n counts as n. */
  readonly mints: number;
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
  check<R>(
    principal: Principal,
    request: MintRequestOr<R>,
    wait?: WaitOptions,
  ): Promise<MintCounts>;
  /** The answer of an earlier `mint`, with current statuses. Rejects with `mint_not_found`. */
  get(applicationId: Uuid, mintId: Uuid): Promise<MintResult>;
}
