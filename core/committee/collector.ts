import { recoverTypedDataAddress } from "viem";
import { MintmarkError } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import type { ClaimedBatch, Committee, HistoryPoint, L1Reader } from "../ports.ts";
import { committeeHash, compactSignature, encodeAttestation, type MemberSignature } from "../protocol/attestation.ts";
import { validiumBatchTypedData } from "../protocol/typed-data.ts";
import type { AttestationTerms } from "./request.ts";

/** A way to ask one member: in this process, or a client of its service. */
export interface MemberClient {
  readonly address: Address;
  /** 65 bytes, `r ‖ s ‖ v`; rejects when the member refuses or cannot be reached. */
  sign(batch: ClaimedBatch, terms: AttestationTerms, signal: AbortSignal): Promise<Hex>;
  /** The number of the first validium batch that the member does not have yet. */
  nextBatch?(signal: AbortSignal): Promise<number>;
}

/** Whose signatures are gathered, and how many it takes. */
export interface CollectorOptions {
  readonly members: readonly MemberClient[];
  readonly threshold: number;
  readonly l1: Pick<L1Reader, "settlement" | "committee">;
  /** Milliseconds that one member may take; default 10 000. */
  readonly timeoutMs?: number;
  /**
   * Any sealed validium batch, for members that missed some: a member takes batches in their order only, because it checks each token
   * against all earlier ones. Without it such a member stays out.
   */
  readonly earlierBatch?: (batchNumber: number) => Promise<ClaimedBatch>;
  /** Told why a member has not signed, also when enough others did. Default: nobody. */
  readonly onFailure?: (member: Address, error: unknown) => void;
}

/** What a member did when it was last asked. */
export interface MemberStanding {
  readonly address: Address;
  /** The validium batch that it was asked to sign; null before the first. */
  readonly batchNumber: number | null;
  readonly state: "idle" | "asked" | "signed" | "failed";
  /** Why it has not signed. */
  readonly failure: string | null;
}

/** A committee whose members are asked one by one, and which tells how each of them stands. */
export interface Collector extends Committee {
  /** By address. A member that was not waited for still gets to "signed" or "failed" when its answer comes. */
  standings(): readonly MemberStanding[];
  /** Rejects with `validation_failed` unless these members and this threshold are the committee that the contract has in force. */
  requireInForce(): Promise<void>;
}

/**
 * Gathers a committee's signatures: asks every member at once, takes the first `threshold` valid ones, and does not wait for the rest. A
 * dead, slow or lying member costs nothing as long as enough others answer. Rejects with `l1_failed` that names each
 * member's fault when too few do.
 *
 * @example
 * const members = [new RemoteMember({ address, url, operator, settlement: engine.settlement })];
 * const committee = collectAttestations({ members, threshold: 1, l1 });
 */
export function collectAttestations(options: CollectorOptions): Collector {
  const { threshold, l1, timeoutMs = 10_000 } = options;
  const members = options.members.toSorted((a, b) => (a.address < b.address ? -1 : 1));
  const addresses = members.map(({ address }) => address);
  const standings = new Map<Address, MemberStanding>();
  for (const address of addresses) standings.set(address, { address, batchNumber: null, state: "idle", failure: null });

  /** The epoch of the committee in force, which must be this one: L1 would refuse the signatures of any other. */
  async function epochInForce(): Promise<bigint> {
    const { epoch, committeeHash: inForce } = await l1.committee();
    if (committeeHash(epoch, { threshold, members: addresses }) !== inForce)
      throw notInForce(options, addresses, epoch);
    return epoch;
  }

  return {
    standings: () => [...standings.values()],
    async requireInForce() {
      await epochInForce();
    },
    async attest(batch, { history, sequence }: HistoryPoint, { signal } = {}) {
      signal?.throwIfAborted();
      const terms = { history, sequence, epoch: await epochInForce() };
      const { batchNumber } = batch;
      const late = AbortSignal.timeout(timeoutMs);
      const limit = signal ? AbortSignal.any([late, signal]) : late;
      const expired = new Promise<never>((_, reject) => {
        const expire = () => reject(late.aborted ? new Error(`did not answer within ${timeoutMs} ms`) : limit.reason);
        limit.addEventListener("abort", expire, { once: true });
      });
      const asked = members.map(async (member, memberIndex): Promise<MemberSignature> => {
        const { address } = member;
        standings.set(address, { address, batchNumber, state: "asked", failure: null });
        try {
          const signature = await Promise.race([askMember(member, batch, terms, options, limit), expired]);
          standings.set(address, { address, batchNumber, state: "signed", failure: null });
          return { memberIndex, ...compactSignature(signature) };
        } catch (error) {
          standings.set(address, { address, batchNumber, state: "failed", failure: messageOf(error) });
          options.onFailure?.(address, error);
          throw error;
        }
      });
      const signatures = await enough(asked, threshold, addresses, signal);
      return encodeAttestation({ threshold, members: addresses, signatures });
    },
  };
}

function notInForce({ threshold, l1 }: CollectorOptions, members: readonly Address[], epoch: bigint): MintmarkError {
  return new MintmarkError(
    "validation_failed",
    `the committee in force at ${l1.settlement.contract} (epoch ${epoch}) is not ${threshold} of ${members.join(", ")}; ` +
      "configure the members and the threshold that the contract's last CommitteeChanged event names",
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The member's signature, checked to be its own over this very batch. */
async function askMember(
  member: MemberClient,
  batch: ClaimedBatch,
  terms: AttestationTerms,
  { l1, earlierBatch }: CollectorOptions,
  limit: AbortSignal,
): Promise<Hex> {
  if (earlierBatch !== undefined && member.nextBatch !== undefined) {
    for (let missed = await member.nextBatch(limit); missed < batch.batchNumber && !limit.aborted; missed++) {
      await member.sign(await earlierBatch(missed), terms, limit);
    }
  }
  const signature = await member.sign(batch, terms, limit);
  const message = validiumBatchTypedData(l1.settlement, { ...batch, ...terms });
  const signer = await recoverTypedDataAddress({ ...message, signature });
  if (signer.toLowerCase() !== member.address) throw new Error("the signature is not the member's over this batch");
  return signature;
}

/** The first `threshold` that succeed, by member; as soon as too few can, an error that says why. */
export function enough(
  asked: readonly Promise<MemberSignature>[],
  threshold: number,
  members: readonly Address[],
  signal: AbortSignal | undefined,
): Promise<MemberSignature[]> {
  return new Promise((resolve, reject) => {
    const signed: MemberSignature[] = [];
    const faults: string[] = [];
    for (const [index, answer] of asked.entries()) {
      answer.then(
        (signature) => {
          if (signed.push(signature) === threshold) resolve(signed.toSorted((a, b) => a.memberIndex - b.memberIndex));
        },
        (error: unknown) => {
          if (signal?.aborted) return reject(signal.reason);
          faults.push(`${members[index]}: ${messageOf(error)}`);
          if (asked.length - faults.length < threshold) {
            reject(new MintmarkError("l1_failed", `the committee does not sign; ${faults.join("; ")}`));
          }
        },
      );
    }
  });
}
