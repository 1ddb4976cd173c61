import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Engine, MintmarkError } from "../core/index.ts";
import { repeat, Stack } from "../core/internal.ts";
import { ordersOf } from "../core/orders/index.ts";
import {
  Account,
  type Caller,
  KEY_PRICES,
  PUBLIC,
  PUBLIC_PRICES,
} from "./http/access/rate-account.ts";
import { addressGroup } from "./http/address.ts";
import { RECOGNIZED } from "./http/connections.ts";
import { ServerError } from "./http/errors.ts";
import { tagOf } from "./http/etag.ts";
import { fastifyApp } from "./http/fastify-app.ts";
import { idempotencyKeyOf } from "./http/idempotency-key.ts";
import { endedEarly } from "./http/turns.ts";
import { acceptForm, acceptJson, acceptStreams, FORM } from "./http/wire/body.ts";
import { mountPage } from "./pages/files.ts";
import { guidePage } from "./pages/guide.ts";
import { mountHome } from "./pages/home.ts";
import { claimPage, consolePage, exitPage, explorerPage, referencePage } from "./pages/scripted.ts";
import { countFailures, identify } from "./routes/api/authentication.ts";
import {
  bodyTypesOf,
  type Endpoint,
  isScope,
  ROWS,
  type SignedIn,
  takesIdempotencyKey,
} from "./routes/api/endpoint.ts";
import { openApiDocument } from "./routes/api/openapi.ts";
import { ENDPOINTS } from "./routes/index.ts";
import { mintBody } from "./routes/mint.ts";
import { limitsOf } from "./routes/service.ts";
import { type Meters, type ServerOptions, type Service, serviceOf } from "./service.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The cost of the request; null before its caller is known, and on unmetered routes. */
    account: Account | null;
  }
  interface FastifyInstance {
    /**
     * Refuses work: readiness and every new request get 503 `shutting_down`. Call it some time
     * before `close`.
     */
    drain(): void;
  }
}

/** Most bytes of all bodies except mints. */
const SMALL_BODY_BYTES = 64 * 1024;
/** docs/api.md promises this. */
const KEEP_IDEMPOTENCY_HOURS = 24;
const HOUR_MS = 3_600_000;
/**
 * Milliseconds between two deletions of old idempotency keys, by which a key may be kept longer.
 */
const FORGET_MS = 600_000;
/** Milliseconds between two looks at open orders, some at a time. */
const SWEEP_MS = 5_000;
/**
 * Paths of private answers: to applications, owners and people of the console. No cache keeps them.
 */
const PRIVATE = /^\/(?:api|oauth|owner|console\/v1)\//;

/**
 * Builds the HTTP service on an engine, not listening yet.
 *
 * @example
 * const app = await buildServer({ engine });
 * await app.listen({ port: 3000 });
 */
export async function buildServer(options: ServerOptions): Promise<FastifyInstance> {
  const { log, trustedProxies = [] } = options;
  const stopping = new AbortController();
  const failed = (what: string) => (error: unknown) => app.log.error({ err: error }, what);
  const { meters, ...parts } = serviceOf(options, stopping.signal, failed);
  const { mintExample: example } = options;
  const described = ENDPOINTS.map((each) =>
    example !== undefined && each.coreBody === mintBody ? { ...each, example } : each,
  );
  const bytes = Buffer.from(JSON.stringify(openApiDocument(described, limitsOf(parts))));
  const service: Service = { ...parts, document: { bytes, tag: tagOf(bytes) } };
  const app = fastifyApp({
    log,
    hosts: [...(options.hosts ?? []), ...(options.origin ? [options.origin.hostname] : [])],
    requestTimeoutSeconds: parts.requestTimeoutSeconds,
    stalledMs: options.stalledMs,
    mostConnections: options.mostConnections,
    methodsOf,
    routes: ENDPOINTS.map(({ method, path }) => `${method} ${path}`),
    ...(options.errorHandler && { errorHandler: options.errorHandler }),
    bodyLimit: SMALL_BODY_BYTES,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    // Our own hook responds while closing, in the form of every other error.
    return503OnClosing: false,
  });
  app.decorate("drain", () => stopping.abort());
  app.decorateRequest("principal", null);
  app.decorateRequest("owner", null);
  app.decorateRequest("signedIn", null);
  app.decorateRequest("account", null);
  // Otherwise a connection whose request outlives the start of the shutdown would stay open and
  // hold the process.
  app.addHook("onSend", (request, reply, payload, done) => {
    settle(request, reply, payload);
    if (stopping.signal.aborted) reply.header("connection", "close");
    done();
  });
  await options.extend?.(app);
  const { onAnswer } = options;
  if (onAnswer) {
    app.addHook(
      "onResponse",
      ({ method, routeOptions: { url: route = "none" }, problemCode: code }, reply, done) => {
        onAnswer({
          method,
          route,
          status: reply.statusCode,
          seconds: reply.elapsedTime / 1000,
          code,
        });
        done();
      },
    );
  }
  app.addHook("preClose", async () => app.drain());
  workWhileListening(app, options, parts);
  await mountAll(app, service, meters);
  return app;
}

