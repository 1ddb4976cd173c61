import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { type Hex, hexToNumber, http, TimeoutError, toHex } from "viem";
import type { Request } from "./settlement/fixture.ts";

type Words = "known" | "underpriced" | "nonceUsed" | "broke" | "otherKind" | "pruned";
type Refusal = readonly [code: number, message: string];

/**
 * Refusals of a raw transaction as clients word them, and those of a call at a block whose state is
 * gone.
 */
const CLIENTS = {
  geth: {
    known: [-32000, "already known"],
    underpriced: [-32000, "replacement transaction underpriced"],
    nonceUsed: [-32000, "nonce too low: next nonce 5, tx nonce 4"],
    broke: [-32000, "insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1"],
    otherKind: [-32000, "address already reserved"],
    pruned: [-32000, `missing trie node ${"5e".repeat(32)} (path ) state 0x5e is not available`],
  },
  erigon: {
    known: [-32000, "ALREADY_EXISTS: already known"],
    underpriced: [-32000, "INTERNAL_ERROR: could not replace existing tx"],
    nonceUsed: [-32000, "INTERNAL_ERROR: nonce too low"],
    broke: [-32000, "INTERNAL_ERROR: insufficient funds"],
    otherKind: [-32000, "INTERNAL_ERROR: can't replace blob-txn with a non-blob-txn"],
    pruned: [-32000, "old data not available due to pruning: requested block 1"],
  },
  nethermind: {
    known: [-32010, "AlreadyKnown"],
    underpriced: [-32010, "ReplacementNotAllowed"],
    nonceUsed: [-32010, "OldNonce, Current nonce: 5, nonce of rejected tx: 4"],
    broke: [-32010, "InsufficientFunds, Account balance: 1, cumulative cost: 2"],
    otherKind: [-32010, "PendingTxsOfConflictingType"],
    pruned: [-32002, "No state available for block 1 (0x5e)"],
  },
  /** Nethermind with a full pool. */
  crowded: {
    known: [-32010, "AlreadyKnown"],
    underpriced: [-32010, "FeeTooLowToCompete, Affordable gas price: 7"],
    nonceUsed: [-32010, "OldNonce"],
    broke: [-32010, "InsufficientFunds"],
    otherKind: [-32010, "PendingTxsOfConflictingType"],
    pruned: [-32002, "No state available for block 1 (0x5e)"],
  },
  /** A provider that hides its nodes' words. */
  hosted: {
    known: [-32603, "Internal error"],
    underpriced: [-32603, "Internal error"],
    nonceUsed: [-32603, "Internal error"],
    broke: [-32603, "Internal error"],
    otherKind: [-32603, "Internal error"],
    pruned: [-32603, "Internal error"],
  },
  /** A client of tomorrow, whose words nobody knows. */
  unheard: {
    known: [-38001, "rejected"],
    underpriced: [-38001, "rejected"],
    nonceUsed: [-38001, "rejected"],
    broke: [-38001, "rejected"],
    otherKind: [-38001, "rejected"],
    pruned: [-38002, "rejected"],
  },
} as const satisfies Record<string, Record<Words, Refusal>>;

/** How the local chains word the same refusals. */
const LOCAL_WORDS: readonly (readonly [Words, RegExp])[] = [
  ["known", /known transaction|already (?:known|imported)/i],
  ["underpriced", /underpriced/i],
  ["nonceUsed", /nonce too low/i],
  ["broke", /enough funds|insufficient funds/i],
  ["otherKind", /already reserved/i],
];

/** How a node answers a question for logs of too many blocks. */
const TOO_WIDE = {
  gateway: () => html(504, "Gateway Time-out"),
  silence: () => null,
  infura: () => refused([-32005, "query returned more than 10000 results"]),
  plan: () => refused([-32600, "eth_getLogs is limited to a 10 block range on this plan"]),
  crash: () => html(500, "Internal Server Error"),
  badGateway: () => html(502, "Bad Gateway"),
  overload: () => html(503, "Service Unavailable"),
  cloudflare: () => html(520, "Web server is returning an unknown error"),
  handshake: () => html(522, "Connection timed out"),
  nothing: () => ({ status: 200, page: "" }),
  half: () => ({ status: 200, page: '{"jsonrpc":"2.0","id":1,"result":[{"addr' }),
  cut: () => {
    throw new Error("the connection is cut");
  },
} as const;

