import { connect } from "node:net";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { createWorld, refusal, type World } from "./fixture.ts";

it("an owner signs in over the IPv6 loopback address", async () => {
  await using world = await createWorld();
  const owner = privateKeyToAccount(`0x${"11".repeat(32)}`);
  const headers = { host: "[::1]:3000" };
  const address = owner.address;
  const asked = await world.send("POST", "/owner/v1/challenge", {
    key: null,
    headers,
    body: { address },
  });
  expect(asked.status).toBe(200);
  const { message } = asked.body;
  const signature = await owner.signMessage({ message });
  const opened = await world.send("POST", "/owner/v1/sign-in", {
    key: null,
    headers,
    body: { message, signature },
  });
  expect(opened.body.address).toBe(address.toLowerCase());
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
  const issued = await world.app.inject({
    method: "POST",
    url: "/oauth/token",
    headers: form,
    payload,
  });
  const headers = { authorization: `Bearer ${issued.json().access_token}` };
  expect((await world.send("GET", "/api/v1/assets", { headers })).status).toBe(200);
  const body = { ownerAddress: `0x${"12".repeat(20)}` };
  expect(refusal(await world.send("POST", "/api/v1/users", { headers, body })).code).toBe(
    "scope_missing",
  );
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
      const { statusCode } = await world.app.inject({
        url: page,
        headers: { host: "attacker.example" },
      });
      expect(statusCode, page).toBe(421);
    }
  });

  it("is taken when it is an address, a loopback name, a name without a dot, or a name of the settings", async () => {
    const origin = new URL("https://mint.example");
    await using world = await createWorld({ origin, hosts: ["api.internal.example"] });
    const taken = [
      "127.0.0.1:3000",
      "10.1.2.3",
      "[::1]:3000",
      "localhost:3000",
      "app.localhost",
      "mintmark:3000",
    ];
    for (const host of [
      ...taken,
      "mint.example",
      "MINT.example.:443",
      "api.internal.example:8080",
    ]) {
      expect(await statusAt(world, host), host).toBe(200);
    }
    expect(await statusAt(world, "other.example")).toBe(421);
    await using open = await createWorld({ hosts: ["*"] });
    expect(await statusAt(open, "other.example")).toBe(200);
  });
});

describe("a text that others read", () => {
  const HIDDEN = [
    "\u0000",
    "\u007f",
    "\u202e",
    "\u2066",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\u00ad",
    "\u3164",
    // Joiners that change nothing: after a letter that never joins, before none, between others.
    "\u0627\u200c\u0627",
    "\u06cc\u200c",
    "\u0915\u200d",
    "\u2800",
    "\ufe0f",
    "\ud800",
  ];

  it("has no hidden character, wherever it is", async () => {
    await using world = await createWorld();
    const { engine, users, erc20 } = world;
    const mint = { assetId: erc20.assetId, amount: 1, dataAvailabilityMode: "validium" };
    const contractAddress = `0x${"ab".repeat(20)}` as const;
    const own = {
      contractAddress,
      symbol: "T",
      standard: "erc721",
      applicationId: world.applicationId,
    } as const;
    const { assetId } = await engine.assets.add({ ...own, name: "Own" });
    const setMetadata = (metadata: object) =>
      world.send("PUT", `/api/v1/assets/${assetId}/tokens/1/metadata`, { body: metadata });
    const tries: Record<string, (text: string) => Promise<unknown>> = {
      "a user's reference": (reference) =>
        world.send("POST", "/api/v1/users", { body: { ownerAddress: contractAddress, reference } }),
      "a mint's reference": (reference) =>
        world.send("POST", "/api/v1/mint", {
          body: { users: [{ userId: users[0], mints: [{ ...mint, reference }] }] },
        }),
      "a name in metadata": (name) => setMetadata({ name }),
      "a value deep in metadata": (value) =>
        setMetadata({ name: "x", attributes: [{ trait_type: "y", value }] }),
      "a field of metadata": (field) => setMetadata({ name: "x", [field]: 1 }),
    };
    for (const [what, send] of Object.entries(tries)) {
      for (const hidden of HIDDEN) {
        const { status } = (await send(`a${hidden}b`)) as { status: number };
        expect(status, `${what} with ${escape(hidden)}`).toBe(400);
      }
      const { status } = (await send("Zoë 👩‍🚀 ❤️ 1️⃣ שלום می\u200cخواهم क्\u200dष")) as {
        status: number;
      };
      expect(status, what).toBeLessThan(300);
    }
    expect((await setMetadata({ name: "x", description: "Two\nlines" })).status).toBeLessThan(300);
    for (const name of HIDDEN) {
      await expect(engine.applications.create({ name: `a${name}` })).rejects.toThrow("hidden");
      await expect(engine.keys.issue(world.applicationId, { name: `a${name}` })).rejects.toThrow(
        "hidden",
      );
      await expect(engine.assets.add({ ...own, name })).rejects.toThrow("hidden");
    }
  });

  it("is no active image either", async () => {
    await using world = await createWorld();
    const { assetId } = await world.engine.assets.add({
      contractAddress: `0x${"ab".repeat(20)}`,
      name: "Own",
      symbol: "T",
      standard: "erc721",
      applicationId: world.applicationId,
    });
    for (const image_data of ["<svg onload=alert(1)>", "data:image/svg+xml;base64,PHN2Zz4="]) {
      const body = { name: "x", image_data };
      const refused = await world.send("PUT", `/api/v1/assets/${assetId}/tokens/1/metadata`, {
        body,
      });
      expect(refusal(refused)).toMatchObject({
        status: 400,
        errors: ["/image_data validation_failed"],
      });
    }
  });
});
