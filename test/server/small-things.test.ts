import { connect } from "node:net";
import { privateKeyToAccount } from "viem/accounts";
import { expect, it } from "vitest";
import { createWorld, refusal } from "./fixture.ts";

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
  for (const url of ["/api/v1/limits", "/%61pi/v1/limits", "http://example.com/api/v1/limits"]) {
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
