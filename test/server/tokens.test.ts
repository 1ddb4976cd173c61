import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createRemoteJWKSet,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  SignJWT,
  UnsecuredJWT,
} from "jose";
import { afterAll, expect, test, vi } from "vitest";
import { AccessTokens, readJwks, remoteKeys } from "../../server/http/access/access-token.ts";
import { createWorld, refusal, type World } from "./fixture.ts";

const SECRET = new Uint8Array(32).fill(7);
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const AUDIENCE = `mintmark:sandbox:31337:0x${"5e".repeat(20)}`;

const world = await createWorld({ tokenSecret: SECRET });
afterAll(() => world[Symbol.asyncDispose]());

const client = (of: World, more: Record<string, string> = {}) =>
  new URLSearchParams({
    grant_type: "client_credentials",
    client_id: of.keyId,
    client_secret: of.key,
    ...more,
  }).toString();
const exchange = (raw: string, headers: Record<string, string> = {}) =>
  world.send("POST", "/oauth/token", { key: null, raw, headers: { ...FORM, ...headers } });
const bearer = (token: string, key: string | null = null, path = "/api/v1/assets") =>
  world.send("GET", path, { key, headers: { authorization: `Bearer ${token}` } });

test("an API key is exchanged for a token of 15 minutes that acts for its application", async () => {
  const { body, headers } = await exchange(client(world));
  expect(body).toMatchObject({
    token_type: "Bearer",
    expires_in: 900,
    scope: "mint read users assets withdraw webhooks transfer",
  });
  expect(headers["cache-control"]).toBe("no-store");
  expect((await bearer(body.access_token)).body).toEqual(
    (await world.send("GET", "/api/v1/assets")).body,
  );
  const [user] = (await bearer(body.access_token, null, "/api/v1/users")).body.data;
  expect(user.userId).toBe(world.users[0]);
});

test("the client may come in Authorization: Basic, and ask for fewer scopes", async () => {
  const basic = `Basic ${Buffer.from(`${world.keyId}:${world.key}`).toString("base64")}`;
  const form = "grant_type=client_credentials&scope=read";
  const { body } = await exchange(form, { authorization: basic });
  expect(body.scope).toBe("read");
  const refused = await world.send("POST", "/api/v1/mint", {
    key: null,
    body: {},
    headers: { authorization: `bearer ${body.access_token}` },
  });
  expect(refusal(refused)).toMatchObject({ status: 403, code: "scope_missing" });
});

