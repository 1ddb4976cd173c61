import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Connection, listen } from "./connection.ts";
import { type Answered, conform, createWorld, entries, refusal, type World } from "./fixture.ts";
import { damaged, hostileText, nearMint } from "./hostile-values.ts";
import { type Document, type Operation, operationsOf, SchemaValues } from "./schema-values.ts";

// Every route of the document, over real sockets, as two applications that must never learn of each
// other.

/** The heavy suite sends so many that each route has answered well at least once. */
const MANY = 50_000;
const REQUESTS = Number(process.env.MINTMARK_FUZZ_REQUESTS ?? 1_000);
/** Sent at once, so that requests meet. */
const AT_ONCE = 25;
const NO_ANSWER_MS = 30_000;
/** Shorter than the time after which the test gives up. */
const REQUEST_TIMEOUT_SECONDS = 2;

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}
type Tenant = "first" | "second";

const folder = mkdtempSync(join(tmpdir(), "mintmark-fuzz-"));
let world: World;
let port: number;
let calls: fc.Arbitrary<{
  readonly operation: Operation;
  readonly by: Tenant | null;
  readonly call: Call;
}>;
/** Only one application may ever see these: everywhere, and where batch data is not told. */
let secrets: Record<
  Tenant,
  { readonly everywhere: readonly string[]; readonly inPrivate: readonly string[] }
>;
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
const asked = new Map<string, Map<number, number>>();

/** One in so many times; null otherwise. */
function seldom<T>(one: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: one - 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });
}

/** Sends a call over a socket. Rejects when it is not answered: nothing may hang. */
function exchange({ method, path, headers, body }: Call): Promise<Answered> {
  return new Promise((answered, failed) => {
    const signal = AbortSignal.timeout(NO_ANSWER_MS);
    const sent = request({ port, agent, method, path, headers, signal }, (response) => {
      const chunks: Buffer[] = [];
      const finish = () => {
        const rawPayload = Buffer.concat(chunks);
        const { statusCode = 0, headers } = response;
        answered({ statusCode, headers, rawPayload, body: rawPayload.toString() });
      };
      response.on("error", failed).on("data", (chunk: Buffer) => chunks.push(chunk));
      // A stream of events does not end by itself.
      if (response.headers["content-type"] === "text/event-stream") {
        response
          .off("error", failed)
          .on("error", () => {})
          .on("close", finish)
          .destroy();
      } else response.on("end", finish);
    });
    sent
      .on("error", (cause) => failed(new Error(`no answer to ${method} ${path}`, { cause })))
      .end(body);
  });
}

/**
 * Gives an application users, mints and a webhook that are like no other's, and tells what only it
 * may see of them.
 */
async function seed(tenant: Tenant, applicationId: string, key: string) {
  const ownerAddress = `0x${(tenant === "first" ? "1f" : "e2").repeat(20)}` as const;
  const { userId } = await world.engine.users.create(applicationId, { ownerAddress });
  const text = `${tenant}-token`;
  const mintingBlob = `0x${Buffer.from(text).toString("hex")}`;
  const mint = {
    mintingBlob,
    assetId: world.erc721.assetId,
    amount: 1,
    dataAvailabilityMode: "validium",
  };
  const body = { users: [{ userId, mints: [mint] }] };
  const minted = await world.send("POST", "/api/v1/mint", { key, body });
  const url = `http://127.0.0.1:9/${tenant}-hook`;
  const hook = await world.send("POST", "/api/v1/webhooks", { key, body: { url } });
  const raw = `userId,assetId,amount,dataAvailabilityMode\n${userId},${world.erc20.assetId},1,validium\n`;
  const drop = await world.send("POST", "/api/v1/drops", {
    key,
    raw,
    headers: { "content-type": "text/csv" },
  });
  const page = await world.send("GET", "/api/v1/transactions?limit=1", { key });
  const keyId = key.split("_")[2] ?? "";
  return {
    userId,
    mintId: minted.body.mintId as string,
    transactionId: minted.body.transactions[0].transactionId as string,
    webhookId: hook.body.webhookId as string,
    dropId: drop.body.dropId as string,
    cursor: page.body.pagination.nextCursor as string | null,
    everywhere: [
      ...[userId, minted.body.mintId, drop.body.dropId, hook.body.webhookId, hook.body.secret],
      ...[url, keyId, applicationId],
    ],
    inPrivate: [ownerAddress, mintingBlob.slice(2)],
  };
}

