import { getSignPayload } from "ox/TypedData";
import type { TypedDataDefinition } from "viem";
import { invalid, MintmarkError, messageOf } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import type { Committee, HistoryPoint, L1Reader, ProposedBatch } from "../ports.ts";
import type { MemberSignature } from "../protocol/attestation.ts";
import { committeeHash, encodeAttestation } from "../protocol/attestation.ts";
import { compactSignature, isSignedBy } from "../protocol/signature.ts";
import {
  type AttestationTerms,
  attestationTypedData,
  type MemberClient,
} from "./member-service.ts";

/** The committee, and how to ask it. */
export interface CollectorOptions {
  readonly members: readonly MemberClient[];
  readonly threshold: number;
  /** Timeout of one member in milliseconds; default 10,000. */
  readonly timeoutMs?: number;
  readonly l1: Pick<L1Reader, "settlement" | "committee">;
  /**
   * Returns a sealed validium batch, for members that missed some. A member takes batches only in
   * order, because it checks each token against all earlier ones. Without this function such a
   * member stays out.
   */
  readonly earlierBatch?: (batchNumber: number) => Promise<ProposedBatch>;
  /** Called when a member has not signed, even if enough others did. Default: none. */
  readonly onFailure?: (member: Address, error: unknown) => void;
}

/** The result of the last request to a member. */
export interface MemberStanding {
  readonly address: Address;
  /** The batch of the request; null before the first. */
  readonly batchNumber: number | null;
  readonly state: "idle" | "asked" | "signed" | "failed";
  /** The reason why it has not signed. */
  readonly failure: string | null;
}

/** A committee that requests each signature separately and keeps the result of each member. */
export interface Collector extends Committee {
  /**
   * Each member's standing, in the order of addresses. A late answer still changes it to "signed"
   * or "failed".
   */
  standings(): readonly MemberStanding[];
  /**
   * Rejects with `validation_failed` unless the contract has this committee and threshold in force.
   */
  requireInForce(): Promise<void>;
}

/**
 * Collects a committee's signatures. Asks every member at once, takes the first `threshold` valid
 * ones, and does not wait for the rest. Dead, slow or lying members cost nothing while enough
 * others answer. Otherwise rejects with `l1_failed` that names each member's fault.
 *
 * @example
 * const members = [new RemoteMember({ address, url, operator, settlement: engine.settlement })];
 * const committee = collectAttestations({ members, threshold: 1, l1 });
 */
export function collectAttestations(options: CollectorOptions): Collector {
  const { l1 } = options;
  const own = committeeOf(options);
  const standings = new Map<Address, MemberStanding>();
  for (const address of own.members)
    standings.set(address, { address, batchNumber: null, state: "idle", failure: null });

  /**
   * The epoch of the committee in force. It must be this committee: L1 refuses the signatures of
   * any other.
   */
  async function epochInForce(): Promise<bigint> {
    const { epoch, committeeHash: inForce } = await l1.committee();
    if (committeeHash(epoch, own) === inForce) return epoch;
    throw invalid(
      `the committee in force at ${l1.settlement.contract} (epoch ${epoch}) is not ${own.threshold} of ` +
        `${own.members.join(", ")}; configure the members and the threshold of the contract's last CommitteeChanged event`,
    );
  }

  return {
    standings: () => [...standings.values()],
    requireInForce: async () => void (await epochInForce()),
    async attest(batch, { history, sequence }: HistoryPoint, { signal } = {}) {
      signal?.throwIfAborted();
      const terms = { history, sequence, epoch: await epochInForce() };
      const { batchNumber } = batch;
      return collectSignatures(options, {
        typedData: attestationTypedData(l1.settlement, batch, terms),
        ask: (member, limit) => askMember(member, batch, terms, options, limit),
        onState(address, state, error) {
          standings.set(address, {
            address,
            batchNumber,
            state,
            failure: error === null ? null : messageOf(error),
          });
          if (state === "failed") options.onFailure?.(address, error);
        },
        signal,
      });
    },
  };
}