test.each([
  ["grant_type=client_credentials", 401, "credentials_missing", "invalid_client"],
  [
    "grant_type=client_credentials&client_id=x&client_secret=y",
    401,
    "credentials_invalid",
    "invalid_client",
  ],
  [
    "grant_type=password&client_id=x&client_secret=y",
    400,
    "validation_failed",
    "unsupported_grant_type",
  ],
  ["client_id=x&client_secret=y", 400, "validation_failed", "invalid_request"],
  ["grant_type=&client_id=x&client_secret=y", 400, "validation_failed", "invalid_request"],
  [
    "grant_type=client_credentials&client_id=x&client_id=x&client_secret=y",
    400,
    "malformed_request",
    "invalid_request",
  ],
  ["", 400, "validation_failed", "invalid_request"],
  ["grant_type=client_credentials&more=1", 401, "credentials_missing", "invalid_client"],
] as const)("%s: %i %s, %s", async (form, status, code, error) => {
  const refused = await exchange(form);
  expect(refusal(refused)).toMatchObject({ status, code });
  expect(refused.body.error).toBe(error);
  expect(refused.body.error_description).toMatch(/^[ !#-[\]-~]+$/);
  expect(refused.headers["www-authenticate"]).toBe(
    status === 401 ? 'Basic realm="mintmark"' : undefined,
  );
});

test("a scope that the key lacks is invalid_scope, and a suspended application an unauthorized client", async () => {
  const refused = await exchange(client(world, { scope: "read root" }));
  expect([refused.status, refused.body.code, refused.body.error]).toEqual([
    400,
    "scope_missing",
    "invalid_scope",
  ]);
  await using own = await createWorld();
  await own.engine.applications.suspend(own.applicationId);
  const suspended = await own.send("POST", "/oauth/token", {
    key: null,
    raw: client(own),
    headers: FORM,
  });
  expect([suspended.status, suspended.body.error]).toEqual([400, "unauthorized_client"]);
});

test("a secret in the form and in Authorization is refused, and what the server does not know is ignored", async () => {
  const authorization = `Basic ${Buffer.from(`${world.keyId}:${world.key}`).toString("base64")}`;
  expect((await exchange(client(world), { authorization })).body.error).toBe("invalid_request");
  expect((await exchange(client(world, { audience: "x", resource: "" }))).status).toBe(200);
});

test("the client's id and secret must belong together", async () => {
  expect(refusal(await exchange(client(world, { client_id: "other" })))).toMatchObject({
    code: "credentials_invalid",
  });
  expect(refusal(await exchange(client(world, { scope: "read root" })))).toMatchObject({
    code: "scope_missing",
  });
});

test("both headers must name one application", async () => {
  const { body } = await exchange(client(world));
  expect((await bearer(body.access_token, world.key)).status).toBe(200);
  expect(refusal(await bearer(body.access_token, world.otherKey))).toMatchObject({
    code: "credentials_invalid",
  });
  expect(refusal(await bearer("nonsense", world.key))).toMatchObject({
    code: "credentials_invalid",
  });
});

test("forged, foreign and broken tokens are refused", async () => {
  const sign = (
    change: (jwt: SignJWT) => SignJWT,
    secret = SECRET,
    header = { alg: "HS256", typ: "at+jwt" },
  ) => {
    const jwt = new SignJWT({ client_id: world.keyId, scope: "read" })
      .setProtectedHeader(header)
      .setSubject(world.applicationId)
      .setIssuer("mintmark")
      .setAudience(AUDIENCE)
      .setIssuedAt()
      .setExpirationTime("5m");
    return change(jwt).sign(secret);
  };
  const same = (jwt: SignJWT) => jwt;
  expect((await bearer(await sign(same))).status).toBe(200);
  const forged = [
    await sign(same, new Uint8Array(32).fill(8)),
    await sign(same, SECRET, { alg: "HS512", typ: "at+jwt" }),
    await sign(same, SECRET, { alg: "HS256", typ: "JWT" }),
    await sign((jwt) => jwt.setIssuer("other")),
    await sign((jwt) => jwt.setAudience(AUDIENCE.replace("sandbox", "live"))),
    await sign((jwt) => jwt.setSubject(world.otherApplicationId)),
    new UnsecuredJWT({ client_id: world.keyId, scope: "read" })
      .setSubject(world.applicationId)
      .encode(),
    `${await sign(same)}x`,
    world.key,
  ];
  for (const token of forged)
    expect(refusal(await bearer(token))).toMatchObject({ code: "credentials_invalid" });
  const unknown = await sign((jwt) => jwt.setSubject(crypto.randomUUID()));
  expect(refusal(await bearer(unknown))).toMatchObject({
    status: 401,
    code: "credentials_invalid",
  });
  const expired = await sign((jwt) => jwt.setExpirationTime(1));
  expect(refusal(await bearer(expired))).toMatchObject({
    status: 401,
    code: "credentials_expired",
  });
  const basic = await world.send("GET", "/api/v1/assets", {
    key: null,
    headers: { authorization: "Basic eDp5" },
  });
  expect(refusal(basic)).toMatchObject({ status: 401, code: "credentials_invalid" });
});

test("a token ends with its time, its key and its application", async () => {
  await using own = await createWorld({ tokenSecret: SECRET });
  const token = async () => {
    const { body } = await own.send("POST", "/oauth/token", {
      key: null,
      raw: client(own),
      headers: FORM,
    });
    return body.access_token as string;
  };
  const use = (access: string) =>
    own.send("GET", "/api/v1/assets", {
      key: null,
      headers: { authorization: `Bearer ${access}` },
    });
  const access = await token();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 15 * 60_000 + 1000 });
  expect(refusal(await use(access))).toMatchObject({ status: 401, code: "credentials_expired" });
  vi.useRealTimers();
  await own.engine.applications.suspend(own.applicationId);
  expect(refusal(await use(access))).toMatchObject({ status: 403, code: "application_suspended" });
  await own.engine.applications.resume(own.applicationId);
  expect((await use(access)).status).toBe(200);
  await own.engine.keys.revoke(own.keyId);
  expect(refusal(await use(access))).toMatchObject({ status: 401, code: "credentials_invalid" });
});

