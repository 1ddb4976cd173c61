import fc from "fast-check";
import { type Hex, hashTypedData, keccak256, zeroAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { BatchTree } from "../../../core/protocol/batch-tree.ts";
import { bytesToHex, hexToBytes, unpackHashes } from "../../../core/protocol/hex.ts";
import { compactBytes } from "../../../core/protocol/signature.ts";
import {
  isRedemption,
  sessionEndTypedData,
  sessionTypedData,
  transferBatchRoot,
  transferBatchTypedData,
  transferList,
  transfersDigest,
  transfersTypedData,
} from "../../../core/protocol/transfer.ts";
import {
  decodeTransferData,
  encodeTransferData,
  MAX_TRANSFER_SLOTS,
  type TransferGroup,
  transferLeaves,
  transferOutputs,
} from "../../../core/protocol/transfer-data.ts";
import { transferSigner } from "../../../core/protocol/transfer-rules.ts";
import { validiumBatchTypedData } from "../../../core/protocol/typed-data.ts";
import { packVaultId } from "../../../core/protocol/vault.ts";
import { naiveDecode, naiveDigest, naiveEncode, naiveLeaves } from "../naive/naive-transfers.ts";
import { derivedAddress, derivedHash, SETTLEMENT, tooManySlots, vectors } from "./vectors.ts";

const invalid = expect.objectContaining({ code: "validation_failed" });
const anyId = fc
  .record({
    mode: fc.constantFrom("validium", "zk-rollup"),
    batchNumber: fc.oneof(fc.integer({ min: 0, max: 2 }), fc.constant(2 ** 32 - 1)),
    slot: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constant(2 ** 20 - 1)),
  })
  .map((place) => packVaultId(place as Parameters<typeof packVaultId>[0]));
