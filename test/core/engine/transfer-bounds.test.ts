import { expect, it } from "vitest";
import { readLimits } from "../../../core/ledger/options.ts";
import { BatchLoad } from "../../../core/transfers/bounds.ts";

/** Lists of this length that one commit carries, of vaults so far apart. */
function carried(length: number, distance: bigint, amount = 0n): number {
  const load = new BatchLoad(readLimits());
  let next = 0n;
  for (let lists = 0; ; lists++) {
    const transfers = Array.from({ length }, () => ({
      vaultId: distance * next++,
      amount,
      to: `0x${"11".repeat(20)}` as const,
    }));
    if (!load.take(transfers)) return lists;
  }
}

it("a commit carries as many transfers as its bytes hold, unless their vaults lie far apart", () => {
  const { rollupBytes, rollupGas } = readLimits();
  expect(carried(1, 1n)).toBe(Math.floor((rollupBytes - 1) / 100));
  expect(carried(64, 1n, 1n)).toBe(Math.floor((rollupBytes - 1) / (79 + 64 * 31)));
  // Each vault pays for a word of its own.
  expect(carried(1, 256n)).toBe(Math.floor((rollupGas - 300_000) / 28_000));
});
