/** Runs a task for each item, some at a time. Returns the results in order. */
export async function severalAtOnce<T, R>(
  all: readonly T[],
  work: (each: T, index: number) => Promise<R>,
  atOnce = 16,
): Promise<R[]> {
  const results: R[] = [];
  for (let first = 0; first < all.length; first += atOnce) {
    const some = all.slice(first, first + atOnce).map((each, i) => work(each, first + i));
    results.push(...(await Promise.all(some)));
  }
  return results;
}
