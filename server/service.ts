import type { KitChain } from "../core/exit/index.ts";
import type { Engine, L1Reader } from "../core/index.ts";
import type { AccessTokens } from "./access/access-token.ts";
import type { HeldBytes } from "./access/held-bytes.ts";
import type { RateLimits } from "./access/rate-limit.ts";
import type { OwnerSignIn } from "./access/sign-in.ts";
import type { Drops } from "./drops/jobs.ts";
import type { KeptAnswers } from "./http/idempotency.ts";
import type { Turns } from "./http/turns.ts";
import type { Readiness } from "./operations/readiness.ts";
import type { Reach } from "./webhooks/address-policy.ts";
import type { WebhookDispatcher } from "./webhooks/dispatcher.ts";
import type { OutgoingBatches } from "./wire/batch-data.ts";
import type { BufferPool } from "./wire/buffer-pool.ts";
import type { StreamSlots } from "./wire/event-stream.ts";

/** What the routes ask of a chain. */
export type ServerChain = KitChain & Pick<L1Reader, "verifySignature">;

/** What every route may use. */
export interface Service {
  readonly engine: Engine;
  readonly version: string;
  readonly tokens: AccessTokens;
  readonly owners: OwnerSignIn;
  /** Where browsers reach this server, such as `https://mint.example`; without it owners sign in over the loopback interface only. */
  readonly origin?: URL | undefined;
  /** Reach the settlement chain and the mirrors' chains, by chain id; what the kits of their vaults are checked against. */
  readonly chains: ReadonlyMap<bigint, () => Promise<ServerChain>>;
  /** The Ethereum node that the explorer offers to visitors. */
  readonly explorerRpc?: string | undefined;
  readonly rateLimits: RateLimits;
  readonly bodyBytes: number;
  readonly requestTimeoutSeconds: number;
  readonly readiness: Readiness;
  /** The OpenAPI document of this server. */
  document(): unknown;
  /** Where webhooks may lead. */
  readonly webhookReach: Reach;
  readonly webhooks: Pick<WebhookDispatcher, "attempts" | "test" | "redeliver">;
  readonly streams: StreamSlots;
  readonly outgoingBatches: OutgoingBatches;
  /** For large answers. */
  readonly buffers: BufferPool;
  /** Answers to POSTs with an Idempotency-Key. */
  readonly keptAnswers: KeptAnswers;
  readonly drops: Drops;
  /** For long work. */
  readonly turns: Turns;
  /** Bodies and unread answers. */
  readonly memory: HeldBytes;
  /** Between two signs of life on a stream of events. */
  readonly heartbeatMs: number;
  /** Aborted when the server begins to shut down. */
  readonly stopping: AbortSignal;
  /** Whether the server has begun to shut down. */
  draining(): boolean;
}
