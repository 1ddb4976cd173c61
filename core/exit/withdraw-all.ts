import { MintmarkError } from "../errors.ts";
import type { Address, Hash, VaultId } from "../model.ts";
import type { L1Committer, WithdrawalCall } from "../ports.ts";
import type { ExitKit } from "./kit.ts";
import { type ExitOptions, type ExitPlan, planExit } from "./withdraw.ts";

/** An exit of many vaults: their kits, the chain and the account that owns them. */
export interface ExitAllOptions extends Pick<ExitOptions, "account" | "recipient" | "onSent" | "signal"> {
  /** Of the contract that `l1` is connected to, each vault once. */
  readonly kits: readonly ExitKit[];
  readonly l1: ExitOptions["l1"] & Pick<L1Committer, "withdraw" | "mostWithdrawals">;
}

/** What came of one vault of an exit of many. */
export interface VaultExit {
  readonly vaultId: VaultId;
  /** null when nothing of the vault is left. */
  readonly plan: ExitPlan | null;
  /** The transaction that paid it; null when none did. */
  readonly txHash: Hash | null;
  /** Why it was not paid; null when it was. */
  readonly refusal: string | null;
}

/** What the owner itself says of a vault: it sends, so no signature is needed. */
const BY_OWNER = { deadline: 0n, signature: "0x" } as const;

/**
 * Withdraws all that is left of many vaults, up to 20 in one transaction of their owner. A vault that cannot be
 * withdrawn now is left out with its reason, and stops no other.
 *
 * @throws MintmarkError `validation_failed` for a damaged kit, another contract or account, or a vault twice;
 *   `l1_failed` when L1 cannot be asked
 *
 * @example
 * const exits = await exitWithKits({ kits, l1, account: owner.address });
 * for (const { vaultId, refusal } of exits) console.log(vaultId, refusal ?? "paid");
 */
export async function exitWithKits(options: ExitAllOptions): Promise<VaultExit[]> {
  const { kits, l1, account, recipient, onSent, signal } = options;
  if (new Set(kits.map(({ vault }) => vault.vaultId)).size !== kits.length) {
    throw new MintmarkError("validation_failed", "Two of the kits are of one vault. Give each vault once.");
  }
  const exits = new Map<VaultId, VaultExit>();
  const ready: WithdrawalCall[] = [];
  for (const kit of kits) {
    signal?.throwIfAborted();
    const { vaultId } = kit.vault;
    const plan = await planOrReason({ kit, l1, account, ...(recipient && { recipient }) });
    if (typeof plan === "string") {
      exits.set(vaultId, { vaultId, plan: null, txHash: null, refusal: plan });
      continue;
    }
    const { vault, header, siblings, assetPath } = kit;
    const { quantity, recipient: to } = plan;
    const call = { vault, header, siblings, assetPath, quantity, recipient: to as Address, authorization: BY_OWNER };
    const refusal = await l1.checkOwnWithdrawal(call);
    exits.set(vaultId, { vaultId, plan, txHash: null, refusal });
    if (refusal === null) ready.push(call);
  }
  const most = await l1.mostWithdrawals();
  for (let first = 0; first < ready.length; first += most) {
    const group = ready.slice(first, first + most);
    const { txHash, refusals } = await l1.withdraw(group, { ...(onSent && { onSent }), ...(signal && { signal }) });
    for (const [i, { vault }] of group.entries()) {
      const refusal = refusals === null ? `transaction ${txHash} reverted` : (refusals[i] ?? null);
      const known = exits.get(vault.vaultId) as VaultExit;
      exits.set(vault.vaultId, { ...known, refusal, txHash: refusal === null ? txHash : null });
    }
  }
  return kits.map(({ vault }) => exits.get(vault.vaultId) as VaultExit);
}

/** Why nothing of the vault is left, or what to withdraw. */
async function planOrReason(options: ExitOptions): Promise<ExitPlan | string> {
  try {
    return await planExit(options);
  } catch (error) {
    if (error instanceof MintmarkError && error.code === "insufficient_balance") return error.message;
    throw error;
  }
}
