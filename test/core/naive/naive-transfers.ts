import {
  concatHex,
  encodePacked,
  type Hex,
  hashStruct,
  hashTypedData,
  hexToBigInt,
  keccak256,
  numberToHex,
} from "viem";
import type { Hash } from "../../../core/model.ts";
import type { TransferGroup } from "../../../core/protocol/transfer-data.ts";
import type { Transfer } from "../../../core/protocol/transfers.ts";

/** Transfer data as its page defines it, by slicing hex text; shares nothing with the core. */

export const NAIVE_TYPES = {
  Transfers: [
    { name: "transfers", type: "Transfer[]" },
    { name: "deadline", type: "uint64" },
  ],
  Transfer: [
    { name: "vaultId", type: "uint64" },
    { name: "amount", type: "uint64" },
    { name: "to", type: "address" },
  ],
} as const;

export function naiveEncode(groups: readonly TransferGroup[]): Hex {
  const parts = groups.map(({ transfers, deadline, signature }) => {
    const amounts = transfers.some(({ amount }) => amount > 0n);
    const form = (amounts ? 1 : 0) + (signature === "0x" ? 2 : 0);
    const head = encodePacked(["uint8", "uint40", "uint16"], [form, Number(deadline), transfers.length]);
    const records = transfers.map(({ vaultId, to, amount }) =>
      concatHex([
        encodePacked(["uint64", "address"], [vaultId, to]),
        amounts ? numberToHex(amount, { size: 8 }) : "0x",
      ]),
    );
    return concatHex([head, signature, ...records]);
  });
  return concatHex(["0x03", ...parts]);
}

/** The groups, or null when any rule of the page refuses the text. */
export function naiveDecode(data: Hex): TransferGroup[] | null {
  let rest = data.slice(2);
  let short = false;
  const take = (bytes: number): Hex => {
    const taken = rest.slice(0, 2 * bytes);
    if (taken.length < 2 * bytes) short = true;
    rest = rest.slice(2 * bytes);
    return `0x${taken}`;
  };
  const number = (bytes: number) => {
    const taken = take(bytes);
    return taken === "0x" ? 0n : hexToBigInt(taken);
  };
  if (number(1) !== 3n) return null;
  const groups: TransferGroup[] = [];
  while (rest !== "") {
    const form = number(1);
    const deadline = number(5);
    const length = Number(number(2));
    if (short || form > 3n || length < 1 || length > 1024) return null;
    const signature = form < 2n ? take(65) : "0x";
    const transfers: Transfer[] = [];
    for (let i = 0; i < length; i++) {
      const [vaultId, to] = [number(8), take(20)];
      transfers.push({ vaultId, to, amount: form % 2n === 1n ? number(8) : 0n });
    }
    if (short) return null;
    groups.push({ transfers, deadline, signature });
  }
  const all = groups.flatMap(({ transfers }) => transfers);
  const ids = all.map(({ vaultId }) => vaultId);
  if (new Set(ids).size !== ids.length || ids.some((id) => (id >> 52n) % 2048n !== 0n)) return null;
  return groups.length === 0 || naiveSlots(all) > 8_192 ? null : groups;
}

function naiveSlots(transfers: readonly Transfer[]): number {
  return transfers.length + transfers.filter(({ amount }) => amount > 0n).length;
}

export function naiveItem(transfer: Transfer): Hash {
  return hashStruct({ types: NAIVE_TYPES, primaryType: "Transfer", data: transfer });
}

export function naiveLeaves(groups: readonly TransferGroup[], batchNumber: number): Hash[] {
  const leaves: Hash[] = [];
  for (const { transfers, deadline, signature } of groups) {
    const list = keccak256(concatHex(transfers.map(naiveItem)));
    const auth = keccak256(encodePacked(["uint40", "bytes32", "bytes"], [Number(deadline), list, signature]));
    for (const transfer of transfers) {
      for (let part = 0; part < (transfer.amount === 0n ? 1 : 2); part++) {
        const outId = 2n ** 63n + BigInt(batchNumber) * 2n ** 20n + BigInt(leaves.length);
        leaves.push(
          keccak256(
            encodePacked(
              ["uint8", "uint64", "uint8", "bytes32", "bytes32"],
              [8, outId, part, naiveItem(transfer), auth],
            ),
          ),
        );
      }
    }
  }
  return leaves;
}

export function naiveDigest(
  { chainId, contract }: { readonly chainId: bigint; readonly contract: Hex },
  { transfers, deadline }: Pick<TransferGroup, "transfers" | "deadline">,
): Hash {
  return hashTypedData({
    domain: { name: "Mintmark", version: "1", chainId, verifyingContract: contract },
    types: NAIVE_TYPES,
    primaryType: "Transfers",
    message: { transfers, deadline },
  });
}