type Addressed = { readonly address: Address };

/** The members who can sign a message, and how many of them must. */
export type SigningMembers<M> = Pick<CollectorOptions, "threshold" | "timeoutMs"> & {
  readonly members: readonly M[];
};

/** A committee as attestations name it: its members by ascending address. */
export function committeeOf({ threshold, members }: SigningMembers<Addressed>) {
  return { threshold, members: byAddress(members).map(({ address }) => address) };
}

function byAddress<M extends Addressed>(members: readonly M[]): M[] {
  return members.toSorted((a, b) => (a.address < b.address ? -1 : 1));
}

/** The member's signature over this batch, and first over those that it missed. */
async function askMember(
  member: MemberClient,
  batch: ProposedBatch,
  terms: AttestationTerms,
  { earlierBatch }: CollectorOptions,
  limit: AbortSignal,
): Promise<Hex> {
  if (batch.mode === "validium" && earlierBatch !== undefined && member.nextBatch !== undefined) {
    for (
      let missed = await member.nextBatch(limit);
      missed < batch.batchNumber && !limit.aborted;
      missed++
    )
      await member.sign(await earlierBatch(missed), terms, limit);
  }
  return member.sign(batch, terms, limit);
}

/** A message, and how a member is asked to sign it. */
interface Collecting<M> {
  readonly typedData: TypedDataDefinition; // The message that all members sign
  readonly ask: (member: M, limit: AbortSignal) => Promise<Hex>;
  readonly onState?: (
    member: Address,
    state: "asked" | "signed" | "failed",
    error: unknown,
  ) => void;
  readonly signal?: AbortSignal;
}

/**
 * Asks every member at once and takes the first `threshold` signatures that are the members' own.
 * Rejects with `l1_failed` and each member's reason as soon as too few can succeed.
 *
 * @returns an attestation, docs/protocol.md 5
 */
export async function collectSignatures<M extends Addressed>(
  signers: SigningMembers<M>,
  { typedData, ask, onState, signal }: Collecting<M>,
): Promise<Hex> {
  const { threshold, timeoutMs = 10_000 } = signers;
  const members = byAddress(signers.members);
  const late = AbortSignal.timeout(timeoutMs);
  const limit = signal ? AbortSignal.any([late, signal]) : late;
  const expired = new Promise<never>((_, reject) => {
    const expire = () =>
      reject(late.aborted ? new Error(`did not answer within ${timeoutMs} ms`) : limit.reason);
    limit.addEventListener("abort", expire, { once: true });
  });
  const digest = getSignPayload(typedData);
  const signatureOf = async (member: M, memberIndex: number): Promise<MemberSignature> => {
    const signature = await Promise.race([ask(member, limit), expired]);
    if (!(await isSignedBy(member.address, digest, signature)))
      throw new Error("the signature is not this member's over this message");
    return { memberIndex, ...compactSignature(signature) };
  };
  const signed: MemberSignature[] = [];
  const faults: string[] = [];
  const signatures = await new Promise<MemberSignature[]>((resolve, reject) => {
    for (const [memberIndex, member] of members.entries()) {
      const { address } = member;
      onState?.(address, "asked", null);
      signatureOf(member, memberIndex).then(
        (signature) => {
          onState?.(address, "signed", null);
          if (signed.push(signature) === threshold)
            resolve(signed.toSorted((a, b) => a.memberIndex - b.memberIndex));
        },
        (error: unknown) => {
          onState?.(address, "failed", error);
          if (signal?.aborted) return reject(signal.reason);
          faults.push(`${address}: ${messageOf(error)}`);
          if (members.length - faults.length < threshold)
            reject(
              new MintmarkError("l1_failed", `the committee does not sign; ${faults.join("; ")}`),
            );
        },
      );
    }
  });
  return encodeAttestation({ ...committeeOf(signers), signatures });
}
