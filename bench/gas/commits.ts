import { DasContextJs } from "@crate-crypto/node-eth-kzg";
import {
  type Address,
  bytesToHex,
  encodeFunctionData,
  type Hash,
  type Hex,
  hexToBytes,
  keccak256,
  toHex,
} from "viem";
import { packedAssets } from "../../core/l1/arguments.ts";
import type { Standard } from "../../core/model.ts";
import type { VaultContent, VaultProof } from "../../core/ports.ts";
import {
  batchDataOf,
  batchLeaves,
  type VaultEntry,
  wordBatch,
} from "../../core/protocol/batch-data.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import {
  BLOB_ELEMENTS,
  blobsIn,
  elementPlaces,
  encodeBlobBatch,
} from "../../core/protocol/blob-batch.ts";
import { evaluationPoint } from "../../core/protocol/kzg.ts";
import { batchRoot, manifestRoot } from "../../core/protocol/manifest.ts";
import { openedProof } from "../../core/protocol/opening.ts";
import { proveVault } from "../../core/protocol/proof.ts";
import { validiumBatchTypedData } from "../../core/protocol/typed-data.ts";
import { unpackVaultId } from "../../core/protocol/vault.ts";
import { versionedHash } from "../../core/protocol/versioned-hash.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { CHAIN_ID, type GasChain, openGasChain, owners } from "./chain.ts";
import { type Measurement, measurement, type Section } from "./report.ts";

/**
 * Batches 8 to 14: no new frontier slot; 0 to 2 completed subtrees, each as often as in the long
 * run.
 */
const STEADY = { from: 8, to: 14 } as const;
const VALIDIUM_VAULTS = 1 << 20;

/** The batches whose gas is shown besides the steady mean. */
const BEGINNINGS = {
  "first batch ever": 0,
  "second batch (its frontier slot is new)": 1,
  "eighth batch (completes three subtrees, new slot)": 7,
} as const;
type Beginning = keyof typeof BEGINNINGS;
const EVERY = Object.keys(BEGINNINGS) as Beginning[];

interface Series {
  readonly label: string;
  /** Mints of a batch, or 1. */
  readonly count: number;
  readonly aim: number;
  readonly beginnings?: readonly Beginning[];
}

type CommitBatch = (batch: number) => Promise<Hash>;

/**
 * The batches of a fresh contract for each series: the mean of the steady ones, and the beginnings.
 */
async function measured<S extends Series>(
  all: readonly S[],
  committing: (chain: GasChain, wanted: S) => CommitBatch,
) {
  const measurements: Measurement[] = [];
  for (const wanted of all) {
    const { label, count, aim, beginnings = [] } = wanted;
    const chain = await openGasChain();
    const commit = committing(chain, wanted);
    const gas: number[] = [];
    for (let batch = 0; batch <= STEADY.to; batch++) gas.push(await chain.gasOf(commit(batch)));
    const steady = gas.slice(STEADY.from);
    measurements.push(
      measurement(label, steady.reduce((a, b) => a + b, 0) / steady.length, count, aim),
    );
    for (const name of beginnings)
      measurements.push(measurement(`— the same, ${name}`, gas[BEGINNINGS[name]] as number, count));
  }
  return measurements;
}

interface RollupSeries extends Series {
  readonly standard: Standard;
  readonly owners: number;
  readonly amount: (slot: number, batch: number) => bigint;
  readonly text: (slot: number, batch: number) => string;
  /** Whether the asset has an issuer, who consents by key. */
  readonly issued?: boolean;
}

/** Numbers below a bound in no order. A prime stride visits none twice. */
const scattered = (slot: number, batch: number, below: number) =>
  ((batch * 1_024 + slot) * 611_953) % below;
const randomId = (slot: number, batch: number) => String(100_000 + scattered(slot, batch, 900_000));
const consecutiveId = (slot: number, batch: number) => String(100_000 + batch * 1_024 + slot);
const longId = (slot: number, batch: number) =>
  String((1n << 200n) + BigInt(randomId(slot, batch)) * 0x1234567890abcdef12345678n);
const item = (length: number) => (slot: number, batch: number) =>
  `item ${batch} ${slot} `.padEnd(length, "abcdefghij klmnopqrst uvwxyz").slice(0, length);
const coins = (scale: bigint, least: bigint) => (slot: number, batch: number) =>
  BigInt(1 + scattered(slot, batch, 900_000)) * scale + least;

