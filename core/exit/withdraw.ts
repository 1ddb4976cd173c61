import { pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import type { Address, Hash } from "../model.ts";
import type { L1Owner, L1Reader, WithdrawalCall } from "../ports.ts";
import { type ExitKit, requireWholeKit } from "./kit.ts";

/** An exit: the kit, the chain and the account. */
export interface ExitOptions {
  readonly kit: ExitKit;
  readonly l1: Pick<L1Reader, "settlement" | "verifyVault" | "holding" | "block"> & L1Owner;
  /** The account that `l1` sends from: must be the vault's owner. */
  readonly account: Address;
  /** Units; default all that is left. */
  readonly quantity?: bigint;
  /** Default: the owner. */
  readonly recipient?: Address;
  /** What to do about a vault that is not mature: wait for it, or say so. */
  readonly immature?: "wait" | "refuse";
  /** Milliseconds between looks at L1 while waiting; default 2 000. */
  readonly pollingMs?: number;
  /** Told before anything is sent. */
  readonly onPlan?: (plan: ExitPlan) => void;
  /** Told while waiting: seconds that L1's clock still has to pass. */
  readonly onWait?: (seconds: bigint) => void;
  /** Told once a node has taken the transaction. */
  readonly onSent?: (txHash: Hash) => void;
  readonly signal?: AbortSignal;
}

/** What an exit will do, after the contract has verified the kit. */
export interface ExitPlan {
  readonly withdrawnBefore: bigint;
  readonly quantity: bigint;
  readonly recipient: Address;
  /** Base units that the token will mint. */
  readonly baseUnits: bigint;
}

/** An exit that is mined. */
export interface ExitResult extends ExitPlan {
  readonly txHash: Hash;
  readonly blockNumber: bigint;
  readonly gasUsed: bigint;
  /** What the recipient holds of the token now, in base units, and what it held before. */
  readonly held: bigint;
  readonly heldBefore: bigint;
}

/**
 * Withdraws a vault with nothing but its kit and its owner's account. Everything is tried by simulation before it is sent.
 *
 * @throws MintmarkError `validation_failed` for a damaged kit, another contract or account; `insufficient_balance` when less is left;
 *   `proof_not_ready` while the vault is not mature; `l1_failed` with the contract's reason
 *
 * @example
 * const { txHash } = await exitWithKit({ kit, l1, account: owner.address, immature: "wait" });
 */
export async function exitWithKit(options: ExitOptions): Promise<ExitResult> {
  const { kit, l1, onPlan, onSent, signal } = options;
  const plan = await planExit(options);
  onPlan?.(plan);
  const { quantity, recipient } = plan;
  const { vault, header, siblings, assetPath, token } = kit;
  // The owner itself sends, so no signature is needed.
  const authorization = { deadline: 0n, signature: "0x" } as const;
  const call = { vault, header, siblings, assetPath, quantity, recipient, authorization };
  await requireWithdrawable(call, options);
  const holding = () => l1.holding(token.address, token.standard, recipient, token.tokenId);
  const heldBefore = await holding();
  const { txHash, blockNumber, gasUsed } = await l1.withdrawOwn(call, {
    ...(onSent && { onSent }),
    ...(signal && { signal }),
  });
  return { ...plan, txHash, blockNumber, gasUsed, heldBefore, held: await holding() };
}

/**
 * Checks the kit by itself and by the contract, and what is left of the vault. Sends nothing.
 *
 * @example
 * const { quantity } = await planExit({ kit, l1, account: owner.address });
 */
export async function planExit({ kit, l1, account, quantity, recipient }: ExitOptions): Promise<ExitPlan> {
  requireWholeKit(kit);
  const { settlement, vault, token } = kit;
  if (settlement.chainId !== l1.settlement.chainId || settlement.contract !== l1.settlement.contract) {
    const meant = `${settlement.contract} on chain ${settlement.chainId}`;
    throw new MintmarkError(
      "validation_failed",
      `The kit is for ${meant}; the RPC serves chain ${l1.settlement.chainId}.`,
    );
  }
  if (account.toLowerCase() !== vault.owner) {
    throw new MintmarkError("validation_failed", `The key is of ${account}; the vault's owner is ${vault.owner}.`);
  }
  const withdrawnBefore = await l1.verifyVault(kit);
  const left = vault.amount - withdrawnBefore;
  const wanted = quantity ?? left;
  if (left === 0n)
    throw new MintmarkError("insufficient_balance", "All of this vault has been withdrawn, or it was voided.");
  if (wanted < 1n || wanted > left) {
    throw new MintmarkError(
      "insufficient_balance",
      `Of this vault ${left} of ${vault.amount} units are left, not ${wanted}.`,
    );
  }
  const to = recipient ?? vault.owner;
  return { withdrawnBefore, quantity: wanted, recipient: to, baseUnits: wanted * token.quantum };
}

/** Resolves once L1 would let the vault out; while only time is missing it waits, if it may. */
async function requireWithdrawable(call: WithdrawalCall, options: ExitOptions): Promise<void> {
  const { kit, l1, immature = "refuse", pollingMs = 2_000, onWait, signal } = options;
  for (;;) {
    const refusal = await l1.checkOwnWithdrawal(call);
    if (refusal === null) return;
    if (!refusal.startsWith("NotMature(") || kit.maturesAt === null) {
      throw new MintmarkError("l1_failed", `the contract would refuse with ${refusal}`);
    }
    const seconds = kit.maturesAt - ((await l1.block("latest"))?.timestamp ?? 0n);
    if (immature === "refuse") {
      const when = new Date(Number(kit.maturesAt) * 1000).toISOString();
      throw new MintmarkError(
        "proof_not_ready",
        `The vault matures at ${when}, in ${seconds} s of L1's clock. Wait for it.`,
      );
    }
    onWait?.(seconds);
    await pause(pollingMs, signal);
  }
}
