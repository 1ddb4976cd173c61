import type { InjectOptions } from "fastify";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import type { Role } from "../../core/index.ts";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { type Answer, createWorld, entries, refusal } from "./fixture.ts";

const HEADERS = { "mintmark-console": "1", host: "localhost" };
const WALLET = privateKeyToAccount(`0x${"17".repeat(32)}`);

const world = await createWorld();
afterAll(() => world[Symbol.asyncDispose]());

interface Browser {
  readonly cookie: string;
  readonly personId: string;
  send(
    method: InjectOptions["method"],
    url: string,
    body?: unknown,
    headers?: object,
  ): Promise<Answer>;
}

async function linkOf(
  role: Role,
  applicationId: string | null = role === "operator" ? null : world.applicationId,
) {
  const { person, link } = await world.engine.people.invite({ applicationId, role, name: role });
  return { link: link ?? "", personId: person.personId };
}

/** A browser that has signed in by a link. */
async function signedIn(role: Role, applicationId?: string | null): Promise<Browser> {
  const { link, personId } = await linkOf(role, applicationId);
  const answer = await world.send("POST", "/console/v1/sign-in", {
    key: null,
    body: { link },
    headers: HEADERS,
  });
  expect(answer.status).toBe(201);
  const cookie = String(answer.headers["set-cookie"]).split(";")[0] ?? "";
  const send: Browser["send"] = (method, url, body, headers) =>
    world.send(method, url, { key: null, body, headers: { ...HEADERS, cookie, ...headers } });
  return { cookie, personId, send };
}

/** A challenge that the wallet has signed. */
async function proof(account = WALLET) {
  const body = { address: account.address };
  const { message } = (
    await world.send("POST", "/console/v1/challenge", { key: null, body, headers: HEADERS })
  ).body;
  return { message, signature: await account.signMessage({ message }) };
}

const post = (body: unknown, headers: object = HEADERS) =>
  world.send("POST", "/console/v1/sign-in", { key: null, body, headers: { ...headers } });