const anyAddress = fc.oneof(
  fc.uint8Array({ minLength: 20, maxLength: 20 }).map(bytesToHex),
  fc.constant(zeroAddress),
);
const anyTransfer = fc.record({
  vaultId: anyId,
  amount: fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: (1n << 64n) - 1n })),
  to: anyAddress,
});
const anyGroup: fc.Arbitrary<TransferGroup> = fc.record({
  transfers: fc.array(anyTransfer, { minLength: 1, maxLength: 5 }),
  deadline: fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }),
  signature: fc.oneof(
    fc.constant<Hex>("0x"),
    fc.uint8Array({ minLength: 64, maxLength: 64 }).map(bytesToHex),
  ),
});
const anyGroups = fc.array(anyGroup, { minLength: 1, maxLength: 4 });
const isDistinct = (groups: readonly TransferGroup[]) => {
  const ids = groups.flatMap(({ transfers }) => transfers.map(({ vaultId }) => vaultId));
  return new Set(ids).size === ids.length;
};
describe("transfer data", () => {
  it("is what the page says, and is read back", () => {
    fc.assert(
      fc.property(anyGroups.filter(isDistinct), (groups) => {
        const data = encodeTransferData(groups);
        const plain = hexToBytes(naiveEncode(groups));
        expect(data.length).toBeLessThanOrEqual(plain.length + 8);
        for (const each of [data, plain]) {
          expect(decodeTransferData(each)).toEqual(groups);
          expect(naiveDecode(bytesToHex(each))).toEqual(groups);
        }
      }),
    );
  });

  it("has the leaves that the page says, two for each split", () => {
    fc.assert(
      fc.property(anyGroups, fc.integer({ min: 0, max: 2 ** 32 - 1 }), (groups, batchNumber) => {
        const leaves = naiveLeaves(groups, batchNumber);
        expect(bytesToHex(transferLeaves(groups, batchNumber))).toBe(
          `0x${leaves.map((l) => l.slice(2)).join("")}`,
        );
        const outputs = transferOutputs(groups, batchNumber);
        expect(outputs.map(({ outId }) => outId)).toEqual(
          outputs.map((_, slot) => packVaultId({ mode: "zk-rollup", batchNumber, slot })),
        );
        for (const [slot, output] of outputs.entries()) {
          if (output.part === 1)
            expect(outputs[slot - 1]).toMatchObject({ part: 0, transfer: output.transfer });
        }
      }),
    );
  });

  const file = vectors("transfers");

  it.each(file.vectors)(
    "of the vectors is canonical: $name",
    ({ data, dataHash, leaves, content, batchRoot, ...of }) => {
      const groups = decodeTransferData(hexToBytes(data));
      expect(bytesToHex(encodeTransferData(groups))).toBe(data);
      expect(naiveDecode(data)).toEqual(groups);
      expect(keccak256(data)).toBe(dataHash);
      const made = transferLeaves(groups, Number(file.batchNumber));
      expect(made.length).toBe(32 * Number(of.slots));
      if (leaves) expect(unpackHashes(made)).toEqual(leaves);
      expect(bytesToHex(new BatchTree(made).root)).toBe(content);
      expect(transferBatchRoot(content)).toBe(batchRoot);
      for (const [i, { list, digest }] of of.groups.entries()) {
        const group = groups[i] as TransferGroup;
        expect([
          bytesToHex(transferList(group.transfers)),
          transfersDigest(SETTLEMENT, group),
        ]).toEqual([list, digest]);
      }
    },
  );

  it.each(file.refused)("refuses $name", ({ reason, data }) => {
    expect(() => decodeTransferData(hexToBytes(data))).toThrow(expect.objectContaining({ reason }));
    expect(naiveDecode(data)).toBeNull();
  });

  it.each(["", "0000000000000001"])("refuses too many slots, with amount '%s'", (amount) => {
    const data = tooManySlots(amount);
    expect(() => decodeTransferData(hexToBytes(data))).toThrow(
      expect.objectContaining({ reason: "too_many_slots" }),
    );
  });

  it.each(file.vectors)(
    "is refused where the group begins that ends too early, as on L1: $name",
    ({ data }) => {
      const offset = (data.length - 2) / 2;
      expect(() => decodeTransferData(hexToBytes(`${data}0000`))).toThrow(
        expect.objectContaining({ offset }),
      );
    },
  );

  it("can hold the most slots", () => {
    const transfers = (from: number) =>
      Array.from({ length: 1024 }, (_, i) => ({
        vaultId: BigInt(from + i),
        amount: 0n,
        to: derivedAddress("many"),
      }));
    const groups = Array.from(
      { length: MAX_TRANSFER_SLOTS / 1024 },
      (_, i) => ({ transfers: transfers(1024 * i), deadline: 1n, signature: "0x" }) as const,
    );
    expect(decodeTransferData(encodeTransferData(groups)).length).toBe(groups.length);
  });

  it("is not written for values out of bounds", () => {
    const transfer = { vaultId: 1n, amount: 0n, to: derivedAddress("to") };
    const group: TransferGroup = { transfers: [transfer], deadline: 1n, signature: "0x" };
    const wrong: readonly TransferGroup[] = [
      { ...group, transfers: [] },
      { ...group, transfers: [{ ...transfer, vaultId: 1n << 52n }] },
      { ...group, transfers: [{ ...transfer, amount: 1n << 64n }] },
      { ...group, transfers: [{ ...transfer, to: "0x12" }] },
      { ...group, deadline: 1n << 32n },
      { ...group, signature: "0x12" },
    ];
    for (const bad of wrong) expect(() => encodeTransferData([bad])).toThrow(invalid);
    expect(() => encodeTransferData([])).toThrow(expect.objectContaining({ reason: "no_group" }));
    expect(() => encodeTransferData([group, group])).toThrow(
      expect.objectContaining({ reason: "spent_twice" }),
    );
  });
});

