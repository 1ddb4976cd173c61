import { severalAtOnce } from "../at-once.ts";
import { askL1 } from "./failure.ts";

/** Calls under way at once. */
const AT_ONCE = 8;

/** Asks L1 for many things, a number of them in each call. Answers come in the order of the questions. */
export async function askInBulk<Q, A>(
  doing: string,
  questions: readonly Q[],
  perCall: number,
  ask: (some: readonly Q[]) => Promise<readonly A[]>,
): Promise<A[]> {
  const calls = Array.from({ length: Math.ceil(questions.length / perCall) }, (_, i) =>
    questions.slice(i * perCall, (i + 1) * perCall),
  );
  return (await severalAtOnce(calls, (some) => askL1(doing, () => ask(some)), AT_ONCE)).flat();
}
