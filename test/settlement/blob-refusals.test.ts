import { createServer } from "node:http";
import { createPublicClient, http } from "viem";
import { expect, onTestFinished, test, vi } from "vitest";
import { CommittedData } from "../../core/archive/committed-data.ts";
import { chainReads } from "../../core/l1/chain.ts";
import { cappedFees, capsOf, type Fees, higherFees } from "../../core/l1/fees.ts";
import type { RollupData } from "../../core/settlement/rollup-data.ts";
import { placeRollupData } from "../../core/settlement/settler.ts";

const GWEI = 10n ** 9n;

/** A reader's conclusion from a node that answers each call with this error. */
async function opensBlobs(error: {
  readonly code: number;
  readonly message: string;
}): Promise<boolean> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(body).id, error }));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as { port: number };
  try {
    const client = createPublicClient({
      transport: http(`http://127.0.0.1:${port}`, { retryCount: 0 }),
    });
    const settlement = { chainId: 31_337n, contract: `0x${"11".repeat(20)}` };
    return await chainReads({
      client,
      settlement,
      pollingMs: 10,
      finality: "finalized",
    } as never).opensBlobs();
  } finally {
    server.close();
  }
}

test("a chain that stops a call of 0x0a opens no blobs, and a node that refuses to answer tells nothing", async () => {
  expect(await opensBlobs({ code: 3, message: "execution reverted" })).toBe(false);
  await expect(opensBlobs({ code: -32_005, message: "limit exceeded" })).rejects.toMatchObject({
    code: "l1_failed",
  });
});

test("a chain that is not known to take blobs gets calldata, unless the operator asks for blobs", async () => {
  const choice = async (chainId: bigint, wanted: RollupData) => {
    let placed: boolean | undefined;
    const operator = { placeInBlobs: (_: bigint, takesBlobs: boolean) => (placed = takesBlobs) };
    const engine = { operator, settlement: { chainId } };
    await placeRollupData(engine as never, { takesBlobs: async () => true }, wanted);
    return placed;
  };
  expect([await choice(1n, "auto"), await choice(43_114n, "auto")]).toEqual([true, false]);
  expect([await choice(43_114n, "blobs"), await choice(1n, "calldata")]).toEqual([true, false]);
});

test("a transaction that is never mined is raised to a bound, and to the operator's own", () => {
  const estimate: Fees = {
    maxFeePerGas: 3n * GWEI,
    maxPriorityFeePerGas: GWEI,
    maxFeePerBlobGas: GWEI,
  };
  const raisedToEnd = (caps: Parameters<typeof capsOf>[1]) => {
    const bound = capsOf(estimate, caps);
    let fees = cappedFees(estimate, bound);
    for (let next: Fees | null = fees; next !== null; next = higherFees(fees, "blobs", bound))
      fees = next;
    return fees;
  };
  const bounded = raisedToEnd({});
  expect(bounded.maxFeePerGas).toBeGreaterThan(90n * GWEI);
  expect(bounded.maxFeePerGas).toBeLessThanOrEqual(192n * GWEI);
  expect(bounded.maxPriorityFeePerGas).toBeLessThanOrEqual(64n * GWEI);
  expect(raisedToEnd({ maxFeePerGas: undefined })).toEqual(bounded);
  expect(raisedToEnd({ maxFeePerGas: 10n * GWEI }).maxFeePerGas).toBeLessThanOrEqual(10n * GWEI);
  expect(raisedToEnd({ maxFeePerGas: 1000n * GWEI }).maxFeePerBlobGas).toBeLessThanOrEqual(
    64n * GWEI,
  );
});

test("an honest source that has pruned old batches is still asked for a new one", async () => {
  const source = {
    name: "pruned",
    batchData: async (_: string, batchNumber: number) =>
      batchNumber === 200 ? new Uint8Array([1]) : null,
  };
  let now = 0;
  const slow = {
    ...source,
    batchData: (...asked: [string, number]) => {
      now += 450;
      return source.batchData(...asked);
    },
  };
  vi.spyOn(performance, "now").mockImplementation(() => now);
  onTestFinished(() => void vi.restoreAllMocks());
  const data = new CommittedData({} as never, {} as never, {
    sources: [slow as never],
    wasteMs: 60_000,
  });
  for (let batchNumber = 0; batchNumber < 200; batchNumber++) {
    expect(
      await data.find(
        { mode: "validium", batchNumber } as never,
        async () => 1,
        () => {},
      ),
    ).toBe(null);
  }
  const found = await data.find(
    { mode: "validium", batchNumber: 200 } as never,
    async (bytes) => bytes,
    () => {},
  );
  expect(found).toEqual(new Uint8Array([1]));
});
