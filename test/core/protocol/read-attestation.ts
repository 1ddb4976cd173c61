import type { Address, Hash, Hex } from "../../../core/model.ts";
import { bytesToHex, hexToBytes } from "../../../core/protocol/hex.ts";

/** A member of an attestation: its address, or its signature. */
export type AttestedMember =
  | { readonly address: Address }
  | { readonly r: Hash; readonly vs: Hash };

/**
 * Reads an attestation (docs/protocol.md 5) as the page has it, independently of the core's
 * encoder.
 */
export function readAttestation(attestation: Hex): {
  threshold: number;
  members: AttestedMember[];
} {
  const bytes = hexToBytes(attestation);
  const [threshold = 0, count = 0] = bytes;
  let offset = 2;
  const take = (length: number) => {
    offset += length;
    return bytesToHex(bytes.subarray(offset - length, offset));
  };
  const members = Array.from({ length: count }, (): AttestedMember => {
    const form = bytes[offset++];
    if (form === 0) return { address: take(20) };
    if (form === 1) return { r: take(32), vs: take(32) };
    throw new Error(`unknown form ${form}`);
  });
  if (offset !== bytes.length) throw new Error("the attestation ends elsewhere");
  return { threshold, members };
}
