import type { WaitOptions } from "./abort.ts";
import { batchesOf } from "./batches/batches.ts";
import { type Claims, claimsOf } from "./claims/claims.ts";
import { type Deposits, depositsOf } from "./deposits/deposits.ts";
import type { MintmarkError } from "./errors.ts";
import { type Events, eventsOf } from "./events/event-log.ts";
import { EngineContext } from "./ledger/context.ts";
import { Cursors } from "./ledger/cursor.ts";
import { EventHub } from "./ledger/event-hub.ts";
import type { Actor, Ledger } from "./ledger/ledger.ts";
import { type EngineOptions, readLimits } from "./ledger/options.ts";
import { Replica } from "./lifecycle/replica.ts";
import { canonicalSettlement, openLedger } from "./lifecycle/start.ts";
import type { MintResult } from "./mint/mint-results.ts";
import { type MintOptions, type MintRequestOr, type Mints, mint, mintsOf } from "./mint/mints.ts";
import { ENVIRONMENTS, type Environment, type Limits, type Principal, type Uuid } from "./model.ts";
import { operatorOf, type SettlementPort } from "./operator.ts";
import { proofsOf } from "./progress/exit-proofs.ts";
import type { StoreOperation } from "./store/ports.ts";
import { type Keys, keysOf, ownPrincipal, type Right } from "./tenants/api-keys.ts";
import { type Applications, applicationsOf } from "./tenants/applications.ts";
import { type Assets, assetsOf } from "./tenants/assets.ts";
import { type Metadata, metadataOf } from "./tenants/metadata.ts";
import { type People, peopleOf } from "./tenants/people.ts";
import { actorOf, type SignIn } from "./tenants/sign-ins.ts";
import { type Users, usersOf } from "./tenants/users.ts";
import { type Transfers, transfersOf } from "./transfers/transfers.ts";
import { oneOf } from "./validate.ts";
import { type Vaults, vaultsOf } from "./vaults/holdings.ts";
import { type Transactions, transactionsOf } from "./vaults/transactions.ts";
import { type Webhooks, webhooksOf } from "./webhooks/webhooks.ts";
import { type Withdrawals, withdrawalsOf } from "./withdrawals/withdrawals.ts";

/**
 * Opens the engine over a store. With `createIfMissing` it creates the store where there is none.
 *
 * @throws MintmarkError `store_missing`, `store_locked`, `store_corrupt`, `store_mismatch`,
 *   `store_failed`, or `validation_failed` for bad options
 * @example
 * await using engine = await openEngine({ store: "./data", createIfMissing: true, environment:
 * "sandbox", settlement });
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  return (await openAs("leader", options)).engine;
}

/** The engine of a server in a cluster. */
export interface ClusterEngine {
  readonly engine: Engine;
  /**
   * Refuses the waiting changes and all later ones while the journal is away; null takes changes
   * again.
   */
  refuse(reason: MintmarkError | null): void;
  /**
   * Applies a leader's write that the store already has. Returns false when the engine must be
   * opened anew.
   */
  apply(operations: readonly StoreOperation[]): boolean;
}

/**
 * Opens a leader, or a standby, which refuses every change with `not_leader`. See {@link
 * openEngine} for the errors.
 */
export async function openAs(
  role: "leader" | "standby",
  options: EngineOptions,
): Promise<ClusterEngine> {
  const limits = readLimits(options.limits);
  oneOf(ENVIRONMENTS)("environment", options.environment);
  const settlement = canonicalSettlement(options.settlement);
  const events = new EventHub();
  const { ledger, secret } = await openLedger(
    { ...options, settlement },
    limits,
    events.emit,
    role,
  );
  const context = new EngineContext(ledger, new Cursors(secret));
  const engine = engineOf(context, { events, secret, close: closing(ledger, events) });
  const replica = new Replica(ledger);
  return {
    engine,
    refuse: (reason) => ledger.writer.refuse(reason),
    apply: (operations) => replica.apply(operations),
  };
}

