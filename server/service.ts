import type { KitChain } from "../core/guards/exit/index.ts";
import type { Drops, Engine, L1Reader, WebhookDispatcher } from "../core/index.ts";
import type { Reach } from "../core/internal.ts";
import type { AccessTokens } from "./http/access/access-token.ts";
import type { HeldBytes } from "./http/access/account.ts";
import type { OwnerRelay } from "./http/access/owner-relay.ts";
import type { Quota } from "./http/access/rate-limit.ts";
import type { OwnerSignIn, PersonSignIn } from "./http/access/sign-in.ts";
import type { KeptAnswers } from "./http/idempotency.ts";
import type { Turns } from "./http/turns.ts";
import type { OutgoingBatches } from "./http/wire/batch-data.ts";
import type { BufferPool } from "./http/wire/buffer-pool.ts";
import type { StreamSlots } from "./http/wire/event-stream.ts";
import type { CommitGas, GasChain } from "./jobs/operations/commit-gas.ts";
import type { NewTokens, TokenChain } from "./jobs/operations/new-tokens.ts";
import type { Readiness } from "./jobs/operations/readiness.ts";

/** The parts of a chain that the routes use. */
export type ServerChain = KitChain & GasChain & Partial<TokenChain> & Pick<L1Reader, "verifySignature">;

/** The context of every route. */
export interface Service {
  readonly engine: Engine;
  readonly version: string;
  readonly tokens: AccessTokens;
  readonly owners: OwnerSignIn;
  readonly people: PersonSignIn;
  /** What the operator pays for signed-in owners. */
  readonly ownerRelay: OwnerRelay;
  /**
   * The server's address for browsers, such as `https://mint.example`. Without it owners sign in over loopback only.
   */
  readonly origin?: URL | undefined;
  /** Connections to the settlement chain and the mirrors' chains, by chain id. They verify the kits of their vaults. */
  readonly chains: ReadonlyMap<bigint, () => Promise<ServerChain>>;
  /** Tokens that admins of applications create. */
  readonly newTokens: NewTokens;
  /** The Ethereum node that the explorer offers to visitors. */
  readonly explorerRpc?: string | undefined;
  readonly rateLimit: Quota;
  readonly bodyBytes: number;
  readonly requestTimeoutSeconds: number;
  readonly readiness: Readiness;
  readonly commitGas: CommitGas;
  /** The OpenAPI document of this server. */
  document(): unknown;
  /** The addresses that webhooks may reach. */
  readonly webhookReach: Reach;
  readonly webhooks: Pick<WebhookDispatcher, "attempts" | "test" | "redeliver">;
  readonly streams: StreamSlots;
  readonly outgoingBatches: OutgoingBatches;
  /** For large responses. */
  readonly buffers: BufferPool;
  /** Responses to POSTs with an Idempotency-Key. */
  readonly keptAnswers: KeptAnswers;
  /** null for a server that takes no drops. */
  readonly drops: Drops | null;
  /** For long work. */
  readonly turns: Turns;
  /** Memory of bodies and unread responses. */
  readonly memory: HeldBytes;
  /** Milliseconds between two heartbeats on a stream of events. */
  readonly heartbeatMs: number;
  /** Aborted when the server begins to shut down. */
  readonly stopping: AbortSignal;
  /** Whether the server has begun to shut down. */
  draining(): boolean;
}
