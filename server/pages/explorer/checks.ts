import { sentenceOf } from "../shared/format.ts";
import { el } from "./dom.ts";

/** The outcome of one check: it holds, it fails, or it was not possible. */
export type Outcome = "holds" | "fails" | "open";

const SIGNS: Readonly<Record<Outcome | "waits", readonly [sign: string, spoken: string]>> = {
  holds: ["✓", "Holds: "],
  fails: ["✗", "Fails: "],
  open: ["–", "Not checked: "],
  waits: ["…", "Checking: "],
};

export interface Check {
  /** The claim. */
  readonly claim: string;
  /** Runs the check and describes its result. A rejection leaves the check open, with the reason. */
  readonly test: () => Promise<readonly [Outcome, string]>;
}

/** Runs checks one after the other, shows each result, and the verdict at the end. */
export function checkList(checks: readonly Check[], verdicts: Readonly<Record<Outcome, string>>): HTMLElement {
  const items = checks.map(({ claim }) => item("waits", claim, ""));
  const verdict = el("p", { class: "verdict waits", role: "status" }, "Checking in your browser…");
  const list = el("ol", { class: "checks" }, ...items);
  void run(checks, list, verdict, verdicts);
  return el("div", {}, verdict, list);
}

async function run(
  checks: readonly Check[],
  list: HTMLElement,
  verdict: HTMLElement,
  verdicts: Readonly<Record<Outcome, string>>,
): Promise<void> {
  const outcomes: Outcome[] = [];
  for (const [i, { claim, test }] of checks.entries()) {
    const [outcome, how] = await test().catch((error: unknown) => {
      return ["open", sentenceOf(error)] as const;
    });
    outcomes.push(outcome);
    list.children[i]?.replaceWith(item(outcome, claim, how));
  }
  const all: Outcome = outcomes.includes("fails") ? "fails" : outcomes.includes("open") ? "open" : "holds";
  verdict.className = `verdict ${all}`;
  verdict.replaceChildren(el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[all][0]), verdicts[all]);
}

function item(outcome: Outcome | "waits", claim: string, how: string): HTMLElement {
  const [sign, spoken] = SIGNS[outcome];
  return el(
    "li",
    { class: outcome },
    el("span", { class: "sign", "aria-hidden": "true" }, sign),
    el("div", {}, el("p", {}, el("span", { class: "unseen" }, spoken), claim), el("p", { class: "how" }, how)),
  );
}
