import fc from "fast-check";
import {
  type Address,
  compactSignatureToSignature,
  concat,
  type Hex,
  hashStruct,
  keccak256,
  numberToHex,
  recoverAddress,
  zeroAddress,
} from "viem";
import { hashTypedData } from "viem/utils";
import { describe, expect, it } from "vitest";
import type { Hash } from "../../../core/model.ts";
import type { Attestation } from "../../../core/protocol/attestation.ts";
import { committeeHash, encodeAttestation } from "../../../core/protocol/attestation.ts";
import { compactSignature } from "../../../core/protocol/signature.ts";
import {
  cancellationTypedData,
  MAX_LISTED_VAULTS,
  mirroredStateTypedData,
  type OrderMessage,
  orderDigest,
  orderTypedData,
  validiumBatchTypedData,
  withdrawalListDigest,
} from "../../../core/protocol/typed-data.ts";
import { readAttestation } from "./read-attestation.ts";
import { orderOf, SETTLEMENT, vectors } from "./vectors.ts";

const digests = vectors("typed-data");
const { vectors: orders } = vectors("orders");
const attested = vectors("attestations");
const invalid = expect.objectContaining({ code: "validation_failed" });
const members = attested.members as Hex[];
const threshold = Number(attested.threshold);

describe("EIP-712 digests", () => {
  const batchMessage = (message: (typeof digests.validiumBatches)[number]) => ({
    ...message,
    batchNumber: Number(message.batchNumber),
    vaultCount: Number(message.vaultCount),
    epoch: BigInt(message.epoch),
  });
  it.each(digests.validiumBatches)("ValidiumBatch of batch $batchNumber", (vector) => {
    expect(hashTypedData(validiumBatchTypedData(SETTLEMENT, batchMessage(vector)))).toBe(
      vector.digest,
    );
  });

  it.each(digests.withdrawalLists)(
    "WithdrawalList of $vaults.length vaults",
    ({ digest, ...vector }) => {
      const vaults = vector.vaults.map(({ vaultId, withdrawnBefore, quantity }) => ({
        ...{
          vaultId: BigInt(vaultId),
          withdrawnBefore: BigInt(withdrawnBefore),
          quantity: BigInt(quantity),
        },
      }));
      const message = { ...vector, vaults, deadline: BigInt(vector.deadline) };
      expect(withdrawalListDigest(SETTLEMENT, message)).toBe(digest);
      for (const change of [
        { vaults: vaults.slice(1) },
        { vaults: Array.from({ length: MAX_LISTED_VAULTS + 1 }, () => ({ ...vaults[0] })) },
        { vaults: [{ ...vaults[0], quantity: 0n }] },
        { deadline: 1n << 64n },
      ]) {
        if (change.vaults?.length === vaults.length - 1 && vaults.length > 1) {
          expect(
            withdrawalListDigest(SETTLEMENT, { ...message, vaults: vaults.slice(1) }),
          ).not.toBe(digest);
        } else
          expect(() =>
            withdrawalListDigest(SETTLEMENT, { ...message, ...change } as typeof message),
          ).toThrow(invalid);
      }
    },
  );

  it.each(digests.mirroredStates)(
    "MirroredState of $countRollup rollup batches",
    ({ digest, ...vector }) => {
      const counts = {
        countValidium: Number(vector.countValidium),
        countRollup: Number(vector.countRollup),
      };
      const numbers = {
        sourceChainId: BigInt(vector.sourceChainId),
        epoch: BigInt(vector.epoch),
        ...counts,
      };
      expect(hashTypedData(mirroredStateTypedData(SETTLEMENT, { ...vector, ...numbers }))).toBe(
        digest,
      );
    },
  );

  it.each(orders)("Order of vault $vaultId", (vector) => {
    const order = orderOf(vector);
    expect(orderDigest(SETTLEMENT, order)).toBe(vector.digest);
    const { give, want } = order;
    const others: OrderMessage[] = [
      { ...order, give: { ...give, id: give.id ^ 1n } },
      { ...order, give: want, want: give },
      { ...order, want: { ...want, amount: want.amount - 1n || 2n } },
      { ...order, shares: [...order.shares.slice(0, 3), { to: give.token, amount: 1n }] },
      { ...order, taker: give.token },
      { ...order, vaultId: order.vaultId ^ 1n },
      { ...order, withdrawnBefore: order.withdrawnBefore + 1n },
      { ...order, deadline: order.deadline ^ 1n },
    ];
    const all = [order, ...others].map((each) => orderDigest(SETTLEMENT, each));
    expect(new Set(all).size).toBe(all.length);
  });

  it("of orders are those of viem, whatever the order says", () => {
    const address = fc
      .bigInt(1n, (1n << 160n) - 1n)
      .map((value) => `0x${value.toString(16).padStart(40, "0")}` as const);
    const uint = (bits: bigint, least = 0n) => fc.bigInt(least, (1n << bits) - 1n);
    const item = fc.record({ token: address, id: uint(256n), amount: uint(256n, 1n) });
    const order = fc.record({
      give: item,
      want: item,
      shares: fc.array(fc.record({ to: address, amount: uint(256n, 1n) }), { maxLength: 4 }),
      taker: fc.oneof(address, fc.constant(zeroAddress)),
      vaultId: uint(40n),
      withdrawnBefore: uint(63n),
      deadline: uint(64n),
    });
    fc.assert(
      fc.property(order, (message) => {
        expect(orderDigest(SETTLEMENT, message)).toBe(
          hashTypedData(orderTypedData(SETTLEMENT, message)),
        );
      }),
    );
  });

  it("of orders exist for nothing out of bounds", () => {
    const order = orderOf(orders[0] as (typeof orders)[0]);
    const share = { to: order.give.token, amount: 1n };
    const refused: Partial<OrderMessage>[] = [
      { give: { ...order.give, amount: 0n } },
      { want: { ...order.want, amount: 0n } },
      { want: { ...order.want, amount: 1n << 256n } },
      { want: { ...order.want, id: -1n } },
      { shares: Array.from({ length: 5 }, () => share) },
      { shares: [{ ...share, amount: 0n }] },
      { shares: [{ ...share, to: zeroAddress }] },
      { vaultId: 1n << 55n },
      { withdrawnBefore: 1n << 63n },
      { deadline: 1n << 64n },
    ];
    for (const change of refused)
      expect(() => orderDigest(SETTLEMENT, { ...order, ...change })).toThrow(invalid);
  });

  it("differ by chain and contract, and take a vault's id in the place of a digest", () => {
    const others = [
      { ...SETTLEMENT, chainId: 1n },
      { ...SETTLEMENT, contract: `0x${"22".repeat(20)}` as const },
    ];
    const signer = `0x${"33".repeat(20)}` as const;
    const digestOf = (settlement: typeof SETTLEMENT, id: Hash | bigint) =>
      hashTypedData(cancellationTypedData(settlement, { signer, id }));
    const all = [SETTLEMENT, ...others].map((settlement) => digestOf(settlement, 5n));
    expect(new Set(all).size).toBe(3);
    expect(digestOf(SETTLEMENT, `0x${"00".repeat(31)}05`)).toBe(all[0]);
    expect(digestOf(SETTLEMENT, 5n)).toBe(digestByHand(signer, 5n));
    expect(() => digestOf(SETTLEMENT, 1n << 55n)).toThrow(invalid);
  });

  it("exist for nothing out of bounds", () => {
    const batch = batchMessage(digests.validiumBatches[0] as (typeof digests.validiumBatches)[0]);
    expect(() => validiumBatchTypedData(SETTLEMENT, { ...batch, batchNumber: 2 ** 32 })).toThrow(
      invalid,
    );
    expect(() => validiumBatchTypedData(SETTLEMENT, { ...batch, vaultCount: 0 })).toThrow(invalid);
    expect(() => validiumBatchTypedData(SETTLEMENT, { ...batch, epoch: -1n })).toThrow(invalid);
  });

  /** The digest from the type's text as the protocol page has it. */
  function digestByHand(signer: Address, vaultId: bigint): Hash {
    const types = {
      Cancellation: "address signer,bytes32 id"
        .split(",")
        .map((field) => ({ type: field.split(" ")[0] ?? "", name: field.split(" ")[1] ?? "" })),
      EIP712Domain: "string name,string version,uint256 chainId,address verifyingContract"
        .split(",")
        .map((field) => ({ type: field.split(" ")[0] ?? "", name: field.split(" ")[1] ?? "" })),
    };
    const message = { signer, id: numberToHex(vaultId, { size: 32 }) };
    const domain = {
      name: "Mintmark",
      version: "1",
      chainId: SETTLEMENT.chainId,
      verifyingContract: SETTLEMENT.contract,
    };
    const struct = hashStruct({ data: message, primaryType: "Cancellation", types });
    return keccak256(
      concat(["0x1901", hashStruct({ data: domain, primaryType: "EIP712Domain", types }), struct]),
    );
  }
});

