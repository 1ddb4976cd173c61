import * as protocol from "../../../core/protocol/verifier.ts";
import { blobText, counted, moment } from "../shared/format.ts";
import { type Column, code, Facts, Id, Later, LongTable } from "../shared/parts.tsx";
import { Amount } from "../shared/tokens.tsx";
import { type Batch, readBatch, readBatchData, readBlobProofs } from "./api.ts";
import { type Check, Checks, judged, keptByL1, type Result, same } from "./checks.tsx";
import { accordingToL1 } from "./source.tsx";
import { OnDemand } from "./state.tsx";
import { TransferTable, transferCheck, VaultLink } from "./transfer-view.tsx";

/** Batches up to this many vaults are recomputed at once, in some tens of milliseconds. */
const AT_ONCE = 20_000;

/** The vaults of a sealed batch, from its public data, without void slots. */
export async function vaultsOf(batch: Batch): Promise<readonly protocol.VaultContent[]> {
  return decoded(batch, await readBatchData(batch.batchId)).slots.filter((vault) => vault !== null);
}

/** The data names its kind itself. */
function decoded({ mode, batchNumber }: Batch, data: Uint8Array) {
  const inBlobs = protocol.isBlobBatchData(data) ? protocol.readBlobBatchData(data) : null;
  const { slots, assets } = inBlobs ? { ...inBlobs, slots: protocol.blobSlots(inBlobs) } : protocol.decodeBatch(data);
  return { assets, slots: protocol.placeVaults(slots, mode, batchNumber) };
}

export async function batchView(name: string) {
  const batch = await readBatch(name);
  const { batchRoot, dataHash, l1TxHash, l1BlockNumber, committedAt, vaultCount } = batch;
  return (
    <>
      <h1>Batch {batch.batchId}</h1>
      <p class="lead">
        {counted(vaultCount, "vault")}, {batch.status}.
      </p>
      <Recomputed batch={batch} />
      <h2>On L1</h2>
      <Facts
        of={[
          ["Batch root", batchRoot === null ? "not sealed" : code(batchRoot)],
          ["Data hash", dataHash === null ? "not sealed" : code(dataHash)],
          ["Transaction", l1TxHash === null ? "not sent" : code(l1TxHash)],
          ["Block", l1BlockNumber ?? "not mined"],
          ["Committed", committedAt === null ? "not yet" : moment(BigInt(committedAt))],
        ]}
      />
    </>
  );
}

function Recomputed({ batch }: { batch: Batch }) {
  if (batch.batchRoot === null) {
    return <p class="quiet">The batch is still open. Its vaults can be read and checked once it is sealed.</p>;
  }
  const load = () => recomputed(batch);
  if (batch.vaultCount <= AT_ONCE) return <Later load={load} />;
  return <OnDemand text={`Download and recompute all ${batch.vaultCount.toLocaleString()} vaults`} load={load} />;
}

async function recomputed(batch: Batch) {
  const data = await readBatchData(batch.batchId);
  if (batch.kind === "transfers") {
    return (
      <>
        <Checks of={[hashCheck(batch, data), transferCheck(batch, data), l1Check(batch)]} verdicts={verdicts()} />
        <h2>Transfers</h2>
        <TransferTable data={data} batchNumber={batch.batchNumber} />
      </>
    );
  }
  const { slots, assets } = decoded(batch, data);
  return (
    <>
      <Checks of={batchChecks(batch, data, assets, slots)} verdicts={verdicts()} />
      <h2>Vaults</h2>
      <LongTable label="Vaults" entries={slots.filter((vault) => vault !== null)} columns={VAULT_COLUMNS} />
    </>
  );
}

const VAULT_COLUMNS: readonly Column<protocol.VaultContent>[] = [
  ["Vault", ({ vaultId }) => <VaultLink of={vaultId} />],
  ["Token", ({ blob }) => (blob === "0x" ? "fungible" : blobText(blob))],
  ["Amount", (vault) => <Amount of={vault} />, "number"],
  ["Owner", ({ owner }) => <Id of={owner} />],
];

