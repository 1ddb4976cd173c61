import type { Engine, Withdrawal, WithdrawalListRequest } from "../core/index.ts";
import type { Address, VaultId } from "../core/model.ts";

/** A withdrawal from one vault, as the list of one that its owner signs. */
export function listOfOne<R extends Address | undefined>({
  vaultId,
  withdrawnBefore = 0n,
  quantity,
  ...terms
}: {
  readonly vaultId: VaultId;
  readonly withdrawnBefore?: bigint;
  readonly quantity: bigint;
  readonly recipient: R;
  readonly deadline: bigint;
}) {
  return { vaults: [{ vaultId, withdrawnBefore, quantity }], ...terms };
}

/** Asks for a list of one vault. Rejects with the vault's own error. */
export async function withdrawOne(
  { withdrawals }: Pick<Engine, "withdrawals">,
  caller: Parameters<Engine["withdrawals"]["request"]>[0],
  request: WithdrawalListRequest,
  ...wait: readonly [wait?: { readonly signal?: AbortSignal }]
): Promise<Withdrawal> {
  const [asked, ...others] = await withdrawals.request(caller, request, ...wait);
  if (asked === undefined || others.length > 0) throw new Error("a list of one");
  if (asked.error !== null) throw asked.error;
  return asked.withdrawal;
}
