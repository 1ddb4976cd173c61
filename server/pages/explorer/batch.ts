import {
  BatchTree,
  batchHeaderHash,
  blobContent,
  blobSlots,
  blobsIn,
  bytesToHex,
  decodeBatch,
  isBlobBatchData,
  keccak256,
  manifestHash,
  manifestRoot,
  placeVaults,
  readBlobBatchData,
  batchRoot as rootOf,
  type VaultContent,
  vaultLeaves,
  verifyBlob,
  versionedHash,
} from "../../../core/protocol/verifier.ts";
import { counted, moment } from "../shared/format.ts";
import { type Batch, readBatch, readBatchData, readBlobProofs } from "./api.ts";
import { type Check, checkList } from "./checks.ts";
import { button, code, el, facts, fill } from "./dom.ts";
import { accordingToL1, l1, sourceName } from "./source.ts";
import { transferChecks, transferTable } from "./transfer-view.ts";
import { vaultTable } from "./vaults.ts";

/** Batches up to this many vaults are recomputed at once, in some tens of milliseconds. */
const AT_ONCE = 20_000;

/** The vaults of a sealed batch, from its public data, without void slots. */
export async function vaultsOf({ batchId, mode, batchNumber }: Batch): Promise<readonly VaultContent[]> {
  const slots = placeVaults(decoded(await readBatchData(batchId)).slots, mode, batchNumber);
  return slots.filter((vault) => vault !== null);
}

/** The data names its kind itself. */
function decoded(data: Uint8Array): ReturnType<typeof decodeBatch> {
  if (!isBlobBatchData(data)) return decodeBatch(data);
  const batch = readBlobBatchData(data);
  return { slots: blobSlots(batch), assets: batch.assets };
}

/** One batch, recomputed from its data. */
export async function batchView(batchId: string): Promise<Node[]> {
  const batch = await readBatch(batchId);
  const place = el("div", {});
  const recompute = () => fill(place, async () => recomputed(batch));
  if (batch.batchRoot === null) {
    place.append(
      el("p", { class: "quiet" }, "The batch is still open. Its vaults can be read and checked once it is sealed."),
    );
  } else if (batch.vaultCount > AT_ONCE) {
    place.append(button(`Download and recompute all ${batch.vaultCount.toLocaleString()} vaults`, recompute));
  } else {
    await recompute();
  }
  return [
    el("h1", {}, `Batch ${batchId}`),
    el("p", { class: "lead" }, `${counted(batch.vaultCount, "vault")}, ${batch.status}.`),
    place,
    el("h2", {}, "On L1"),
    facts([
      ["Batch root", batch.batchRoot === null ? "not sealed" : code(batch.batchRoot)],
      ["Data hash", batch.dataHash === null ? "not sealed" : code(batch.dataHash)],
      ["Transaction", batch.l1TxHash === null ? "not sent" : code(batch.l1TxHash)],
      ["Block", batch.l1BlockNumber ?? "not mined"],
      ["Committed", batch.committedAt === null ? "not yet" : moment(BigInt(batch.committedAt))],
    ]),
  ];
}

async function recomputed(batch: Batch): Promise<Node[]> {
  const data = await readBatchData(batch.batchId);
  if (batch.kind === "transfers") {
    return [
      checkList([hashCheck(batch, data), ...transferChecks(batch, data), l1Check(batch)], VERDICTS()),
      el("h2", {}, "Transfers"),
      transferTable(data, batch.batchNumber),
    ];
  }
  const { slots: entries, assets } = decoded(data);
  const slots = placeVaults(entries, batch.mode, batch.batchNumber);
  return [
    checkList(batchChecks(batch, data, assets, slots), VERDICTS()),
    el("h2", {}, "Vaults"),
    vaultTable(slots.filter((vault) => vault !== null)),
  ];
}

const VERDICTS = () => ({
  holds: accordingToL1("This batch matches L1, down to each vault"),
  fails: "This batch does not match its claims.",
  open: "This batch has not been compared with L1.",
});

