import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MAIN } from "../../scripts/sandbox/process.ts";
import { webhookEvent } from "../../server/client/index.ts";
import { createWorld, type World } from "../server/fixture.ts";
import { cleanEnvironment } from "./cli.ts";

let world: World;
let url: string;
beforeAll(async () => {
  world = await createWorld({ webhooks: { reach: "public-and-loopback" } });
  url = await world.app.listen({ host: "127.0.0.1", port: 0 });
});
afterAll(() => world[Symbol.asyncDispose]());

const hooks = async () => (await world.send("GET", "/api/v1/webhooks")).body.data;

test("deliveries are shown with their signature checked, until Ctrl-C deletes the webhook", async () => {
  const { engine, applicationId, key, erc20 } = world;
  const env = cleanEnvironment({ MINTMARK_URL: url, MINTMARK_API_KEY: key });
  const command = [MAIN, "webhooks", "listen", "--types", "asset.disabled,asset.enabled", "--json"];
  const child = spawn(process.execPath, command, { env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit");
  const told = createInterface({ input: child.stderr })[Symbol.asyncIterator]();
  const { value: where = "" } = await told.next();
  const [, address = ""] = /^listening on (http:\/\/127\.0\.0\.1:\d+\/);/.exec(where) ?? [];
  expect(await hooks()).toMatchObject([{ url: address, status: "active" }]);
  await engine.assets.disable(applicationId, erc20.assetId);
  await engine.assets.enable(applicationId, erc20.assetId);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  for (const type of ["asset.disabled", "asset.enabled"])
    expect(JSON.parse((await lines.next()).value ?? "")).toMatchObject({
      type,
      data: { assetId: erc20.assetId },
    });
  // A stranger's request is refused, and shown as such.
  const body = JSON.stringify({ sequence: 9, type: "asset.enabled", data: {} });
  const headers = {
    "webhook-id": "evt_1",
    "webhook-timestamp": `${Math.floor(Date.now() / 1000)}`,
    "webhook-signature": `v1,${Buffer.alloc(32).toString("base64")}`,
  };
  expect((await fetch(address, { method: "POST", body, headers })).status).toBe(400);
  expect((await told.next()).value).toBe("refused: the signature is not the server's");
  child.kill("SIGINT");
  expect(await ended).toEqual([0, null]);
  expect(await hooks()).toEqual([]);
});

test("a wrong type of event is refused before anything listens", async () => {
  const env = cleanEnvironment({ MINTMARK_URL: url, MINTMARK_API_KEY: world.key });
  const command = [MAIN, "webhooks", "listen", "--types", "asset.gone"];
  const child = spawn(process.execPath, command, { env, stdio: ["ignore", "ignore", "pipe"] });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([code, said]).toEqual([1, expect.stringContaining("types/0: Give one of mint.accepted")]);
});

test("the client takes what the Standard Webhooks library signs, and nothing else", async () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  const other = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
  const body = JSON.stringify({ sequence: 1, type: "mint.accepted", data: { mints: 1 } });
  const signed = (at: Date, by = secret) => ({
    "webhook-id": "evt_1",
    "webhook-timestamp": `${Math.floor(at.getTime() / 1000)}`,
    "webhook-signature": new Webhook(by).sign("evt_1", at, body),
  });
  const now = new Date();
  const headers = signed(now);
  expect(await webhookEvent(secret, headers, body)).toEqual(JSON.parse(body));
  expect(await webhookEvent(secret, new Headers(headers), body)).toEqual(JSON.parse(body));
  // While a secret is rotated, a delivery has a signature by each.
  const both = `${signed(now, other)["webhook-signature"]} ${headers["webhook-signature"]}`;
  expect(await webhookEvent(secret, { ...headers, "webhook-signature": both }, body)).toBeDefined();
  const refused = (why: string, with_: Parameters<typeof webhookEvent>) =>
    expect(webhookEvent(...with_)).rejects.toThrow(why);
  await refused("not the server's", [other, headers, body]);
  await refused("not the server's", [secret, headers, `${body} `]);
  await refused("not the server's", [secret, { ...headers, "webhook-signature": "v1,%" }, body]);
  const old = new Date(now.getTime() - 301_000);
  await refused("too old", [secret, signed(old), body]);
  await refused("too old", [secret, { ...headers, "webhook-timestamp": "x" }, body]);
  await refused("webhook-timestamp is missing", [secret, { "webhook-id": "evt_1" }, body]);
});
