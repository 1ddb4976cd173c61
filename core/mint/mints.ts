import type { WaitOptions } from "../abort.ts";
import { columnsOf, type MintColumns, readMintColumns } from "../columns/mint-columns.ts";
import { Issues, type MintRequest, readMintRequest } from "../columns/request.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hex, Principal, Uuid } from "../model.ts";
import { requireScope } from "../tenants/api-keys.ts";
import { idempotencyKeyHash } from "./idempotency.ts";
import { type Decision, type MintOutcome, MintTransition } from "./mint.ts";
import { MintCheck } from "./mint-check.ts";
import { AcceptedResult, type MintResult, presentResult, replayedResult } from "./mint-results.ts";

/** The engine's `mint`. */
export function mintOf(
  context: EngineContext,
): (principal: Principal, request: unknown, options?: MintOptions) => Promise<MintResult> {
  const inFlight = new Set<string>();
  return async (principal, request, { idempotencyKey, signal } = {}) => {
    const { ledger } = context;
    requireScope(principal, "mint");
    const read = readMint(ledger, principal, request);
    if (idempotencyKey === undefined) return await mint(ledger, principal, read, null, signal);
    const key = idempotencyKeyHash(requireIdempotencyKey(idempotencyKey));
    const name = `${principal.applicationId} ${idempotencyKey}`;
    if (inFlight.has(name)) throw new MintmarkError("idempotency_in_progress");
    inFlight.add(name);
    try {
      return await mint(ledger, principal, read, key, signal);
    } finally {
      inFlight.delete(name);
    }
  };
}

/** Mints a request that a record decides, at most once. */
export function mintOnce(
  ledger: Ledger,
  principal: Principal,
  request: unknown,
  decision: Decision,
  signal: AbortSignal | undefined,
): Promise<MintResult> {
  return mint(ledger, principal, readMint(ledger, principal, request), null, signal, decision);
}

/** Every check of a mint, without minting. */
export async function checkMint(
  ledger: Ledger,
  principal: Principal,
  request: unknown,
  signal: AbortSignal | undefined,
): Promise<{ readonly users: number; readonly mints: number }> {
  requireScope(principal, "mint");
  const issues = new Issues();
  const read = readMintRequest(request, ledger.limits, issues);
  const check = new MintCheck(ledger, principal, read, issues, null);
  await ledger.writer.run(check, signal);
  return { users: read.users.length, mints: check.weight };
}

export function mintsOf(context: EngineContext): Mints {
  return {
    check: async (principal, request, wait) => checkMint(context.ledger, principal, request, wait?.signal),
    get: async (applicationId, mintId) => presentResult(context.ledger, applicationId, mintId),
  };
}

/** A mint request in one of two forms: columns as long as nothing is wrong with it, else plain objects. */
interface ReadMint {
  readonly columns: MintColumns | null;
  readonly plain: MintRequest | null;
  readonly issues: Issues;
}

function readMint(ledger: Ledger, { applicationId }: Principal, request: unknown): ReadMint {
  const { dataAvailabilityMode } = ledger.application(applicationId);
  const columns = readMintColumns(request, ledger.limits, ledger.knownAssets, dataAvailabilityMode);
  const issues = new Issues();
  return { columns, plain: columns === null ? readMintRequest(request, ledger.limits, issues) : null, issues };
}

/** Tries of a mint that one check refuses and the other accepts. */
const ATTEMPTS = 5;

/**
 * Mints a request by its columns. When a check fails, the plain check lists the reasons. When the plain check finds
 * none, another request may have changed the state in between, so the mint runs again. If the two checks keep
 * disagreeing, that is a defect, and the error says so.
 */
async function mint(
  ledger: Ledger,
  principal: Principal,
  { columns, plain, issues }: ReadMint,
  key: Hex | null,
  signal: AbortSignal | undefined,
  decision: Decision | null = null,
): Promise<MintResult> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const idempotency = key === null ? null : { key, digest: columns?.digest() ?? null };
    if (columns !== null) {
      const minted = await ledger.writer.run(
        new MintTransition(ledger, principal, columns, idempotency, decision),
        signal,
      );
      if (minted !== null) return resultOf(ledger, minted);
    }
    plain ??= columns?.toRequest(ledger.knownAssets) ?? null;
    if (plain === null) break;
    const earlier = await ledger.writer.run(new MintCheck(ledger, principal, plain, issues, idempotency), signal);
    if (earlier !== null) return resultOf(ledger, earlier);
    const { dataAvailabilityMode } = ledger.latestApplication(principal.applicationId);
    // An asset that was changed in between has another index.
    columns = columnsOf(plain, ledger.knownAssets, dataAvailabilityMode);
    issues = new Issues();
  }
  throw new Error(
    `The checks of a mint disagree: one refused it ${ATTEMPTS} times, and the other found nothing wrong.`,
  );
}

function resultOf(ledger: Ledger, { sequence, minted }: MintOutcome): MintResult | Promise<MintResult> {
  return minted === null ? replayedResult(ledger, sequence) : new AcceptedResult(ledger, minted);
}

function requireIdempotencyKey(key: string): string {
  if (typeof key !== "string" || !/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new MintmarkError("validation_failed", "an idempotency key is 1 to 255 printable ASCII characters");
  }
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
   * Runs every check of `mint` without minting. Rejects with the reasons for which `mint` would reject, and with
   * `backpressure`, `l1_not_compared` or `history_diverged`.
   */
  check(
    principal: Principal,
    request: unknown,
    wait?: WaitOptions,
  ): Promise<{ readonly users: number; readonly mints: number }>;
  /** The answer of an earlier `mint`, with current statuses. Rejects with `mint_not_found`. */
  get(applicationId: Uuid, mintId: Uuid): Promise<MintResult>;
}
