import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from "fastify";
import { MemoryLevel } from "memory-level";
import type { PrivateKeyAccount } from "viem/accounts";
import { expect } from "vitest";
import { z } from "zod";
import type {
  Asset,
  Clock,
  Engine,
  EngineOptions,
  Limits,
  ReceiptSigner,
  Scope,
} from "../../core/index.ts";
import { openEngine } from "../../core/index.ts";
import { buildServer } from "../../server/app.ts";
import { type Code, statusOf, TOKEN_PATH } from "../../server/http/errors.ts";
import { type Endpoint, errorsOf } from "../../server/routes/api/endpoint.ts";
import { oauthError, problemDocument } from "../../server/routes/api/openapi.ts";
import { ENDPOINTS } from "../../server/routes/index.ts";
import type { ServerOptions } from "../../server/service.ts";

export const SETTLEMENT = {
  chainId: 31_337n,
  contract: `0x${"5e".repeat(20)}`,
  engineVersion: 5,
} as const;
export const OWNER = `0x${"70".repeat(20)}` as const;
export const OTHER_OWNER = `0x${"71".repeat(20)}` as const;

/**
 * An engine with two applications, their users and keys, and one ready asset of each standard,
 * behind a server.
 */
export interface World extends AsyncDisposable {
  readonly engine: Engine;
  readonly app: FastifyInstance;
  readonly applicationId: string;
  readonly key: string;
  readonly keyId: string;
  readonly users: readonly [string, string];
  readonly otherApplicationId: string;
  readonly otherKey: string;
  readonly otherUser: string;
  readonly erc20: Asset;
  readonly erc721: Asset;
  readonly erc1155: Asset;
  /**
   * Sends a request with the first application's key, and checks that the answer is as documented.
   */
  send(method: InjectOptions["method"], url: string, options?: SendOptions): Promise<Answer>;
  newKey(
    scopes?: readonly Scope[],
    more?: { expiresAt?: number; mintQuota?: bigint },
  ): Promise<string>;
  /** Everything that a refused request must leave as it was. */
  snapshot(): Promise<unknown>;
}

export interface SendOptions {
  /** null for none. */
  readonly key?: string | null;
  readonly body?: unknown;
  /** A body that is sent as it is. */
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: LightMyRequestResponse["headers"];
  // biome-ignore lint/suspicious/noExplicitAny: a parsed answer, whose form the fixture has already held against its schema.
  readonly body: any;
  readonly text: string;
}

export interface WorldOptions
  extends Omit<Partial<ServerOptions>, "engine">,
    Pick<EngineOptions, "verifySignature"> {
  readonly limits?: Partial<Limits>;
  readonly store?: string;
  readonly engineVersion?: number;
  readonly contract?: `0x${string}`;
  readonly receiptSigner?: ReceiptSigner;
  readonly clock?: Clock;
}

let contracts = 0;
const contractAddress = () => `0x${(++contracts).toString(16).padStart(40, "c")}` as const;

export async function createWorld({
  limits,
  store,
  engineVersion = 5,
  contract = SETTLEMENT.contract,
  receiptSigner,
  clock,
  verifySignature,
  ...server
}: WorldOptions = {}): Promise<World> {
  const engine = await openEngine({
    store: store ?? new MemoryLevel(),
    createIfMissing: true,
    settlement: { ...SETTLEMENT, contract, engineVersion },
    environment: "sandbox",
    ...(limits && { limits }),
    ...(receiptSigner && { receiptSigner }),
    ...(clock && { clock }),
    ...(verifySignature && { verifySignature }),
  });
  const { applicationId } = await engine.applications.create({ name: "First" });
  const { applicationId: otherApplicationId } = await engine.applications.create({
    name: "Second",
  });
  const { key, secret } = await engine.keys.issue(applicationId);
  const { secret: otherKey } = await engine.keys.issue(otherApplicationId);
  const users = await Promise.all([
    engine.users.create(applicationId, { ownerAddress: OWNER }),
    engine.users.create(applicationId, { ownerAddress: OTHER_OWNER }),
  ]);
  const otherUser = await engine.users.create(otherApplicationId, { ownerAddress: OWNER });
  const ready = async (standard: Asset["standard"], applications: readonly string[]) => {
    const names = { name: `Token ${standard}`, symbol: standard.toUpperCase() };
    const { assetId } = await engine.assets.add({
      standard,
      contractAddress: contractAddress(),
      ...names,
    });
    await engine.assets.whitelist(assetId);
    await engine.operator.recordRegistered(assetId, { minterLocked: true });
    for (const id of applications) await engine.assets.enable(id, assetId);
    return engine.assets.get(applicationId, assetId);
  };
  const both = [applicationId, otherApplicationId];
  const app = await buildServer({ engine, ...server });
  const world: World = {
    engine,
    app,
    applicationId,
    key: secret,
    keyId: key.keyId,
    users: [users[0].userId, users[1].userId],
    otherApplicationId,
    otherKey,
    otherUser: otherUser.userId,
    erc20: await ready("erc20", both),
    erc721: await ready("erc721", both),
    erc1155: await ready("erc1155", [applicationId]),
    send: (method, url, options) => send(app, secret, method, url, options),
    async newKey(scopes, more) {
      return (await engine.keys.issue(applicationId, { ...(scopes && { scopes }), ...more }))
        .secret;
    },
    snapshot: () => snapshot(world),
    async [Symbol.asyncDispose]() {
      await app.close();
      await engine.close();
    },
  };
  return world;
}

