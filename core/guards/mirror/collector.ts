import { recoverTypedDataAddress } from "viem";
import { MintmarkError } from "../../errors.ts";
import type { Hex } from "../../model.ts";
import {
  committeeHash,
  compactSignature,
  encodeAttestation,
  type MemberSignature,
} from "../../protocol/attestation.ts";
import { type MirroredStateMessage, mirroredStateTypedData } from "../../protocol/typed-data.ts";
import { enough, timeLimit } from "../committee/collector.ts";
import type { AttesterClient, MirrorIdentity } from "./attester.ts";
import type { MirrorCommittee } from "./contract.ts";

/** The committee that signs a source's states. */
export interface AttesterCommittee {
  readonly members: readonly AttesterClient[];
  readonly threshold: number;
  /** Timeout of one member in milliseconds; default 10,000. */
  readonly timeoutMs?: number;
}

/**
 * Collects the committee's signatures over a state for one mirror. Asks every member at once and takes the first
 * `threshold` valid ones.
 *
 * @returns an attestation, docs/protocol.md 5
 * @throws MintmarkError `l1_failed` when too few sign, or the mirror has another committee in force
 */
export async function collectState(
  mirror: MirrorIdentity,
  inForce: MirrorCommittee,
  state: Omit<MirroredStateMessage, "epoch">,
  { threshold, timeoutMs = 10_000, ...committee }: AttesterCommittee,
  signal?: AbortSignal,
): Promise<Hex> {
  const members = committee.members.toSorted((a, b) => (a.address < b.address ? -1 : 1));
  const addresses = members.map(({ address }) => address);
  const { epoch } = inForce;
  if (committeeHash(epoch, { threshold, members: addresses }) !== inForce.committeeHash) {
    throw new MintmarkError("l1_failed", `mirror ${mirror.contract} has another committee in force (epoch ${epoch})`);
  }
  const { limit, expired } = timeLimit(timeoutMs, signal);
  const typedData = mirroredStateTypedData(mirror, { ...state, epoch });
  const asked = members.map(async (member, memberIndex): Promise<MemberSignature> => {
    const signature = await Promise.race([member.attest(mirror, state, epoch, limit), expired]);
    const signer = await recoverTypedDataAddress({ ...typedData, signature });
    if (signer.toLowerCase() !== member.address) throw new Error("the signature is not this member's over this state");
    return { memberIndex, ...compactSignature(signature) };
  });
  return encodeAttestation({
    threshold,
    members: addresses,
    signatures: await enough(asked, threshold, addresses, signal),
  });
}
