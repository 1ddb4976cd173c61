import type { LocalAccount } from "viem";
import { MemberService } from "../committee/member-service.ts";
import type { Address, Hex } from "../model.ts";
import type { Settlement } from "../ports.ts";
import type { StateCounts } from "../protocol/commitment.ts";
import { mirroredStateTypedData } from "../protocol/typed-data.ts";
import type { SourceHistory } from "./history.ts";

/** The contract that mirrors a settlement contract on another chain. */
export type MirrorIdentity = Pick<Settlement, "chainId" | "contract">;

/** A way to ask one committee member to vouch for a state: in this process, or a client of its service. */
export interface AttesterClient {
  readonly address: Address;
  /** 65 bytes, `r ‖ s ‖ v`; rejects when the member has not seen this state of the source become final. */
  attest(mirror: MirrorIdentity, counts: StateCounts, epoch: bigint, signal?: AbortSignal): Promise<Hex>;
}

/**
 * A committee member's word for mirrors. It signs no state that it was told of: only what it has read from the source chain itself, below
 * that chain's finality. Asking for counts that the source never had together is refused, so a signature is always over a state between
 * two commits.
 *
 * @example
 * const attester = new MirrorAttester(account, new SourceHistory(l1, fromBlock));
 */
export class MirrorAttester implements AttesterClient {
  readonly address: Address;
  readonly #account: LocalAccount;
  readonly #source: SourceHistory;

  /** @param source - the member's own, over the member's own node */
  constructor(account: LocalAccount, source: SourceHistory) {
    this.address = account.address.toLowerCase() as Address;
    this.#account = account;
    this.#source = source;
  }

  async attest(mirror: MirrorIdentity, counts: StateCounts, epoch: bigint): Promise<Hex> {
    // Anyone may ask, so the chain is asked only for what is not known.
    if (!this.#source.hasHad(counts)) await this.#source.follow();
    const { countValidium, countRollup, commitment } = this.#source.stateAt(counts);
    const { chainId: sourceChainId, contract: sourceContract } = this.#source.settlement;
    const message = { sourceChainId, sourceContract, countValidium, countRollup, commitment, epoch };
    return this.#account.signTypedData(mirroredStateTypedData(mirror, message));
  }
}

/** A member's word for mirrors, asked of its service. */
export class RemoteAttester implements AttesterClient {
  readonly address: Address;
  readonly #service: MemberService;

  constructor({ address, url }: { readonly address: Address; readonly url: string }) {
    this.address = address.toLowerCase() as Address;
    this.#service = new MemberService(url);
  }

  attest(
    { chainId, contract }: MirrorIdentity,
    { countValidium, countRollup }: StateCounts,
    epoch: bigint,
    signal?: AbortSignal,
  ): Promise<Hex> {
    const asked = { countValidium: `${countValidium}`, countRollup: `${countRollup}`, epoch: `${epoch}` };
    const path = `/v1/mirrors/${chainId}/${contract}/attestation?${new URLSearchParams(asked)}`;
    return this.#service.askForSignature(path, signal ? { signal } : {});
  }
}