test("tokens of an identity provider act for the key that they name, by the issuer's public keys only", async () => {
  const [trusted, foreign] = [
    await generateKeyPair("ES256", { extractable: true }),
    await generateKeyPair("ES256"),
  ];
  const folder = await mkdtemp(join(tmpdir(), "mintmark-jwks-"));
  const file = join(folder, "jwks.json");
  await writeFile(
    file,
    JSON.stringify({ keys: [{ ...(await exportJWK(trusted.publicKey)), alg: "ES256", kid: "1" }] }),
  );
  const keys = await readJwks(file);
  await rm(folder, { recursive: true });
  const issuer = "https://identity.example";
  await using own = await createWorld({
    tokenSecret: SECRET,
    identityProvider: { keys, issuer, audience: "mintmark" },
  });
  type Change = { header?: object; key?: Parameters<SignJWT["sign"]>[0]; claims?: object };
  const sign = ({ header, key = trusted.privateKey, claims }: Change = {}) => {
    const right = {
      iss: issuer,
      aud: "mintmark",
      sub: own.applicationId,
      client_id: own.keyId,
      scope: "read root",
    };
    return new SignJWT({ ...right, ...claims })
      .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid: "1", ...header })
      .setIssuedAt()
      .setExpirationTime("5m")
      .sign(key);
  };
  const use = async (token: string, method: "GET" | "POST" = "GET") => {
    const headers = { authorization: `Bearer ${token}` };
    const path = method === "GET" ? "/api/v1/assets" : "/api/v1/users";
    return own.send(method, path, { key: null, headers, ...(method === "POST" && { body: {} }) });
  };
  expect((await use(await sign())).status).toBe(200);
  expect(refusal(await use(await sign(), "POST"))).toMatchObject({
    status: 403,
    code: "scope_missing",
  });
  const publicKey = new TextEncoder().encode(await exportSPKI(trusted.publicKey));
  const forged: Change[] = [
    { key: foreign.privateKey },
    { key: publicKey, header: { alg: "HS256" } },
    { key: SECRET, header: { alg: "HS256" } },
    { header: { typ: "JWT" } },
    { header: { kid: "2" } },
    { claims: { aud: AUDIENCE } },
    { claims: { iss: "mintmark" } },
    { claims: { sub: own.otherApplicationId } },
    { claims: { client_id: "other" } },
    { claims: { client_id: undefined } },
  ];
  for (const change of forged) {
    expect(refusal(await use(await sign(change))), JSON.stringify(change)).toMatchObject({
      code: "credentials_invalid",
    });
  }
  const late = await new SignJWT({ client_id: own.keyId, scope: "read" })
    .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid: "1" })
    .setIssuer(issuer)
    .setAudience("mintmark")
    .setSubject(own.applicationId)
    .setIssuedAt(1)
    .setExpirationTime(2)
    .sign(trusted.privateKey);
  expect(refusal(await use(late))).toMatchObject({ status: 401, code: "credentials_expired" });
});

test("an issuer whose keys cannot be fetched is no fault of the token's", async () => {
  const { privateKey } = await generateKeyPair("ES256");
  const keys = remoteKeys(createRemoteJWKSet(new URL("https://127.0.0.1:9/jwks")));
  const issuer = "https://identity.example";
  await using own = await createWorld({ identityProvider: { keys, issuer, audience: "mintmark" } });
  const token = (alg: string) =>
    new SignJWT({
      iss: issuer,
      aud: "mintmark",
      sub: own.applicationId,
      client_id: own.keyId,
      scope: "read",
    })
      .setProtectedHeader({ alg, typ: "at+jwt" })
      .setIssuedAt()
      .setExpirationTime("5m")
      .sign(alg === "ES256" ? privateKey : SECRET);
  const use = async (alg: string) => {
    const headers = { authorization: `Bearer ${await token(alg)}` };
    return refusal(await own.send("GET", "/api/v1/assets", { key: null, headers }));
  };
  expect(await use("ES256")).toMatchObject({ status: 503, code: "issuer_unreachable" });
  expect(await use("HS256")).toMatchObject({ status: 401, code: "credentials_invalid" });
  const another = { keys, issuer: "mintmark", audience: "mintmark" };
  expect(() => new AccessTokens(own.engine, SECRET, another)).toThrow("identity provider");
});

test("a token's key is found by its id, however many keys the application has had", async () => {
  const own = await createWorld({ tokenSecret: SECRET });
  for (let i = 0; i < 120; i++) {
    const { key } = await own.engine.keys.issue(own.applicationId);
    await own.engine.keys.revoke(key.keyId);
  }
  const list = vi.spyOn(own.engine.keys, "list");
  const { key, secret } = await own.engine.keys.issue(own.applicationId);
  const tokens = new AccessTokens(own.engine, SECRET);
  const token = await tokens.issue(await own.engine.keys.authenticate(secret));
  expect(await tokens.verify(token)).toMatchObject({ keyId: key.keyId });
  const headers = { authorization: `Bearer ${token}` };
  expect((await own.send("GET", "/api/v1/assets", { key: null, headers })).status).toBe(200);
  expect(list).not.toHaveBeenCalled();
  await own[Symbol.asyncDispose]();
});

test("usage shows the keys in pages, and the figures of all", async () => {
  await using own = await createWorld();
  const ids = [own.keyId];
  for (let i = 0; i < 120; i++) {
    const { key } = await own.engine.keys.issue(own.applicationId);
    ids.push(key.keyId);
    if (i > 20) await own.engine.keys.revoke(key.keyId);
  }
  const seen: string[] = [];
  for (let cursor = ""; ; ) {
    const { status, body } = await own.send("GET", `/api/v1/usage?limit=50${cursor}`);
    expect([status, body.keysInUse]).toEqual([200, 22]);
    expect(body.keys.length).toBeLessThanOrEqual(50);
    seen.push(...body.keys.map(({ keyId }: { keyId: string }) => keyId));
    const { nextCursor, hasMore } = body.pagination;
    expect(hasMore).toBe(nextCursor !== null);
    if (nextCursor === null) break;
    cursor = `&cursor=${nextCursor}`;
  }
  expect(seen).toEqual(ids);
  const foreign = await own.send("GET", "/api/v1/usage?cursor=AAAA");
  expect(refusal(foreign)).toMatchObject({ status: 400, code: "cursor_invalid" });
});