const DISTINCT: Omit<RollupSeries, "label" | "aim"> = {
  count: 1_024,
  owners: 1_024,
  standard: "erc721",
  amount: () => 1n,
  text: randomId,
};
const FEW = { ...DISTINCT, owners: 64 } as const;
const COINS = { ...DISTINCT, standard: "erc20", text: () => "" } as const;
const ITEMS: Omit<RollupSeries, "label" | "aim"> = {
  ...FEW,
  standard: "erc1155",
  amount: (slot, batch) => BigInt(2 + scattered(slot, batch, 100)),
  text: (slot) => String(1 + (slot % 20)),
};
const ROLLUP: readonly RollupSeries[] = [
  { ...DISTINCT, label: "1,024 ERC-721, each to another owner, random ids", aim: 993 },
  {
    ...DISTINCT,
    label: "1,024 ERC-721, each to another owner, consecutive ids",
    text: consecutiveId,
    aim: 993,
  },
  { ...FEW, label: "1,024 ERC-721, 64 owners, random ids", aim: 501 },
  { ...FEW, label: "1,024 ERC-721, one owner, random ids", owners: 1, aim: 464 },
  {
    ...FEW,
    label: "1,024 ERC-721, one owner, consecutive ids",
    owners: 1,
    text: consecutiveId,
    aim: 464,
  },
  {
    ...FEW,
    label: "1,024 ERC-721, 64 owners, with the consent of an issuer",
    issued: true,
    aim: 508,
  },
  { ...ITEMS, label: "1,024 ERC-1155, 64 owners, 20 ids, amounts to 100", aim: 502 },
  { ...ITEMS, label: "1,024 ERC-1155, each to another owner", owners: 1_024, aim: 993 },
  {
    ...COINS,
    label: "1,024 ERC-20, each to another owner, amounts of 5 bytes",
    amount: coins(1_000_000n, 0n),
    aim: 1_065,
  },
  {
    ...COINS,
    label: "1,024 ERC-20, each to another owner, amounts of 8 bytes",
    amount: coins(10_000_000_000_000n, 7_654_321_987n),
    aim: 1_192,
  },
  { ...DISTINCT, label: "1,024 ERC-721, ids of 2^200", text: longId, aim: 1_634 },
  { ...DISTINCT, label: "1,024 ERC-721, texts of 30 bytes", text: item(30), aim: 2_153 },
  { ...DISTINCT, label: "1,024 ERC-721, texts of 100 bytes", text: item(100), aim: 5_183 },
  {
    ...DISTINCT,
    label: "64 ERC-721, each to another owner, random ids",
    count: 64,
    owners: 64,
    aim: 2_050,
    beginnings: EVERY,
  },
];

export async function rollupSection(): Promise<Section> {
  const measurements = await measured(ROLLUP, (chain, each) => async (batch) => {
    const { type: assetType } = chain.tokens[each.issued ? "issued" : each.standard];
    const holders = owners(each.owners, `batch ${batch} owner`);
    const slots = Array.from({ length: each.count }, (_, slot) => ({
      chainId: CHAIN_ID,
      owner: holders[slot % each.owners] as Address,
      assetType,
      amount: each.amount(slot, batch),
      mintingBlob: toHex(each.text(slot, batch)),
    }));
    const consent = each.issued
      ? (content: Hash) =>
          chain.consentTo({
            mode: "zk-rollup",
            batchNumber: batch,
            vaultCount: each.count,
            content,
          })
      : undefined;
    return (await sendCalldata(chain, slots, batch, consent)).hash;
  });
  return {
    title: "Rollup batches",
    method: `A \`commitRollupBatch\`: the mean of batches ${STEADY.from} to ${STEADY.to} of a fresh contract, counted from 0. Each writes a new
slot for its header, and rewrites a slot of the frontier, which is new only in batches 2^k - 1.`,
    unit: "mint",
    measurements,
  };
}

export async function blobSection(): Promise<Section> {
  const sizes: readonly Series[] = [
    {
      count: BLOB_ELEMENTS,
      label: "4,096 mints in one blob",
      aim: 21,
      beginnings: ["first batch ever"],
    },
    {
      count: 6 * BLOB_ELEMENTS,
      label: "24,576 mints in six blobs",
      aim: 4,
      beginnings: ["first batch ever"],
    },
  ];
  const measurements = await measured(sizes, (chain, { count }) => {
    const card = { chainId: CHAIN_ID, assetType: chain.tokens.erc721.type, amount: 1n };
    const slots = owners(count, "blob owner").map((owner, i) => ({
      ...card,
      owner,
      mintingBlob: toHex(String(100_000 + i)),
    }));
    const send = blobSender(chain, slots);
    return async () => (await send()).hash;
  });
  return {
    title: "Rollup batches in blobs",
    method: `A \`commitBlobBatch\`, measured as above, for mints each to another owner. A mint takes 32 blob gas besides, and a
blob 131,072, however few vaults it holds.`,
    unit: "mint",
    measurements,
  };
}

