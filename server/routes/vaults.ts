import type { FastifyRequest } from "fastify";
import type { BatchVaultProof, Hex, ProofOptions } from "../../core/index.ts";
import { tipOwnerOf } from "../../core/internal.ts";
import { withdrawCalldata } from "../../core/l1/index.ts";
import { ownVaultProof, vault, vaultPage, vaultProof, vaultQuery } from "../schemas/vaults.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";

/** Errors of a vault's proof. */
export const PROOF_ERRORS = [
  "backpressure",
  "kzg_unavailable",
  "proof_not_ready",
  "vault_not_found",
  "vault_void",
] as const;

/** Proofs by KZG cost the caller of the request. */
export function paidBy({ account }: FastifyRequest): ProofOptions {
  return { onKzgProofs: (proofs) => account?.prove(proofs) };
}

export const vaultEndpoints: readonly Endpoint[] = [
  endpoint("Vaults", "read", "GET /api/v1/vaults", "listVaults", {
    summary: "Vaults of the application, oldest first",
    description:
      "A page can be shorter than `limit` even if there is a next one. With `tokenId` the vaults come batch by batch, without failed ERC-721 mints, because their ids are free again.",
    query: vaultQuery,
    success: json(200, "One page.", vaultPage),
    inTurn: true,
    handle: ({ engine, applicationId, query }) => engine.vaults.list(applicationId, query),
  }),
  endpoint("Vaults", "read", "GET /api/v1/vaults/{vaultId}", "getVault", {
    summary: "One vault",
    success: json(200, "The vault.", vault),
    errors: ["vault_not_found"],
    handle: ({ engine, applicationId, params }) => engine.vaults.get(applicationId, params.vaultId),
  }),
  endpoint("Vaults", "read", "GET /api/v1/vaults/{vaultId}/proof", "getVaultProof", {
    summary: "A vault's path to its batch root, and calldata for its owner to withdraw alone",
    success: json(200, "The proof, verified before sending.", ownVaultProof),
    errors: PROOF_ERRORS,
    async handle({ engine, applicationId, params: { vaultId }, request }) {
      const own = await engine.vaults.get(applicationId, vaultId);
      const proof = await engine.proofs.vault(vaultId, paidBy(request));
      request.account?.proven(2 * (proof.hops?.length ?? 0));
      const { chainId } = proof.vault;
      const portal = engine.operator.portals().find((each) => each.chainId === chainId) ?? null;
      return {
        ...proof,
        portal,
        withdrawCalldata: ownCalldata(own.availableBalance, await engine.proofs.exit(vaultId, paidBy(request))),
      };
    },
  }),
];

/** Public reads of single vaults: batch data is public, and contains nothing about tenants. */
export const publicVaultEndpoints: readonly Endpoint[] = [
  endpoint("Vaults", "public", "GET /public/v1/vaults/{vaultId}/proof", "getPublicVaultProof", {
    summary: "A vault's content and its path to its batch root",
    success: json(200, "The proof, verified before sending.", vaultProof),
    errors: PROOF_ERRORS,
    async handle({ engine, params, request }) {
      const proof = await engine.proofs.vault(params.vaultId, paidBy(request));
      request.account?.proven(proof.hops?.length ?? 0);
      return proof;
    },
  }),
];

/** For the owner's own account, without the operator. Null while L1 has no batch of it, and when nothing is left. */
function ownCalldata(quantity: bigint, proof: BatchVaultProof): Hex | null {
  const { header } = proof;
  if (header === null || quantity === 0n) return null;
  const authorization = { deadline: 0n, signature: "0x" } as const;
  return withdrawCalldata({ ...proof, header, quantity, recipient: tipOwnerOf(proof), authorization });
}
