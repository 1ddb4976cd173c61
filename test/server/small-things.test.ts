import { connect } from "node:net";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { createWorld, refusal, type World } from "./fixture.ts";

it("an owner signs in over the IPv6 loopback address", async () => {
  await using world = await createWorld();
  const owner = privateKeyToAccount(`0x${"11".repeat(32)}`);
  const headers = { host: "[::1]:3000" };
  const address = owner.address;
  const asked = await world.send("POST", "/owner/v1/challenge", { key: null, headers, body: { address } });
  expect(asked.status).toBe(200);
  const { message } = asked.body;
  const signature = await owner.signMessage({ message });
  const opened = await world.send("POST", "/owner/v1/session", { key: null, headers, body: { message, signature } });
  expect(opened.body.address).toBe(address.toLowerCase());
});

it("no spelling of a path makes an answer of the API cacheable", async () => {
  await using world = await createWorld();
  for (const url of ["/api/v1/limits", "/%61pi/v1/limits", "http://localhost/api/v1/limits"]) {
    const { headers } = await world.app.inject({ url, headers: { "x-api-key": world.key } });
    expect(headers["cache-control"], url).toBe("no-store");
  }
});

it("a key and a narrower token together may do what both may", async () => {
  await using world = await createWorld();
  const payload = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: world.keyId,
    client_secret: world.key,
    scope: "read",
  }).toString();
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const issued = await world.app.inject({ method: "POST", url: "/oauth/token", headers: form, payload });
  const headers = { authorization: `Bearer ${issued.json().access_token}` };
  expect((await world.send("GET", "/api/v1/assets", { headers })).status).toBe(200);
  const body = { ownerAddress: `0x${"12".repeat(20)}` };
  expect(refusal(await world.send("POST", "/api/v1/users", { headers, body })).code).toBe("scope_missing");
});

it("an API key that is sent as a token is told from one", async () => {
  await using world = await createWorld();
  const headers = { authorization: `Bearer ${world.key}` };
  const refused = await world.send("GET", "/api/v1/assets", { key: null, headers });
  expect(refused.status).toBe(401);
  expect(refused.body.detail).toContain("X-Api-Key");
  expect(refused.text).not.toContain(world.key);
});

it("two Idempotency-Keys are refused", async () => {
  await using world = await createWorld();
  await world.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = world.app.server.address() as { port: number };
  const socket = connect(port, "127.0.0.1");
  socket.write(
    `POST /api/v1/users HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ${world.key}\r\nidempotency-key: a\r\nidempotency-key: b\r\n\r\n`,
  );
  let text = "";
  for await (const chunk of socket) text += chunk;
  expect(text).toMatch(/^HTTP\/1.1 400/);
  expect(text).toContain("idempotency-key occurs more than once");
});

it("a page takes GET and says so", async () => {
  await using world = await createWorld();
  for (const url of ["/", "/explorer", "/docs"]) {
    const { statusCode, headers } = await world.app.inject({ method: "DELETE", url });
    expect([url, statusCode, headers.allow]).toEqual([url, 405, "GET"]);
  }
});

it("/oauth/token without credentials says where they go", async () => {
  await using world = await createWorld();
  const { statusCode, body } = await world.app.inject({
    method: "POST",
    url: "/oauth/token",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    payload: "grant_type=client_credentials",
  });
  expect([statusCode, JSON.parse(body).error]).toEqual([401, "invalid_client"]);
  expect(JSON.parse(body).error_description).toContain("client_id and client_secret");
});

describe("the Host of a request", () => {
  const statusAt = async (world: World, host: string, url = "/public/v1/state") => {
    return (await world.send("GET", url, { key: null, headers: { host } })).status;
  };

  it("is refused when it is a name that another site can own, as DNS rebinding needs", async () => {
    await using world = await createWorld();
    for (const host of [
      "attacker.example",
      "attacker.example:3000",
      "localhost.attacker.example",
      "127.0.0.1.nip.io",
    ]) {
      const refused = await world.send("GET", "/public/v1/state", { key: null, headers: { host } });
      expect(refusal(refused), host).toMatchObject({ status: 421, code: "host_unknown" });
      expect(refused.body.detail).toContain("MINTMARK_HOSTS");
    }
    for (const page of ["/", "/explorer", "/docs"]) {
      const { statusCode } = await world.app.inject({ url: page, headers: { host: "attacker.example" } });
      expect(statusCode, page).toBe(421);
    }
  });

  it("is taken when it is an address, a loopback name, a name without a dot, or a name of the settings", async () => {
    const origin = new URL("https://mint.example");
    await using world = await createWorld({ origin, hosts: ["api.internal.example"] });
    const taken = ["127.0.0.1:3000", "10.1.2.3", "[::1]:3000", "localhost:3000", "app.localhost", "mintmark:3000"];
    for (const host of [...taken, "mint.example", "MINT.example.:443", "api.internal.example:8080"]) {
      expect(await statusAt(world, host), host).toBe(200);
    }
    expect(await statusAt(world, "other.example")).toBe(421);
    await using open = await createWorld({ hosts: ["*"] });
    expect(await statusAt(open, "other.example")).toBe(200);
  });
});

it("a page of events after one that is not there yet names the newest", async () => {
  await using world = await createWorld();
  const refused = await world.send("GET", "/api/v1/events?after=999");
  expect(refusal(refused)).toMatchObject({ status: 400, errors: ["/query/after validation_failed"] });
  expect(refused.body.detail).toContain("the newest is 3");
  const headers = { "last-event-id": "999" };
  expect(refusal(await world.send("GET", "/api/v1/events", { headers })).errors).toEqual([
    "/headers/last-event-id validation_failed",
  ]);
});

it("a field of the wrong form is refused with a sentence that says what to give", async () => {
  await using world = await createWorld();
  const detailsOf = async (method: "GET" | "POST", url: string, body?: object) =>
    (await world.send(method, url, { ...(body && { body }) })).body.errors.map(
      ({ pointer, detail }: { pointer: string; detail: string }) => `${pointer} ${detail}`,
    );
  expect(await detailsOf("GET", "/api/v1/vaults?limit=1&limit=2")).toEqual([
    "/query/limit Give one value, not a list.",
  ]);
  expect(await detailsOf("POST", "/api/v1/webhooks", {})).toEqual(["/url This is missing."]);
  expect(await detailsOf("POST", "/api/v1/webhooks", { url: 7, types: "mint.accepted" })).toEqual([
    "/url Give a string.",
    "/types Give a list.",
  ]);
  expect(await detailsOf("POST", "/api/v1/users/bulk", { users: [] })).toEqual(["/users Give at least one user."]);
  const [mode] = await detailsOf("GET", "/api/v1/vaults?dataAvailabilityMode=x");
  expect(mode).toBe("/query/dataAvailabilityMode Give one of validium, zk-rollup.");
});