/** Faults of a node. Without any of these it answers as the chain does. */
export interface NodeFaults {
  /** Cuts every connection. */
  readonly down?: boolean;
  /** Takes every request and never answers. */
  readonly silent?: boolean;
  /** Answers every request with this status and a page of HTML, as a gateway does. */
  readonly status?: number;
  /** Blocks below the newest whose state is kept; calls at older ones are refused. */
  readonly pruned?: number;
  /** Whose words its refusals have; default the local chain's own. */
  readonly client?: keyof typeof CLIENTS;
  /** Most blocks of a question for logs, and how it answers a wider one. */
  readonly logs?: { readonly blocks: number; readonly wider: keyof typeof TOO_WIDE };
  /** Blocks that it is behind: everything above is unknown to it. */
  readonly lag?: number;
  /** Blocks below the newest that is final. */
  readonly finalized?: number;
  /** Takes raw transactions and cuts the connection. */
  readonly lostAnswers?: boolean;
  readonly nullReceipts?: boolean;
  readonly emptyLogs?: boolean;
  /** Does not know the tags `finalized` and `safe`. */
  readonly noFinalized?: boolean;
  /** Lacks the methods that tell fees. */
  readonly noFees?: boolean;
  /** Another chain, for which it answers. */
  readonly otherChain?: { readonly request: Request };
}

/** A fault of one request in a number of them. */
export type NodeFault = "refused" | "lostAnswer" | "sentTwice" | "dropped" | "down";

type Call = { readonly method: string; readonly params?: readonly unknown[] };
type Reply =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }
  | { readonly status: number; readonly page: string };

const FEE_METHODS = ["eth_blobBaseFee", "eth_maxPriorityFeePerGas", "eth_feeHistory"];
/** Where methods that read the state have their block. */
const BLOCK_AT: Readonly<Record<string, number>> = {
  eth_call: 1,
  eth_estimateGas: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
  eth_getProof: 2,
};

/**
 * A node with faults that a test switches on and off, in front of a local chain. Processes reach it
 * at {@link listen}'s address. Code in this process uses {@link request}, which throws what viem
 * makes of the same answers over HTTP.
 *
 * @example
 * const node = new FaultyNode(chain);
 * node.faults = { pruned: 128, client: "erigon" };
 */
export class FaultyNode {
  faults: NodeFaults = {};
  /** How often each method was asked. */
  readonly asked = new Map<string, number>();
  /** The raw transactions that it was given, in order. */
  readonly offered: Hex[] = [];
  readonly request: Request;
  readonly #chain: { readonly request: Request };
  readonly #server = createServer();
  #plan: { readonly fault: NodeFault; readonly every: number } | null = null;
  #calls = 0;
  #struck = 0;

