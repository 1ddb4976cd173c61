import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { guardedLookup, mayReach } from "../../core/webhooks/address-policy.ts";
import { Deliverer } from "../../core/webhooks/delivery.ts";
import { WebhookDispatcher } from "../../core/webhooks/dispatcher.ts";
import { buildServer } from "../../server/app.ts";
import { openTest } from "../core/engine/fixture.ts";
import { eventually } from "../eventually.ts";
import { createWorld, refusal, SETTLEMENT, type World, type WorldOptions } from "./fixture.ts";
import { type Received, Receiver } from "./receiver.ts";
import { listen } from "./sse.ts";
import { transferWorld } from "./transfers-fixture.ts";

const QUICK = {
  reach: "public-and-loopback",
  backoff: { firstMs: 1, maxMs: 10 },
  timeoutMs: 10_000,
  recordEveryMs: 1,
} as const;

const HUNG_UP = expect.stringMatching(
  /^The endpoint 127\.0\.0\.1:\d+ closed the connection before it answered\.$/,
);

const SILENT = "No answer within 1 s.";

let world: World;
let receiver: Receiver;
const start = async (options: WorldOptions = {}) => {
  world = await createWorld({ webhooks: QUICK, ...options });
  await listen(world.app);
};
beforeEach(async () => {
  receiver = await new Receiver().listen();
});
afterEach(async () => {
  await world?.[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});

const create = async (body: object = {}) => {
  const { status, body: made } = await world.send("POST", "/api/v1/webhooks", {
    body: { url: receiver.url, ...body },
  });
  expect(status).toBe(201);
  return made as { webhookId: string; secret: string; status: string };
};
const look = async (webhookId: string) =>
  (await world.send("GET", `/api/v1/webhooks/${webhookId}`)).body;
/** One event each. */
const happen = async (count: number) => {
  const { engine, applicationId, erc20 } = world;
  for (let i = 0; i < count; i++) {
    const { enabled } = await engine.assets.get(applicationId, erc20.assetId);
    await (enabled ? engine.assets.disable : engine.assets.enable).call(
      engine,
      applicationId,
      erc20.assetId,
    );
  }
};
const sequences = (received: readonly Received[]) => received.map(({ event }) => event.sequence);

describe("deliveries", () => {
  test("come in order, each signed as Standard Webhooks say, with what the stream tells", async () => {
    await start();
    const { webhookId, secret } = await create();
    await happen(20);
    const received = await receiver.has(20);
    expect(sequences(received)).toEqual(Array.from({ length: 20 }, (_, i) => i + 4));
    const { data } = (await world.send("GET", "/api/v1/events?after=3")).body;
    for (const [i, delivery] of received.entries()) {
      expect(Receiver.verify(secret, delivery)).toEqual(data[i]);
      expect(delivery.headers["content-type"]).toBe("application/json");
    }
    expect(new Set(received.map(({ id }) => id)).size).toBe(20);
    const [first] = received;
    if (first === undefined) throw new Error("nothing was received");
    expect(() => Receiver.verify(secret, { ...first, body: first.body.replace("4", "5") })).toThrow(
      "signature",
    );
    await eventually(async () =>
      expect(await look(webhookId)).toMatchObject({ delivered: 23, failure: null }),
    );
  });

  test("are of the types asked for, and of nobody else's application", async () => {
    await start();
    await create({ types: ["asset.enabled"] });
    await world.engine.assets.disable(world.otherApplicationId, world.erc20.assetId);
    await happen(4);
    const received = await receiver.has(2);
    expect(received.map(({ event }) => `${event.sequence} ${event.type}`)).toEqual([
      "5 asset.enabled",
      "7 asset.enabled",
    ]);
  });

  test("tell the issuer of a redeemed ticket, with its user, while no batch has it yet", async () => {
    const guest = privateKeyToAccount(generatePrivateKey());
    const made = await transferWorld(guest, { webhooks: QUICK });
    ({ world } = made);
    await listen(world.app);
    const { secret } = await create({ types: ["transfer.redeemed"] });
    const { ticket: vaultId } = await made.final();
    const transfers = [{ vaultId, redeem: true }];
    const { body: prepared } = await world.send("POST", "/api/v1/transfers/prepare", {
      body: { transfers },
    });
    const signature = await guest.signTypedData(prepared.typedData);
    const { path, body } = prepared.submit;
    const { body: taken } = await world.send("POST", path, { body: { ...body, signature } });
    const [delivery] = await receiver.has(1);
    if (delivery === undefined) throw new Error("nothing was received");
    const { transferId } = taken;
    expect(Receiver.verify(secret, delivery)).toMatchObject({
      type: "transfer.redeemed",
      data: { transferId, userId: made.userId, vaultId, amount: "0" },
    });
    expect((await world.send("GET", `/api/v1/transfers/${transferId}`)).body.status).toBe(
      "accepted",
    );
  });

  test("skip the event that the endpoint can never take, and go on with the next one", async () => {
    await start({ webhooks: { ...QUICK, backoff: { firstMs: 60_000, maxMs: 60_000 } } });
    const { webhookId } = await create();
    receiver.answer = (response, { event }) =>
      void response.writeHead(event.sequence === 4 ? 500 : 204).end();
    await happen(3);
    await receiver.has(1);
    await eventually(async () =>
      expect(await look(webhookId)).toMatchObject({ delivered: 3, failure: expect.any(String) }),
    );
    const skip = (sequence: number, key?: string) =>
      world.send("POST", `/api/v1/webhooks/${webhookId}/deliveries/${sequence}/skip`, {
        ...(key !== undefined && { key }),
      });
    // Nobody skips another one than the next by mistake, nor another application's.
    expect(refusal(await skip(5)).errors).toEqual(["/path/sequence validation_failed"]);
    expect(refusal(await skip(4, world.otherKey)).code).toBe("webhook_not_found");
    const skipped = await skip(4);
    expect(skipped.body).toMatchObject({ delivered: 4, failure: null, failingSince: null });
    expect(sequences(await receiver.has(3))).toEqual([4, 5, 6]);
    await eventually(async () => expect((await look(webhookId)).delivered).toBe(6));
    // A repetition changes nothing, and there is nothing more to skip.
    expect((await skip(4)).body).toMatchObject({ delivered: 6 });
    expect(refusal(await skip(7)).code).toBe("validation_failed");
  });

  test("are of the types that the webhook was changed to, also the one that waits", async () => {
    await start({ webhooks: { ...QUICK, backoff: { firstMs: 60_000, maxMs: 60_000 } } });
    const { webhookId } = await create();
    receiver.answer = (response, { event }) =>
      void response.writeHead(event.type === "asset.disabled" ? 500 : 204).end();
    await happen(4);
    await receiver.has(1);
    await eventually(async () => expect((await look(webhookId)).failure).not.toBeNull());
    const path = `/api/v1/webhooks/${webhookId}`;
    const wrong = await world.send("PUT", path, { body: { types: ["asset.enabled", "asset"] } });
    expect(refusal(wrong).errors).toEqual(["/types/1 validation_failed"]);
    const changed = await world.send("PUT", path, { body: { types: ["asset.enabled"] } });
    expect(changed.body.types).toEqual(["asset.enabled"]);
    expect(sequences(await receiver.has(3))).toEqual([4, 5, 7]);
    await world.send("PUT", path, { body: { types: [] } });
    receiver.answer = (response) => void response.writeHead(204).end();
    await happen(1);
    expect(sequences(await receiver.has(4))).toEqual([4, 5, 7, 8]);
  });

  test("are signed with both secrets after a rotation", async () => {
    await start();
    const { webhookId, secret } = await create();
    const { body: rotated } = await world.send("POST", `/api/v1/webhooks/${webhookId}/secret`);
    await happen(1);
    const [delivery] = await receiver.has(1);
    if (delivery === undefined) throw new Error("nothing was received");
    for (const either of [secret, rotated.secret])
      expect(Receiver.verify(either, delivery)).toEqual(delivery.event);
    expect(secret).not.toBe(rotated.secret);
  });

  test("are repeated under the same id until they are taken, and the next waits", async () => {
    await start();
    const { webhookId } = await create();
    let refusals = 0;
    receiver.answer = (response) => void response.writeHead(refusals++ < 4 ? 500 : 200).end();
    await happen(2);
    const received = await receiver.has(6);
    expect(sequences(received)).toEqual([4, 4, 4, 4, 4, 5]);
    expect(new Set(received.slice(0, 5).map(({ id }) => id)).size).toBe(1);
    await eventually(async () => {
      expect(await look(webhookId)).toMatchObject({
        delivered: 5,
        failingSince: null,
        failure: null,
      });
    });
  });

  test.each([
    ["hangs", () => {}, SILENT],
    [
      "redirects",
      (r: Parameters<Receiver["answer"]>[0]) => r.writeHead(307, { location: "/other" }).end(),
      "The endpoint answered 307.",
    ],
    ["hangs up", (r: Parameters<Receiver["answer"]>[0]) => r.destroy(), HUNG_UP],
  ])("fail at an endpoint that %s, and say why", async (_, answer, failure) => {
    await start({ webhooks: { ...QUICK, timeoutMs: failure === SILENT ? 1_000 : 10_000 } });
    const { webhookId } = await create();
    receiver.answer = answer;
    await happen(1);
    const received = await receiver.has(2);
    expect(sequences(received)).toEqual(received.map(() => 4));
    expect(await look(webhookId)).toMatchObject({ status: "active", delivered: 3, failure });
  });

  test("are sent anew at once, and once, when a kept connection closes under them", async () => {
    using deliverer = new Deliverer("public-and-loopback", 5_000);
    const post = () => deliverer.post(receiver.url, {}, "{}", new AbortController().signal);
    expect(await post()).toEqual({ kind: "delivered", status: 204 });
    receiver.answer = (response) => {
      if (receiver.received.length === 2) response.destroy();
      else response.writeHead(204).end();
    };
    expect(await post()).toEqual({ kind: "delivered", status: 204 });
    expect(receiver.received).toHaveLength(3);
    expect(await post()).toEqual({ kind: "delivered", status: 204 });
    receiver.answer = (response) => response.destroy();
    expect(await post()).toMatchObject({ kind: "failed", failure: HUNG_UP });
  });

  test("do not read an endless answer", async () => {
    await start();
    await create();
    receiver.answer = (response) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
      };
      response.writeHead(200).on("drain", more);
      more();
    };
    await happen(3);
    expect(sequences(await receiver.has(3))).toEqual([4, 5, 6]);
  });

  test("end after some days of failures with an event, and go on without a gap when enabled again", async () => {
    await start({ webhooks: { ...QUICK, giveUpAfterMs: 20 } });
    const { webhookId } = await create();
    // The failures begin when both events are there, so that the webhook's own is the third.
    const both = Promise.withResolvers<void>();
    receiver.answer = (response) => void both.promise.then(() => response.writeHead(503).end());
    await happen(2);
    both.resolve();
    await eventually(async () => expect((await look(webhookId)).status).toBe("disabled"));
    const { data } = (await world.send("GET", "/api/v1/events?after=5")).body;
    expect(data).toMatchObject([
      {
        sequence: 6,
        type: "webhook.disabled",
        data: { webhookId, failure: "The endpoint answered 503." },
      },
    ]);
    receiver.received.length = 0;
    receiver.answer = (response) => void response.writeHead(200).end();
    expect((await world.send("PUT", `/api/v1/webhooks/${webhookId}/enablement`)).body.status).toBe(
      "active",
    );
    expect(sequences(await receiver.has(3))).toEqual([4, 5, 6]);
  });

  test("end at once when the endpoint is gone, and when the webhook is deleted", async () => {
    await start();
    const { webhookId } = await create();
    receiver.answer = (response) => void response.writeHead(410).end();
    await happen(1);
    await eventually(async () => expect((await look(webhookId)).status).toBe("disabled"));
    expect(receiver.received).toHaveLength(1);
    receiver.answer = (response) => void response.writeHead(200).end();
    const { webhookId: deleted } = await create();
    await happen(1);
    await receiver.has(2);
    await world.send("DELETE", `/api/v1/webhooks/${deleted}`);
    const { webhookId: last } = await create();
    await happen(1);
    await receiver.has(3);
    expect(receiver.received.at(-1)?.event.sequence).toBe(7);
    const { data } = (await world.send("GET", "/api/v1/webhooks")).body;
    expect(data.map((one: { webhookId: string }) => one.webhookId)).toEqual([webhookId, last]);
  });
});

