/** Calls under way at once. */
const AT_ONCE = 8;

/**
 * Asks for many things, a number of them in each call, several calls at a time. Answers come in the order of the
 * questions.
 */
export async function askInBulk<Q, A>(
  questions: readonly Q[],
  perCall: number,
  ask: (some: readonly Q[]) => Promise<readonly A[]>,
): Promise<A[]> {
  const calls = Array.from({ length: Math.ceil(questions.length / perCall) }, (_, i) =>
    questions.slice(i * perCall, (i + 1) * perCall),
  );
  const answers: A[] = [];
  for (let first = 0; first < calls.length; first += AT_ONCE) {
    for (const some of await Promise.all(calls.slice(first, first + AT_ONCE).map(ask))) answers.push(...some);
  }
  return answers;
}
