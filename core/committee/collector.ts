import { recoverTypedDataAddress } from "viem";
import { encodeAttestation, type MemberSignature } from "../attestation.ts";
import { MintmarkError } from "../errors.ts";
import type { Address, Hash, Hex } from "../model.ts";
import type { Committee, L1Reader, SealedBatch } from "../ports.ts";
import { validiumBatchTypedData } from "../typed-data.ts";

/** A way to ask one member: in this process, or a client of its service. */
export interface MemberClient {
  readonly address: Address;
  /** 65 bytes, `r ‖ s ‖ v`; rejects when the member refuses or cannot be reached. */
  sign(batch: SealedBatch, epoch: bigint, signal: AbortSignal): Promise<Hex>;
}

export interface CollectorOptions {
  readonly members: readonly MemberClient[];
  readonly threshold: number;
  readonly l1: Pick<L1Reader, "settlement" | "committee">;
  /** Milliseconds that one member may take; default 10 000. */
  readonly timeoutMs?: number;
}

/**
 * Gathers a committee's signatures: asks every member at once, takes the first `threshold` valid ones, and does not wait for the rest. A
 * dead, slow or lying member costs nothing as long as enough others answer. Rejects with `l1_failed` that names each
 * member's fault when too few do.
 */
export function collectAttestations(options: CollectorOptions): Committee {
  const { threshold, l1, timeoutMs = 10_000 } = options;
  const members = options.members.toSorted((a, b) => (a.address < b.address ? -1 : 1));
  return {
    async attest(batch, { signal } = {}) {
      const { epoch } = await l1.committee();
      const limit = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]);
      const signatures = await enough(
        members.map((member, index) => askMember(member, index, batch, epoch, l1, limit)),
        threshold,
        members,
      );
      const addresses = members.map(({ address }) => address);
      return encodeAttestation({ threshold, members: addresses, signatures });
    },
  };
}

async function askMember(
  member: MemberClient,
  memberIndex: number,
  batch: SealedBatch,
  epoch: bigint,
  l1: CollectorOptions["l1"],
  limit: AbortSignal,
): Promise<MemberSignature> {
  const signature = await Promise.race([member.sign(batch, epoch, limit), expiry(limit)]);
  const signed = validiumBatchTypedData(l1.settlement, { ...batch, epoch });
  const signer = await recoverTypedDataAddress({ ...signed, signature });
  if (signer.toLowerCase() !== member.address) throw new Error("the signature is not the member's over this batch");
  return { memberIndex, ...compact(signature) };
}

function expiry(limit: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    limit.addEventListener("abort", () => reject(limit.reason), { once: true });
  });
}

/** The first `threshold` that succeed, by member; as soon as too few can, an error that says why. */
function enough(
  asked: readonly Promise<MemberSignature>[],
  threshold: number,
  members: readonly MemberClient[],
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
          faults.push(`${members[index]?.address}: ${error instanceof Error ? error.message : String(error)}`);
          if (asked.length - faults.length < threshold) {
            reject(new MintmarkError("l1_failed", `the committee does not sign; ${faults.join("; ")}`));
          }
        },
      );
    }
  });
}

/** EIP-2098: the parity of y in the top bit of s. */
function compact(signature: Hex): { r: Hash; vs: Hash } {
  const r = `0x${signature.slice(2, 66)}` as Hash;
  const v = Number.parseInt(signature.slice(130, 132), 16);
  const s = BigInt(`0x${signature.slice(66, 130)}`);
  const parity = v === 28 || v === 1 ? 1n << 255n : 0n;
  return { r, vs: `0x${(s | parity).toString(16).padStart(64, "0")}` };
}
