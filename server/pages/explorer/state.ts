import { MintmarkError, stateCommitment } from "../../../core/protocol/verifier.ts";
import { counted, sentenceOf } from "../shared/format.ts";
import { type Roots, readBatches, readState } from "./api.ts";
import { batchTable } from "./batches.ts";
import { type Check, checkList, type Outcome } from "./checks.ts";
import { code, el, facts, link } from "./dom.ts";
import { accordingToL1, l1, sourceName } from "./source.ts";

const MODES = [
  ["zk-rollup", "countRollup", "rootRollup", "Data in L1's own transactions; L1 recomputed each root from it."],
  ["validium", "countValidium", "rootValidium", "Data kept by a committee, whose signatures L1 checked."],
] as const;

/** The state: the operator's data, compared with L1. */
export async function stateView(): Promise<Node[]> {
  const [state, { data: batches }] = await Promise.all([readState(), readBatches(null)]);
  const { sealed, committed } = state;
  const settlement = { chainId: BigInt(state.chainId), contract: state.contract };
  return [
    el("h1", {}, "State"),
    el(
      "p",
      { class: "lead" },
      "Every vault is in an append-only tree whose root L1 stores. Nobody can change or remove one, not even the operator.",
    ),
    checkList(
      stateChecks(committed, () => stateCommitment(settlement, committed)),
      {
        holds: accordingToL1("L1 holds exactly the state that this server shows"),
        fails: "L1 does not hold the state that this server shows. See the failed check.",
        open: "The state has not been compared with L1.",
      },
    ),
    el(
      "div",
      { class: "cards" },
      ...MODES.map(([mode, count, root, meaning]) =>
        el(
          "section",
          { class: "card", "aria-label": mode },
          el("h2", {}, mode),
          el("p", { class: "figure" }, counted(committed[count], "batch", "batches")),
          el("p", { class: "quiet" }, waiting(sealed[count] - committed[count])),
          el("p", { class: "quiet" }, meaning),
          facts([["State root on L1", code(committed[root])]]),
        ),
      ),
    ),
    el("h2", {}, "Newest batches"),
    batchTable(batches.slice(0, 6)),
    el("p", {}, link("#/batches", "All batches")),
  ];
}

function waiting(count: number): string {
  return count === 0 ? "on L1; none waiting" : `on L1; ${counted(count, "sealed batch", "sealed batches")} on the way`;
}

function stateChecks(committed: Roots, commitment: () => string): Check[] {
  let seen: Roots | null = null;
  return [
    {
      claim: "The contract on L1, and all code that it runs, is this version's in every byte.",
      async test() {
        const checked = (await l1())?.requireOwnCode() ?? Promise.reject(new Error("Choose below how to read L1."));
        return checked.then(
          () => ["holds", "StateCommitment, Administration, Transfers"],
          (error) => [error instanceof MintmarkError ? "fails" : "open", sentenceOf(error)] as const,
        );
      },
    },
    {
      claim: "The state commitment follows from the roots and counts on this page.",
      async test() {
        return [verdict(commitment() === committed.commitment), committed.commitment];
      },
    },
    {
      claim: "L1 has committed the same number of batches.",
      async test() {
        seen = (await (await l1())?.roots()) ?? null;
        if (seen === null) return ["open", "Choose below how to read L1."];
        const counts = `${seen.countRollup} zk-rollup, ${seen.countValidium} validium, says ${sourceName()}`;
        const same = seen.countRollup === committed.countRollup && seen.countValidium === committed.countValidium;
        // A commit between the two reads is no contradiction: the visitor can reload.
        return same ? ["holds", counts] : ["open", `${counts}. L1 has new commits: reload to compare again.`];
      },
    },
    {
      claim: "L1's own state roots and commitment are equal.",
      async test() {
        if (seen === null) return ["open", ""];
        if (seen.countRollup !== committed.countRollup || seen.countValidium !== committed.countValidium) {
          return ["open", "Only states with equal counts can be compared."];
        }
        const { rootRollup, rootValidium, commitment } = seen;
        const same =
          rootRollup === committed.rootRollup &&
          rootValidium === committed.rootValidium &&
          commitment === committed.commitment;
        return [verdict(same), commitment];
      },
    },
  ];
}

function verdict(holds: boolean): Outcome {
  return holds ? "holds" : "fails";
}