describe("a sign-in to the console", () => {
  test("comes in a cookie that no script and no other site gets", async () => {
    const { link } = await linkOf("viewer");
    const answer = await post({ link });
    const cookie = String(answer.headers["set-cookie"]);
    expect(cookie).toMatch(
      /^mintmark_sign_in=[0-9a-f]{96}; Max-Age=4\d{4}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    expect(answer.text).not.toContain(cookie.slice(17, 113));
    expect(refusal(await post({ link }))).toMatchObject({ code: "credentials_invalid" });
    await using live = await createWorld({ origin: new URL("https://mint.example") });
    const invited = await live.engine.people.invite({
      applicationId: null,
      role: "operator",
      name: "Op",
    });
    const secure = {
      key: null,
      body: { link: invited.link },
      headers: { ...HEADERS, host: "mint.example" },
    };
    const opened = await live.send("POST", "/console/v1/sign-in", secure);
    // Browsers keep this name from its own host over TLS only, so that no other host of the site
    // plants a sign-in.
    const kept = String(opened.headers["set-cookie"]);
    expect(kept).toMatch(
      /^__Host-mintmark_sign_in=[0-9a-f]{96}; Max-Age=4\d{4}; Path=\/; .*; Secure$/,
    );
    const [pair = ""] = kept.split(";");
    const look = async (sent: string) => {
      const headers = { ...HEADERS, host: "mint.example", cookie: sent };
      return (await live.send("GET", "/console/v1/sign-in", { key: null, headers })).status;
    };
    expect([await look(`x=1;${pair};y=2`), await look(pair.replace("__Host-", ""))]).toEqual([
      200, 401,
    ]);
  });

  test("is not opened by a forged cookie, nor kept after signing out", async () => {
    const browser = await signedIn("admin");
    const [name, token = ""] = browser.cookie.split("=");
    const other = await signedIn("viewer");
    const mixed = `${token.slice(0, 32)}${other.cookie.split("=")[1]?.slice(32)}`;
    for (const forged of [
      "",
      "x",
      mixed,
      `${token}0`,
      token.replace(/.$/, (end) => (end === "0" ? "1" : "0")),
    ]) {
      const answer = await browser.send("GET", "/console/v1/sign-in", undefined, {
        cookie: `${name}=${forged}`,
      });
      expect(answer.status, forged).toBe(401);
    }
    expect((await browser.send("GET", "/console/v1/sign-in")).body.person.role).toBe("admin");
    const out = await browser.send("DELETE", "/console/v1/sign-in");
    expect(String(out.headers["set-cookie"])).toContain("Max-Age=0");
    expect(refusal(await browser.send("GET", "/api/v1/application"))).toMatchObject({
      code: "credentials_invalid",
    });
  });

  test("does not count without the console's own header, so no other site can use it (CSRF)", async () => {
    const browser = await signedIn("admin");
    const before = await world.engine.keys.list(world.applicationId, { limit: 100 });
    const attacks: object[] = [
      { "mintmark-console": "" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ];
    for (const headers of attacks) {
      const issued = await browser.send("POST", "/console/v1/keys", { name: "stolen" }, headers);
      expect(refusal(issued)).toMatchObject({ code: "credentials_missing" });
      expect((await browser.send("GET", "/api/v1/application", undefined, headers)).status).toBe(
        401,
      );
      expect((await browser.send("DELETE", "/console/v1/sign-in", undefined, headers)).status).toBe(
        401,
      );
    }
    expect((await world.engine.keys.list(world.applicationId, { limit: 100 })).data).toEqual(
      before.data,
    );
    // Nor can another site sign a visitor in as somebody else.
    const { link } = await linkOf("viewer");
    expect(refusal(await post({ link }, { host: "localhost" }))).toMatchObject({
      code: "credentials_missing",
    });
    expect((await post({ link })).status).toBe(201);
    // A preflight gets no permission.
    const preflight = {
      origin: "https://evil.example",
      "access-control-request-headers": "mintmark-console",
    };
    const allowed = await world.app.inject({
      method: "OPTIONS",
      url: "/console/v1/keys",
      headers: preflight,
    });
    expect(allowed.statusCode).toBeGreaterThanOrEqual(400);
    expect(
      Object.keys(allowed.headers).filter((name) => name.startsWith("access-control")),
    ).toEqual([]);
  });

  test("is opened by a wallet's signature once, over a message of this purpose, for an invited address", async () => {
    expect(refusal(await post(await proof()))).toMatchObject({ code: "credentials_invalid" });
    const { applicationId } = world;
    await world.engine.people.invite({
      applicationId,
      role: "viewer",
      name: "Wally",
      address: WALLET.address,
    });
    const signed = await proof();
    expect((await post(signed)).body.person.name).toBe("Wally");
    expect(refusal(await post(signed))).toMatchObject({ code: "credentials_invalid" });
    const other = privateKeyToAccount(`0x${"18".repeat(32)}`);
    const { message } = await proof();
    const foreign = { message, signature: await other.signMessage({ message }) };
    expect(refusal(await post(foreign))).toMatchObject({ code: "signature_invalid" });
    // An owner's challenge, which the explorer asks for, signs nobody in to the console, and the
    // reverse.
    const body = { address: WALLET.address };
    const owners = await world.send("POST", "/owner/v1/challenge", {
      key: null,
      body,
      headers: HEADERS,
    });
    const reused = {
      message: owners.body.message,
      signature: await WALLET.signMessage(owners.body),
    };
    expect(refusal(await post(reused))).toMatchObject({ code: "credentials_invalid" });
    const taken = await world.send("POST", "/owner/v1/sign-in", {
      key: null,
      body: await proof(),
      headers: HEADERS,
    });
    expect(refusal(taken)).toMatchObject({ code: "credentials_invalid" });
    const changed = await proof();
    const elsewhere = {
      ...changed,
      message: changed.message.replaceAll("localhost", "evil.example"),
    };
    expect(refusal(await post(elsewhere))).toMatchObject({ code: "credentials_invalid" });
  });
});

describe("a role", () => {
  test("lets a viewer read, and change nothing by any route", async () => {
    const viewer = await signedIn("viewer");
    const before = await world.snapshot();
    const { erc20, users, keyId } = world;
    const mint = { users: [{ userId: users[0], mints: entries(world, 1) }] };
    const tried: [InjectOptions["method"], string, unknown?][] = [
      ["POST", "/api/v1/mint", mint],
      ["POST", "/api/v1/mint?dryRun=true", mint],
      ["POST", "/api/v1/users", { ownerAddress: WALLET.address }],
      ["PUT", `/api/v1/assets/${erc20.assetId}/enablement`],
      ["DELETE", `/api/v1/assets/${erc20.assetId}/enablement`],
      ["PUT", "/api/v1/application/defaults", { dataAvailabilityMode: "validium" }],
      ["POST", "/api/v1/webhooks", { url: "https://example.com/" }],
      ["GET", "/api/v1/webhooks"],
      ["POST", "/console/v1/keys", { name: "mine", scopes: ["read"] }],
      ["POST", `/console/v1/keys/${keyId}/rotation`, {}],
      ["DELETE", `/console/v1/keys/${keyId}`],
      ["POST", "/console/v1/people", { name: "me", role: "admin" }],
      ["PUT", `/console/v1/people/${viewer.personId}/role`, { role: "admin" }],
      ["POST", `/console/v1/people/${viewer.personId}/links`],
      ["DELETE", `/console/v1/people/${viewer.personId}`],
      ["GET", "/console/v1/operations"],
      ["GET", "/console/v1/applications"],
      ["POST", "/console/v1/applications", { name: "mine" }],
      ["PUT", `/console/v1/applications/${world.otherApplicationId}/suspension`],
    ];
    for (const [method, url, body] of tried) {
      expect(refusal(await viewer.send(method, url, body)), `${method} ${url}`).toMatchObject({
        code: "role_missing",
      });
    }
    const writes = ENDPOINTS.filter(
      ({ access, method }) => access !== "public" && access !== "owner" && method !== "GET",
    );
    for (const { method, path } of writes) {
      if (path.startsWith("/console/v1/sign-in")) continue;
      const url = path.replaceAll(/\{\w+\}/g, "01a1fd1b-bfbe-7246-add7-f4566c613096");
      const answer = await viewer.send(method, url, {});
      expect([400, 403, 415], `${method} ${path}`).toContain(answer.status);
    }
    expect(await world.snapshot()).toEqual(before);
    for (const url of [
      "/api/v1/transactions",
      "/api/v1/usage",
      "/api/v1/users",
      "/console/v1/audit",
    ]) {
      expect((await viewer.send("GET", url)).status).toBe(200);
    }
  });

  test("lets a developer mint and create keys of its own scopes, in its name", async () => {
    const developer = await signedIn("developer");
    const mint = { users: [{ userId: world.users[0], mints: entries(world, 77) }] };
    expect((await developer.send("POST", "/api/v1/mint", mint)).status).toBe(200);
    const { body } = await developer.send("POST", "/console/v1/keys", {
      name: "Shop",
      scopes: ["mint"],
    });
    expect((await world.send("GET", "/api/v1/application", { key: body.secret })).status).toBe(200);
    const wide = await developer.send("POST", "/console/v1/keys", { name: "wide" });
    expect(refusal(wide)).toMatchObject({ code: "role_missing" });
    const rotated = await developer.send("POST", `/console/v1/keys/${body.key.keyId}/rotation`, {});
    expect(rotated.body.key).toMatchObject({ name: "Shop", scopes: ["mint"] });
    await developer.send("DELETE", `/console/v1/keys/${body.key.keyId}`);
    expect((await world.send("GET", "/api/v1/application", { key: body.secret })).status).toBe(401);
    const { data } = (await developer.send("GET", "/console/v1/audit?limit=5")).body;
    const acts = (data as { action: string; count: number; personName: string }[]).map(
      ({ action, count, personName }) => `${personName} ${action} ${count}`,
    );
    expect(acts).toEqual([
      "developer keyRevoked 1",
      "developer keyIssued 1",
      "developer keyIssued 1",
      "developer mint 3",
      "developer personSignedIn 1",
    ]);
    expect(data[3].detail).toMatch(/^[\d.]+ \S+, and 2 more$/);
    expect(JSON.stringify(data)).not.toContain(body.secret.slice(-72));
  });

  test("keeps each team in its application, whatever the headers say", async () => {
    const admin = await signedIn("admin");
    const stranger = { "mintmark-application": world.otherApplicationId };
    const own = await admin.send("GET", "/api/v1/application", undefined, stranger);
    expect(own.body.applicationId).toBe(world.applicationId);
    const foreign = await signedIn("viewer", world.otherApplicationId);
    expect(
      refusal(await admin.send("DELETE", `/console/v1/people/${foreign.personId}`)),
    ).toMatchObject({
      code: "role_missing",
    });
    const { key } = await world.engine.keys.issue(world.otherApplicationId);
    expect(refusal(await admin.send("DELETE", `/console/v1/keys/${key.keyId}`))).toMatchObject({
      code: "role_missing",
    });
    const operator = await admin.send("POST", "/console/v1/people", {
      name: "me",
      role: "operator",
    });
    expect(refusal(operator)).toMatchObject({ code: "validation_failed" });
  });

  test("lets the operator look into an application that it names, and mint in none", async () => {
    const operator = await signedIn("operator");
    const named = { "mintmark-application": world.otherApplicationId };
    expect(refusal(await operator.send("GET", "/api/v1/application"))).toMatchObject({
      code: "role_missing",
    });
    const seen = await operator.send("GET", "/api/v1/application", undefined, named);
    expect(seen.body.applicationId).toBe(world.otherApplicationId);
    const mint = { users: [{ userId: world.otherUser, mints: entries(world, 78).slice(0, 1) }] };
    expect(refusal(await operator.send("POST", "/api/v1/mint", mint, named))).toMatchObject({
      code: "role_missing",
    });
    const invited = await operator.send(
      "POST",
      "/console/v1/people",
      { name: "Ada", role: "admin" },
      named,
    );
    expect(invited.body.person.applicationId).toBe(world.otherApplicationId);
    const { data } = (await operator.send("GET", "/console/v1/audit", undefined, named)).body;
    expect(data[0]).toMatchObject({
      personName: "operator",
      action: "personInvited",
      detail: "Ada: admin",
    });
    const bad = await operator.send("GET", "/api/v1/application", undefined, {
      "mintmark-application": "x",
    });
    expect(refusal(bad)).toMatchObject({ code: "application_not_found" });
  });

  test("lets the operator alone create, suspend and resume applications, and see how the server stands", async () => {
    const operator = await signedIn("operator");
    const { applicationId } = (
      await operator.send("POST", "/console/v1/applications", { name: "Third" })
    ).body;
    const path = `/console/v1/applications/${applicationId}/suspension`;
    expect((await operator.send("PUT", path)).body.suspended).toBe(true);
    expect((await operator.send("DELETE", path)).body.suspended).toBe(false);
    const { data } = (await operator.send("GET", "/console/v1/applications")).body;
    expect(data.map(({ name }: { name: string }) => name)).toEqual(["Third", "Second", "First"]);
    const { checks, commits } = (await operator.send("GET", "/console/v1/operations")).body;
    expect(checks).toContainEqual({ name: "clock", ok: true, detail: "fits the journal" });
    expect(commits).toEqual([]);
    const log = (await operator.send("GET", "/console/v1/audit?limit=3")).body.data;
    expect(
      log.map(({ action, detail }: { action: string; detail: string }) => `${action} ${detail}`),
    ).toEqual([
      "applicationSuspended Third",
      "applicationSuspended Third",
      "applicationCreated Third",
    ]);
    const admin = await signedIn("admin");
    expect(refusal(await admin.send("PUT", path))).toMatchObject({ code: "role_missing" });
  });

  test("ends with the person, at once", async () => {
    const admin = await signedIn("admin");
    const leaver = await signedIn("developer");
    expect((await admin.send("DELETE", `/console/v1/people/${leaver.personId}`)).status).toBe(200);
    expect(refusal(await leaver.send("GET", "/api/v1/users"))).toMatchObject({
      code: "credentials_invalid",
    });
  });
});
