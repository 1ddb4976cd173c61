import * as protocol from "../../../core/protocol/verifier.ts";
import { counted, mintingBlobText, moment, sentenceOf } from "../shared/format.ts";
import {
  type Column,
  code,
  Facts,
  Id,
  Later,
  LongTable,
  OnDemand,
  Status,
  Table,
} from "../shared/parts.tsx";
import { Amount } from "../shared/tokens.tsx";
import {
  type Batch,
  type Roots,
  readBatch,
  readBatchData,
  readBatches,
  readBlobProofs,
  readState,
} from "./api.ts";
import { CHOOSE, type Check, Checks, judged, keptByL1, type Result, same } from "./checks.tsx";
import { accordingToL1, l1, sourceName } from "./source.tsx";
import { TransferTable, transferCheck, VaultLink } from "./transfer-view.tsx";

const MODES = [
  [
    "rollup",
    "countRollup",
    "rootRollup",
    "Data in L1's own transactions; L1 recomputed each root from it.",
  ],
  [
    "validium",
    "countValidium",
    "rootValidium",
    "Data kept by a committee, whose signatures L1 checked.",
  ],
] as const;

export async function stateView() {
  const [state, { data: batches }] = await Promise.all([readState(), readBatches(null)]);
  const { sealed, committed } = state;
  const settlement = { chainId: BigInt(state.chainId), contract: state.contract as protocol.Hex };
  return (
    <>
      <h1>State</h1>
      <p class="lead">
        Every vault is in an append-only tree whose root L1 stores. Nobody can change or remove one,
        not even the operator.
      </p>
      <Checks
        of={stateChecks(committed, () => protocol.stateCommitment(settlement, committed))}
        verdicts={{
          holds: accordingToL1("L1 holds exactly the state that this server shows"),
          fails: "L1 does not hold the state that this server shows. See the failed check.",
          open: "The state has not been compared with L1.",
        }}
      />
      <div class="cards">
        {MODES.map(([mode, count, root, meaning]) => (
          <section key={mode} class="card" aria-label={mode}>
            <h2>{mode}</h2>
            <p class="figure">{counted(committed[count], "batch", "batches")}</p>
            <p class="quiet">{waiting(sealed[count] - committed[count])}</p>
            <p class="quiet">{meaning}</p>
            <Facts of={[["State root on L1", code(committed[root])]]} />
          </section>
        ))}
      </div>
      <h2>Newest batches</h2>
      <BatchTable of={batches.slice(0, 6)} />
      <p>
        <a href="#/batches">All batches</a>
      </p>
    </>
  );
}

function waiting(count: number): string {
  return count === 0
    ? "on L1; none waiting"
    : `on L1; ${counted(count, "sealed batch", "sealed batches")} on the way`;
}

function stateChecks(committed: Roots, commitment: () => string): Check[] {
  let seen: Roots | null = null;
  const isLevel = (l1s: Roots) =>
    l1s.countRollup === committed.countRollup && l1s.countValidium === committed.countValidium;
  return [
    [
      "The contract on L1, and all code that it runs, is this version's in every byte.",
      async () => {
        const contract = await l1();
        if (contract === null) return ["open", CHOOSE];
        return contract.requireOwnCode().then(
          () => ["holds", "StateCommitment, Administration, Transfers"],
          (error) =>
            [
              error instanceof protocol.MintmarkError ? "fails" : "open",
              sentenceOf(error),
            ] as const,
        );
      },
    ],
    [
      "The state commitment follows from the roots and counts on this page.",
      () => judged(commitment() === committed.commitment, committed.commitment),
    ],
    [
      "L1 has committed the same number of batches.",
      async () => {
        seen = (await (await l1())?.roots()) ?? null;
        if (seen === null) return ["open", CHOOSE];
        const counts = `${seen.countRollup} rollup, ${seen.countValidium} validium, says ${sourceName()}`;
        // A commit between the two reads is no contradiction: the visitor can reload.
        return isLevel(seen)
          ? ["holds", counts]
          : ["open", `${counts}. L1 has new commits: reload to compare again.`];
      },
    ],
    [
      "L1's own state roots and commitment are equal.",
      () => {
        if (seen === null) return ["open", ""];
        if (!isLevel(seen)) return ["open", "Only states with equal counts can be compared."];
        const { rootRollup, rootValidium, commitment } = committed;
        const isEqual = seen.rootRollup === rootRollup && seen.rootValidium === rootValidium;
        return judged(isEqual && seen.commitment === commitment, seen.commitment);
      },
    ],
  ];
}

export async function batchesView() {
  return (
    <>
      <h1>Batches</h1>
      {await batchPage(null)}
    </>
  );
}

/** One page, and below it the next one, on demand. */
async function batchPage(cursor: string | null) {
  const { data, next } = await readBatches(cursor);
  if (data.length === 0) return <p class="quiet">No batch yet.</p>;
  return (
    <>
      <BatchTable of={data} />
      {next !== null && (
        <div class="next">
          <OnDemand text="Older batches" load={() => batchPage(next)} />
        </div>
      )}
    </>
  );
}

