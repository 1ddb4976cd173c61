import { pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import type { Address, Hash } from "../model.ts";
import type { L1Owner, L1Reader, WithdrawalCall } from "../ports.ts";
import { type ExitKit, requireWholeKit } from "./kit.ts";

/** Options of an exit. */
export interface ExitOptions {
  readonly kit: ExitKit;
  readonly l1: Pick<L1Reader, "settlement" | "verifyVault" | "holding" | "block"> & L1Owner;
  /** The account that `l1` sends from: the vault's owner. */
  readonly account: Address;
  /** Units; default all that are left. */
  readonly quantity?: bigint;
  /** Default: the owner. */
  readonly recipient?: Address;
  /** For a vault that is not mature: wait, or throw. */
  readonly immature?: "wait" | "refuse";
  /** Milliseconds between checks of L1 while waiting; default 2,000. */
  readonly pollingMs?: number;
  /** Called before anything is sent. */
  readonly onPlan?: (plan: ExitPlan) => void;
  /** Called while waiting, with the seconds that remain on L1's clock. */
  readonly onWait?: (seconds: bigint) => void;
  /** Called once a node has taken the transaction. */
  readonly onSent?: (txHash: Hash) => void;
  readonly signal?: AbortSignal;
}

/** The effects of an exit, after the contract has verified the kit. */
export interface ExitPlan {
  readonly withdrawnBefore: bigint;
  readonly quantity: bigint;
  readonly recipient: Address;
  /** Base units that the token mints. */
  readonly baseUnits: bigint;
}

/** A mined exit. */
export interface ExitResult extends ExitPlan {
  readonly txHash: Hash;
  readonly blockNumber: bigint;
  readonly gasUsed: bigint;
  /** The recipient's balance of the token, in base units, now and before. */
  readonly held: bigint;
  readonly heldBefore: bigint;
}

/**
 * Withdraws a vault with its kit and its owner's account. Simulates each transaction before sending it.
 *
 * @throws MintmarkError `validation_failed` for a damaged kit, another contract or account; `insufficient_balance` when
 *   less is left; `proof_not_ready` while the vault is not mature; `l1_failed` with the contract's reason
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
 * Checks the kit by itself and with the contract, and the units left. Sends nothing.
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
    throw new MintmarkError("validation_failed", `The key belongs to ${account}; the vault's owner is ${vault.owner}.`);
  }
  const withdrawnBefore = await l1.verifyVault(kit);
  const left = vault.amount - withdrawnBefore;
  const wanted = quantity ?? left;
  if (left === 0n)
    throw new MintmarkError("insufficient_balance", "All of this vault has been withdrawn, or it was voided.");
  if (wanted < 1n || wanted > left) {
    throw new MintmarkError(
      "insufficient_balance",
      `The vault has ${left} of ${vault.amount} units left; cannot withdraw ${wanted}.`,
    );
  }
  const to = recipient ?? vault.owner;
  return { withdrawnBefore, quantity: wanted, recipient: to, baseUnits: wanted * token.quantum };
}

/** Resolves once L1 would pay the vault out. If only time is missing, waits or throws, as `immature` says. */
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
