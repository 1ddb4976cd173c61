import type { ProvenVault, WithdrawalCall } from "../ports.ts";

/** Vault, header and siblings as the contract's functions take them one after the other. */
export function provenVaultArguments({ vault, header, siblings }: ProvenVault) {
  return [{ ...vault, assetType: BigInt(vault.assetType) }, header, [...siblings]] as const;
}

/** The arguments of `withdraw`. */
export function withdrawalArguments(call: WithdrawalCall) {
  return [...provenVaultArguments(call), call.quantity, call.recipient, call.authorization] as const;
}

/** The contract's `WithdrawalRequest`. */
export function withdrawalRequest(call: WithdrawalCall) {
  const [vault, header, siblings, quantity, recipient, authorization] = withdrawalArguments(call);
  return { vault, header, siblings, quantity, recipient, authorization };
}
