import { setImmediate as nextPass } from "node:timers/promises";

/** Items of one piece, which takes a few ms. */
const PIECE = 2_048;

/**
 * Does synchronous work for each number below `count`, in order. After each piece of it, other work
 * that waits for the event loop gets a pass.
 */
export async function inPieces(count: number, work: (index: number) => void): Promise<void> {
  for (let first = 0; first < count; first += PIECE) {
    if (first > 0) await nextPass();
    const end = Math.min(first + PIECE, count);
    for (let index = first; index < end; index++) work(index);
  }
}

/** `Map.groupBy` {@link inPieces}. */
export async function groupedInPieces<K, T>(
  all: readonly T[],
  keyOf: (each: T) => K,
): Promise<Map<K, T[]>> {
  const groups = new Map<K, T[]>();
  await inPieces(all.length, (index) => {
    const each = all[index] as T;
    const key = keyOf(each);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  });
  return groups;
}
