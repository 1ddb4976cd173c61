import { privateKeyToAccount } from "viem/accounts";
import { type Hash, type Hex, MAX_AMOUNT } from "../../../../core/model.ts";
import {
  type Attestation,
  committeeHash,
  compactSignature,
  encodeAttestation,
} from "../../../../core/protocol/attestation.ts";
import {
  mirroredStateDigest,
  typedDataDomain,
  validiumBatchDigest,
  validiumBatchTypedData,
  withdrawalDigest,
  withdrawalListDigest,
} from "../../../../core/protocol/typed-data.ts";
import { packVaultId } from "../../../../core/protocol/vault.ts";
import { derivedAddress, derivedHash, SETTLEMENT } from "./derive.ts";

const EPOCH = 3n;
const THRESHOLD = 3;
/** Made-up keys of the five members; worth nothing anywhere. */
const KEYS = Array.from({ length: 5 }, (_, i) => derivedHash(`member key ${i}`));

const MESSAGE = {
  history: derivedHash("attested history"),
  batchNumber: 12,
  batchRoot: derivedHash("attested root"),
  vaultCount: 1000,
  dataHash: derivedHash("attested data"),
  epoch: EPOCH,
};

/** EIP-712 digests. */
export function typedDataVectors() {
  const batches = [MESSAGE, { ...MESSAGE, batchNumber: 0, vaultCount: 1, epoch: 0n }];
  const withdrawals = [
    {
      vaultId: 0n,
      withdrawnBefore: 0n,
      quantity: 1n,
      recipient: derivedAddress("recipient"),
      deadline: 1_767_225_600n,
    },
    {
      vaultId: packVaultId({ mode: "zk-rollup", batchNumber: 77, slot: 13 }),
      withdrawnBefore: MAX_AMOUNT - 1n,
      quantity: MAX_AMOUNT,
      recipient: derivedAddress("another recipient"),
      deadline: (1n << 64n) - 1n,
    },
  ];
  const states = [
    { countValidium: 12, countRollup: 77, epoch: EPOCH },
    { countValidium: 0, countRollup: 2 ** 32 - 1, epoch: (1n << 64n) - 1n },
  ].map((state) => ({
    sourceChainId: 1n,
    sourceContract: derivedAddress("source"),
    ...state,
    commitment: derivedHash("mirrored commitment"),
  }));
  const lists = [1, 2, 20].map((count) => ({
    vaults: Array.from({ length: count }, (_, i) => ({
      vaultId: packVaultId({ mode: i % 2 === 0 ? "validium" : "zk-rollup", batchNumber: i, slot: count }),
      withdrawnBefore: i === 0 ? 0n : MAX_AMOUNT - BigInt(i),
      quantity: BigInt(i + 1),
    })),
    recipient: derivedAddress(`recipient of ${count}`),
    deadline: 1_767_225_600n + BigInt(count),
  }));
  return {
    description: "EIP-712 digests of all messages (docs/protocol.md 5, 6, 8) for one settlement contract, or mirror.",
    domain: typedDataDomain(SETTLEMENT),
    validiumBatches: batches.map((message) => ({ ...message, digest: validiumBatchDigest(SETTLEMENT, message) })),
    mirroredStates: states.map((message) => ({ ...message, digest: mirroredStateDigest(SETTLEMENT, message) })),
    withdrawals: withdrawals.map((message) => ({ ...message, digest: withdrawalDigest(SETTLEMENT, message) })),
    withdrawalLists: lists.map((message) => ({ ...message, digest: withdrawalListDigest(SETTLEMENT, message) })),
  };
}

/** Attestations with real signatures, and every way to spoil one. */
export async function attestationVectors() {
  const accounts = KEYS.map((key) => privateKeyToAccount(key)).sort((a, b) =>
    a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1,
  );
  const members = accounts.map((account) => account.address.toLowerCase() as Hex);
  const signatures = await Promise.all(
    accounts.map(async (account, memberIndex) => ({
      memberIndex,
      ...compactSignature(await account.signTypedData(validiumBatchTypedData(SETTLEMENT, MESSAGE))),
    })),
  );
  const signedBy = (...indices: number[]): Attestation => ({
    threshold: THRESHOLD,
    members,
    signatures: indices.map((index) => signatures[index]).filter((signature) => signature !== undefined),
  });
  const valid = [
    [0, 1, 2],
    [0, 2, 4],
    [2, 3, 4],
  ].map((signers) => ({
    signers,
    attestation: encodeAttestation(signedBy(...signers)),
  }));
  return {
    description:
      "Attestations (docs/protocol.md 5) of five members, three of whom must sign, over one batch. `refused`: malformed ones, none of which may be accepted.",
    settlement: SETTLEMENT,
    message: MESSAGE,
    digest: validiumBatchDigest(SETTLEMENT, MESSAGE),
    epoch: EPOCH,
    threshold: THRESHOLD,
    members,
    committeeHash: committeeHash(EPOCH, { threshold: THRESHOLD, members }),
    vectors: valid,
    refused: spoiled(valid[1]?.attestation ?? "0x", members, signatures),
  };
}

/** Written by hand, since the encoder refuses to. */
function spoiled(
  valid: Hex,
  members: readonly Hex[],
  signatures: readonly { memberIndex: number; r: Hash; vs: Hash }[],
) {
  const u8 = (value: number) => value.toString(16).padStart(2, "0");
  const signed = (i: number) => `01${signatures[i]?.r.slice(2)}${signatures[i]?.vs.slice(2)}`;
  const entries = (who: readonly Hex[], signers: readonly number[]) =>
    who.map((member, i) => (signers.includes(i) ? signed(i) : `00${member.slice(2)}`));
  const bytes = (threshold: number, all: readonly string[]) => `0x${u8(threshold)}${u8(all.length)}${all.join("")}`;
  const honest = entries(members, [0, 2, 4]);
  const [a = "", b = "", c = "", ...others] = honest;
  return [
    { name: "empty", attestation: "0x" },
    { name: "a byte too few", attestation: valid.slice(0, -2) },
    { name: "a byte too many", attestation: `${valid}00` },
    { name: "a signature too few", attestation: bytes(3, entries(members, [0, 2])) },
    { name: "a signature too many", attestation: bytes(3, entries(members, [0, 2, 3, 4])) },
    { name: "threshold 0", attestation: bytes(0, entries(members, [])) },
    { name: "a threshold above the members", attestation: bytes(3, [a, signed(1)]) },
    { name: "a member's signature in another's place", attestation: bytes(3, [c, b, a, ...others]) },
    { name: "the same signature twice", attestation: bytes(3, [a, b, a, ...others]) },
    { name: "a member too many", attestation: bytes(3, [...honest, b]) },
    { name: "an unknown form of a member", attestation: bytes(3, [a, `02${b.slice(2)}`, c, ...others]) },
    { name: "members out of order", attestation: bytes(3, [b, a, c, ...others]) },
    { name: "a high s", attestation: `${valid.slice(0, -64)}${"f".repeat(64)}` },
  ];
}