function BatchTable({ of }: { of: readonly Batch[] }) {
  return (
    <Table
      label="Batches"
      entries={of}
      columns={[
        ["Batch", ({ batchId }) => <a href={`#/batches/${batchId}`}>{batchId}</a>],
        ["Vaults", ({ vaultCount }) => vaultCount.toLocaleString(), "number"],
        ["Status", ({ status }) => <Status of={status} />],
        ["Root", ({ batchRoot }) => <Id of={batchRoot} />],
      ]}
    />
  );
}

/** Batches up to this many vaults are recomputed at once, in some tens of milliseconds. */
const AT_ONCE = 20_000;

/** The data names its kind itself. */
function decoded({ mode, batchNumber }: Batch, data: Uint8Array) {
  const { slots, ...words } = protocol.isBlobBatchData(data)
    ? protocol.decodeBlobBatch(data)
    : protocol.decodeBatch(data);
  return { ...words, slots: protocol.placeVaults(slots, mode, batchNumber) };
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
    return (
      <p class="quiet">
        The batch is still open. Its vaults can be read and checked once it is sealed.
      </p>
    );
  }
  const load = () => recomputed(batch);
  if (batch.vaultCount <= AT_ONCE) return <Later load={load} />;
  return (
    <OnDemand
      text={`Download and recompute all ${batch.vaultCount.toLocaleString()} vaults`}
      load={load}
    />
  );
}

async function recomputed(batch: Batch) {
  const data = await readBatchData(batch.batchId);
  if (batch.kind === "transfers") {
    return (
      <>
        <Checks
          of={[hashCheck(batch, data), transferCheck(batch, data), l1Check(batch)]}
          verdicts={verdicts()}
        />
        <h2>Transfers</h2>
        <TransferTable data={data} batchNumber={batch.batchNumber} />
      </>
    );
  }
  const content = decoded(batch, data);
  return (
    <>
      <Checks of={batchChecks(batch, data, content)} verdicts={verdicts()} />
      <h2>Vaults</h2>
      <LongTable
        label="Vaults"
        entries={content.slots.filter((vault) => vault !== null)}
        columns={VAULT_COLUMNS}
      />
    </>
  );
}

const VAULT_COLUMNS: readonly Column<protocol.VaultContent>[] = [
  ["Vault", ({ vaultId }) => <VaultLink of={vaultId} />],
  [
    "Token",
    ({ mintingBlob }) => (mintingBlob === "0x" ? "fungible" : mintingBlobText(mintingBlob)),
  ],
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
  { assets, words, slots }: ReturnType<typeof decoded>,
): Check[] {
  const { mode, batchNumber, batchRoot, dataHash, kind, leftOut } = batch;
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
      () =>
        same(
          protocol.batchRoot("blobs", protocol.manifestRoot(assets, places), dataHash ?? "0x"),
          batchRoot,
        ),
    ],
  ];
  const inTree: readonly Check[] = [
    hashCheck(batch, data),
    [
      "The vaults in the data and the manifest of their assets give the batch's root.",
      () => {
        const started = performance.now();
        const tree = new protocol.BatchTree(protocol.batchLeaves({ words }, mode, batchNumber));
        const content = protocol.bytesToHex(tree.root);
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

function l1Check({
  batchRoot,
  vaultCount,
  committedAt,
  l1Sequence,
  mode,
  batchNumber,
}: Batch): Check {
  const header =
    batchRoot === null || committedAt === null || l1Sequence === null
      ? null
      : { batchRoot, vaultCount, committedAt: BigInt(committedAt), sequence: BigInt(l1Sequence) };
  return [
    "L1 keeps the hash of this root, count, time and sequence.",
    () => keptByL1(header, { mode, batchNumber }),
  ];
}

/**
 * Whether the data's blobs are those that the batch's data hash names. JavaScript alone checks the
 * proofs.
 */
async function blobsAre({ batchId, dataHash }: Batch, data: Uint8Array): Promise<Result> {
  const started = performance.now();
  const batch = protocol.readBlobBatchData(data);
  const blobs = protocol.blobsIn(batch);
  const proofs = await readBlobProofs(batchId);
  const hashes = proofs.map(({ commitment }) => protocol.versionedHash(commitment));
  if (proofs.length !== blobs.length)
    return judged(
      false,
      `${counted(blobs.length, "blob")}, but ${counted(proofs.length, "proof")}`,
    );
  for (const [i, proof] of proofs.entries()) {
    const [hash, blob] = [hashes[i], blobs[i]];
    if (!hash || !blob || !protocol.verifyBlob(hash, blob, proof))
      return judged(false, `blob ${i} is not the one that its proof names`);
  }
  const content = protocol.blobContent(
    batch.vaultCount,
    protocol.manifestHash(batch.assets),
    hashes,
  );
  const time = Math.round(performance.now() - started);
  return judged(
    content === dataHash,
    `${counted(blobs.length, "blob")} checked here in ${time} ms: ${content}`,
  );
}
