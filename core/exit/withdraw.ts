import { pause } from "../backoff.ts";
import { type ErrorCode, invalid, MintmarkError } from "../errors.ts";
import type { Address, Hash, VaultId } from "../model.ts";
import type { L1Committer, L1Owner, L1Reader, L1Receipt, WithdrawalCall } from "../ports.ts";
import { sharesOf, tipIdOf } from "../protocol/transfer-proof.ts";
import { type ExitKit, requireWholeKit } from "./kit.ts";
import { type SearchOptions, type Standing, type StandingChain, standingOf } from "./standing.ts";

/** Options of an exit. */
export interface ExitOptions extends SearchOptions {
  readonly kit: ExitKit;
  readonly l1: StandingChain & Pick<L1Reader, "holding"> & L1Owner;
  /** The account that `l1` sends from: the vault's owner. */
  readonly account: Address;
  /** Units; default all that are left. */
  readonly quantity?: bigint;
  /** Default: the owner. */
  readonly recipient?: Address;
  /** Whether to wait for a vault that is not mature, or to throw. */
  readonly immature?: "wait" | "refuse";
  /** Milliseconds between checks of L1 while waiting; default 2,000. */
  readonly pollingMs?: number;
  /** Called before anything is sent. */
  readonly onPlan?: (plan: ExitPlan) => void;
  /** Called while waiting, with the seconds that remain on L1's clock. */
  readonly onWait?: (seconds: bigint) => void;
  /** Called once a node has taken the transaction. */
  readonly onSent?: (txHash: Hash) => void;
}

/** The effects of an exit, after the contract has verified the kit. */
export interface ExitPlan extends Pick<Standing, "kit" | "withdrawnBefore"> {
  readonly quantity: bigint;
  readonly recipient: Address;
  /** Base units that the token mints. */
  readonly baseUnits: bigint;
}

/** A mined exit. */
export interface ExitResult extends ExitPlan, L1Receipt {
  /** The recipient's balance of the token, in base units, now and before. */
  readonly held: bigint;
  readonly heldBefore: bigint;
}

/**
 * Withdraws a vault with its kit and its owner's account. Simulates each transaction before sending
 * it.
 *
 * @throws MintmarkError `validation_failed` for a damaged kit, another contract or account;
 *   `vault_spent` when the owner has given the vault away or redeemed it; `insufficient_balance`
 *   when less is left; `proof_not_ready` while the vault is not mature; `l1_failed` with the
 *   contract's reason
 *
 * @example
 * const { txHash } = await exitWithKit({ kit, l1, account: owner.address, immature: "wait" });
 */
export async function exitWithKit(options: ExitOptions): Promise<ExitResult> {
  const { l1, onPlan, onSent, signal } = options;
  const plan = await planExit(options);
  onPlan?.(plan);
  const { recipient } = plan;
  const { token } = plan.kit;
  const call = ownCall(plan);
  await requireWithdrawable(call, options);
  const holding = () => l1.holding(token.address, token.standard, recipient, token.tokenId);
  const heldBefore = await holding();
  const receipt = await l1.withdrawOwn(call, { onSent, signal });
  return { ...plan, ...receipt, heldBefore, held: await holding() };
}

/** The contract's call of a planned exit. The owner itself sends, so no signature is needed. */
function ownCall({ kit, quantity, recipient }: ExitPlan): WithdrawalCall {
  return { ...kit, quantity, recipient, authorization: null };
}

/**
 * Checks the kit by itself and with the contract, and the units left. Sends nothing.
 *
 * @example
 * const { quantity } = await planExit({ kit, l1, account: owner.address });
 */
export async function planExit(options: ExitOptions): Promise<ExitPlan> {
  const { kit, l1, account, quantity, recipient } = options;
  requireWholeKit(kit);
  const { settlement, tip, token } = kit;
  if (
    settlement.chainId !== l1.settlement.chainId ||
    settlement.contract !== l1.settlement.contract
  ) {
    const meant = `${settlement.contract} on chain ${settlement.chainId}`;
    const detail = `The kit is for ${meant}; the RPC serves chain ${l1.settlement.chainId}.`;
    throw invalid(detail);
  }
  if (account.toLowerCase() !== tip.owner)
    throw invalid(`The key belongs to ${account}; the vault's owner is ${tip.owner}.`);
  const { left, withdrawnBefore, kit: complete } = await standingOf(kit, l1, options);
  const wanted = quantity ?? left;
  if (left === 0n)
    throw new MintmarkError(
      "insufficient_balance",
      "All of this vault has been withdrawn, or it was voided.",
    );
  if (wanted < 1n || wanted > left) {
    const detail = `The vault has ${left} of ${tip.amount} units left; cannot withdraw ${wanted}.`;
    throw new MintmarkError("insufficient_balance", detail);
  }
  const to = recipient ?? tip.owner;
  return {
    withdrawnBefore,
    quantity: wanted,
    recipient: to,
    baseUnits: wanted * token.quantum,
    kit: complete,
  };
}

