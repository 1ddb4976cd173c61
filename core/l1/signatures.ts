import type { EngineOptions } from "../ledger/options.ts";
import type { L1Reader, PortalIdentity } from "../ports.ts";

/**
 * Checks wallet contracts' signatures for an engine: each chain for its own wallets. Without a chain, no wallet has
 * signed.
 *
 * @example
 * const engine = await openEngine({ ...options, verifySignature: signatureChecks([l1, mirror]) });
 */
export function signatureChecks(
  chains: readonly (Pick<L1Reader, "verifySignature"> & { readonly settlement: PortalIdentity })[],
): NonNullable<EngineOptions["verifySignature"]> {
  const byId = new Map(chains.map((chain) => [chain.settlement.chainId, chain]));
  return async (chainId, ...signed) => (await byId.get(chainId)?.verifySignature(...signed)) ?? false;
}
