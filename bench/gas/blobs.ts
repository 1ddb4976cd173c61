import { DasContextJs } from "@crate-crypto/node-eth-kzg";
import { bytesToHex, encodeFunctionData, type Hash, hexToBytes, toHex } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { packedAssets } from "../../core/l1/arguments.ts";
import type { VaultContent } from "../../core/ports.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { BLOB_ELEMENTS, blobsIn, encodeBlobBatch } from "../../core/protocol/blob-batch.ts";
import { evaluationPoint, versionedHash } from "../../core/protocol/kzg.ts";
import { elementPlaces, openedProof } from "../../core/protocol/opening.ts";
import type { VaultProof } from "../../core/protocol/proof.ts";
import { unpackVaultId } from "../../core/protocol/vault.ts";
import { CHAIN_ID, type GasChain, openGasChain, owners } from "./chain.ts";
import { type Measurement, measurement, type Section } from "./measurement.ts";

/** Hardhat's first account, the operator: only a key can sign a transaction with blobs. */
const OPERATOR = mnemonicToAccount("test test test test test test test test test test test junk");
/** Batches 8 to 14, as for calldata. */
const STEADY = { from: 8, to: 14 } as const;
const SIZES = [
  { count: BLOB_ELEMENTS, label: "4,096 mints in one blob", aim: 21 },
  { count: 6 * BLOB_ELEMENTS, label: "24,576 mints in six blobs", aim: 4 },
] as const;

let context: DasContextJs | undefined;
const kzg = () => (context ??= DasContextJs.create({ usePrecomp: false }));

/** A batch that L1 has taken, and the proof of each of its vaults. */
export interface Sent {
  readonly hash: Hash;
  readonly proofOf: (vault: VaultContent) => VaultProof;
}

/** The execution gas of a mint whose data is in a blob. */
export async function blobSection(): Promise<Section> {
  const measurements: Measurement[] = [];
  for (const { count, label, aim } of SIZES) {
    const chain = await openGasChain();
    const holders = owners(count, "blob owner");
    const slots = holders.map((owner, i) => ({
      chainId: CHAIN_ID,
      owner,
      assetType: chain.types.erc721,
      amount: 1n,
      blob: toHex(String(100_000 + i)),
    }));
    const send = blobSender(chain, slots);
    const gas: number[] = [];
    for (let batch = 0; batch <= STEADY.to; batch++) gas.push(await chain.gasOf(send().then(({ hash }) => hash)));
    const steady = gas.slice(STEADY.from);
    measurements.push(measurement(label, steady.reduce((a, b) => a + b, 0) / steady.length, count, aim));
    measurements.push(measurement("— the same, first batch ever", gas[0] as number, count));
  }
  return {
    title: "Rollup batches in blobs",
    method: `The table has the execution gas of the whole \`commitBlobBatch\` transaction, for mints each to another owner. A mint takes
32 blob gas besides, and a blob 131,072, however few vaults it holds. Figures are means of batches ${STEADY.from} to ${STEADY.to}, as above.`,
    unit: "mint",
    measurements,
  };
}

/** Commits slots by blobs. */
export async function sendBlobs(chain: GasChain, slots: readonly VaultEntry[]): Promise<Sent> {
  return blobSender(chain, slots)();
}

/** Commits the same slots by blobs each time that it is called, as the next batch. */
function blobSender({ client, state }: GasChain, slots: readonly VaultEntry[]): () => Promise<Sent> {
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
      commitment: (sidecars[blob] as (typeof sidecars)[number]).commitment,
      proof: bytesToHex(proof as Uint8Array),
    };
  };
  const proofOf = (vault: VaultContent) => {
    const places = elementPlaces(batch, unpackVaultId(vault.vaultId).slot, vault);
    return openedProof({ ...batch, versionedHashes }, vault, places.map(openingAt));
  };
  return async () => {
    const [, number] = await state.read.batchCounts();
    const args = [await state.read.history(), number, batch.vaultCount, packedAssets(batch.assets), "0x"] as const;
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
