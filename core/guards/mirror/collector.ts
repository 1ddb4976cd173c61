import { MintmarkError } from "../../errors.ts";
import type { Hex } from "../../model.ts";
import { committeeHash } from "../../protocol/attestation.ts";
import { type MirroredStateMessage, mirroredStateTypedData } from "../../protocol/typed-data.ts";
import { byAddress, collectSignatures } from "../committee/collector.ts";
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
 * Collects the committee's signatures over a state for one mirror.
 *
 * @returns an attestation, docs/protocol.md 5
 * @throws MintmarkError `l1_failed` when too few sign, or the mirror has another committee in force
 */
export async function collectState(
  mirror: MirrorIdentity,
  { epoch, committeeHash: inForce }: MirrorCommittee,
  state: Omit<MirroredStateMessage, "epoch">,
  { threshold, timeoutMs, ...committee }: AttesterCommittee,
  signal?: AbortSignal,
): Promise<Hex> {
  const members = byAddress(committee.members);
  if (committeeHash(epoch, { threshold, members: members.map(({ address }) => address) }) !== inForce) {
    throw new MintmarkError("l1_failed", `mirror ${mirror.contract} has another committee in force (epoch ${epoch})`);
  }
  return collectSignatures(members, {
    threshold,
    typedData: mirroredStateTypedData(mirror, { ...state, epoch }),
    ask: (member, limit) => member.attest(mirror, state, epoch, limit),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(signal && { signal }),
  });
}
