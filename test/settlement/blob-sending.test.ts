import { network } from "hardhat";
import type { EIP1193RequestFn, Hex } from "viem";
import {
  createPublicClient,
  custom,
  fromRlp,
  hexToBigInt,
  http,
  keccak256,
  RpcError,
  toHex,
} from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { BlobSidecar } from "../../core/l1/blob-sidecar.ts";
import type { FeeOptions } from "../../core/l1/fees.ts";
import { TransactionSender } from "../../core/l1/sender.ts";
import { BLOB_BYTES } from "../../core/protocol/blob-batch.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { type Anvil, startAnvil } from "../anvil.ts";

type Call = { readonly method: string; readonly params?: readonly unknown[] };
type Request = (call: Call) => Promise<unknown>;
const to = OPERATOR.address;

/** The sender of a process, over a chain's RPC. */
function senderOver(request: Request, fees: FeeOptions = {}): TransactionSender {
  const transport = custom({ request: request as EIP1193RequestFn }, { retryCount: 0 });
  const client = createPublicClient({ transport, pollingInterval: 5, cacheTime: 0 });
  const settlement = { chainId: 31_337n, contract: to, engineVersion: 5 };
  return new TransactionSender(
    { client, settlement, finality: "finalized", pollingMs: 5 },
    OPERATOR,
    fees,
  );
}

const plain = async () => ({ to, data: "0x", gas: 21_000n }) as const;
const withBlobs = async () => ({ ...(await plain()), blobs: BlobSidecar.empty() });
const neverMined = (promise: Promise<unknown>) => void promise.catch(() => {});

interface Fields {
  readonly type: "plain" | "blobs";
  readonly nonce: number;
  readonly fees: readonly bigint[];
  readonly hash: Hex;
}

/** The fields of a raw transaction, in its wrapper or without one. */
function fieldsOf(raw: Hex): Fields {
  const number = (hex: Hex) => (hex === "0x" ? 0n : hexToBigInt(hex));
  const rlp = fromRlp(`0x${raw.slice(4)}`, "hex") as Hex[];
  const blobs = raw.startsWith("0x03");
  const [, nonce, tip, fee, , , , , , blobFee] = (blobs ? rlp[0] : rlp) as unknown as Hex[];
  const fees = [tip, fee, ...(blobs ? [blobFee] : [])].map((each) => number(each as Hex));
  return {
    type: blobs ? "blobs" : "plain",
    nonce: Number(number(nonce as Hex)),
    fees,
    hash: keccak256(raw),
  };
}

/**
 * A chain whose pool has the rules of go-ethereum: one kind of transaction per account, and
 * replacements with blobs at the double of each fee. anvil and hardhat have neither rule.
 */
class StrictPool {
  /** Its words for a pending transaction of the other kind. */
  conflict = "address already reserved";
  /** Every transaction that a node has taken, in order. */
  readonly taken: Fields[] = [];
  readonly #pending = new Map<number, Fields>();
  readonly #chain: Request;

  constructor(chain: Request) {
    this.#chain = chain;
  }

