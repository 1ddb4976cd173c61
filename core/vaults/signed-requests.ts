import { orAborted, type WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Services } from "../ledger/services.ts";
import type { Address, Hash, Hex, Principal } from "../model.ts";
import { MAX_UINT64, requireBigint } from "../protocol/bounds.ts";
import { ecdsaForm, isUndeployed, UNDEPLOYED_REFUSED } from "../protocol/signature.ts";

/**
 * Asks for what an owner has signed of vaults: an application of its own ones, or the owner of any
 * application's.
 */
export type VaultCaller = Principal | { readonly owner: Address };

/**
 * Most seconds until the deadline of a request: 30 days. After that the engine gives up what L1
 * keeps refusing, and frees the vaults.
 */
const MAX_VALIDITY = 2_592_000n;

/** Least seconds from a request to its deadline. With less it would not reach L1 in time. */
export const MIN_VALIDITY = {
  withdrawal: 60n,
  /** A taker signs, too. */
  order: 300n,
  /** A batch waits up to minutes, and L1 may be slow. */
  transfer: 3_600n,
} as const;

const DAY = 86_400n;

/** Seconds for which a prepared message is good, unless its caller says more or less. */
const USUAL_VALIDITY = {
  /** Tokens take days to mature. */
  withdrawal: 7n * DAY,
  order: 7n * DAY,
  /** An ERC-721 vault may have to mature. */
  fill: DAY,
  /** A batch may have to wait for L1. */
  transfer: DAY,
} as const;

/** The deadline of a message that is prepared now, if its caller names none. */
export function usualDeadline(ledger: Ledger, of: keyof typeof USUAL_VALIDITY): bigint {
  return secondsNow(ledger) + USUAL_VALIDITY[of];
}

/** Throws unless the deadline is far enough ahead for such a request, and at most 30 days. */
export function requireDeadline(
  ledger: Ledger,
  deadline: bigint,
  of: keyof typeof MIN_VALIDITY,
): void {
  requireBigint("deadline", deadline, 0n, MAX_UINT64);
  const now = secondsNow(ledger);
  const least = MIN_VALIDITY[of];
  if (deadline < now + least || deadline > now + MAX_VALIDITY)
    throw new MintmarkError(
      "deadline_invalid",
      `The deadline must be ${least} seconds to 30 days ahead.`,
    );
}

/** The engine's clock, in the seconds of deadlines. */
export function secondsNow(ledger: Ledger): bigint {
  return BigInt(Math.floor(ledger.journal.clock.now() / 1000));
}

/** The messages that an owner may have signed, for the contract that pays on a chain. */
export interface OwnersSignature {
  readonly chainId: bigint;
  readonly owner: Address;
  readonly digest: Hash;
  readonly signature: Hex;
  /** Whether it was accepted before. A wallet contract is asked once: it may change its mind. */
  readonly isKnown?: boolean;
}

/** How a caller waits for what an owner has signed. */
export interface SignedOptions extends WaitOptions {
  /**
   * Called before a node is asked whether the owner's wallet contract (ERC-1271) takes the
   * signature: its answer costs more than the rest of the request. If this throws, the node is not
   * asked.
   */
  readonly onWalletCheck?: () => void;
}

/**
 * The signature as L1 takes it. Checks ECDSA on a thread, and anything else with the wallet
 * contract on the token's chain, if the engine can reach it. Throws `signature_invalid`.
 */
export async function signedForm(
  { verifySignature, signers }: Pick<Services, "verifySignature" | "signers">,
  { chainId, owner, digest, signature, isKnown = false }: OwnersSignature,
  { signal, onWalletCheck }: SignedOptions = {},
): Promise<Hex> {
  const form = await ecdsaForm(owner, digest, signature, (...signed) => signers.recover(...signed));
  if (form !== null) return form;
  if (isKnown) return signature;
  if (verifySignature !== undefined) {
    onWalletCheck?.();
    const verified = verifySignature(chainId, owner, digest, signature);
    if (await orAborted(verified, signal)) return signature;
  }
  throw isUndeployed(signature)
    ? new MintmarkError("signature_invalid", UNDEPLOYED_REFUSED)
    : new MintmarkError("signature_invalid");
}

/** The error that a check throws; null when it passes. */
export function faultOf(check: () => unknown): MintmarkError | null {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof MintmarkError) return error;
    throw error;
  }
}
