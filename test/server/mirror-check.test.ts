import { expect, test } from "vitest";
import { mirrorCheck } from "../../server/process/settling.ts";

const settlement = { chainId: 2n, contract: `0x${"5e".repeat(20)}` } as const;

test("a mirror's node is asked for its state once in many checks, and after a failure at once", async () => {
  const asked: string[] = [];
  let fails = true;
  const answer = async (name: string, value: bigint) => {
    asked.push(name);
    if (fails) throw new Error("no answer");
    return value;
  };
  const observed = { observed: 97n };
  const check = mirrorCheck(
    {
      settlement,
      fromBlock: 0n,
      connect: async () => ({
        blockNumber: () => answer("block", 100n),
        operatorBalance: () => answer("balance", 10n ** 18n),
      }),
    },
    {
      engine: { operator: { portal: () => observed as never } },
      leastBalance: 1n,
      mostLag: 10n,
    },
  );
  for (let i = 0; i < 2; i++) expect(await check(null)).toMatch(/^not up to date/);
  expect(asked).toHaveLength(4);
  fails = false;
  for (let i = 0; i < 50; i++) expect(await check(null)).toBe("in step: 3 blocks behind, 1 ETH");
  expect(asked).toHaveLength(6);
  // The server's own numbers are always as of now.
  observed.observed = 99n;
  expect(await check(null)).toBe("in step: 1 blocks behind, 1 ETH");
  expect(await check(new Error("its work failed"))).toMatch(/^not up to date/);
  expect(asked).toHaveLength(6);
});