describe("the messages of transfers", () => {
  const transfer = { vaultId: 1n, amount: 0n, to: derivedAddress("to") };

  it("have the digests that viem makes of their types, whatever a committed group holds", () => {
    fc.assert(
      fc.property(anyGroup, (group) => {
        expect(transfersDigest(SETTLEMENT, group)).toBe(naiveDigest(SETTLEMENT, group));
      }),
    );
  });

  it("are refused when no batch could hold them", () => {
    const wrong = [
      { transfers: [], deadline: 1n },
      { transfers: [transfer, transfer], deadline: 1n },
      {
        transfers: Array.from({ length: 1025 }, (_, i) => ({ ...transfer, vaultId: BigInt(i) })),
        deadline: 1n,
      },
      { transfers: [{ ...transfer, amount: 1n << 63n }], deadline: 1n },
      { transfers: [{ ...transfer, amount: -1n }], deadline: 1n },
      { transfers: [{ ...transfer, vaultId: 1n << 60n }], deadline: 1n },
      { transfers: [transfer], deadline: 1n << 32n },
    ];
    for (const message of wrong)
      expect(() => transfersTypedData(SETTLEMENT, message)).toThrow(invalid);
    const session = {
      owner: transfer.to,
      key: transfer.to,
      until: 1n,
      limit: 1n,
      assetType: derivedHash("asset"),
    };
    expect(() => sessionTypedData(SETTLEMENT, { ...session, limit: 0n })).toThrow(invalid);
    expect(() => sessionTypedData(SETTLEMENT, { ...session, until: 1n << 64n })).toThrow(invalid);
  });

  it("of members and of sessions have the vectors' digests", () => {
    const { transferBatch: batch, session, sessionEnd } = vectors("transfers");
    const numbers = {
      batchNumber: Number(batch.batchNumber),
      vaultCount: Number(batch.vaultCount),
    };
    const message = { ...batch, ...numbers, epoch: BigInt(batch.epoch) };
    expect(hashTypedData(transferBatchTypedData(SETTLEMENT, message))).toBe(batch.digest);
    const terms = { ...session, until: BigInt(session.until), limit: BigInt(session.limit) };
    expect(hashTypedData(sessionTypedData(SETTLEMENT, terms))).toBe(session.digest);
    expect(hashTypedData(sessionEndTypedData(SETTLEMENT, terms))).toBe(sessionEnd.digest);
  });

  it("of a member count for no validium batch", () => {
    const batch = {
      history: derivedHash("h"),
      batchNumber: 1,
      batchRoot: derivedHash("r"),
      vaultCount: 1,
      dataHash: derivedHash("d"),
      epoch: 0n,
    };
    const other = hashTypedData(validiumBatchTypedData(SETTLEMENT, batch));
    expect(hashTypedData(transferBatchTypedData(SETTLEMENT, batch))).not.toBe(other);
  });

  it("tell a redemption from a gift", () => {
    expect(isRedemption({ to: zeroAddress })).toBe(true);
    expect(isRedemption(transfer)).toBe(false);
  });

  it("are signed as the contract's ecrecover sees it", async () => {
    const owner = privateKeyToAccount(derivedHash("an owner"));
    const typedData = transfersTypedData(SETTLEMENT, { transfers: [transfer], deadline: 1n });
    const digest = hashTypedData(typedData);
    const whole = await owner.signTypedData(typedData);
    const signature = compactBytes(whole);
    expect(await transferSigner(digest, signature)).toBe(owner.address.toLowerCase());
    const spoiled: readonly Hex[] = [
      "0x",
      signature.slice(0, -2) as Hex,
      `${signature}00`,
      whole,
      `${signature.slice(0, 66)}7f${"ff".repeat(31)}` as Hex,
      `0x${"00".repeat(64)}`,
    ];
    for (const bad of spoiled) expect(await transferSigner(digest, bad)).toBeNull();
    expect(await transferSigner(derivedHash("another"), signature)).not.toBe(
      owner.address.toLowerCase(),
    );
  });
});
