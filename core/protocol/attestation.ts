import { invalid } from "../errors.ts";
import type { Address, Hash, Hex } from "../model.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { bytesToHex, hashOf, packed } from "./hex.ts";
import { MAX_S, Y_PARITY_BIT } from "./signature.ts";

const COMMITTEE_PREFIX = 0x05;
/** Most members of a committee. The constructor of the contract takes no more beside its code. */
export const MAX_MEMBERS = 64;

/** A data availability committee, as L1 stores it. */
export interface CommitteeMembers {
  /** Signatures a batch needs, 1 to the number of members. */
  readonly threshold: number;
  /** 1 to {@link MAX_MEMBERS}, strictly ascending. */
  readonly members: readonly Address[];
}

/** One member's EIP-2098 compact signature over the batch. */
export interface MemberSignature {
  /** Position in the member list. */
  readonly memberIndex: number;
  readonly r: Hash;
  /** The y parity in the top bit, the low s below it. */
  readonly vs: Hash;
}

/** The committee's attestation of a batch: all members, and enough signatures. */
export interface Attestation extends CommitteeMembers {
  /** Exactly `threshold` signatures, strictly ascending by member. */
  readonly signatures: readonly MemberSignature[];
}

/**
 * `keccak256(0x05 ‖ epoch(8) ‖ threshold(1) ‖ memberCount(1) ‖ members(20 each))`. Throws
 * `validation_failed` unless the members ascend and can reach the threshold.
 *
 * @example
 * const isInForce = committeeHash(1n, { threshold: 2, members }) === hashFromL1;
 */
export function committeeHash(epoch: bigint, { threshold, members }: CommitteeMembers): Hash {
  requireBigint("epoch", epoch, 0n, MAX_UINT64);
  requireCommittee(threshold, members);
  const packedMembers = packed([20], ...members);
  const sizes = [1, 8, 1, 1, packedMembers.length];
  return hashOf(sizes, COMMITTEE_PREFIX, epoch, threshold, members.length, packedMembers);
}

/**
 * `threshold:u8 memberCount:u8 memberCount*( 0x00 member:20 | 0x01 r:32 vs:32 )`: each member by
 * its address or its signature.
 *
 * @throws MintmarkError `validation_failed` for members or signatures that do not ascend, a number
 *   of signatures other than the threshold, or a high s
 *
 * @example
 * const attestation = encodeAttestation({ threshold: 1, members, signatures: [{ memberIndex: 0, r,
 * vs }] });
 */
export function encodeAttestation({ threshold, members, signatures }: Attestation): Hex {
  requireCommittee(threshold, members);
  requireSignatures(threshold, members.length, signatures);
  const signed = new Map(
    signatures.map(({ memberIndex, r, vs }) => [memberIndex, packed([1, 32, 32], 1, r, vs)]),
  );
  const parts = members.map((member, i) => signed.get(i) ?? packed([1, 20], 0, member));
  return bytesToHex(
    Uint8Array.from([threshold, members.length, ...parts.flatMap((part) => [...part])]),
  );
}

function requireCommittee(threshold: number, members: readonly Address[]): void {
  requireInteger("number of members", members.length, 1, MAX_MEMBERS);
  requireInteger("threshold", threshold, 1, members.length);
  let previous = "";
  for (const member of members) {
    const lower = member.toLowerCase();
    if (lower <= previous) throw invalid(`committee member ${member} does not ascend`);
    previous = lower;
  }
}

function requireSignatures(
  threshold: number,
  memberCount: number,
  signatures: readonly MemberSignature[],
): void {
  requireInteger("number of signatures", signatures.length, threshold, threshold);
  let previous = -1;
  for (const { memberIndex, vs } of signatures) {
    requireInteger("memberIndex", memberIndex, previous + 1, memberCount - 1);
    if ((BigInt(vs) & (Y_PARITY_BIT - 1n)) > MAX_S) {
      throw invalid(`the signature of member ${memberIndex} has a high s`);
    }
    previous = memberIndex;
  }
}
