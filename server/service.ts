import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { KitChain } from "../core/exit/index.ts";
import {
  type Address,
  type DispatcherOptions,
  Drops,
  type Engine,
  type Hash,
  type L1Reader,
  WebhookDispatcher,
} from "../core/index.ts";
import { type ContractCreation, type Pace, pause } from "../core/internal.ts";
import { ordersOf } from "../core/orders/index.ts";
import packageJson from "../package.json" with { type: "json" };
import { AccessTokens, type IdentityProvider } from "./http/access/access-token.ts";
import { DEFAULT_FILLS_PER_DAY, FillBudget } from "./http/access/fill-budget.ts";
import { DEFAULT_OWNER_RELAY_VAULTS, OwnerRelay } from "./http/access/owner-relay.ts";
import { HeldBytes } from "./http/access/rate-account.ts";
import {
  DEFAULT_RATE_LIMITS,
  type RateLimits,
  StreamSlots,
  TokenBuckets,
} from "./http/access/rate-limit.ts";
import { OwnerChallenges, TO_CONSOLE, WalletChallenges } from "./http/access/sign-in.ts";
import type { Code, handleError } from "./http/errors.ts";
import { EventFeeds } from "./http/event-feeds.ts";
import { KeptAnswers } from "./http/kept-answers.ts";
import type { LogOptions } from "./http/log.ts";
import { EventLoopTurns, whenSpare } from "./http/turns.ts";
import { outgoingBatches } from "./http/wire/batch-data.ts";
import { BufferPool } from "./http/wire/buffers.ts";
import { type GasChain, gasOf } from "./jobs/chain.ts";
import { engineChecks, type ReadinessCheck, recentFindings } from "./jobs/readiness.ts";

export interface TokenChain
  extends Pick<L1Reader, "registration" | "finalizedBlockNumber" | "isTransferable" | "token"> {
  creation(txHash: Hash): Promise<ContractCreation | null>;
  /** Whether the settlement contract mints it; null when the token does not say. */
  isMinter(token: Address): Promise<boolean | null>;
}

export type ServerChain = KitChain &
  GasChain &
  Partial<TokenChain> &
  Pick<L1Reader, "verifySignature">;

/** One response, for metrics. */
export interface Answer {
  readonly method: string;
  /** The route's pattern; `none` without one, so no caller can invent names. */
  readonly route: string;
  readonly status: number;
  /** Seconds from the request's head to the response's end. */
  readonly seconds: number;
  /** The code of a problem document; null for a success. */
  readonly code: Code | null;
}

/** The orders as the server has found them last, for metrics. */
export interface SweptOrders {
  readonly open: number;
  /** The largest part of its day's fills that an application has used: 0 to 1. */
  readonly fillsUsed: number;
}

/** Options of `buildServer`. */
export interface ServerOptions {
  /** The server does not close it. */
  readonly engine: Engine;
  /** Default: no log. */
  readonly log?: LogOptions;
  readonly rateLimits?: Partial<RateLimits>;
  /** Counts the bytes of bodies and unread responses. Default: at most 512 MiB in all. */
  readonly memory?: HeldBytes;
  /**
   * The secret of bearer tokens: at least 32 bytes, shared by servers behind one address. Default:
   * random, so the tokens end with the process.
   */
  readonly tokenSecret?: Uint8Array;
  /** Another issuer whose bearer tokens are accepted, besides this server's own. */
  readonly identityProvider?: IdentityProvider;
  /**
   * The server's address for browsers, such as `https://mint.example`. Without it owners sign in
   * over loopback only.
   */
  readonly origin?: URL;
  /**
   * Host names without ports, besides the origin's, `localhost`, addresses and names without a dot.
   * `*` accepts all.
   */
  readonly hosts?: readonly string[];
  /** Address of an Ethereum node that the explorer offers to visitors. */
  readonly explorerRpc?: string;
  /**
   * Vaults a day that each signed-in owner may withdraw at the operator's cost; 0 turns it off.
   * Default 256.
   */
  readonly ownerRelayVaults?: number;
  /** Fills of orders a day that the operator settles for each application. Default 10,000. */
  readonly fillsPerDay?: number;
  /** A working mint request for the documents: the sandbox gives its own users and assets. */
  readonly mintExample?: unknown;
  /**
   * Connections to the settlement chain and the mirrors' chains, by chain id. They verify exit
   * kits, and the settlement chain verifies sign-ins of wallet contracts (ERC-1271). Without a
   * chain neither works.
   */
  readonly chains?: ReadonlyMap<bigint, () => Promise<ServerChain>>;
  /**
   * Whether admins of applications may create tokens from the console; they pay for it. Default
   * false.
   */
  readonly newTokens?: boolean;
  /** Called with each response, for metrics. */
  readonly onAnswer?: (answer: Answer) => void;
  /** Called after each look at all open orders, for metrics. */
  readonly onSwept?: (orders: SweptOrders) => void;
  /** Further checks of `/readyz` besides the engine's, by name, such as the lag behind L1. */
  readonly checks?: () => Readonly<Record<string, ReadinessCheck>>;
  /** Timeout for receiving a whole request, in seconds. Default 30. */
  readonly requestTimeoutSeconds?: number;
  /**
   * Milliseconds after which a connection is closed whose peer neither reads its response nor
   * sends. Default 10,000.
   */
  readonly stalledMs?: number;
  /** Most connections at once, half of them for callers without a key. Default 12,288. */
  readonly mostConnections?: number;
  /** Most open event streams of one key. Default 10. */
  readonly streamsPerKey?: number;
  /** Options of the deliveries to webhooks, which run from listening to closing. */
  readonly webhooks?: DispatcherOptions;
  /** Folder for uploaded drops; it outlives the process. Default: none, and drops are refused. */
  readonly drops?: string;
  /** Hours for which an idempotency key returns its mint. Default 24, the promised minimum. */
  readonly keepIdempotencyHours?: number;
  /** Milliseconds between two heartbeats on a stream of events. Default 15,000. */
  readonly heartbeatMs?: number;
  /** Addresses of the proxies whose X-Forwarded-For is trusted. Default: none. */
  readonly trustedProxies?: readonly string[];
  /**
   * Whether the engine refuses every change, so another server does webhooks and clean-up. Default
   * false.
   */
  readonly onlyReads?: boolean;
  readonly errorHandler?: typeof handleError;
  /** Adds hooks before the first route. */
  readonly extend?: (app: FastifyInstance) => Promise<void>;
  /** Milliseconds for rate limits and readiness; default a monotonic clock. */
  readonly now?: () => number;
}

