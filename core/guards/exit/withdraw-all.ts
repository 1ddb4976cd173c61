import { type ErrorCode, MintmarkError } from "../../errors.ts";
import type { Hash, VaultId } from "../../model.ts";
import type { L1Committer, WithdrawalCall } from "../../ports.ts";
import { isTransferred, tipIdOf } from "../../protocol/transfer-proof.ts";
import type { ExitKit } from "./kit.ts";
import { type ExitOptions, type ExitPlan, ownCall, planExit } from "./withdraw.ts";

/** An exit of many vaults: their kits, the chain and the account that owns them. */
export interface ExitAllOptions extends Pick<ExitOptions, "account" | "recipient" | "onSent" | "fromBlock" | "signal"> {
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
 * Withdraws all that is left of many vaults, up to 21 in one transaction of their owner; one with transfers has a
 * transaction of its own. A vault that cannot be withdrawn now is left out with its reason, and stops no other.
 *
 * @throws MintmarkError `validation_failed` for a damaged kit, another contract or account, or a vault twice;
 *   `l1_failed` when L1 cannot be asked
 *
 * @example
 * const exits = await exitWithKits({ kits, l1, account: owner.address });
 * for (const { vaultId, refusal } of exits) console.log(vaultId, refusal ?? "paid");
 */
export async function exitWithKits(options: ExitAllOptions): Promise<VaultExit[]> {
  const { kits, l1, account, recipient, fromBlock, onSent, signal } = options;
  if (new Set(kits.map(({ tip }) => tip.vaultId)).size !== kits.length)
    throw new MintmarkError("validation_failed", "Two of the kits are of one vault. Give each vault once.");
  const exits = new Map<VaultId, VaultExit>();
  const ready: WithdrawalCall[] = [];
  for (const kit of kits) {
    signal?.throwIfAborted();
    const { vaultId } = kit.tip;
    const plan = await planExit({ kit, l1, account, recipient, fromBlock, signal }).catch((error: unknown) => {
      if (!(error instanceof MintmarkError && STANDINGS.has(error.code))) throw error;
      exits.set(vaultId, { vaultId, plan: null, txHash: null, refusal: error.message });
      return null;
    });
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

/** The withdrawals of each transaction. The contract has no batch of vaults with transfers. */
function* groupsOf(calls: readonly WithdrawalCall[], most: number): Generator<readonly WithdrawalCall[]> {
  const together = calls.filter((call) => !isTransferred(call));
  for (let first = 0; first < together.length; first += most) yield together.slice(first, first + most);
  for (const call of calls) if (isTransferred(call)) yield [call];
}

/** The errors of a vault that is no longer its owner's, or empty. */
const STANDINGS: ReadonlySet<ErrorCode> = new Set(["insufficient_balance", "vault_spent"]);