const verdicts = () => ({
  holds: accordingToL1("This batch matches L1, down to each vault"),
  fails: "This batch does not match its record.",
  open: "This batch has not been compared with L1.",
});

function batchChecks(
  batch: Batch,
  data: Uint8Array,
  assets: Parameters<typeof protocol.manifestRoot>[0],
  slots: readonly (protocol.VaultContent | null)[],
): Check[] {
  const { batchRoot, dataHash, kind, leftOut } = batch;
  const isLeftOut = ({ chainId, assetType }: (typeof assets)[number]) =>
    leftOut.some((out) => out.chainId === `${chainId}` && out.assetType === assetType);
  const places = assets.flatMap((asset, place) => (isLeftOut(asset) ? [place] : []));
  const inBlobs: readonly Check[] = [
    [
      "Each blob has its KZG proof, and their hashes, the count and the manifest give the batch's data hash.",
      () => blobsAre(batch, data),
    ],
    [
      "That hash and the manifest of the assets give the batch's root.",
      () => same(protocol.batchRoot("blobs", protocol.manifestRoot(assets, places), dataHash ?? "0x"), batchRoot),
    ],
  ];
  const inTree: readonly Check[] = [
    hashCheck(batch, data),
    [
      "The vaults in the data and the manifest of their assets give the batch's root.",
      () => {
        const started = performance.now();
        const content = protocol.bytesToHex(new protocol.BatchTree(protocol.vaultLeaves(slots)).root);
        const root = protocol.batchRoot(kind, protocol.manifestRoot(assets, places), content);
        const time = Math.max(1, Math.round(performance.now() - started));
        const leaves = counted(slots.length, "leaf", "leaves");
        return judged(root === batchRoot, `${leaves} hashed here in ${time} ms: ${root}`);
      },
    ],
  ];
  return [...(protocol.isBlobBatchData(data) ? inBlobs : inTree), l1Check(batch)];
}

function hashCheck({ dataHash }: Batch, data: Uint8Array): Check {
  return [
    "The data hashes to the batch's data hash.",
    () => same(protocol.bytesToHex(protocol.keccak256(data)), dataHash),
  ];
}

function l1Check({ batchRoot, vaultCount, committedAt, l1Sequence, mode, batchNumber }: Batch): Check {
  const header =
    batchRoot === null || committedAt === null || l1Sequence === null
      ? null
      : { batchRoot, vaultCount, committedAt: BigInt(committedAt), sequence: BigInt(l1Sequence) };
  return ["L1 keeps the hash of this root, count, time and sequence.", () => keptByL1(header, { mode, batchNumber })];
}

/** Whether the data's blobs are those that the batch's data hash names. JavaScript alone checks the proofs. */
async function blobsAre({ batchId, dataHash }: Batch, data: Uint8Array): Promise<Result> {
  const started = performance.now();
  const batch = protocol.readBlobBatchData(data);
  const blobs = protocol.blobsIn(batch);
  const proofs = await readBlobProofs(batchId);
  const hashes = proofs.map(({ commitment }) => protocol.versionedHash(commitment));
  if (proofs.length !== blobs.length)
    return judged(false, `${counted(blobs.length, "blob")}, but ${counted(proofs.length, "proof")}`);
  for (const [i, proof] of proofs.entries()) {
    const [hash, blob] = [hashes[i], blobs[i]];
    if (!hash || !blob || !protocol.verifyBlob(hash, blob, proof))
      return judged(false, `blob ${i} is not the one that its proof names`);
  }
  const content = protocol.blobContent(batch.vaultCount, protocol.manifestHash(batch.assets), hashes);
  const time = Math.round(performance.now() - started);
  return judged(content === dataHash, `${counted(blobs.length, "blob")} checked here in ${time} ms: ${content}`);
}
