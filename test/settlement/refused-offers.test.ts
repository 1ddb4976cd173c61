import {
  concat,
  createClient,
  custom,
  fromRlp,
  type Hex,
  keccak256,
  parseTransaction,
  RpcError,
  toHex,
  toRlp,
} from "viem";
import { describe, expect, test } from "vitest";
import { TransactionSender } from "../../core/l1/sender.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";

const GWEI = 10n ** 9n;
const to = OPERATOR.address;

/**
 * A node that mines the offers that it takes, and refuses the others with this code and unheard
 * words. `isHeld`: an earlier process has left a transaction at the account's first nonce.
 */
function nodeOf(code: number, isHeld: boolean, takes: (raw: Hex, mined: number) => boolean) {
  const offered: Hex[] = [];
  const mined: Hex[] = [];
  const answers: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {
    eth_getTransactionCount: ([, block]) =>
      toHex(isHeld && block === "pending" ? Math.max(1, mined.length) : mined.length),
    eth_getTransactionByHash: () => null,
    eth_getTransactionReceipt: ([hash]) =>
      mined.includes(hash as Hex)
        ? { status: "0x1", transactionHash: hash, blockNumber: "0x1", logs: [] }
        : null,
    eth_getBlockByNumber: () => ({ number: "0x1", baseFeePerGas: "0x1", transactions: [] }),
    eth_maxPriorityFeePerGas: () => toHex(GWEI),
    eth_blobBaseFee: () => "0x1",
    eth_sendRawTransaction: ([given]) => {
      const raw = given as Hex;
      offered.push(raw);
      const words = "the pool has something better";
      if (!takes(raw, mined.length))
        throw new RpcError(new Error(words), { code, shortMessage: words });
      mined.push(isBlobs(raw) ? keccak256(unwrapped(raw)) : keccak256(raw));
      return mined.at(-1);
    },
  };
  const request = async ({
    method,
    params = [],
  }: {
    method: string;
    params?: readonly unknown[];
  }) => answers[method]?.(params);
  const client = createClient({ transport: custom({ request } as never, { retryCount: 0 }) });
  const settlement = { chainId: 31_337n, contract: to, engineVersion: 5 };
  const connection = { client, settlement, finality: "finalized", pollingMs: 5 } as const;
  const sender = new TransactionSender(connection, OPERATOR, { replaceAfterMs: 20 });
  const send = () => sender.send(async () => ({ to, data: "0x", gas: 21_000n }));
  return { send, offered };
}

const isBlobs = (raw: Hex) => raw.startsWith("0x03");
/** The transaction with blobs that its wrapper holds. */
const unwrapped = (raw: Hex): Hex => {
  const [fields] = fromRlp(`0x${raw.slice(4)}`, "hex") as unknown as [Hex[]];
  return concat(["0x03", toRlp(fields)]);
};
const offers = (least: bigint) => (raw: Hex) => (parseTransaction(raw).maxFeePerGas ?? 0n) >= least;

const LIMITS = [-32_005, -32_007, 429];

describe.concurrent("an offer that a node refuses in unheard words", () => {
  test.each([-32_000, -32_603, -38_001])(
    "with code %i is raised when a transaction of the account is pending at its nonce",
    async (code) => {
      const { send, offered } = nodeOf(code, true, offers((11n * GWEI) / 10n));
      expect((await send()).status).toBe("success");
      expect(new Set(offered).size).toBe(2);
    },
  );

  test.each(LIMITS)("with code %i of a limit is offered again, and not raised", async (code) => {
    const { send, offered } = nodeOf(code, true, offers(100n * GWEI));
    await expect(send()).rejects.toThrow("the pool has something better");
    expect([offered.length, new Set(offered).size]).toEqual([5, 1]);
  });

  test.each([-32_000, -32_603, -38_001])(
    "with code %i is not raised when nothing is pending",
    async (code) => {
      const { send, offered } = nodeOf(code, false, offers(100n * GWEI));
      await expect(send()).rejects.toThrow("the pool has something better");
      expect(new Set(offered).size).toBe(1);
    },
  );

  test("is made way for when the one that is pending has blobs", async () => {
    // A node takes only blobs at the nonce until some are mined.
    const { send, offered } = nodeOf(-38_001, true, (raw, mined) => isBlobs(raw) === (mined === 0));
    expect((await send()).status).toBe("success");
    expect(offered.filter(isBlobs)).toHaveLength(1);
    expect(parseTransaction(offered.at(-1) ?? "0x").nonce).toBe(1);
  });

  test("is told as it was when its own kind is pending", async () => {
    const { send, offered } = nodeOf(-38_001, true, () => false);
    await expect(send()).rejects.toThrow(/fee cap of \d+ wei is reached; the node said: .*better/);
    expect(offered.some(isBlobs)).toBe(true);
  });
});
