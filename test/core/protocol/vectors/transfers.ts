import { hashTypedData, zeroAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Hex } from "../../../../core/model.ts";
import { compactBytes } from "../../../../core/protocol/attestation.ts";
import { BatchTree } from "../../../../core/protocol/batch-tree.ts";
import { keccak256 } from "../../../../core/protocol/hash.ts";
import { bytesToHex, unpackHashes } from "../../../../core/protocol/hex.ts";
import {
  sessionEndTypedData,
  sessionTypedData,
  type Transfer,
  transferBatchDigest,
  transferBatchRoot,
  transferList,
  transfersDigest,
  transfersTypedData,
} from "../../../../core/protocol/transfer.ts";
import {
  encodeTransferData,
  MAX_TRANSFER_SLOTS,
  type TransferDataReason,
  type TransferGroup,
  transferLeaves,
} from "../../../../core/protocol/transfer-data.ts";
import { packVaultId } from "../../../../core/protocol/vault.ts";
import { derivedAddress, derivedHash, SETTLEMENT } from "./derive.ts";

const BATCH_NUMBER = 5;
const DEADLINE = 1_907_225_600n;
const OWNER = privateKeyToAccount(derivedHash("transferring owner"));

const minted = (slot: number, mode: "validium" | "zk-rollup" = "zk-rollup") =>
  packVaultId({ mode, batchNumber: 3, slot });
const to = (name: string) => derivedAddress(`receiver ${name}`);
const whole = (slot: number): Transfer => ({ vaultId: minted(slot), amount: 0n, to: to(String(slot)) });

async function signed(transfers: readonly Transfer[], deadline = DEADLINE): Promise<TransferGroup> {
  const signature = await OWNER.signTypedData(transfersTypedData(SETTLEMENT, { transfers, deadline }));
  return { transfers, deadline, signature: compactBytes(signature) };
}

async function batches(): Promise<Record<string, readonly TransferGroup[]>> {
  const approved = { transfers: [whole(9), whole(10)], deadline: (1n << 32n) - 1n, signature: "0x" } as const;
  const split = { vaultId: minted(2, "validium"), amount: 1n << 40n, to: to("split") };
  return {
    "one transfer": [await signed([whole(0)])],
    "a redemption": [await signed([{ vaultId: minted(1), amount: 0n, to: zeroAddress }], DEADLINE + 3n)],
    "a split": [await signed([split])],
    "a part redeemed, and whole rests": [await signed([{ ...split, to: zeroAddress }, whole(3), whole(4)])],
    "an approved group": [approved],
    "groups of all forms": [
      await signed([whole(5)]),
      approved,
      await signed([whole(6), split, whole(7)], DEADLINE + 1n),
      { transfers: [{ ...split, vaultId: minted(8) }], deadline: DEADLINE, signature: "0x" },
    ],
    "one signature for 300": [await signed(Array.from({ length: 300 }, (_, i) => whole(i)))],
    "a signature of nobody": [{ transfers: [whole(0)], deadline: DEADLINE, signature: `0x${"ff".repeat(64)}` }],
    "one receiver for many": [
      await signed(Array.from({ length: 20 }, (_, i) => ({ ...whole(i), to: to("fan") }))),
      await signed([
        { ...split, to: to("fan") },
        { ...whole(30), to: to("fan") },
      ]),
    ],
    "ids far apart, and a new base": [
      await signed([{ ...whole(0), vaultId: 7n }, whole(1)]),
      await signed([{ ...whole(0), vaultId: 9n }]),
      await signed([whole(2)]),
    ],
    "the largest amount, which no vault has": [
      { transfers: [{ ...split, amount: (1n << 64n) - 1n }], deadline: DEADLINE, signature: "0x" },
    ],
  };
}

/** A group of whole ids with a length. */
const bare = (length: number, records: string, form = 2) =>
  `${u8(form | 20)}72550000${length.toString(16).padStart(4, "0")}${records}`;
const single = (id: string, form = 2) => `${u8(form)}72550000${id}${to("a").slice(2)}`;
const u8 = (value: number) => value.toString(16).padStart(2, "0");
const record = (id: bigint, amount = "") => `${id.toString(16).padStart(16, "0")}${to("a").slice(2)}${amount}`;
const many = (count: number, from = 0, amount = "") =>
  Array.from({ length: count }, (_, i) => record(BigInt(from + i), amount)).join("");
const ONE = "0000000000000001";