  readonly request: Request = async (call) => {
    if (call.method !== "eth_sendRawTransaction") return this.#chain(call);
    const sent = fieldsOf((call.params as [Hex])[0]);
    const used = Number(
      await this.#chain({ method: "eth_getTransactionCount", params: [to, "latest"] }),
    );
    for (const nonce of this.#pending.keys()) if (nonce < used) this.#pending.delete(nonce);
    const refuse = (message: string) =>
      new RpcError(new Error(message), { code: -32_000, shortMessage: message });
    for (const { type } of this.#pending.values())
      if (type !== sent.type) throw refuse(this.conflict);
    const before = this.#pending.get(sent.nonce);
    if (before?.hash === sent.hash) throw refuse("already known");
    const percent = sent.type === "blobs" ? 200n : 110n;
    if (before?.fees.some((fee, i) => (sent.fees[i] ?? 0n) * 100n < fee * percent)) {
      throw refuse("replacement transaction underpriced");
    }
    try {
      return await this.#chain(call);
    } finally {
      this.#pending.set(sent.nonce, sent);
      this.taken.push(sent);
    }
  };
}

describe("on anvil, which takes cell proofs", () => {
  let anvil: Anvil;
  let chain: Request;
  let pool: StrictPool;
  beforeAll(async () => {
    anvil = await startAnvil();
    const client = createPublicClient({ transport: http(anvil.url) });
    chain = ((call: Call) => client.request(call as never)) as Request;
  });
  afterAll(() => anvil.close());
  let snapshot: unknown;
  beforeEach(async () => {
    snapshot = await chain({ method: "evm_snapshot" });
    pool = new StrictPool(chain);
  });
  afterEach(async () => {
    await automine(true);
    await chain({ method: "anvil_dropAllTransactions" });
    await chain({ method: "evm_revert", params: [snapshot] });
  });

  const automine = (on: boolean) => chain({ method: "evm_setAutomine", params: [on] });
  const mine = () => chain({ method: "evm_mine" });
  const count = async () =>
    Number(await chain({ method: "eth_getTransactionCount", params: [to, "latest"] }));
  const takenIs = (number: number) =>
    expect.poll(() => pool.taken.length, { interval: 5 }).toBe(number);

  test("blobs of any content are mined, with blob gas for each", async () => {
    const kzg = new KzgThread();
    try {
      const blobs = [1, 2].map((seed) => new Uint8Array(BLOB_BYTES).fill(seed));
      const commitments = await Promise.all(blobs.map((blob) => kzg.commitment(blob)));
      const call = async () => ({
        ...(await plain()),
        blobs: new BlobSidecar(blobs, commitments, kzg),
      });
      const receipt = await senderOver(pool.request).send(call, {}, "blobs");
      expect(receipt).toMatchObject({ status: "success", blobGasUsed: 2n * BigInt(BLOB_BYTES) });
      expect(pool.taken.map(({ type }) => type)).toEqual(["blobs"]);
    } finally {
      await kzg.close();
    }
  });

  test("a late transaction is replaced at the double of each fee, up to the caps, and counts once", async () => {
    await automine(false);
    const sender = senderOver(pool.request, { replaceAfterMs: 50, maxFeePerBlobGas: 20n });
    const hashes: Hex[] = [];
    await expect(
      sender.send(withBlobs, { onSent: (hash) => void hashes.push(hash) }, "blobs"),
    ).rejects.toThrow(/20 wei for blob gas/);
    const blobFees = pool.taken.map(({ fees }) => fees[2]);
    expect(blobFees).toEqual([2n, 5n, 11n]);
    expect(new Set(pool.taken.map(({ nonce }) => nonce)).size).toBe(1);
    expect(hashes).toHaveLength(3);
    // Another process without the cap replaces what this one gave up.
    const next = senderOver(pool.request, { replaceAfterMs: 50 }).send(withBlobs, {}, "blobs");
    await expect.poll(() => pool.taken.length, { interval: 5 }).toBeGreaterThan(3);
    await mine();
    expect((await next).status).toBe("success");
    expect(await count()).toBe(1);
  });

  test("transactions of both kinds take turns, and none is refused", async () => {
    await automine(false);
    const sender = senderOver(pool.request);
    const sent = [
      sender.send(withBlobs, {}, "blobs"),
      sender.send(withBlobs, {}, "blobs"),
      sender.send(plain),
      sender.send(plain),
      sender.send(withBlobs, {}, "blobs"),
    ];
    const all = Promise.all(sent);
    neverMined(all);
    for (const taken of [2, 4, 5]) {
      await takenIs(taken);
      await mine();
    }
    expect((await all).map(({ status }) => status)).toEqual(Array(5).fill("success"));
    expect(pool.taken.map(({ type, nonce }) => `${nonce} ${type}`)).toEqual([
      "0 blobs",
      "1 blobs",
      "2 plain",
      "3 plain",
      "4 blobs",
    ]);
  });

  test.each([
    ["blobs", withBlobs, plain, "address already reserved"],
    ["plain", plain, withBlobs, "address already reserved"],
    ["blobs", withBlobs, plain, "no words that are known"],
    ["plain", plain, withBlobs, "no words that are known"],
  ] as const)(
    "a late transaction of a dead process is used up by its own kind: $0, in the node's words: $3",
    async (kind, left, next, words) => {
      pool.conflict = words;
      const other = kind === "blobs" ? "plain" : "blobs";
      await automine(false);
      const dead = new AbortController();
      neverMined(senderOver(pool.request).send(left, { signal: dead.signal }, kind));
      await takenIs(1);
      dead.abort();
      const receipt = senderOver(pool.request, { replaceAfterMs: 100 }).send(next, {}, other);
      await expect.poll(() => pool.taken.length, { interval: 5 }).toBeGreaterThan(1);
      await mine();
      await expect.poll(() => pool.taken.at(-1)?.type, { interval: 5 }).toBe(other);
      await mine();
      expect((await receipt).status).toBe("success");
      // Each may have been raised some times.
      const taken = pool.taken.map(({ type, nonce }) => `${nonce} ${type}`);
      expect(taken.filter((each, i) => each !== taken[i - 1])).toEqual([`0 ${kind}`, `1 ${other}`]);
    },
  );

  test("the nonces that a dead process has under way with blobs can be used up", async () => {
    await automine(false);
    const dead = new AbortController();
    const gone = senderOver(pool.request);
    for (let i = 0; i < 2; i++) neverMined(gone.send(withBlobs, { signal: dead.signal }, "blobs"));
    await takenIs(2);
    dead.abort();
    const usedUp = senderOver(pool.request, { replaceAfterMs: 100 }).useUpNonces({});
    let over = false;
    const done = usedUp.finally(() => {
      over = true;
    });
    while (!over) {
      await mine();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect((await done).status).toBe("success");
    expect(await count()).toBeGreaterThanOrEqual(8);
  });
});

describe("on hardhat's chain, which takes the older wrapper only", () => {
  test("the wrapper is found out once, and kept", async () => {
    const connection = await network.create({ network: "local" });
    try {
      let offers = 0;
      const request: Request = (call) => {
        if (call.method === "eth_sendRawTransaction") offers++;
        return connection.provider.request(call as never);
      };
      const sender = senderOver(request);
      const receipts = [
        await sender.send(withBlobs, {}, "blobs"),
        await sender.send(withBlobs, {}, "blobs"),
      ];
      expect(receipts.map(({ status }) => status)).toEqual(["success", "success"]);
      expect(offers).toBe(3);
      const block = await connection.provider.request({
        method: "eth_getBlockByNumber",
        params: ["latest", false],
      });
      expect((block as { blobGasUsed: Hex }).blobGasUsed).toBe(toHex(BLOB_BYTES));
    } finally {
      await connection.close();
    }
  });
});
