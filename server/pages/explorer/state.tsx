import { useState } from "preact/hooks";
import { type Hex, MintmarkError, stateCommitment } from "../../../core/protocol/verifier.ts";
import { counted, sentenceOf } from "../shared/format.ts";
import { Button, code, Facts, Id, Later, Status, Table } from "../shared/parts.tsx";
import { type Batch, type Roots, readBatches, readState } from "./api.ts";
import { CHOOSE, type Check, Checks, judged } from "./checks.tsx";
import { accordingToL1, l1, sourceName } from "./source.tsx";

const MODES = [
  ["rollup", "countRollup", "rootRollup", "Data in L1's own transactions; L1 recomputed each root from it."],
  ["validium", "countValidium", "rootValidium", "Data kept by a committee, whose signatures L1 checked."],
] as const;

export async function stateView() {
  const [state, { data: batches }] = await Promise.all([readState(), readBatches(null)]);
  const { sealed, committed } = state;
  const settlement = { chainId: BigInt(state.chainId), contract: state.contract as Hex };
  return (
    <>
      <h1>State</h1>
      <p class="lead">
        Every vault is in an append-only tree whose root L1 stores. Nobody can change or remove one, not even the
        operator.
      </p>
      <Checks
        of={stateChecks(committed, () => stateCommitment(settlement, committed))}
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
  return count === 0 ? "on L1; none waiting" : `on L1; ${counted(count, "sealed batch", "sealed batches")} on the way`;
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
          (error) => [error instanceof MintmarkError ? "fails" : "open", sentenceOf(error)] as const,
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
        return isLevel(seen) ? ["holds", counts] : ["open", `${counts}. L1 has new commits: reload to compare again.`];
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

export function OnDemand({ text, load }: { text: string } & Parameters<typeof Later>[0]) {
  const [asked, setAsked] = useState(false);
  return asked ? <Later load={load} /> : <Button onClick={() => setAsked(true)} text={text} />;
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