const TOKENS = Array.from({ length: 20 }, (_, i) => String(i + 1));
const METADATA = { name: "Sword" };

/** An asset of one application, whose tokens have metadata. */
async function reserveAsset(applicationId: string, number: number): Promise<string> {
  const contractAddress = `0x${"a".repeat(39)}${number}` as const;
  const names = { name: "Swords", symbol: "SWORD" };
  const asset = { standard: "erc721", contractAddress, ...names, applicationId } as const;
  const { assetId } = await world.engine.assets.add(asset);
  const tokens = TOKENS.map((tokenId) => ({ tokenId, metadata: METADATA }));
  const set = await world.send("POST", `/api/v1/assets/${assetId}/metadata`, { body: { tokens } });
  expect(set.status, set.text).toBe(200);
  return assetId;
}

beforeAll(async () => {
  const rich = { units: 1_000_000_000, windowSeconds: 1 };
  world = await createWorld({
    limits: { usersPerRequest: 4, mintsPerRequest: 8 },
    rateLimits: { key: rich, failedAuthentication: rich, publicReads: rich },
    requestTimeoutSeconds: REQUEST_TIMEOUT_SECONDS,
    streamsPerKey: AT_ONCE,
    webhooks: { reach: "public-and-loopback" },
    drops: folder,
  });
  const { key, otherKey, applicationId, otherApplicationId, users, otherUser } = world;
  await world.send("POST", "/api/v1/mint", {
    body: { users: [{ userId: users[0], mints: entries(world, 1) }] },
  });
  const first = await seed("first", applicationId, key);
  const second = await seed("second", otherApplicationId, otherKey);
  secrets = { first, second };
  for (const mode of ["validium", "zk-rollup"] as const) await world.engine.operator.seal(mode);
  const document: Document = (await world.send("GET", "/openapi.json", { key: null })).body;
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const raw = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: world.keyId,
    client_secret: key,
  });
  const token: string = (
    await world.send("POST", "/oauth/token", { key: null, raw: raw.toString(), headers: form })
  ).body.access_token;
  port = await listen(world.app);

  // Metadata can only be set of these. Freezing all of one ends that, so there are several.
  const reserved = await Promise.all(
    [1, 2, 3, 4].map((number) => reserveAsset(applicationId, number)),
  );
  const links = fc.nat(7).map((number) => `0x${"b".repeat(39)}${number}`);
  const either = (name: "userId" | "mintId" | "transactionId" | "webhookId" | "dropId") =>
    fc.constantFrom(first[name], second[name]);
  const cursors = fc.constantFrom(
    ...[first.cursor, second.cursor].filter((cursor) => cursor !== null),
  );
  const forged = (text: string) =>
    fc
      .tuple(fc.nat(text.length - 1), fc.constantFrom(..."A0_z-."))
      .map(([at, put]) => text.slice(0, at) + put + text.slice(at + 1));
  const known = {
    userId: fc.oneof(either("userId"), fc.constantFrom(...users, otherUser)),
    mintId: either("mintId"),
    transactionId: either("transactionId"),
    webhookId: either("webhookId"),
    dropId: either("dropId"),
    cursor: fc.oneof(cursors, cursors.chain(forged)),
    assetId: fc.constantFrom(
      world.erc20.assetId,
      world.erc721.assetId,
      world.erc1155.assetId,
      ...reserved,
    ),
    tokenId: fc.constantFrom(...TOKENS),
    tokenIds: fc.subarray([...TOKENS], { minLength: 1, maxLength: 1 }),
    metadata: fc.constant(METADATA),
    placeholder: fc.constantFrom(null, METADATA),
    contractMetadata: fc.constantFrom(null, METADATA),
    linkAddress: links,
    // A random mixed-case address has a wrong checksum.
    ownerAddress: fc.constantFrom(`0x${"ab".repeat(20)}`, `0x${"cd".repeat(20)}`),
    vaultId: fc.constantFrom("0", "1", "2", "9223372036854775808", "18446744073709551615"),
    batchId: fc.constantFrom("validium-0", "zk-rollup-0", "validium-1"),
    url: fc.constantFrom(
      "http://127.0.0.1:9/",
      "https://127.0.0.1:9/hook",
      "ftp://127.0.0.1",
      "http://10.0.0.1/",
    ),
    // Rare in a text that is made up.
    grant_type: fc.constant("client_credentials"),
    client_id: fc.constantFrom(world.keyId, otherKey.split("_")[2] ?? ""),
    client_secret: fc.constantFrom(key, otherKey),
  };
  const mostValues = new SchemaValues(document, known);
  const OF_USERS = ["/api/v1/users", "/api/v1/users/bulk"];
  // Callers choose their users' ids: one who chose another application's would see it again, as its
  // own.
  const newUserValues = new SchemaValues(document, { ...known, userId: fc.uuid() });
  const rightMint = fc
    .record({ amount: fc.integer({ min: 1, max: 9 }), user: fc.nat(1) })
    .map(({ amount, user }) => {
      const { assetId } = world.erc20;
      const mint = { mintingBlob: "", assetId, amount, dataAvailabilityMode: "validium" };
      return { users: [{ userId: users[user], mints: [mint] }] };
    });
  const rows = rightMint.map(({ users: [user] }) => {
    const { assetId, amount } = user?.mints[0] ?? {};
    return `userId,assetId,amount,dataAvailabilityMode\n${user?.userId},${assetId},${amount},validium\n`;
  });
  const rightClaims = fc.tuple(rightMint, links).map(
    ([
      {
        users: [user],
      },
      linkAddress,
    ]) => {
      const { assetId, amount, dataAvailabilityMode } = user?.mints[0] ?? {};
      return { claims: [{ linkAddress, mint: { assetId, amount, dataAvailabilityMode } }] };
    },
  );
  const rightGrant = fc.constant({
    grant_type: "client_credentials",
    client_id: world.keyId,
    client_secret: key,
  });
  const nearBodies: Readonly<Record<string, readonly fc.Arbitrary<unknown>[]>> = {
    "/api/v1/mint": [nearMint(world), rightMint],
    "/api/mint": [nearMint(world), rightMint],
    "/api/v1/drops": [rows],
    "/api/v1/claims": [rightClaims],
    "/oauth/token": [rightGrant],
    "/api/v1/assets/{assetId}/tokens/{tokenId}/metadata": [fc.constant(METADATA)],
    "/api/v1/assets/{assetId}/metadata": [
      fc.constantFrom(...TOKENS).map((tokenId) => ({ tokens: [{ tokenId, metadata: METADATA }] })),
    ],
  };
  const header = fc.tuple(
    fc.constantFrom(
      "x-request-id",
      "authorization",
      "content-encoding",
      "accept",
      "if-none-match",
      "content-type",
      "x-api-key",
      "last-event-id",
      "idempotency-key",
      "x-forwarded-for",
    ),
    fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.constantFrom(
        "text/event-stream",
        "application/json",
        "gzip",
        "Bearer ",
        "1",
        second.transactionId,
      ),
      forged(key),
      forged(token).map((text) => `Bearer ${text}`),
      fc.constantFrom(`Bearer ${token}`, "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."),
    ),
  );
  const isFirst = (headers: Readonly<Record<string, string | undefined>>) =>
    headers["x-api-key"] === key || headers.authorization === `Bearer ${token}`;
  const credentials: Readonly<Record<Tenant, Readonly<Record<string, string>>>> = {
    first: { "x-api-key": key },
    second: { "x-api-key": otherKey },
  };
  calls = fc
    .record({
      operation: fc.constantFrom(...operationsOf(document)),
      by: fc.constantFrom("first", "first", "second", "second", null),
      strange: seldom(4, header),
      extra: seldom(16, fc.tuple(hostileText, hostileText)),
    })
    .chain(({ operation, by, strange, extra }) => {
      const values =
        operation.method === "POST" && OF_USERS.includes(operation.path)
          ? newUserValues
          : mostValues;
      const fields = operation.parameters.map(({ name, schema }) => values.of(schema, name));
      const bodies = operation.body === null ? fc.jsonValue() : values.of(operation.body.schema);
      const near = nearBodies[operation.path] ?? [];
      return fc
        .tuple(
          fc.tuple(...fields),
          fc.tuple(...fields.map(() => fc.boolean())),
          fc.oneof(bodies, ...near),
        )
        .map(([given, wanted, body]) => {
          const headers = {
            ...(by && credentials[by]),
            ...(strange && { [strange[0]]: strange[1] }),
          };
          const call = callOf(operation, { given, wanted, body, extra }, headers);
          // A strange header may happen to be the first application's own credential.
          return { operation, by: isFirst(headers) ? ("first" as const) : by, call };
        });
    });
});
afterAll(async () => {
  agent.destroy();
  await world[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

interface Parts {
  readonly given: readonly unknown[];
  /** Which of the optional parameters are sent. */
  readonly wanted: readonly boolean[];
  readonly body: unknown;
  readonly extra: readonly [string, string] | null;
}

function callOf(
  { method, path, parameters, body }: Operation,
  parts: Parts,
  headers: Readonly<Record<string, string>>,
): Call {
  const search = new URLSearchParams();
  const fields: Record<string, string> = {};
  let filled = path;
  for (const [i, { name, in: place }] of parameters.entries()) {
    const value = parts.given[i];
    const text = (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).toWellFormed();
    // A path without its parameter is another path.
    if (place === "path") filled = filled.replace(`{${name}}`, encodeURIComponent(text) || "x");
    else if (parts.wanted[i] && place === "query") search.append(name, text);
    else if (parts.wanted[i]) fields[name.toLowerCase()] = text.replaceAll(/[^\x20-\x7e]/g, "?");
  }
  if (parts.extra !== null)
    search.append(...(parts.extra.map((text) => text.toWellFormed()) as [string, string]));
  const query = search.size > 0 ? `?${search}` : "";
  const sends = method === "POST" || method === "PUT";
  const type = body?.type ?? "application/json";
  const isForm =
    type !== "application/json" && typeof parts.body === "object" && parts.body !== null;
  const text = isForm
    ? new URLSearchParams(
        Object.entries(parts.body as object).map(([name, value]): [string, string] => [
          name,
          String(value),
        ]),
      ).toString()
    : type === "text/csv"
      ? String(parts.body)
      : JSON.stringify(parts.body);
  return {
    method,
    path: `${filled}${query}`,
    headers: { ...fields, ...(sends && { "content-type": type }), ...headers },
    body: sends ? text : null,
  };
}

/** Holds one answer against everything that is always so. */
function judge(operation: Operation, by: Tenant | null, call: Call, answer: Answered): void {
  const name = `${operation.method} ${operation.path}`;
  const perRoute = asked.get(name) ?? new Map<number, number>();
  asked.set(name, perRoute.set(answer.statusCode, (perRoute.get(answer.statusCode) ?? 0) + 1));
  expect(answer.statusCode, `${name} ${answer.body}`).toBeLessThan(500);
  if (answer.headers["content-type"] !== "text/event-stream")
    conform(call.method, call.path, answer);
  const sent = `${call.path} ${JSON.stringify(call.headers)} ${call.body}`;
  const isPublic = !/^\/api\//.test(call.path) || /^\/api\/v1\/batches/.test(call.path);
  for (const tenant of ["first", "second"] as const) {
    if (tenant === by) continue;
    const { everywhere, inPrivate } = secrets[tenant];
    const told = `${JSON.stringify(answer.headers)} ${answer.body}`.toLowerCase();
    const leaked = [...everywhere, ...(isPublic ? [] : inPrivate)].filter((secret) => {
      return (
        told.includes(secret.toLowerCase()) && !sent.toLowerCase().includes(secret.toLowerCase())
      );
    });
    expect(leaked, `${name} as ${by} tells of ${tenant}`).toEqual([]);
  }
}

test("whatever is sent is answered as documented, never with our fault, and tells nothing of another application", async () => {
  let sent = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(calls, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (all) => {
      sent += all.length;
      const answers = await Promise.all(all.map(({ call }) => exchange(call)));
      for (const [i, { operation, by, call }] of all.entries()) {
        const answer = answers[i];
        if (answer !== undefined) judge(operation, by, call, answer);
      }
    }),
    { numRuns: Math.ceil(REQUESTS / AT_ONCE), endOnFailure: true },
  );
  expect(sent).toBeGreaterThanOrEqual(REQUESTS);
  expect((await world.engine.operator.verify()).problems).toEqual([]);
  if (REQUESTS < MANY) return;
  const succeeded = [...asked].filter(([, seen]) =>
    [...seen.keys()].some((status) => status < 300),
  );
  // All but what needs the signature of an owner, a link or a person of the console, terms of trade
  // that fit the assets, or what a frozen collection refuses for ever: the deterministic tests show
  // those.
  const signed =
    /withdrawals|transfers|session-keys|order|settlements|owner|console|webhooks\/|readyz|POST \/public\/v1\/claims|P(?:OS|U)T .*\/metadata/;
  const unsigned = operationsOf((await world.send("GET", "/openapi.json", { key: null })).body)
    .map(({ method, path }) => `${method} ${path}`)
    .filter((name) => !signed.test(name));
  expect(succeeded.map(([name]) => name)).toEqual(expect.arrayContaining(unsigned));
});

test("any bytes to the mint route are refused as documented", async () => {
  const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
  const property = fc.asyncProperty(fc.oneof(damaged(mintText()), bytes), async (raw) => {
    expect((await world.send("POST", "/api/v1/mint", { raw })).status).toBeLessThan(500);
  });
  await fc.assert(property, { numRuns: 300 });
});

const mintHead = (more: string) =>
  `POST /api/v1/mint HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${world.key}\r\nContent-Type: application/json\r\n${more}\r\n\r\n`;
const mintText = () =>
  JSON.stringify({ users: [{ userId: world.users[0], mints: entries(world, 2) }] });

test("slow and truncated requests are told so or cut off, and hold nobody up", async () => {
  const right = mintText();
  const head = mintHead(`Content-Length: ${right.length}`);
  const slow = [head.slice(0, 40), head.slice(0, -2), head, head + right.slice(0, -1)].map(
    (bytes) => new Connection(port).write(bytes),
  );
  // One byte at a time does not win time.
  const trickle = new Connection(port).write(head);
  const drops = setInterval(() => trickle.write(" "), 20);
  const truncated = [head.slice(0, 40), head + right.slice(0, -1)].map((bytes) => {
    const connection = new Connection(port).write(bytes);
    connection.socket.end();
    return connection;
  });
  expect(
    (await exchange({ method: "GET", path: "/healthz", headers: {}, body: null })).statusCode,
  ).toBe(200);
  for (const { status } of await Promise.all([...slow, trickle].map((one) => one.answer())))
    expect(status).toBe(408);
  clearInterval(drops);
  // The time of a request can be over before a busy server reads where it ends.
  for (const one of truncated)
    expect([400, 408]).toContain((await one.answer().catch(() => ({ status: 400 }))).status);
});

test("no cursor, key or token survives the change of a character, nor is one application's taken from the other", async () => {
  const page = await world.send("GET", "/api/v1/transactions?limit=1");
  const cursor: string = page.body.pagination.nextCursor;
  const elsewhere = await world.send("GET", `/api/v1/transactions?limit=1&cursor=${cursor}`, {
    key: world.otherKey,
  });
  expect(refusal(elsewhere).code).toBe("cursor_invalid");
  // The last character of base64 may hold bits that mean nothing.
  for (let at = 0; at < cursor.length - 1; at++) {
    const changed = `${cursor.slice(0, at)}${cursor[at] === "A" ? "B" : "A"}${cursor.slice(at + 1)}`;
    expect(
      refusal(await world.send("GET", `/api/v1/transactions?limit=1&cursor=${changed}`)).code,
    ).toBe("cursor_invalid");
  }
  for (let at = 0; at < world.key.length; at++) {
    const key = `${world.key.slice(0, at)}${world.key[at] === "0" ? "1" : "0"}${world.key.slice(at + 1)}`;
    expect(refusal(await world.send("GET", "/api/v1/assets", { key })).code).toBe(
      "credentials_invalid",
    );
  }
});
