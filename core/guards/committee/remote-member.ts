import { batchIdOf, type Hex } from "../../model.ts";
import type { ClaimedBatch } from "../../ports.ts";
import type { MemberClient } from "./collector.ts";
import { nonsense, RemoteSigner, signatureIn } from "./member-service.ts";
import { type AttestationTerms, attestationRequestTypedData } from "./request.ts";

/**
 * A committee member that runs as a separate service. The collector limits the time of a request.
 *
 * @example
 * const member = new RemoteMember({ address, url: "https://member.example", operator, settlement });
 * const committee = collectAttestations({ members: [member], threshold: 1, l1 });
 */
export class RemoteMember extends RemoteSigner implements MemberClient {
  async sign(batch: ClaimedBatch, terms: AttestationTerms, signal: AbortSignal): Promise<Hex> {
    const { mode, batchNumber, batchRoot, vaultCount, dataHash, data } = batch;
    const { history, sequence, epoch } = terms;
    const asked = attestationRequestTypedData(this.settlement, { ...batch, ...terms });
    const request = await this.operator.signTypedData(asked);
    const numbers = { vaultCount: `${vaultCount}`, epoch: `${epoch}`, sequence: `${sequence}` };
    const claim = new URLSearchParams({ batchRoot, dataHash, history, ...numbers });
    const path = `/v1/batches/${batchIdOf(mode, batchNumber)}/attestation?${claim}`;
    return signatureIn(await this.sendBatch(path, data, request, signal));
  }

  async nextBatch(signal: AbortSignal): Promise<number> {
    const { nextBatch } = await this.ask("/v1/status", { signal });
    if (typeof nextBatch !== "number" || !Number.isInteger(nextBatch) || nextBatch < 0) {
      throw nonsense("no batch number");
    }
    return nextBatch;
  }
}