/**
 * The server's background work, from listening to closing. A server that only responds in memory
 * has none.
 */
function workWhileListening(
  app: FastifyInstance,
  { engine, onlyReads, onSwept, keepIdempotencyHours = KEEP_IDEMPOTENCY_HOURS }: ServerOptions,
  { webhooks, drops, fills, stopping }: Pick<Service, "webhooks" | "drops" | "fills" | "stopping">,
): void {
  const failed = (what: string) => (error: unknown) => app.log.error({ err: error }, what);
  const work = new Stack();
  app.addHook("onListen", async () => {
    if (onlyReads === true) return;
    webhooks.start();
    drops?.start().catch(failed("drops could not be resumed"));
    const keyFailed = failed("idempotency keys could not be deleted; trying again");
    const forgetting = repeat(
      (signal) => {
        const before = Math.floor(engine.operator.reachedTime()) - keepIdempotencyHours * HOUR_MS;
        return engine.operator.forgetIdempotencyKeys(Math.max(0, before), { signal });
      },
      {
        intervalMs: FORGET_MS,
        backoff: { firstMs: 60_000, maxMs: HOUR_MS },
        onRound: (error) => error !== null && keyFailed(error),
      },
      stopping,
    );
    work.defer(() => forgetting);
    const orderFailed = failed("open orders could not be looked at; trying again");
    let swept = { open: 0, next: null as bigint | null };
    const sweeping = repeat(
      async (signal) => {
        const { open, next } = await ordersOf(engine).sweep(swept.next, { signal });
        swept = { open: (swept.next === null ? 0 : swept.open) + open, next };
        if (next === null) onSwept?.({ open: swept.open, fillsUsed: fills.mostUsed });
      },
      {
        intervalMs: SWEEP_MS,
        backoff: { firstMs: 60_000, maxMs: HOUR_MS },
        onRound: (error) => error !== null && orderFailed(error),
      },
      stopping,
    );
    work.defer(() => sweeping);
  });
  if (drops !== null) work.use(drops);
  work.defer(() => webhooks.stop(new ServerError("shutting_down")));
  app.addHook("preClose", () => work[Symbol.asyncDispose]());
}

async function mountAll(app: FastifyInstance, service: Service, meters: Meters): Promise<void> {
  const accepts = {
    form: acceptForm,
    json: (scope: FastifyInstance) => acceptJson(scope, service),
    stream: (scope: FastifyInstance) => acceptStreams(scope, ROWS),
  };
  const kindOf = ({ bodyType, bodyStream }: Endpoint) =>
    bodyType === FORM ? "form" : bodyStream ? "stream" : "json";
  for (const [kind, endpoints] of Map.groupBy(ENDPOINTS, kindOf))
    await app.register(async (scope) => {
      accepts[kind](scope);
      for (const endpoint of endpoints) mount(scope, endpoint, service, meters);
    });
  mountHome(app, service);
  for (const page of [
    explorerPage(service),
    exitPage,
    consolePage(service),
    claimPage,
    referencePage,
    guidePage,
  ])
    mountPage(app, page);
}

/**
 * Serves one endpoint: checks credentials, scope and one unit of rate before the body, the whole
 * cost after it.
 */
