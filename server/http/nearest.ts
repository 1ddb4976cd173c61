/** The known word that takes the fewest typing errors to make of a word; null without any. */
export function nearest(
  word: string,
  known: readonly string[],
): { readonly word: string; readonly distance: number } | null {
  const all = known.map((each) => ({ word: each, distance: distance(word, each) }));
  return all.sort((a, b) => a.distance - b.distance)[0] ?? null;
}

/** The Levenshtein distance of two words: insertions, deletions and changes of letters. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const change = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, change));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