export async function validiumSection(): Promise<Section> {
  const sizes = [
    { label: "3 of 5 signatures", count: 1, aim: 95_000, beginnings: EVERY, asset: "erc721" },
    {
      label: "3 of 5 signatures, and the consent of an issuer's key",
      count: 1,
      aim: 98_000,
      asset: "issued",
    },
  ] as const;
  const measurements = await measured(sizes, (chain, { asset }) => async (batchNumber) => {
    const { state } = chain;
    const assets = [{ chainId: CHAIN_ID, assetType: chain.tokens[asset].type }];
    const [content, dataHash] = [
      keccak256(toHex(`content ${batchNumber}`)),
      keccak256(toHex(`data ${batchNumber}`)),
    ];
    const root = batchRoot("validium", manifestRoot(assets), content);
    const history = await state.read.history();
    const message = {
      history,
      batchNumber,
      batchRoot: root,
      vaultCount: VALIDIUM_VAULTS,
      dataHash,
      epoch: 0n,
    };
    const attestation = await chain.attest(validiumBatchTypedData(chain.settlement, message));
    const consents =
      asset === "issued"
        ? await chain.consentTo({
            mode: "validium",
            batchNumber,
            vaultCount: VALIDIUM_VAULTS,
            content,
          })
        : "0x";
    const batch = [
      history,
      BigInt(batchNumber),
      content,
      VALIDIUM_VAULTS,
      dataHash,
      packedAssets(assets),
    ] as const;
    return state.write.commitValidiumBatch([...batch, attestation, consents]);
  });
  return {
    title: "Validium batches",
    method: `A \`commitValidiumBatch\`, measured as above, with a committee of 3 of 5, for ${VALIDIUM_VAULTS.toLocaleString("en")} vaults of one asset. The
size does not matter.`,
    unit: "batch",
    measurements,
  };
}

/** A batch that L1 has taken, and the proof of each of its vaults. */
export interface Sent {
  readonly hash: Hash;
  readonly proofOf: (vault: VaultContent) => VaultProof;
}

/** Commits slots as the next batch, with this number. */
export type Send = (chain: GasChain, slots: readonly VaultEntry[], number: number) => Promise<Sent>;

/** @param consent - of the issuer to the batch with this root; default none */
export async function sendCalldata(
  { state }: GasChain,
  slots: readonly VaultEntry[],
  number: number,
  consent: (root: Hash) => Promise<Hex> = async () => "0x",
): Promise<Sent> {
  const batch = wordBatch(slots);
  const { assets } = batch;
  const tree = new BatchTree(batchLeaves(batch, "zk-rollup", number));
  const args = [
    await state.read.history(),
    await consent(bytesToHex(tree.root)),
    BigInt(number),
    bytesToHex(batchDataOf(batch)),
  ] as const;
  const hash = await state.write.commitRollupBatch(args);
  return { hash, proofOf: (vault) => proveVault({ tree, assets }, vault) };
}

export const sendBlobs: Send = (chain, slots) => blobSender(chain, slots)();

let context: DasContextJs | undefined;
const kzg = () => (context ??= DasContextJs.create({ usePrecomp: false }));

/** Commits the same slots by blobs each time that it is called, as the next batch. */
function blobSender(
  { client, state }: GasChain,
  slots: readonly VaultEntry[],
): () => Promise<Sent> {
  const batch = encodeBlobBatch(slots);
  const blobs = blobsIn(batch);
  const sidecars = blobs.map((blob) => {
    const commitment = kzg().blobToKzgCommitment(blob);
    const proof = bytesToHex(kzg().computeBlobKzgProof(blob, commitment));
    return { blob: bytesToHex(blob), commitment: bytesToHex(commitment), proof };
  });
  const versionedHashes = sidecars.map(({ commitment }) => versionedHash(commitment));
  const openingAt = (place: number) => {
    const [blob, index] = [Math.floor(place / BLOB_ELEMENTS), place % BLOB_ELEMENTS];
    const point = hexToBytes(toHex(evaluationPoint(index), { size: 32 }));
    const [proof] = kzg().computeKzgProof(blobs[blob] as Uint8Array, point);
    return {
      commitment: sidecars[blob]?.commitment ?? "0x",
      proof: bytesToHex(proof as Uint8Array),
    };
  };
  const proofOf = (vault: VaultContent) => {
    const places = elementPlaces(batch, unpackVaultId(vault.vaultId).slot);
    return openedProof({ ...batch, versionedHashes }, vault, places.map(openingAt));
  };
  return async () => {
    const [, number] = await state.read.batchCounts();
    const args = [
      await state.read.history(),
      number,
      batch.vaultCount,
      packedAssets(batch.assets),
      "0x",
    ] as const;
    const serializedTransaction = await OPERATOR.signTransaction({
      type: "eip4844",
      chainId: Number(CHAIN_ID),
      nonce: await client.getTransactionCount({ address: OPERATOR.address }),
      maxFeePerGas: 100_000_000_000n,
      maxPriorityFeePerGas: 1_000_000_000n,
      maxFeePerBlobGas: 1_000_000_000_000n,
      gas: 1_000_000n,
      to: state.address,
      data: encodeFunctionData({ abi: state.abi, functionName: "commitBlobBatch", args }),
      blobVersionedHashes: versionedHashes,
      sidecars,
    });
    return { hash: await client.sendRawTransaction({ serializedTransaction }), proofOf };
  };
}
