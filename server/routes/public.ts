import { type Endpoint, endpoint } from "../http/endpoint.ts";
import { vaultParams, vaultProof } from "../schemas/vaults.ts";
import { proofToWire } from "../wire/wire.ts";

/** Public reads of single vaults: batch data is public, and contains nothing about tenants. */
export const publicVaultEndpoints: readonly Endpoint[] = [
  endpoint({
    access: "public",
    method: "GET",
    path: "/public/v1/vaults/{vaultId}/proof",
    tag: "Vaults",
    summary: "A vault's content and its path to its batch root",
    params: vaultParams,
    success: { status: 200, description: "The proof, verified before sending.", schemas: [vaultProof] },
    errors: ["vault_not_found", "vault_void", "proof_not_ready"],
    async handle({ service: { engine }, params }) {
      return proofToWire(await engine.proofs.vault(params.vaultId));
    },
  }),
];
