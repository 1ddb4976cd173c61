/** Entries of a well-formed body; the core refuses all others. */
export function countMints(body: unknown): number {
  const users = (body as { users?: unknown } | null)?.users;
  if (!Array.isArray(users)) return 1;
  return users.reduce((sum: number, user: { mints?: unknown } | null) => {
    return Array.isArray(user?.mints) ? sum + countEntries(user.mints) : sum;
  }, 0);
}

/** More in one request are always refused. */
const MOST_TOKENS = 1 << 20;

function countEntries(mints: readonly unknown[]): number {
  let count = mints.length;
  for (const mint of mints) {
    const quantity = (mint as { quantity?: unknown } | null)?.quantity;
    if (typeof quantity === "number" && quantity > 1) count += Math.min(quantity, MOST_TOKENS) - 1;
  }
  return count;
}
