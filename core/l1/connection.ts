import type {
  Abi,
  Address,
  Client,
  ContractFunctionArgs,
  ContractFunctionName,
  ContractFunctionReturnType,
  Hex,
  Transport,
} from "viem";
import { BaseError, decodeErrorResult, HttpRequestError, TimeoutError } from "viem";
import { getCode, readContract } from "viem/actions";
import { severalAtOnce } from "../at-once.ts";
import { MintmarkError } from "../errors.ts";
import type { Settlement } from "../ports.ts";
import { INTERNAL, legible, reasonOf, revertReason } from "./reason.ts";

/**
 * A viem client. viem's actions are imported one by one, because the pages' scripts shall not hold
 * all of them.
 */
export type L1Client = Client<Transport>;

/** The connection to a settlement contract or a mirror, over which every part works. */
export interface L1Connection {
  readonly client: L1Client;
  readonly settlement: Settlement;
  readonly finality: Finality;
  readonly pollingMs: number;
}

/**
 * When a block is final: when the chain says so, or with this many blocks above it (chains without
 * finality).
 */
export type Finality = "finalized" | { readonly confirmations: bigint };

/** Reads the runtime code of accounts; `0x` for none. */
export function codeOn(client: L1Client): (address: Address) => Promise<Hex> {
  return async (address) =>
    (await askL1(`reading the code of ${address}`, () => getCode(client, { address }))) ?? "0x";
}

/**
 * Runs one exchange with L1. What viem throws becomes a short `l1_failed`; our own errors and
 * aborts pass unchanged.
 */
export async function askL1<T>(doing: string, exchange: () => Promise<T>): Promise<T> {
  try {
    return await exchange();
  } catch (error) {
    if (error instanceof MintmarkError || (error instanceof Error && error.name === "AbortError"))
      throw error;
    throw new MintmarkError("l1_failed", `${doing}: ${reasonOf(error)}`, { cause: error });
  }
}

/** Asks views of a contract, as of a block. */
export function viewsOf<const A extends Abi>({ client, settlement }: L1Connection, abi: A) {
  return <
    F extends ContractFunctionName<A, "view" | "pure">,
    Args extends ContractFunctionArgs<A, "view" | "pure", F>,
  >(
    doing: string,
    functionName: F,
    args: Args,
    blockNumber?: bigint,
  ): Promise<ContractFunctionReturnType<A, "view" | "pure", F, Args>> => {
    const read = { abi, address: settlement.contract, functionName, args, blockNumber };
    // viem's types cannot follow a union of functions; the signature above ties arguments and
    // answer to the function.
    return askL1(doing, () => readContract(client, read as never)) as never;
  };
}

/**
 * Whether the chain gave no answer, so that a retry may help: no connection, a time-out, a node
 * that is busy, or one with a fault of its own.
 *
 * @example
 * if (!isUnreachable(error)) throw error; // else try again later
 */
export function isUnreachable(error: unknown): boolean {
  const cause = error instanceof MintmarkError ? error.cause : error;
  if (!(cause instanceof BaseError)) return false;
  if (isBusy(cause)) return revertReason(cause) === null;
  const failed = cause.walk(
    (inner) => inner instanceof HttpRequestError || inner instanceof TimeoutError,
  );
  if (!(failed instanceof HttpRequestError)) return failed instanceof TimeoutError;
  return failed.status === undefined || failed.status === 429 || failed.status >= 500;
}

/** The data of a call's revert; null for none, and when the chain did not answer. */
export function revertData(error: unknown): Hex | null {
  if (!(error instanceof BaseError)) return null;
  let found: Hex | null = null;
  error.walk((inner) => {
    const { data } = inner as { readonly data?: unknown };
    // Some nodes wrap it.
    const bytes = (data as { readonly data?: unknown } | null | undefined)?.data ?? data;
    if (typeof bytes === "string" && /^0x[\da-f]{8}/i.test(bytes)) found = bytes as Hex;
    return false;
  });
  return found;
}

/**
 * A contract's error data in words, e.g. `TokenRefused(0x…, 0x…)`; the data itself for an unknown
 * error.
 */
export function reasonIn(abi: Abi, data: Hex): string {
  try {
    const { errorName, args = [] } = decodeErrorResult({ abi, data });
    return legible(`${errorName}(${args.map(String).join(", ")})`);
  } catch {
    return legible(data);
  }
}

/** The call reverted or returned nothing: the contract lacks such a function. */
export function saysNothing(error: unknown): boolean {
  return (
    revertReason(error) !== null ||
    (error instanceof Error && error.message.includes('returned no data ("0x")'))
  );
}

/**
 * A contract's answer; `otherwise` when it {@link saysNothing}. A silent chain is still an error.
 */
export async function orIfSilent<T, D>(answer: Promise<T>, otherwise: D): Promise<T | D> {
  return answer.catch((error: unknown) => {
    if (saysNothing(error)) return otherwise;
    throw error;
  });
}

/** A trial's answer; the contract's reason when it reverts. A silent chain is still an error. */
export async function orReason<T>(trial: Promise<T>): Promise<T | string> {
  return trial.catch((error: unknown) => {
    const reason = revertReason(error);
    if (reason === null) throw error;
    return reason;
  });
}

/** Codes of nodes that will answer when they have less to do. */
const LIMITED: readonly unknown[] = [-32005, -32007, 429];
/** Codes of those nodes, and of nodes in which something must recover first. */
const BUSY: readonly unknown[] = [...LIMITED, INTERNAL];

/** The node answered that it could not answer now, in HTTP 200. */
export function isBusy(error: unknown): boolean {
  return hasCode(error, BUSY);
}

/**
 * The node answered, in HTTP 200, that it was asked too much. It has not looked at the question.
 */
export function isLimited(error: unknown): boolean {
  return hasCode(error, LIMITED);
}

function hasCode(error: unknown, codes: readonly unknown[]): boolean {
  if (!(error instanceof BaseError)) return false;
  return error.walk((inner) => codes.includes((inner as { code?: unknown }).code)) !== null;
}

/** A gateway's statuses for a node that took too long. */
const LATE: readonly unknown[] = [408, 504, 524];

/** The node refused the question as it is, or could not answer it in time. */
export function isTooMuch(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false;
  const isLate = (inner: unknown) =>
    inner instanceof TimeoutError ||
    (inner instanceof HttpRequestError && LATE.includes(inner.status));
  return isRefusal(error) || error.walk(isLate) !== null;
}

export function isRefusal(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false;
  const answer = error.walk((inner) => inner instanceof HttpRequestError);
  if (answer instanceof HttpRequestError) return answer.status === 400 || answer.status === 413;
  return error.walk((inner) => typeof (inner as { code?: unknown }).code === "number") !== null;
}

/** Calls under way at once. */
const AT_ONCE = 8;

/**
 * Asks L1 for many things, a number of them in each call. Answers come in the order of the
 * questions.
 */
export async function askInBulk<Q, A>(
  doing: string,
  questions: readonly Q[],
  perCall: number,
  ask: (some: readonly Q[]) => Promise<readonly A[]>,
): Promise<A[]> {
  const calls = Array.from({ length: Math.ceil(questions.length / perCall) }, (_, i) =>
    questions.slice(i * perCall, (i + 1) * perCall),
  );
  return (await severalAtOnce(calls, (some) => askL1(doing, () => ask(some)), AT_ONCE)).flat();
}