function mount(app: FastifyInstance, endpoint: Endpoint, service: Service, meters: Meters): void {
  const { access, unmetered, cost } = endpoint;
  const scope = isScope(access) ? access : null;
  const respond = endpoint.oneByOne ? oneByOne(endpoint) : endpoint.respond;
  // A drop has its key's id.
  const isDurable = endpoint.keysInStore === true || endpoint.bodyStream !== undefined;
  const isKept = !isDurable && takesIdempotencyKey(endpoint);
  const isPrivate = PRIVATE.test(endpoint.path);
  app.route({
    method: endpoint.method,
    url: endpoint.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    config: { bodyTypes: bodyTypesOf(endpoint) },
    ...(cost && { bodyLimit: service.bodyBytes }),
    async onRequest(request, reply) {
      if (isPrivate) reply.header("cache-control", "no-store");
      // Liveness stays until the end; readiness reports the shutdown itself.
      if (service.stopping.aborted && !unmetered) throw new ServerError("shutting_down");
      if (access !== "public")
        await countFailures(
          identify(access, request, service),
          meters.failedAuthentication,
          request,
          reply,
        );
      if (unmetered) return;
      const { principal, signedIn } = request;
      const caller = callerOf(request);
      const isPublic = caller.tenant === PUBLIC;
      const [meter, prices] = isPublic
        ? [meters.publicReads, PUBLIC_PRICES]
        : [meters.key, KEY_PRICES];
      request.account = new Account(caller, meter, prices, service.memory, reply);
      if (!isPublic) request.raw.socket.emit(RECOGNIZED, caller.tenant);
      // The engine checks a person's right, before a change and in its writer.
      if (signedIn !== null) await actingIn(endpoint, service, signedIn);
      else if (principal !== null && scope !== null && !principal.scopes.includes(scope)) {
        throw new MintmarkError("scope_missing", `The credentials lack the scope "${scope}".`);
      }
    },
    async handler(request, reply) {
      const entries =
        cost === undefined
          ? 0
          : Math.min(cost(request.body), service.engine.limits.mintsPerRequest);
      request.account?.work(entries);
      reply.code(endpoint.success.status);
      const { principal, signedIn } = request;
      const acting =
        signedIn === null
          ? service
          : { ...service, engine: await actingIn(endpoint, service, signedIn) };
      const key = isKept ? idempotencyKeyOf(request) : undefined;
      if (key !== undefined && principal !== null)
        return service.keptAnswers.once(request, reply, principal, key, () =>
          respond(acting, request, reply),
        );
      // The handler of a public route checks secrets in its body.
      if (access === "public") {
        const answered = Promise.resolve().then(() => respond(acting, request, reply));
        return countFailures(answered, meters.failedAuthentication, request, reply);
      }
      return respond(acting, request, reply);
    },
  });
}

/**
 * The caller who pays for a request. All callers without a key are one tenant, and so share what a
 * tenant may hold.
 */
function callerOf({ principal, signedIn, ip }: FastifyRequest): Caller {
  const person = signedIn?.signIn.person;
  if (person !== undefined)
    return { name: person.personId, tenant: person.applicationId ?? person.personId };
  if (principal !== null) return { name: principal.keyId, tenant: principal.applicationId };
  return { name: addressGroup(ip), tenant: PUBLIC };
}

/**
 * The engine in a person's name: it checks the right that the endpoint needs, and logs the changes.
 */
function actingIn(
  { access, right }: Endpoint,
  { engine }: Service,
  { signIn, applicationId }: SignedIn,
): Promise<Engine> {
  const needed = right ?? (isScope(access) ? access : "read");
  return engine.actingAs(signIn, needed, applicationId ?? undefined);
}

/** Answers with large or costly responses, those of one caller one after another. */
function oneByOne(endpoint: Endpoint): Endpoint["respond"] {
  return (service, request, reply) =>
    service.turns.alone(request.account?.caller.name ?? request.ip, async () => {
      // Nobody waits for the response.
      if (reply.raw.destroyed) throw endedEarly();
      const made = await endpoint.respond(service, request, reply);
      // The cost is settled before the next request begins, which would otherwise count this one's
      // reservation.
      settle(request, reply, made);
      return made;
    });
}

function settle({ account }: FastifyRequest, reply: FastifyReply, payload: unknown): void {
  if (typeof payload !== "string" && !(payload instanceof Uint8Array)) return;
  account?.answered(
    Buffer.byteLength(payload),
    reply.getHeader("content-type") === "application/octet-stream",
  );
}

const PATTERNS = ENDPOINTS.map(({ method, path }) => {
  return { method, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`) };
});

const PAGES = /^\/(?:(?:explorer|docs|claim|exit|guide)(?:\/.*)?|console(?:\/(?!v1\/).*)?)?$/;

function methodsOf(path: string): string[] {
  if (PAGES.test(path)) return ["GET"];
  return PATTERNS.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
}