/** Requests of an owner who signed in by its wallet. */
export async function signedIn(
  world: Pick<World, "send">,
  account: PrivateKeyAccount,
): Promise<SendOptions> {
  const by = { key: null, headers: { host: "localhost:3000" } };
  const { address } = account;
  const { message } = (
    await world.send("POST", "/owner/v1/challenge", { ...by, body: { address } })
  ).body;
  const proof = { message, signature: await account.signMessage({ message }) };
  const { body } = await world.send("POST", "/owner/v1/sign-in", { ...by, body: proof });
  return { key: null, headers: { authorization: `Bearer ${body.token}` } };
}

async function send(
  app: FastifyInstance,
  defaultKey: string,
  method: InjectOptions["method"],
  url: string,
  { key = defaultKey, body, raw, headers }: SendOptions = {},
): Promise<Answer> {
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await app.inject({
    ...(method && { method }),
    url,
    headers: {
      ...(key !== null && { "x-api-key": key }),
      ...(payload !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  });
  return conform(method ?? "GET", url, response);
}

/** Codes that any path can get before a route is found. */
const ROUTELESS: readonly Code[] = [
  "route_not_found",
  "method_not_allowed",
  "malformed_request",
  "host_unknown",
  "shutting_down",
];

/** An answer as it came, in memory or over a socket. */
export type Answered = Pick<
  LightMyRequestResponse,
  "statusCode" | "headers" | "body" | "rawPayload"
>;

/**
 * Holds an answer against the documentation of its route: status, schema, code. Every test of the
 * server goes through here.
 */
export function conform(method: string, url: string, response: Answered): Answer {
  const { statusCode: status, headers, body: text } = response;
  const endpoint = endpointOf(method, url);
  const type = String(headers["content-type"] ?? "");
  expect(headers["x-request-id"], "every answer names its request").toBeTypeOf("string");
  if (status >= 400) {
    const isOAuth = endpoint?.path === TOKEN_PATH;
    expect(type).toBe(isOAuth ? "application/json" : "application/problem+json");
    const body = (isOAuth ? oauthError : problemDocument).parse(JSON.parse(text));
    const code = body.code as Code;
    expect(body.status).toBe(status);
    expect(statusOf(code, endpoint?.path), `the status of ${code}`).toBe(status);
    expect(body.requestId).toBe(headers["x-request-id"]);
    expect(
      endpoint ? errorsOf(endpoint) : ROUTELESS,
      `${method} ${url} documents ${code}`,
    ).toContain(code);
    return { status, headers, body, text };
  }
  if (endpoint === undefined)
    throw new Error(`${method} ${url} answered ${status} without an endpoint`);
  if (status === 304 && endpoint.success.unchanged !== undefined) {
    expect(text).toBe("");
    return { status, headers, body: null, text };
  }
  expect(status).toBe(endpoint.success.status);
  const { text: bare } = endpoint.success;
  if (bare !== undefined && type.startsWith("text/plain")) {
    expect(text).toBe(bare);
    return { status, headers, body: text, text };
  }
  if (endpoint.success.schemas === undefined)
    return { status, headers, body: response.rawPayload, text };
  expect(type).toBe("application/json; charset=utf-8");
  return { status, headers, body: z.union(endpoint.success.schemas).parse(JSON.parse(text)), text };
}

export function endpointOf(method: string, url: string): Endpoint | undefined {
  const path = url.split("?", 1)[0] ?? "";
  return ENDPOINTS.find((endpoint) => {
    return (
      endpoint.method === method &&
      new RegExp(`^${endpoint.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path)
    );
  });
}

/** One entry of a mint for each standard; `n` keeps ERC-721 tokens apart. */
export function entries({ erc20, erc721, erc1155 }: World, n: number) {
  const mintingBlob = (text: string) => `0x${Buffer.from(text).toString("hex")}`;
  return [
    { mintingBlob: "", assetId: erc20.assetId, amount: 250, dataAvailabilityMode: "validium" },
    {
      mintingBlob: mintingBlob(String(n)),
      assetId: erc721.assetId,
      amount: 1,
      dataAvailabilityMode: "zk-rollup",
    },
    {
      mintingBlob: mintingBlob("7"),
      assetId: erc1155.assetId,
      amount: "3",
      dataAvailabilityMode: "validium",
    },
  ];
}

async function snapshot({ engine, applicationId, otherApplicationId, users, otherUser }: World) {
  return {
    state: engine.batches.state(),
    open: [engine.batches.getOpen("validium"), engine.batches.getOpen("zk-rollup")],
    balances: [
      await Array.fromAsync(engine.vaults.balances(applicationId, users[0])),
      await Array.fromAsync(engine.vaults.balances(applicationId, users[1])),
      await Array.fromAsync(engine.vaults.balances(otherApplicationId, otherUser)),
    ],
    transactions: await engine.transactions.list(applicationId, { limit: 100 }),
    assets: await engine.assets.list(applicationId),
  };
}

/** The code of a refused request, and the pointers of its bad entries. */
export function refusal({ status, body }: Answer) {
  const errors = (body.errors ?? []) as { pointer: string; code: string }[];
  return {
    status,
    code: body.code as Code,
    errors: errors.map(({ pointer, code }) => `${pointer} ${code}`),
  };
}