describe("attestations", () => {
  it("name the committee by its hash, which changes with every part", () => {
    expect(committeeHash(BigInt(attested.epoch), { threshold, members })).toBe(
      attested.committeeHash,
    );
    const hashes = [
      committeeHash(3n, { threshold, members }),
      committeeHash(4n, { threshold, members }),
      committeeHash(3n, { threshold: 2, members }),
      committeeHash(3n, { threshold, members: members.slice(1) }),
    ];
    expect(new Set(hashes).size).toBe(4);
  });

  it.each(attested.vectors)("signed by $signers", async ({ signers, attestation }) => {
    const read = readAttestation(attestation);
    expect(read.threshold).toBe(threshold);
    const recovered: Record<string, string> = {};
    for (const [i, member] of read.members.entries()) {
      if ("address" in member) expect(member.address).toBe(members[i]);
      else recovered[i] = await signerOf(member);
    }
    expect(recovered).toEqual(Object.fromEntries(signers.map((i) => [i, members[Number(i)]])));
    expect(encodeAttestation({ threshold, members, signatures: signaturesOf(attestation) })).toBe(
      attestation,
    );
  });

  async function signerOf({ r, vs }: { r: Hex; vs: Hex }): Promise<string> {
    const signature = compactSignatureToSignature({ r, yParityAndS: vs });
    return (await recoverAddress({ hash: attested.digest, signature })).toLowerCase();
  }

  const signaturesOf = (attestation: Hex) =>
    readAttestation(attestation).members.flatMap((member, memberIndex) =>
      "vs" in member ? [{ memberIndex, ...member }] : [],
    );

  it("are not written when they would be refused", () => {
    const signatures = signaturesOf(attested.vectors[0]?.attestation ?? "0x");
    const valid: Attestation = { threshold, members, signatures };
    const [a, b, c] = signatures as [
      Attestation["signatures"][0],
      Attestation["signatures"][0],
      Attestation["signatures"][0],
    ];
    expect(() => encodeAttestation({ ...valid, signatures: [a, b] })).toThrow(invalid);
    expect(() => encodeAttestation({ ...valid, signatures: [b, a, c] })).toThrow(invalid);
    expect(() =>
      encodeAttestation({ ...valid, signatures: [a, b, { ...c, memberIndex: 5 }] }),
    ).toThrow(invalid);
    expect(() =>
      encodeAttestation({ ...valid, signatures: [a, b, { ...c, vs: `0x${"f".repeat(64)}` }] }),
    ).toThrow(invalid);
    expect(() => encodeAttestation({ ...valid, members: valid.members.toReversed() })).toThrow(
      invalid,
    );
    expect(() => encodeAttestation({ ...valid, threshold: 0, signatures: [] })).toThrow(invalid);
    expect(() => committeeHash(0n, { threshold: 1, members: [] })).toThrow(invalid);
    expect(() => committeeHash(0n, { threshold: 3, members: members.slice(0, 2) })).toThrow(
      invalid,
    );
  });

  it("take signatures as wallets give them, and no malleable twin", () => {
    const r = "11".repeat(32);
    const low = `00${"22".repeat(31)}`;
    const signatureInvalid = expect.objectContaining({ code: "signature_invalid" });
    expect(compactSignature(`0x${r}${low}1b`)).toEqual({ r: `0x${r}`, vs: `0x${low}` });
    expect(compactSignature(`0x${r}${low}00`)).toEqual(compactSignature(`0x${r}${low}1b`));
    expect(compactSignature(`0x${r}${low}1c`).vs).toBe(`0x80${"22".repeat(31)}`);
    expect(() => compactSignature(`0x${r}${low}1d`)).toThrow(signatureInvalid);
    expect(() => compactSignature(`0x${r}${"ff".repeat(32)}1b`)).toThrow(signatureInvalid);
    expect(compactSignature(`0x${r}${low}`)).toEqual({ r: `0x${r}`, vs: `0x${low}` });
    expect(() => compactSignature(`0x${r}7f${"ff".repeat(31)}`)).toThrow(signatureInvalid);
    expect(() => compactSignature(`0x${r}${low}1b00`)).toThrow(signatureInvalid);
    expect(() => compactSignature("0x")).toThrow(signatureInvalid);
  });
});