/** Written by hand, since the encoder refuses to. */
const REFUSED: readonly (readonly [string, TransferDataReason, string])[] = [
  ["nothing", "version_unknown", ""],
  ["batch data's version", "version_unknown", `01${bare(1, record(1n))}`],
  ["blob data's version", "version_unknown", `02${bare(1, record(1n))}`],
  ["no group", "no_group", "03"],
  ["a form with an unknown bit", "form_unknown", `03${bare(1, record(1n), 64)}`],
  ["a form with all bits", "form_unknown", `03${bare(1, record(1n), 255)}`],
  ["a group of none", "group_length", `03${bare(0, "")}`],
  ["a group of 1,025", "group_length", `03${bare(1025, many(1025))}`],
  ["a group that ends in its header", "truncated", `03${bare(1, "").slice(0, -2)}`],
  ["a record too few", "truncated", `03${bare(2, record(1n))}`],
  ["a byte too few", "truncated", `03${bare(1, record(1n)).slice(0, -2)}`],
  ["a byte too many", "truncated", `03${bare(1, record(1n))}00`],
  ["no signature where one belongs", "truncated", `03${bare(1, record(1n), 0)}`],
  ["a signature of 63 bytes", "truncated", `03${bare(1, `${"ab".repeat(63)}${record(1n)}`, 0)}`],
  ["no amount where one belongs", "truncated", `03${bare(1, record(1n), 3)}`],
  ["bit 62 of an id", "vault_id", `03${bare(1, record(1n << 62n))}`],
  ["bit 52 of an id", "vault_id", `03${bare(1, record((1n << 63n) | (1n << 52n)))}`],
  ["no base where one belongs", "truncated", `03${single("000001", 10)}`],
  ["no receiver where one belongs", "truncated", `03${bare(1, "0000000000000001", 34)}`],
  ["a sum of 2^64", "vault_id", `03${single(`${"ff".repeat(8)}000001`, 10)}`],
  ["an id that reaches into unused bits", "vault_id", `03${single("000fffffffffffff000001", 10)}`],
  ["a vault twice, by a base and whole", "spent_twice", `03${single("000007")}${bare(1, record(7n))}`],
  ["a vault twice in a group", "spent_twice", `03${bare(2, record(7n) + record(7n))}`],
  ["a vault twice in a batch", "spent_twice", `03${bare(1, record(7n))}${bare(1, record(7n))}`],
  ["a vault twice, others of its word between", "spent_twice", `03${bare(3, record(7n) + record(8n) + record(7n))}`],
  ["a vault twice, another word between", "spent_twice", `03${bare(3, record(7n) + record(300n) + record(7n))}`],
];

/** The fewest records of too many slots. Too long for the file, so that readers make it on their own. */
export function tooManySlots(amount: string): Hex {
  const [form, records] = amount === "" ? [2, MAX_TRANSFER_SLOTS + 1] : [3, MAX_TRANSFER_SLOTS / 2 + 1];
  const groups = Array.from({ length: Math.ceil(records / 1000) }, (_, i) => {
    const count = Math.min(1000, records - 1000 * i);
    return bare(count, many(count, 1000 * i, amount), form);
  });
  return `0x03${groups.join("")}`;
}
export { ONE };

/** Transfer data: digests, leaves and roots, and every rejection. */
export async function transferVectors() {
  const message = {
    history: derivedHash("transferred history"),
    batchNumber: BATCH_NUMBER,
    batchRoot: derivedHash("transferred root"),
    vaultCount: 3,
    dataHash: derivedHash("transfer data"),
    epoch: 2n,
  };
  const session = {
    owner: derivedAddress("session owner"),
    key: derivedAddress("session key"),
    until: DEADLINE,
    limit: 5n,
    assetType: derivedHash("session asset"),
  };
  return {
    description:
      "Transfer data (docs/protocol.md 10) as rollup batch `batchNumber`: each group with its list hash and the digest that its owner " +
      "signs, the leaves in slot order, the tree's root and the batch root. `refused`: what every decoder refuses, by reason.",
    settlement: SETTLEMENT,
    batchNumber: BATCH_NUMBER,
    owner: OWNER.address.toLowerCase(),
    vectors: Object.entries(await batches()).map(([name, groups]) => {
      const data = encodeTransferData(groups);
      const leaves = transferLeaves(groups, BATCH_NUMBER);
      const content = bytesToHex(new BatchTree(leaves).root);
      return {
        name,
        data: bytesToHex(data),
        dataHash: bytesToHex(keccak256(data)),
        groups: groups.map(({ transfers, deadline, signature }) => ({
          deadline,
          signature,
          list: bytesToHex(transferList(transfers)),
          digest: transfersDigest(SETTLEMENT, { transfers, deadline }),
          ...(transfers.length > 20 ? {} : { transfers }),
        })),
        slots: leaves.length / 32,
        ...(leaves.length > 20 * 32 ? {} : { leaves: unpackHashes(leaves) }),
        content,
        batchRoot: transferBatchRoot(content),
      };
    }),
    transferBatch: { ...message, digest: transferBatchDigest(SETTLEMENT, message) },
    sessionEnd: { digest: hashTypedData(sessionEndTypedData(SETTLEMENT, session)) },
    session: { ...session, digest: hashTypedData(sessionTypedData(SETTLEMENT, session)) },
    refused: REFUSED.map(([name, reason, data]) => ({ name, reason, data: `0x${data}` })),
  };
}
