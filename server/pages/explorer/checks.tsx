import { useEffect, useState } from "preact/hooks";
import {
  type BatchHeader,
  batchHeaderHash,
  type VaultPlace,
} from "../../../core/protocol/verifier.ts";
import { sentenceOf } from "../shared/format.ts";
import { l1, sourceName } from "./source.tsx";

export type Outcome = "holds" | "fails" | "open";

const SIGNS: Readonly<Record<Outcome | "waits", readonly [sign: string, spoken: string]>> = {
  holds: ["✓", "Holds: "],
  fails: ["✗", "Fails: "],
  open: ["–", "Not checked: "],
  waits: ["…", "Checking: "],
};

/** L1 keeps the headers of its own makings behind those of all validium batches. */
const FIRST_MAKING = 2 ** 42;

export type Result = readonly [Outcome, string];

/**
 * A claim, and its test, which describes its result. A rejection leaves the check open, with the
 * reason.
 */
export type Check = readonly [claim: string, test: () => Result | Promise<Result>];

export const CHOOSE = "Choose below how to read L1.";

export function judged(holds: boolean, how: string): Result {
  return [holds ? "holds" : "fails", how];
}

export function same(computed: string, claimed: string | null): Result {
  return judged(computed === claimed, computed);
}

/** Runs checks one after the other, shows each result, and the verdict at the end. */
export function Checks({
  of,
  verdicts,
}: {
  of: readonly Check[];
  verdicts: Readonly<Record<Outcome, string>>;
}) {
  const [results, setResults] = useState<readonly Result[]>([]);
  useEffect(() => {
    let isShown = true;
    void (async () => {
      const done: Result[] = [];
      for (const [, test] of of) {
        done.push(
          await (async () => test())().catch(
            (error: unknown) => ["open", sentenceOf(error)] as const,
          ),
        );
        if (!isShown) return;
        setResults([...done]);
      }
    })();
    return () => {
      isShown = false;
    };
  }, []);
  const outcomes = results.map(([outcome]) => outcome);
  const all: Outcome = outcomes.includes("fails")
    ? "fails"
    : outcomes.includes("open")
      ? "open"
      : "holds";
  const isDone = results.length === of.length;
  return (
    <div>
      <p class={`verdict ${isDone ? all : "waits"}`} role="status">
        {isDone && <Sign of={all} />}
        {isDone ? verdicts[all] : "Checking in your browser…"}
      </p>
      <ol class="checks">
        {of.map(([claim], i) => {
          const [outcome, how] = results[i] ?? (["waits", ""] as const);
          return (
            <li key={claim} class={outcome}>
              <Sign of={outcome} />
              <div>
                <p>
                  <span class="unseen">{SIGNS[outcome][1]}</span>
                  {claim}
                </p>
                <p class="how">{how}</p>
              </div>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

export async function keptByL1(
  header: BatchHeader | null,
  { mode, batchNumber }: Pick<VaultPlace, "mode" | "batchNumber">,
): Promise<Result> {
  // L1 gives its own makings no time.
  const isMade = mode === "made";
  if (header === null || (header.committedAt === 0n && !isMade))
    return ["open", "L1 has not committed the batch yet."];
  const contract = await l1();
  if (contract === null) return ["open", CHOOSE];
  const kept = isMade
    ? await contract.batchHeaderHash("validium", FIRST_MAKING + batchNumber)
    : await contract.batchHeaderHash(mode, batchNumber);
  return judged(batchHeaderHash(header) === kept, `${kept}, says ${sourceName()}`);
}

function Sign({ of }: { of: Outcome | "waits" }) {
  return (
    <span class="sign" aria-hidden="true">
      {SIGNS[of][0]}
    </span>
  );
}