/**
 * Resolves once L1 would pay the vault out. If only time is missing, waits or throws, as `immature`
 * says.
 */
async function requireWithdrawable(call: WithdrawalCall, options: ExitOptions): Promise<void> {
  const { kit, l1, immature = "refuse", pollingMs = 2_000, onWait, signal } = options;
  for (;;) {
    const refusal = await l1.checkOwnWithdrawal(call);
    if (refusal === null) return;
    if (!refusal.startsWith("NotMature(") || kit.maturesAt === null)
      throw new MintmarkError("l1_failed", `the contract would refuse with ${refusal}`);
    const seconds = kit.maturesAt - (await timeOn(l1));
    if (immature === "refuse") {
      const when = new Date(Number(kit.maturesAt) * 1000).toISOString();
      const detail = `The vault matures at ${when}, in ${seconds} s of L1's clock. Wait for it.`;
      throw new MintmarkError("proof_not_ready", detail);
    }
    onWait?.(seconds);
    await pause(pollingMs, signal);
  }
}

/** An exit of many vaults: their kits, the chain and the account that owns them. */
export interface ExitAllOptions
  extends Pick<ExitOptions, "account" | "recipient" | "onSent" | "fromBlock" | "signal"> {
  /** Kits for the contract that `l1` is connected to, each vault once. */
  readonly kits: readonly ExitKit[];
  readonly l1: ExitOptions["l1"] & Pick<L1Committer, "withdraw" | "mostWithdrawals">;
}

/** The result for one vault of an exit of many. */
export interface VaultExit {
  readonly vaultId: VaultId;
  /** null when nothing of the vault is left. */
  readonly plan: ExitPlan | null;
  /** The transaction that paid it; null when none did. */
  readonly txHash: Hash | null;
  /** Why it was not paid; null when it was. */
  readonly refusal: string | null;
}

/**
 * Withdraws all that is left of many vaults, up to 21 in one transaction of their owner; one with
 * transfers counts twice. A vault that cannot be withdrawn now is left out with its reason, and
 * stops no other.
 *
 * @throws MintmarkError `validation_failed` for a damaged kit, another contract or account, or a
 *   vault twice; `l1_failed` when L1 cannot be asked
 *
 * @example
 * const exits = await exitWithKits({ kits, l1, account: owner.address });
 * for (const { vaultId, refusal } of exits) console.log(vaultId, refusal ?? "paid");
 */
export async function exitWithKits(options: ExitAllOptions): Promise<VaultExit[]> {
  const { kits, l1, account, recipient, fromBlock, onSent, signal } = options;
  if (new Set(kits.map(({ tip }) => tip.vaultId)).size !== kits.length)
    throw invalid("Two of the kits are of one vault. Give each vault once.");
  const exits = new Map<VaultId, VaultExit>();
  const ready: WithdrawalCall[] = [];
  for (const kit of kits) {
    signal?.throwIfAborted();
    const { vaultId } = kit.tip;
    const plan = await planExit({ kit, l1, account, recipient, fromBlock, signal }).catch(
      (error: unknown) => {
        if (!(error instanceof MintmarkError && STANDINGS.has(error.code))) throw error;
        exits.set(vaultId, { vaultId, plan: null, txHash: null, refusal: error.message });
        return null;
      },
    );
    if (plan === null) continue;
    const call = ownCall(plan);
    const refusal = await l1.checkOwnWithdrawal(call);
    exits.set(vaultId, { vaultId, plan, txHash: null, refusal });
    if (refusal === null) ready.push(call);
  }
  for (const group of groupsOf(ready, await l1.mostWithdrawals())) {
    const { txHash, refusals } = await l1.withdraw(group, { onSent, signal });
    for (const [i, call] of group.entries()) {
      const refusal = refusals === null ? `transaction ${txHash} reverted` : (refusals[i] ?? null);
      const known = exits.get(tipIdOf(call)) as VaultExit;
      exits.set(tipIdOf(call), { ...known, refusal, txHash: refusal === null ? txHash : null });
    }
  }
  return kits.map(({ tip }) => exits.get(tip.vaultId) as VaultExit);
}

/** The withdrawals of each transaction, of at most so many shares. */
function* groupsOf(
  calls: readonly WithdrawalCall[],
  most: number,
): Generator<readonly WithdrawalCall[]> {
  let group: WithdrawalCall[] = [];
  for (const call of calls) {
    const shares = [...group, call].reduce((sum, each) => sum + sharesOf(each), 0);
    if (shares > most) {
      yield group;
      group = [];
    }
    group.push(call);
  }
  if (group.length > 0) yield group;
}

/** The errors of a vault that is no longer its owner's, or empty. */
const STANDINGS: ReadonlySet<ErrorCode> = new Set(["insufficient_balance", "vault_spent"]);

/** Seconds since 1970, by L1's newest block. */
export async function timeOn(l1: ExitOptions["l1"]): Promise<bigint> {
  return (await l1.block("latest"))?.timestamp ?? 0n;
}