describe("after a restart", () => {
  test("deliveries go on where they were recorded; what a crash left unrecorded is repeated under its id", async () => {
    const folder = await mkdtemp(join(tmpdir(), "mintmark-webhooks-"));
    try {
      // Recorded so late that it never is.
      await start({ store: folder, webhooks: { ...QUICK, recordEveryMs: 600_000 } });
      const { webhookId, secret } = await create();
      await happen(3);
      const before = [...(await receiver.has(3))];
      expect(await look(webhookId)).toMatchObject({ delivered: 3 });
      // The engine ends before the server can record anything, as in a crash.
      await world.engine.close();
      await world.app.close();
      receiver.received.length = 0;
      await using engine = await openTest(folder, { settlement: SETTLEMENT });
      const app = await buildServer({ engine, webhooks: QUICK });
      await listen(app);
      const repeated = [...(await receiver.has(3))];
      expect(repeated.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
      for (const delivery of repeated)
        expect(Receiver.verify(secret, delivery)).toEqual(delivery.event);
      await eventually(async () => {
        expect(await engine.webhooks.get(world.applicationId, webhookId)).toMatchObject({
          delivered: 6,
        });
      });
      await app.close();
      // The end of a server in order leaves nothing to repeat.
      const dispatcher = new WebhookDispatcher(engine, QUICK);
      dispatcher.start();
      await engine.assets.disable(world.applicationId, world.erc721.assetId);
      expect(sequences(await receiver.has(4))).toEqual([4, 5, 6, 7]);
      await dispatcher.stop();
      expect((await engine.operator.verify()).problems).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

test("webhooks whose endpoints hang hold up no other", async () => {
  await start({ webhooks: { ...QUICK, timeoutMs: 600_000 } });
  const stuck = await new Receiver().listen();
  await using _ = stuck;
  stuck.answer = () => {};
  for (const url of [stuck.url, stuck.url, stuck.url, stuck.url, stuck.url]) await create({ url });
  await create();
  await happen(5);
  expect(sequences(await receiver.has(5))).toEqual([4, 5, 6, 7, 8]);
  expect(new Set(sequences(stuck.received))).toEqual(new Set([4]));
});

describe("the routes", () => {
  test("show a secret once, and webhooks to their own application only", async () => {
    const lines: string[] = [];
    await start({ log: { level: "trace", stream: { write: (line) => void lines.push(line) } } });
    const { webhookId, secret } = await create();
    await happen(1);
    await receiver.has(1);
    const list = await world.send("GET", "/api/v1/webhooks");
    expect(list.body.data).toHaveLength(1);
    const key = await world.newKey(["webhooks"]);
    const text = list.text + JSON.stringify(await look(webhookId)) + lines.join("");
    expect(text).not.toContain(secret);
    expect(text).not.toContain(secret.slice(6));
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/secret"],
      ["PUT", "/enablement"],
    ] as const) {
      const answer = await world.send(method, `/api/v1/webhooks/${webhookId}${path}`, {
        key: world.otherKey,
      });
      expect(refusal(answer)).toMatchObject({ status: 404, code: "webhook_not_found" });
    }
    expect((await world.send("GET", `/api/v1/webhooks/${webhookId}`, { key })).status).toBe(200);
    const weak = await world.send("GET", "/api/v1/webhooks", { key: await world.newKey(["read"]) });
    expect(refusal(weak)).toMatchObject({ status: 403, code: "scope_missing" });
  });

  test.each([
    ["http://10.0.0.1/", "/url validation_failed"],
    ["http://[::ffff:169.254.169.254]/", "/url validation_failed"],
    ["ftp://example.com/", "/url validation_failed"],
  ])("refuse to deliver to %s", async (url, error) => {
    await start();
    const answer = await world.send("POST", "/api/v1/webhooks", { body: { url } });
    expect(refusal(answer)).toEqual({ status: 400, code: "validation_failed", errors: [error] });
  });
});

describe("where webhooks may lead", () => {
  test.each([
    ...[
      "127.0.0.1",
      "10.1.2.3",
      "172.16.0.1",
      "192.168.1.1",
      "169.254.169.254",
      "100.64.0.1",
      "0.0.0.0",
      "224.0.0.1",
    ],
    ...[
      "::1",
      "::",
      "::ffff:127.0.0.1",
      "::ffff:8.8.8.8",
      "64:ff9b::7f00:1",
      "::ffff:0:7f00:1",
      "fe80::1",
      "fd00::1",
      "2002:7f00:1::",
      "ff02::1",
    ],
  ])("%s is not public", (address) => {
    expect(mayReach("public", address)).toBe(false);
  });

  test("public addresses, and this machine where that is wanted", () => {
    for (const address of ["8.8.8.8", "2606:4700:4700::1111", "172.32.0.1"])
      expect(mayReach("public", address)).toBe(true);
    for (const address of ["127.0.0.1", "::1"])
      expect(mayReach("public-and-loopback", address)).toBe(true);
    for (const address of ["10.0.0.1", "169.254.169.254"])
      expect(mayReach("public-and-loopback", address)).toBe(false);
  });

  test("a name is refused when any of its addresses is, and is resolved by the connection itself", async () => {
    const resolve = (addresses: string[]) => async () =>
      addresses.map((address) => ({ address, family: 4 }));
    const look = (addresses: string[]) =>
      new Promise((done) =>
        guardedLookup("public", resolve(addresses))("a.example", {}, (error, found) =>
          done(error ?? found),
        ),
      );
    expect(await look(["8.8.8.8"])).toBe("8.8.8.8");
    expect(await look([])).toMatchObject({ message: "a.example is not a public address." });
    expect(await look(["8.8.8.8", "10.0.0.1"])).toMatchObject({
      message: "a.example is not a public address.",
    });
    using deliverer = new Deliverer("public", 5000);
    const { port } = new URL(receiver.url);
    for (const host of ["localhost", "127.0.0.1"]) {
      const outcome = await deliverer.post(
        `http://${host}:${port}/`,
        {},
        "{}",
        new AbortController().signal,
      );
      expect(outcome).toEqual({
        kind: "failed",
        status: null,
        failure: `${host} is not a public address.`,
      });
    }
    expect(receiver.received).toEqual([]);
  });
});

describe("what an application sees of its deliveries", () => {
  const attempts = async (webhookId: string) =>
    (await world.send("GET", `/api/v1/webhooks/${webhookId}/deliveries`)).body.data;
  const SLOW = { ...QUICK, backoff: { firstMs: 3_600_000, maxMs: 3_600_000 } };

  test("enabling a webhook that waits after a failure tries at once", async () => {
    await start({ webhooks: SLOW });
    const { webhookId } = await create();
    receiver.answer = (response) => void response.writeHead(500).end();
    await happen(1);
    await eventually(async () => expect((await look(webhookId)).failure).not.toBeNull());
    receiver.answer = (response) => void response.writeHead(204).end();
    expect((await world.send("PUT", `/api/v1/webhooks/${webhookId}/enablement`)).status).toBe(200);
    expect(sequences(await receiver.has(2))).toEqual([4, 4]);
    await eventually(async () =>
      expect(await look(webhookId)).toMatchObject({ delivered: 4, failure: null }),
    );
  });

  test("a test event is signed, answers what came of it, and changes nothing of the webhook", async () => {
    await start({ webhooks: { ...QUICK, giveUpAfterMs: 0 } });
    const { webhookId, secret } = await create();
    const before = await look(webhookId);
    const tried = () => world.send("POST", `/api/v1/webhooks/${webhookId}/test`);
    expect((await tried()).body).toMatchObject({
      kind: "test",
      sequence: null,
      status: 204,
      failure: null,
    });
    const [delivery] = await receiver.has(1);
    if (delivery === undefined) throw new Error("nothing was received");
    expect(Receiver.verify(secret, delivery)).toMatchObject({
      sequence: 0,
      type: "webhook.test",
      data: { webhookId },
    });
    receiver.answer = (response) => void response.writeHead(410).end();
    expect((await tried()).body).toMatchObject({
      status: 410,
      failure: "The endpoint answered 410.",
    });
    expect(await look(webhookId)).toEqual(before);
    await happen(1);
    await eventually(async () => expect((await look(webhookId)).status).toBe("disabled"));
    receiver.answer = (response) => void response.writeHead(200).end();
    expect((await tried()).body).toMatchObject({ status: 200, failure: null });
    expect((await look(webhookId)).status).toBe("disabled");
    expect(await attempts(webhookId)).toMatchObject([
      { kind: "test", status: 200 },
      { kind: "delivery", status: 410 },
      {},
      {},
    ]);
  });

  test("an event is delivered once more under its id, and an unknown one is refused", async () => {
    await start();
    const { webhookId, secret } = await create();
    await happen(2);
    const [first] = await receiver.has(2);
    const again = (sequence: number | string) =>
      world.send("POST", `/api/v1/webhooks/${webhookId}/deliveries/${sequence}/redeliver`);
    expect((await again(4)).body).toMatchObject({ kind: "redelivery", sequence: 4, status: 204 });
    const repeated = (await receiver.has(3))[2];
    if (repeated === undefined) throw new Error("nothing was received");
    expect([repeated.id, Receiver.verify(secret, repeated)]).toEqual([first?.id, first?.event]);
    await eventually(async () => expect((await look(webhookId)).delivered).toBe(5));
    for (const unknown of [99, 0, "x"]) {
      const errors = ["/path/sequence validation_failed"];
      expect(refusal(await again(unknown))).toEqual({
        status: 400,
        code: "validation_failed",
        errors,
      });
    }
  });

  test("one test or redelivery at a time, which the end of the server cuts off", async () => {
    await start({ webhooks: { ...QUICK, timeoutMs: 5_000 } });
    const { webhookId } = await create();
    receiver.answer = () => {};
    const tried = () => world.send("POST", `/api/v1/webhooks/${webhookId}/test`);
    const first = tried();
    await receiver.has(1);
    expect(refusal(await tried())).toMatchObject({ status: 429, code: "rate_limited" });
    expect((await first).body).toMatchObject({ status: null, failure: "No answer within 5 s." });
  });

  test("tests and redeliveries lead only where webhooks may lead", async () => {
    await start({ webhooks: { ...QUICK, reach: "public" } });
    const { engine, applicationId } = world;
    const { webhook } = await engine.webhooks.create(applicationId, {
      url: receiver.url,
      types: ["mint.failed"],
    });
    const refused = { status: null, failure: "127.0.0.1 is not a public address." };
    for (const path of ["test", "deliveries/1/redeliver"]) {
      const { body } = await world.send("POST", `/api/v1/webhooks/${webhook.webhookId}/${path}`);
      expect(body, path).toMatchObject(refused);
    }
    expect(receiver.received).toEqual([]);
  });
});