/** The engine whose changes the context's actor makes. */
function engineOf(
  context: EngineContext,
  parts: {
    readonly events: EventHub;
    readonly secret: Uint8Array;
    readonly close: () => Promise<void>;
  },
): Engine {
  const { ledger } = context;
  const { settlement, environment, limits } = ledger.services;
  const { events, secret, close } = parts;
  const webhooks = webhooksOf(context, secret);
  const engine: Engine = {
    settlement,
    environment,
    limits,
    mint: mint.bind(null, context),
    as: (applicationId, wait) => ownPrincipal(context, applicationId, wait),
    mints: mintsOf(context),
    transactions: transactionsOf(context),
    applications: applicationsOf(context),
    keys: keysOf(context),
    people: peopleOf(context),
    users: usersOf(context),
    assets: assetsOf(context),
    metadata: metadataOf(context),
    claims: claimsOf(context),
    vaults: vaultsOf(context),
    transfers: transfersOf(context),
    withdrawals: withdrawalsOf(context),
    deposits: depositsOf(context),
    batches: batchesOf(context),
    proofs: proofsOf(context),
    events: eventsOf(context, events),
    webhooks,
    operator: operatorOf(context, webhooks),
    ended: ledger.writer.ended,
    close,
    [Symbol.asyncDispose]: close,
    actingAs: async (signIn, right, applicationId) =>
      engineOf(context.actingAs(actorOf(context.ledger, signIn, right, applicationId)), parts),
    actingAsOperator: () => engineOf(context.actingAs(OPERATOR), parts),
  };
  CONTEXTS.set(engine, context);
  return engine;
}

const CONTEXTS = new WeakMap<Engine, EngineContext>();

/** The context behind an engine, for rooms that build on engines. Throws for any other object. */
export function contextOf(engine: Engine): EngineContext {
  const context = CONTEXTS.get(engine);
  if (context === undefined) throw new Error("this engine was not opened by openEngine");
  return context;
}

/** The operator's command line, which has every right. */
const OPERATOR: Actor = { personIndex: null, applicationIndex: null, require: () => {} };

/**
 * Finishes the queue, publishes its events, and closes the store. Later calls share the first one's
 * result.
 */
function closing(ledger: Ledger, events: EventHub): () => Promise<void> {
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    await ledger.writer.close();
    await events.told();
    const { sealingThread, signers } = ledger.services;
    for (const part of [sealingThread, signers, ledger.batches.blobs, ledger.store])
      await part.close();
  };
  return () => {
    closed ??= close();
    return closed;
  };
}

/**
 * The minting engine on one store. A change resolves when it is durable; reads see only durable
 * data. Every call rejects with `MintmarkError`: after a failed write with `store_failed`, after
 * `close` with `engine_closed`.
 */
export interface Engine extends SettlementPort, AsyncDisposable {
  readonly environment: Environment;
  readonly limits: Limits;
  /**
   * Mints everything in the request or nothing. An entry of ERC-20 has no `tokenId`. Every request
   * is checked as the HTTP API checks its body, so that untrusted input can be any value.
   *
   * Rejects with every bad entry in `issues`, in request order. The error has the code of the first
   * one.
   */
  mint<R>(
    principal: Principal,
    request: MintRequestOr<R>,
    options?: MintOptions,
  ): Promise<MintResult>;
  /**
   * The principal of the program that runs the engine, with every scope and without an API key.
   * Rejects with `application_not_found`, `application_suspended`.
   */
  as(applicationId: Uuid, wait?: WaitOptions): Promise<Principal>;
  readonly mints: Mints;
  readonly transactions: Transactions;
  readonly applications: Applications;
  readonly keys: Keys;
  readonly people: People;
  readonly users: Users;
  readonly assets: Assets;
  readonly metadata: Metadata;
  readonly claims: Claims;
  readonly vaults: Vaults;
  readonly transfers: Transfers;
  readonly withdrawals: Withdrawals;
  readonly deposits: Deposits;
  readonly events: Events;
  readonly webhooks: Webhooks;
  /**
   * This engine in the name of a person. The right is checked now, and again in the writer before
   * each change. Each change is written with the person's name to the audit log of `applicationId`,
   * by default the person's own. Rejects with `role_missing`, `credentials_invalid`,
   * `application_not_found`, `application_suspended`.
   */
  actingAs(signIn: SignIn, right: Right, applicationId?: Uuid): Promise<Engine>;
  /**
   * This engine in the name of the operator's command line: its changes are in the operator's audit
   * log.
   */
  actingAsOperator(): Engine;
  /** Finishes the queue, then closes the store. Idempotent. */
  close(): Promise<void>;
  /** Aborted when the engine ends: by `close`, or with the error of a failed store. */
  readonly ended: AbortSignal;
}