  /** @param timeout - milliseconds after which {@link request} fails that is not answered */
  constructor(chain: { readonly request: Request }, timeout = 1_000) {
    this.#chain = chain;
    const fetchFn = async (_: unknown, init: RequestInit = {}) => {
      const reply = await this.#replyTo(`${init.body}`);
      if (reply !== null) return new Response(reply.body, reply);
      // Viem fails so when its time for an answer is over.
      await pause(timeout);
      throw new TimeoutError({ body: JSON.parse(`${init.body}`), url: "http://node" });
    };
    // An answer on its way is awaited, however slow the machine is.
    const options = { retryCount: 0, fetchFn: fetchFn as never, timeout: 300_000 };
    this.request = http("http://node", options)({}).request as Request;
    this.#server.on("request", async (request, response) => {
      const reply = await this.#replyTo(await text(request)).catch(() => undefined);
      if (reply === undefined) request.socket.destroy();
      else if (reply !== null) response.writeHead(reply.status, reply.headers).end(reply.body);
    });
  }

  /** Its address, for other processes. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** How many requests have met a planned fault. */
  get struck(): number {
    return this.#struck;
  }

  /** From now on every n-th request that the fault applies to meets it. */
  plan(fault: NodeFault, every: number): void {
    this.#plan = { fault, every };
    this.#calls = 0;
  }

  heal(): void {
    this.#plan = null;
    this.faults = {};
  }

  /** Null for no answer; rejects to cut the connection. */
  async #replyTo(body: string) {
    const { id, method, params } = JSON.parse(body) as Call & { readonly id: number };
    this.asked.set(method, (this.asked.get(method) ?? 0) + 1);
    if (method === "eth_sendRawTransaction") this.offered.push(params?.[0] as Hex);
    const reply = await this.#planned({ method, params });
    if (reply === null) return null;
    if ("page" in reply)
      return { status: reply.status, headers: { "content-type": "text/html" }, body: reply.page };
    return {
      status: 200,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id, ...reply }),
    };
  }

  async #planned(call: Call): Promise<Reply | null> {
    const plan = this.#plan;
    if (plan === null || !this.#strikes(plan.fault, plan.every, call.method))
      return this.#answer(call);
    this.#struck++;
    switch (plan.fault) {
      case "down":
        throw new Error("the connection is cut");
      case "lostAnswer":
        await this.#answer(call);
        return refused([-32005, "rate limited"]);
      case "sentTwice":
        await this.#answer(call);
        return this.#answer(call);
      case "dropped":
        // The node said yes and forgot: the sender has computed the hash and ignores this one.
        return { result: `0x${"00".repeat(32)}` };
      default:
        return refused([-32005, "rate limited"]);
    }
  }

  #strikes(fault: NodeFault, every: number, method: string): boolean {
    if (fault === "down") return true;
    if ((fault === "sentTwice" || fault === "dropped") && method !== "eth_sendRawTransaction")
      return false;
    return ++this.#calls % every === 0;
  }

  async #answer(call: Call): Promise<Reply | null> {
    const { method, params = [] } = call;
    const { lostAnswers, down, silent, status, client, logs, noFees, nullReceipts, emptyLogs } =
      this.faults;
    if (down) throw new Error("the connection is cut");
    if (silent) return null;
    if (status !== undefined) return html(status, "Try again later");
    if (noFees && FEE_METHODS.includes(method))
      return refused([-32601, `the method ${method} does not exist/is not available`]);
    if (nullReceipts && method === "eth_getTransactionReceipt") return { result: null };
    if (method === "eth_getLogs") {
      if (emptyLogs) return { result: [] };
      const [{ fromBlock, toBlock }] = params as [{ fromBlock: Hex; toBlock: Hex }];
      const blocks = hexOr(toBlock, 0) - hexOr(fromBlock, 0) + 1;
      if (logs !== undefined && blocks > logs.blocks) return TOO_WIDE[logs.wider]();
    }
    const reply = await this.#inTime(call);
    if (lostAnswers && method === "eth_sendRawTransaction" && "result" in reply)
      throw new Error("the connection is cut");
    if (!("error" in reply) || client === undefined || method !== "eth_sendRawTransaction")
      return reply;
    const { message } = reply.error;
    const kind = LOCAL_WORDS.find(([, words]) => words.test(message))?.[0];
    return kind === undefined ? reply : refused(CLIENTS[client][kind]);
  }

  /** The chain's answer, as far as this node has its blocks and their state. */
  async #inTime(call: Call): Promise<Reply> {
    const { lag, pruned, finalized, noFinalized, client = "geth" } = this.faults;
    if ([lag, pruned, finalized, noFinalized].every((fault) => fault === undefined))
      return this.#ask(call);
    const newest = hexToNumber(await this.#result<Hex>("eth_blockNumber"));
    const head = Math.max(0, newest - (lag ?? 0));
    const { method, params = [] } = call;
    if (method === "eth_blockNumber") return { result: toHex(head) };
    if (method === "eth_getBlockByNumber") {
      const tag = params[0] as string;
      const isFinality = tag === "finalized" || tag === "safe";
      if (isFinality && noFinalized) return refused([-39001, "Unknown block"]);
      const at =
        isFinality && finalized !== undefined
          ? toHex(Math.max(0, newest - finalized))
          : this.#blockAt(tag, head);
      return hexOr(at, head) > head
        ? { result: null }
        : this.#ask({ method, params: [at, params[1]] });
    }
    const place = BLOCK_AT[method];
    if (place !== undefined) {
      const at = this.#blockAt(params[place], head);
      const number = hexOr(at, head);
      if (number > head) return refused([-32000, "header not found"]);
      if (pruned !== undefined && number < head - pruned) return refused(CLIENTS[client].pruned);
      return this.#ask({
        method,
        params: [...params.slice(0, place), at, ...params.slice(place + 1)],
      });
    }
    if (method === "eth_getLogs") {
      const [filter] = params as [{ fromBlock: Hex; toBlock: Hex }];
      if (hexOr(filter.fromBlock, head) > head) return { result: [] };
      const toBlock = toHex(Math.min(hexOr(filter.toBlock, head), head));
      return this.#ask({ method, params: [{ ...filter, toBlock }] });
    }
    const reply = await this.#ask(call);
    // Receipts, transactions and blocks by hash.
    const { blockNumber, number } = ("result" in reply && Object(reply.result)) || {};
    return hexOr(blockNumber ?? number, 0) > head ? { result: null } : reply;
  }

  /** The chain's block for what this node calls by a tag; its pool is that of every node. */
  #blockAt(block: unknown = "latest", head: number): unknown {
    return block === "latest" && this.faults.lag !== undefined ? toHex(head) : block;
  }

  async #ask(call: Call): Promise<Reply> {
    const { request } = this.faults.otherChain ?? this.#chain;
    return request(call as never).then(
      (result: unknown) => ({ result }),
      // viem's errors have the chain's own words in `details`.
      ({ code, message, details, data }) => ({
        error: { code, message: details ?? message, data },
      }),
    );
  }

  async #result<T>(method: string): Promise<T> {
    const reply = await this.#ask({ method });
    if ("result" in reply) return reply.result as T;
    throw new Error(`the chain behind the node refused ${method}`);
  }
}

function hexOr(block: unknown, otherwise: number): number {
  return typeof block === "string" && block.startsWith("0x")
    ? hexToNumber(block as Hex)
    : otherwise;
}

function refused([code, message]: Refusal): Reply {
  return { error: { code, message } };
}

function html(status: number, title: string): Reply {
  return { status, page: `<html><head><title>${status} ${title}</title></head></html>` };
}