/**
 * A mint entry with the longest minting blob and generous white space, with its share of a user.
 */
const ENTRY_BYTES = 1024;
const USER_BYTES = 256;
/** Shorter than the idle timeout here and of common proxies. */
const HEARTBEAT_MS = 15_000;
/** The context of every route: the parts of a server, and the OpenAPI document that they make. */
export type Service = Omit<ReturnType<typeof serviceOf>, "meters"> & {
  readonly document: { readonly bytes: Buffer; readonly tag: string };
};

/** The parts of a server. `failed` makes the listener of an error in the background. */
export function serviceOf(
  options: ServerOptions,
  stopping: AbortSignal,
  failed: (what: string) => (error: unknown) => void,
) {
  const {
    engine,
    now = performance.now.bind(performance),
    memory = new HeldBytes(),
    checks = () => ({}),
  } = options;
  const { chains = new Map() as NonNullable<ServerOptions["chains"]> } = options;
  const home = chains.get(engine.settlement.chainId);
  const tokenSecret = options.tokenSecret ?? randomBytes(32);
  const turns = new EventLoopTurns();
  const limits = { ...DEFAULT_RATE_LIMITS, ...options.rateLimits };
  const meters: Meters = {
    key: new TokenBuckets("key", limits.key, now, true),
    failedAuthentication: new TokenBuckets(
      "failed-authentication",
      limits.failedAuthentication,
      now,
    ),
    publicReads: new TokenBuckets("public", limits.publicReads, now),
  };
  // Requests have somebody who waits for them, the rows of drops only for their end.
  const pace = paceOf(new EventLoopTurns(whenSpare()), meters.key);
  const drops = { engine, pace, onError: failed("a drop failed") };
  const verifySignature: ConstructorParameters<typeof WalletChallenges>[2] =
    home && (async (...signed) => (await home()).verifySignature(...signed));
  return {
    engine,
    version: packageJson.version,
    meters,
    tokens: new AccessTokens(engine, tokenSecret, options.identityProvider),
    owners: new OwnerChallenges(engine, tokenSecret, verifySignature),
    people: new WalletChallenges(engine, TO_CONSOLE, verifySignature),
    ownerRelay: new OwnerRelay(options.ownerRelayVaults ?? DEFAULT_OWNER_RELAY_VAULTS, now),
    fills: new FillBudget(options.fillsPerDay ?? DEFAULT_FILLS_PER_DAY, now, (...asked) =>
      ordersOf(engine).fillsSince(...asked),
    ),
    origin: options.origin,
    chains,
    /** The settlement chain, where admins of applications may create tokens. */
    newTokens: options.newTokens ? home : undefined,
    explorerRpc: options.explorerRpc,
    rateLimit: meters.key.quota,
    bodyBytes:
      engine.limits.mintsPerRequest * ENTRY_BYTES + engine.limits.usersPerRequest * USER_BYTES,
    requestTimeoutSeconds: options.requestTimeoutSeconds ?? 30,
    findings: recentFindings(() => ({ ...engineChecks(engine, memory), ...checks() }), now),
    gasOf: gasOf(chains),
    streams: new StreamSlots(options.streamsPerKey ?? 10),
    feeds: new EventFeeds(engine),
    batchData: outgoingBatches(async (...batch) => (await engine.batches.getSealed(...batch)).data),
    buffers: new BufferPool(),
    turns,
    keptAnswers: new KeptAnswers(engine.operator),
    /** null for a server that takes no drops. */
    drops: options.drops === undefined ? null : new Drops({ folder: options.drops, ...drops }),
    memory,
    webhookReach: options.webhooks?.reach ?? "public",
    webhooks: new WebhookDispatcher(engine, {
      onError: failed("webhooks failed"),
      ...options.webhooks,
    }),
    heartbeatMs: options.heartbeatMs ?? HEARTBEAT_MS,
    /** Aborted when the server begins to shut down. */
    stopping,
  };
}

export type Meters = Readonly<Record<keyof RateLimits, TokenBuckets>>;

/** Rows cost their key what a mint request costs. A drop waits where a request would be refused. */
export function paceOf(turns: EventLoopTurns, key: TokenBuckets): Pace {
  return async ({ keyId, applicationId }, tokens, signal) => {
    for (let isPaid = tokens === 0; !isPaid; ) {
      const { granted, retrySeconds } = key.take(keyId, tokens, applicationId);
      isPaid = granted;
      if (!granted) await pause(1_000 * retrySeconds, signal);
    }
    await turns.turn(applicationId);
  };
}
