import type { Hex } from "viem";
import {
  concatHex,
  encodePacked,
  hashStruct,
  hashTypedData,
  hexToBigInt,
  keccak256,
  numberToHex,
} from "viem";
import type { Hash } from "../../../core/model.ts";
import type { Transfer } from "../../../core/protocol/transfer.ts";
import type { TransferGroup } from "../../../core/protocol/transfer-data.ts";

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

/** The plainest form of each group: a length, whole ids, and a receiver for each record. */
export function naiveEncode(groups: readonly TransferGroup[]): Hex {
  const parts = groups.map(({ transfers, deadline, signature }) => {
    const amounts = transfers.some(({ amount }) => amount > 0n);
    const form = 4 + 16 + (amounts ? 1 : 0) + (signature === "0x" ? 2 : 0);
    const head = encodePacked(
      ["uint8", "uint32", "uint16"],
      [form, Number(deadline), transfers.length],
    );
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
  let base = 0n;
  while (rest !== "") {
    const form = number(1);
    const has = (bit: bigint) => (form / bit) % 2n === 1n;
    const deadline = number(4);
    if (has(8n)) base = number(8);
    const length = has(4n) ? Number(number(2)) : 1;
    if (short || form > 63n || length < 1 || length > 1024) return null;
    const receiver = has(32n) ? take(20) : null;
    const signature = has(2n) ? "0x" : take(64);
    const transfers: Transfer[] = [];
    for (let i = 0; i < length; i++) {
      const vaultId = has(16n) ? number(8) : base + number(3);
      transfers.push({ vaultId, to: receiver ?? take(20), amount: has(1n) ? number(8) : 0n });
    }
    if (short) return null;
    groups.push({ transfers, deadline, signature });
  }
  const all = groups.flatMap(({ transfers }) => transfers);
  const ids = all.map(({ vaultId }) => vaultId);
  if (
    new Set(ids).size !== ids.length ||
    ids.some((id) => id >= 2n ** 64n || ((id >> 52n) % 2048n !== 0n && !isMade(id)))
  )
    return null;
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
    const signed = signature === "0x" ? (`0x${"00".repeat(64)}` as const) : signature;
    const auth = keccak256(
      encodePacked(["uint32", "bytes32", "bytes"], [Number(deadline), list, signed]),
    );
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

/** Whether the id begins with the bits 01, and the number of its making is 1 or more. */
function isMade(id: bigint): boolean {
  return id / 2n ** 62n === 1n && (id % 2n ** 62n) / 2n ** 20n >= 1n;
}
