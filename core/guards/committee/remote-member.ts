import type { LocalAccount } from "viem";
import { type Address, batchIdOf, type Hex } from "../../model.ts";
import type { ClaimedBatch, Settlement } from "../../ports.ts";
import type { MemberClient } from "./collector.ts";
import { MemberService, nonsense, signatureIn } from "./member-service.ts";
import { type AttestationTerms, attestationRequestTypedData } from "./request.ts";

/** Options of {@link RemoteMember}. */
export interface RemoteMemberOptions {
  /** The member's own address; its signatures are checked against it. */
  readonly address: Address;
  readonly url: string;
  /** Signs the requests. Holds the operator role of the contract. */
  readonly operator: LocalAccount;
  readonly settlement: Settlement;
}

/**
 * A committee member that runs as a separate service. The collector limits the time of a request.
 *
 * @example
 * const member = new RemoteMember({ address, url: "https://member.example", operator, settlement });
 * const committee = collectAttestations({ members: [member], threshold: 1, l1 });
 */
export class RemoteMember implements MemberClient {
  readonly address: Address;
  readonly #service: MemberService;
  readonly #operator: LocalAccount;
  readonly #settlement: Settlement;

  constructor({ address, url, operator, settlement }: RemoteMemberOptions) {
    this.address = address.toLowerCase() as Address;
    this.#service = new MemberService(url);
    this.#operator = operator;
    this.#settlement = settlement;
  }

  async sign(batch: ClaimedBatch, terms: AttestationTerms, signal: AbortSignal): Promise<Hex> {
    const { mode, batchNumber, batchRoot, vaultCount, dataHash, data } = batch;
    const { history, sequence, epoch } = terms;
    const asked = attestationRequestTypedData(this.#settlement, { ...batch, ...terms });
    const request = await this.#operator.signTypedData(asked);
    const numbers = { vaultCount: `${vaultCount}`, epoch: `${epoch}`, sequence: `${sequence}` };
    const claim = new URLSearchParams({ batchRoot, dataHash, history, ...numbers });
    const path = `/v1/batches/${batchIdOf(mode, batchNumber)}/attestation?${claim}`;
    return signatureIn(await this.#service.sendBatch(path, data, request, signal));
  }

  async nextBatch(signal: AbortSignal): Promise<number> {
    const { nextBatch } = await this.#service.ask("/v1/status", { signal });
    if (typeof nextBatch !== "number" || !Number.isInteger(nextBatch) || nextBatch < 0) {
      throw nonsense("no batch number");
    }
    return nextBatch;
  }
}
