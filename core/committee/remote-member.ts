import type { LocalAccount } from "viem";
import type { Address, Hex } from "../model.ts";
import type { ClaimedBatch, Settlement } from "../ports.ts";
import type { MemberClient } from "./collector.ts";
import { MemberService, nonsense } from "./member-service.ts";
import { type AttestationTerms, attestationRequestTypedData } from "./request.ts";

/** Where a member's service is, and who asks it. */
export interface RemoteMemberOptions {
  /** The member's own address; what it answers is checked against it. */
  readonly address: Address;
  /** Where its service listens. */
  readonly url: string;
  /** Signs the requests; holds the operator role of the contract. */
  readonly operator: LocalAccount;
  readonly settlement: Settlement;
}

/** A committee member that runs as a service of its own. How long it may take, the collector decides. */
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
    const { batchNumber, batchRoot, vaultCount, dataHash, data } = batch;
    const { history, sequence, epoch } = terms;
    const asked = attestationRequestTypedData(this.#settlement, { ...batch, ...terms });
    const request = await this.#operator.signTypedData(asked);
    const numbers = { vaultCount: `${vaultCount}`, epoch: `${epoch}`, sequence: `${sequence}` };
    const claim = new URLSearchParams({ batchRoot, dataHash, history, ...numbers });
    return this.#service.sendBatch(`/v1/batches/validium-${batchNumber}/attestation?${claim}`, data, request, signal);
  }

  async nextBatch(signal: AbortSignal): Promise<number> {
    const { nextBatch } = await this.#service.ask("/v1/status", { signal });
    if (typeof nextBatch !== "number" || !Number.isInteger(nextBatch) || nextBatch < 0) {
      throw nonsense("no batch number");
    }
    return nextBatch;
  }
}
