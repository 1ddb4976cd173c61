import { MemberService } from "../committee/member-service.ts";
import type { Address, Hex } from "../model.ts";
import type { StateCounts } from "../protocol/commitment.ts";
import type { AttesterClient, MirrorIdentity } from "./attester.ts";

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