function batchChecks(
  batch: Batch,
  data: Uint8Array,
  assets: Parameters<typeof manifestRoot>[0],
  slots: readonly (VaultContent | null)[],
): Check[] {
  const { batchRoot, dataHash, kind, leftOut } = batch;
  const isLeftOut = ({ chainId, assetType }: (typeof assets)[number]) =>
    leftOut.some((out) => out.chainId === `${chainId}` && out.assetType === assetType);
  const places = assets.flatMap((asset, place) => (isLeftOut(asset) ? [place] : []));
  const inBlobs = [
    {
      claim: "Each blob has its KZG proof, and their hashes, the count and the manifest give the batch's data hash.",
      test: () => blobsAre(batch, data),
    },
    {
      claim: "That hash and the manifest of the assets give the batch's root.",
      test: async () => same(rootOf("blobs", manifestRoot(assets, places), dataHash ?? "0x"), batchRoot),
    },
  ];
  const inTree: readonly Check[] = [
    hashCheck(batch, data),
    {
      claim: "The vaults in the data and the manifest of their assets give the batch's root.",
      async test() {
        const started = performance.now();
        const content = bytesToHex(new BatchTree(vaultLeaves(slots)).root);
        const root = rootOf(kind, manifestRoot(assets, places), content);
        const time = Math.max(1, Math.round(performance.now() - started));
        const [outcome] = same(root, batchRoot);
        return [outcome, `${counted(slots.length, "leaf", "leaves")} hashed here in ${time} ms: ${root}`];
      },
    },
  ];
  return [...(isBlobBatchData(data) ? inBlobs : inTree), l1Check(batch)];
}

function hashCheck({ dataHash }: Batch, data: Uint8Array): Check {
  return {
    claim: "The data hashes to the batch's data hash.",
    test: async () => same(bytesToHex(keccak256(data)), dataHash),
  };
}

function l1Check({ batchRoot, vaultCount, committedAt, l1Sequence, mode, batchNumber }: Batch): Check {
  return {
    claim: "L1 keeps the hash of this root, count, time and sequence.",
    async test() {
      if (batchRoot === null || committedAt === null || l1Sequence === null) {
        return ["open", "L1 has not committed the batch yet."];
      }
      const contract = await l1();
      if (contract === null) return ["open", "Choose below how to read L1."];
      const header = { batchRoot, vaultCount, committedAt: BigInt(committedAt), sequence: BigInt(l1Sequence) };
      const kept = await contract.batchHeaderHash(mode, batchNumber);
      const [outcome] = same(batchHeaderHash(header), kept);
      return [outcome, `${kept}, says ${sourceName()}`];
    },
  };
}

/** Whether the data's blobs are those that the batch's data hash names. JavaScript alone checks the proofs. */
async function blobsAre({ batchId, dataHash }: Batch, data: Uint8Array): Promise<readonly ["holds" | "fails", string]> {
  const started = performance.now();
  const batch = readBlobBatchData(data);
  const blobs = blobsIn(batch);
  const proofs = await readBlobProofs(batchId);
  const hashes = proofs.map(({ commitment }) => versionedHash(commitment));
  if (proofs.length !== blobs.length)
    return ["fails", `${counted(blobs.length, "blob")}, but ${counted(proofs.length, "proof")}`];
  for (const [i, proof] of proofs.entries()) {
    const [hash, blob] = [hashes[i], blobs[i]];
    if (!hash || !blob || !verifyBlob(hash, blob, proof))
      return ["fails", `blob ${i} is not the one that its proof names`];
  }
  const content = blobContent(batch.vaultCount, manifestHash(batch.assets), hashes);
  const [outcome] = same(content, dataHash);
  const time = Math.round(performance.now() - started);
  return [outcome, `${counted(blobs.length, "blob")} checked here in ${time} ms: ${content}`];
}

function same(computed: string, claimed: string | null): readonly ["holds" | "fails", string] {
  return [computed === claimed ? "holds" : "fails", computed];
}
