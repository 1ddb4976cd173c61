import type { LocalAccount } from "viem";
import type { Address, Hex } from "../../model.ts";
import type { Settlement } from "../../ports.ts";
import type { StateCounts } from "../../protocol/commitment.ts";
import { mirroredStateTypedData } from "../../protocol/typed-data.ts";
import { RemoteService, signatureIn } from "../committee/member-service.ts";
import type { SourceHistory } from "./history.ts";

/** The contract that mirrors a settlement contract on another chain. */
export type MirrorIdentity = Pick<Settlement, "chainId" | "contract">;

/** A client of one committee member, in this process or over its service. */
export interface AttesterClient {
  readonly address: Address;
  /** 65 bytes, `r ‖ s ‖ v`. Rejects unless the member has seen this state of the source in a final block. */
  attest(mirror: MirrorIdentity, counts: StateCounts, epoch: bigint, signal?: AbortSignal): Promise<Hex>;
}

/**
 * A committee member's signer for mirrors. It signs only states that it has read itself from final blocks of the source
 * chain. It refuses counts that the source never had together, so a signature is always over a state between two
 * commits.
 *
 * @example
 * const attester = new MirrorAttester(account, new SourceHistory(l1, fromBlock));
 */
export class MirrorAttester implements AttesterClient {
  readonly address: Address;
  readonly #account: LocalAccount;
  readonly #source: SourceHistory;

  /** @param source - the member's own, over its own node */
  constructor(account: LocalAccount, source: SourceHistory) {
    this.address = account.address.toLowerCase() as Address;
    this.#account = account;
    this.#source = source;
  }

  async attest(mirror: MirrorIdentity, counts: StateCounts, epoch: bigint): Promise<Hex> {
    // Anyone may ask, so the chain is asked only about unknown counts.
    if (!this.#source.hasHad(counts)) await this.#source.follow();
    return this.#account.signTypedData(stateTypedData(this.#source, mirror, counts, epoch));
  }
}

/** What members sign of a state of the source. Rejects as {@link SourceHistory.stateAt}. */
export function stateTypedData(source: SourceHistory, mirror: MirrorIdentity, counts: StateCounts, epoch: bigint) {
  const { countValidium, countRollup, commitment } = source.stateAt(counts);
  const { chainId: sourceChainId, contract: sourceContract } = source.settlement;
  const message = { sourceChainId, sourceContract, countValidium, countRollup, commitment, epoch };
  return mirroredStateTypedData(mirror, message);
}

/**
 * The client of a member's service that signs for mirrors.
 *
 * @example
 * const committee = { members: [new RemoteAttester({ address, url: "https://member.example" })], threshold: 1 };
 * await advanceMirror({ source, mirror, committee });
 */
export class RemoteAttester extends RemoteService implements AttesterClient {
  async attest(
    { chainId, contract }: MirrorIdentity,
    { countValidium, countRollup }: StateCounts,
    epoch: bigint,
    signal?: AbortSignal,
  ): Promise<Hex> {
    const asked = { countValidium: `${countValidium}`, countRollup: `${countRollup}`, epoch: `${epoch}` };
    const path = `/v1/mirrors/${chainId}/${contract}/attestation?${new URLSearchParams(asked)}`;
    return signatureIn(await this.ask(path, { signal: signal ?? null }));
  }
}
