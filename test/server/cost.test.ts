import { type AddressInfo, connect, type Socket } from "node:net";
import { setImmediate as pass } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { MintmarkError } from "../../core/index.ts";
import { HeldBytes } from "../../server/http/access/rate-account.ts";
import { EventLoopTurns, whenSpare } from "../../server/http/turns.ts";
import { BufferPool } from "../../server/http/wire/buffers.ts";
import { Metrics } from "../../server/process/metrics.ts";
import { mintAnswer, mintToWire } from "../../server/routes/mint-answer.ts";
import { createWorld, entries, refusal, SETTLEMENT, type World } from "./fixture.ts";

const MIB = 1024 * 1024;

describe("what a request costs", () => {
  it("lists 100 bad entries, and says that there are more", async () => {
    await using world = await createWorld();
    const keys = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, 1]));
    const { body, text } = await world.send("POST", "/api/v1/mint", {
      body: { users: [{ ...keys }] },
    });
    expect(body).toMatchObject({ code: "validation_failed", moreErrors: true });
    expect(body.errors).toHaveLength(100);
    expect(text.length).toBeLessThan(40_000);
    const few = await world.send("POST", "/api/v1/mint", { body: { users: [], extra: 1 } });
    expect(few.body).toMatchObject({ moreErrors: false });
    const webhook = await world.send("POST", "/api/v1/webhooks", {
      body: { url: "https://example.com", ...keys },
    });
    expect(webhook.body.errors).toHaveLength(100);
    expect(webhook.body.moreErrors).toBe(true);
    const rounded = `[${Array(200).fill("1.00000000000000001").join()}]`;
    const lossy = await world.send("POST", "/api/v1/mint", { raw: rounded });
    expect(lossy.body).toMatchObject({ code: "malformed_json", moreErrors: true });
    expect(lossy.body.errors).toHaveLength(100);
    const long = await world.send("POST", "/api/v1/mint", {
      body: { users: [], ["x".repeat(100_000)]: 1 },
    });
    expect(long.text.length).toBeLessThan(4_000);
  });

  it("refuses a body of more fields than the largest request before it is parsed", async () => {
    await using world = await createWorld();
    const raw = `{"users":[],${Array.from({ length: 200_000 }, (_, i) => `"k${i}":1`).join()}}`;
    const parse = JSON.parse;
    let parsed = 0;
    JSON.parse = (text, ...more) => {
      parsed += String(text).length > 500_000 ? 1 : 0;
      return parse(text, ...more);
    };
    try {
      const refused = await world.send("POST", "/api/v1/mint", { raw });
      expect(refusal(refused)).toMatchObject({ status: 422, code: "batch_too_large" });
      // Fewer fields than the largest request has, but too many for so few bytes.
      const dense = `{"users":[],${Array.from({ length: 55_000 }, (_, i) => `"k${i}":1`).join()}}`;
      expect(refusal(await world.send("POST", "/api/v1/mint", { raw: dense })).code).toBe(
        "batch_too_large",
      );
      expect(parsed).toBe(0);
    } finally {
      JSON.parse = parse;
    }
  });

  it("charges a key by the KiB of a body, even of one that is refused", async () => {
    await using world = await createWorld({
      rateLimits: { key: { units: 1000, windowSeconds: 1000 } },
      now: () => 0,
    });
    const remaining = ({ headers }: { headers: Record<string, unknown> }) =>
      Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
    const refused = await world.send("POST", "/api/v1/mint", { raw: `[${" ".repeat(99 * 1024)}` });
    expect(refusal(refused).code).toBe("malformed_json");
    expect(remaining(refused)).toBe(900);
    const mints = entries(world, 1);
    const minted = await world.send("POST", "/api/v1/mint", {
      body: { users: [{ userId: world.users[0], mints }] },
    });
    expect(minted.status).toBe(200);
    expect(remaining(minted)).toBe(897);
  });

  it("charges a key for a large response by its size, on credit if needed", async () => {
    await using world = await createWorld({
      rateLimits: { key: { units: 560, windowSeconds: 60 } },
      now: () => 0,
    });
    const mints = Array.from({ length: 500 }, (_, i) => ({
      ...entries(world, 1)[1],
      mintingBlob: hex(i + 1),
    }));
    const { body, status } = await world.send("POST", "/api/v1/mint", {
      body: { users: [{ userId: world.users[0], mints }] },
    });
    expect(status).toBe(200);
    const large = await world.send("GET", `/api/v1/mints/${body.mintId}`);
    expect(large.status).toBe(200);
    expect(refusal(await world.send("GET", "/api/v1/limits")).code).toBe("rate_limited");
  });

  it("charges each proof by KZG to the caller that has the engine make it, and makes none for metadata", async () => {
    const full = { units: 3_000, windowSeconds: 60 };
    const rateLimits = { key: full, publicReads: { units: 20, windowSeconds: 60 } };
    await using world = await createWorld({ rateLimits, now: () => 0 });
    const { engine, users } = world;
    engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
    const mints = [1, 2, 3, 4].map((n) => entries(world, n)[1]);
    const minted = await world.send("POST", "/api/v1/mint", {
      body: { users: [{ userId: users[0], mints }] },
    });
    await engine.operator.seal("zk-rollup");
    expect(await engine.batches.get("zk-rollup", 0)).toMatchObject({
      kind: "blobs",
      status: "sealed",
    });
    const vault = (i: number) => `vaults/${minted.body.vaults[i].vaultId}`;
    const open = (path: string) => world.send("GET", `/public/v1/${path}`, { key: null });
    const remaining = ({ headers }: { headers: Record<string, unknown> }) =>
      Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);

    expect(remaining(await open(`${vault(0)}/metadata`))).toBe(19);
    expect(remaining(await open(`${vault(0)}/proof`))).toBe(14);
    expect(remaining(await open(`${vault(0)}/proof`))).toBe(13);
    expect(remaining(await open("batches/zk-rollup-0/blobs"))).toBe(8);
    expect(remaining(await open(`${vault(1)}/proof`))).toBe(3);
    // Refused before the native code begins, so that the next caller pays for it.
    expect(refusal(await open(`${vault(2)}/proof`)).code).toBe("rate_limited");
    const before = remaining(await world.send("GET", "/api/v1/limits"));
    expect(before - remaining(await world.send("GET", `/api/v1/${vault(2)}/proof`))).toBe(1_000);
    expect(before - remaining(await world.send("GET", `/api/v1/${vault(2)}/proof`))).toBe(1_001);
  });

  it("makes a large mint's answer in pieces, one in each pass of the event loop", async () => {
    await using world = await createWorld();
    const mints = Array.from({ length: 2_600 }, (_, i) => ({
      ...entries(world, 1)[1],
      mintingBlob: hex(i + 1),
    }));
    const { body } = await world.send("POST", "/api/v1/mint", {
      body: { users: [{ userId: world.users[0], mints }] },
    });
    const result = await world.engine.mints.get(world.applicationId, body.mintId);
    const turns = new EventLoopTurns();
    let passes = 0;
    let done = false;
    const counting = (async () => {
      while (!done) {
        await pass();
        passes += 1;
      }
    })();
    const turn = vi.spyOn(turns, "turn");
    const { body: text } = await mintAnswer(result, new BufferPool(), () => turns.turn("key"));
    done = true;
    await counting;
    // Five within the vaults, five within the transactions, and one between.
    expect(turn).toHaveBeenCalledTimes(11);
    expect(passes).toBeGreaterThanOrEqual(11);
    expect(JSON.parse(String(text))).toEqual(JSON.parse(JSON.stringify(await mintToWire(result))));
  });

  it("gives one turn in each pass, and lets callers alternate", async () => {
    const turns = new EventLoopTurns();
    const order: string[] = [];
    const work = async (caller: string) => {
      await turns.turn(caller);
      order.push(caller);
    };
    const all = [work("a"), work("a"), work("a"), work("b")];
    await pass();
    expect(order.length).toBeLessThanOrEqual(2);
    await Promise.all(all);
    expect(order).toEqual(["a", "b", "a", "a"]);
  });

  it("gives a drop a tenth of a busy loop, and each pass of an idle one", async () => {
    let now = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
    try {
      const turns = new EventLoopTurns(whenSpare());
      let [given, over] = [0, false];
      const work = (async () => {
        for (; !over; given++) await turns.turn("drop");
      })();
      for (let i = 0; i < 100; i++) {
        now += 2;
        await pass();
      }
      expect(given).toBeGreaterThanOrEqual(15);
      expect(given).toBeLessThanOrEqual(25);
      given = 0;
      for (let i = 0; i < 100; i++) await pass();
      expect(given).toBeGreaterThan(80);
      over = true;
      await work;
    } finally {
      clock.mockRestore();
    }
  });

  it("gives a drop its turn at once after a wait for the disk, and once in each long pass", async () => {
    let now = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
    try {
      for (const { passMs, disk, least, most } of [
        { passMs: 2, disk: 6, least: 16, most: 21 },
        { passMs: 50, disk: 1, least: 95, most: 101 },
        { passMs: 50, disk: 0, least: 95, most: 101 },
      ]) {
        const turns = new EventLoopTurns(whenSpare());
        let [given, over] = [0, false];
        const work = (async () => {
          for (; !over; given++) {
            await turns.turn("drop");
            for (let i = 0; i < disk; i++) await pass();
          }
        })();
        for (let i = 0; i < (disk === 6 ? 120 : 100); i++) {
          now += passMs;
          await pass();
        }
        expect(given).toBeGreaterThanOrEqual(least);
        expect(given).toBeLessThanOrEqual(most);
        over = true;
        now += 2 * passMs;
        await work;
      }
    } finally {
      clock.mockRestore();
    }
  });

  it("lets a key hold what its application has left, and an application what is free", async () => {
    const memory = new HeldBytes(2 * MIB);
    await using world = await createWorld({ memory });
    const { url, headers } = await listen(world);
    const body = Buffer.alloc(400 * 1024, " ");
    const ask = async (key: string) => {
      const reply = await fetch(`${url}/api/v1/mint`, {
        method: "POST",
        headers: { ...headers, "x-api-key": key },
        body,
      });
      return { status: reply.status, after: Number(reply.headers.get("retry-after")) };
    };
    const stalled = [stall(url, headers, body)];
    await expect.poll(() => memory.total).toBeGreaterThanOrEqual(body.length);
    await expect.poll(() => ask(world.key)).toMatchObject({ status: 429, after: 5 });
    // Another key of the application has what that one left, and another application what both
    // left.
    const second = await world.newKey();
    stalled.push(stall(url, { ...headers, "x-api-key": second }, body.subarray(200 * 1024)));
    await expect.poll(() => memory.total).toBeGreaterThanOrEqual(1.5 * body.length);
    await expect.poll(async () => (await ask(second)).status).toBe(503);
    expect((await ask(world.otherKey)).status).toBe(400);
    for (const socket of stalled) socket.destroy();
    await expect.poll(async () => (await ask(world.key)).status).toBe(400);
  });

  it("lets four keys of an application use their whole rate at once, and no more", async () => {
    await using world = await createWorld({
      rateLimits: { key: { units: 10, windowSeconds: 60 } },
      now: () => 0,
    });
    const spend = async (key: string) => {
      const statuses = new Set<number>();
      for (let i = 0; i < 10; i++)
        statuses.add((await world.send("GET", "/api/v1/limits", { key })).status);
      return [...statuses];
    };
    expect(await spend(world.key)).toEqual([200]);
    for (let i = 0; i < 3; i++) expect(await spend(await world.newKey())).toEqual([200]);
    expect(await spend(await world.newKey())).toEqual([429]);
    expect(await spend(world.otherKey)).toEqual([200]);
  });

  it("serves a tenant while others, with and without keys, hold connections and neither read nor send", async () => {
    const memory = new HeldBytes(8 * MIB);
    await using world = await createWorld({ memory, stalledMs: 3_000 });
    const { url, headers } = await listen(world);
    const port = Number(new URL(url).port);
    const head = (path: string, length: number, fields = "") =>
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${fields}\r\n`;
    const held: Socket[] = [];
    const hold = (localAddress: string, text: string) => {
      const socket = connect({ port, host: "127.0.0.1", localAddress }).pause();
      socket.on("error", () => {});
      socket.write(text);
      held.push(socket);
    };
    // More in a row than the server takes of one connection, and as many as it takes, which it then
    // cannot send.
    for (const [i, count] of [140, 140, 30, 30].entries())
      hold(`127.0.1.${i + 1}`, "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(count));
    for (let i = 0; i < 160; i++) hold(`127.0.2.${(i % 16) + 1}`, `${head("/oauth/token", 100)}{`);
    const keys = [
      world.key,
      ...(await Promise.all(Array.from({ length: 4 }, () => world.newKey()))),
    ];
    for (const key of keys) {
      const large =
        head("/api/v1/mint", 400 * 1024 + 1, `x-api-key: ${key}\r\n`) + " ".repeat(400 * 1024);
      for (let i = 0; i < 6; i++) hold("127.0.3.1", large);
      for (let i = 0; i < 20; i++)
        hold("127.0.3.1", `${head("/api/v1/mint", 100, `x-api-key: ${key}\r\n`)}{`);
    }
    await expect.poll(() => memory.total).toBeGreaterThan(3 * MIB);
    const mine = { ...headers, "x-api-key": world.otherKey };
    for (let token = 1; token <= 20 || memory.total > 0; token++) {
      const mints = entries(world, token).slice(0, 1);
      const body = JSON.stringify({ users: [{ userId: world.otherUser, mints }] });
      expect(
        (await fetch(`${url}/api/v1/mint`, { method: "POST", headers: mine, body })).status,
      ).toBe(200);
    }
    for (const socket of held) socket.destroy();
  });

  it("lets a request take longer than a connection may stand still", async () => {
    await using world = await createWorld({ stalledMs: 500 });
    const { url, headers } = await listen(world);
    world.engine.mints.get = async () => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      throw new MintmarkError("mint_not_found");
    };
    expect((await fetch(`${url}/api/v1/mints/${crypto.randomUUID()}`, { headers })).status).toBe(
      404,
    );
  });

  it("is not ready while its memory is taken, and a metric tells how much is", async () => {
    const memory = new HeldBytes(MIB);
    await using world = await createWorld({ memory });
    const { url, headers } = await listen(world);
    const ready = async () => (await fetch(`${url}/readyz`)).json();
    expect(await ready()).toMatchObject({
      checks: { memory: "requests and responses hold 0 of 1 MiB" },
    });
    const sockets: Socket[] = [];
    for (let i = 0; i < 8; i++) {
      const { applicationId } = await world.engine.applications.create({ name: `Tenant ${i}` });
      const { secret } = await world.engine.keys.issue(applicationId);
      // Each takes the most that the server lets it have.
      for (const size of [200, 100, 50, 25, 12])
        sockets.push(
          stall(url, { ...headers, "x-api-key": secret }, Buffer.alloc(size * 1024, " ")),
        );
    }
    await expect
      .poll(ready)
      .toMatchObject({ code: "not_ready", errors: [{ pointer: "/checks/memory" }] });
    const metrics = new Metrics({ engine: world.engine, memory });
    expect(await metrics.registry.metrics()).toContain(`mintmark_held_bytes ${memory.total}`);
    metrics.close();
    for (const socket of sockets) socket.destroy();
    await expect.poll(ready).toMatchObject({ status: "Ready" });
  });

  it("makes the large answers of one key one at a time, beside those of another", async () => {
    await using world = await createWorld();
    const { mints } = world.engine;
    const mint = async (key: string, user: string, first: number) => {
      const entry = (i: number) => ({ ...entries(world, 1)[1], mintingBlob: hex(first + i) });
      const users = [{ userId: user, mints: Array.from({ length: 40 }, (_, i) => entry(i)) }];
      return `/api/v1/mints/${(await world.send("POST", "/api/v1/mint", { key, body: { users } })).body.mintId}`;
    };
    const [own, theirs] = [
      await mint(world.key, world.users[0], 0),
      await mint(world.otherKey, world.otherUser, 100),
    ];
    const underWay = new Map<string, number>();
    const most = new Map<string, number>();
    const { get } = mints;
    let both = 0;
    mints.get = async (applicationId, mintId) => {
      underWay.set(applicationId, (underWay.get(applicationId) ?? 0) + 1);
      most.set(
        applicationId,
        Math.max(most.get(applicationId) ?? 0, underWay.get(applicationId) ?? 0),
      );
      both = Math.max(both, [...underWay.values()].filter((count) => count > 0).length);
      const result = await get(applicationId, mintId);
      await pass();
      underWay.set(applicationId, (underWay.get(applicationId) ?? 0) - 1);
      return result;
    };
    const asked = [own, theirs].flatMap((url, i) =>
      Array.from({ length: 20 }, () =>
        world.send("GET", url, { key: i === 0 ? world.key : world.otherKey }),
      ),
    );
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(40).fill(200));
    expect([...most.values()]).toEqual([1, 1]);
    expect(both).toBe(2);
  });

  it("counts a large response's actual size once it is made", async () => {
    // Enough for one answer that is under way, and not for two.
    await using world = await createWorld({ memory: new HeldBytes(4 * MIB) });
    const mints = Array.from({ length: 40 }, (_, i) => ({
      ...entries(world, 1)[1],
      mintingBlob: hex(i + 1),
    }));
    const { body } = await world.send("POST", "/api/v1/mint", {
      body: { users: [{ userId: world.users[0], mints }] },
    });
    const ask = () => world.send("GET", `/api/v1/mints/${body.mintId}`);
    expect((await Promise.all(Array.from({ length: 5 }, ask))).map(({ status }) => status)).toEqual(
      Array(5).fill(200),
    );
  });

  it("starts no large response for a key that holds too much", async () => {
    const memory = new HeldBytes(4 * MIB);
    await using world = await createWorld({ memory });
    const mints = Array.from({ length: 40 }, (_, i) => ({
      ...entries(world, 1)[1],
      mintingBlob: hex(i + 1),
    }));
    const { body } = await world.send("POST", "/api/v1/mint", {
      body: { users: [{ userId: world.users[0], mints }] },
    });
    const { url, headers } = await listen(world);
    const ask = async () => (await fetch(`${url}/api/v1/mints/${body.mintId}`, { headers })).status;
    expect(await ask()).toBe(200);
    const stalled = stall(url, headers, Buffer.alloc(600 * 1024, " "));
    await expect.poll(() => memory.total).toBeGreaterThanOrEqual(600 * 1024);
    expect(await ask()).toBe(429);
    stalled.destroy();
    await expect.poll(ask).toBe(200);
  });

  it("answers /openapi.json with an ETag, and 304 for a current one", async () => {
    await using world = await createWorld({
      rateLimits: { publicReads: { units: 100, windowSeconds: 60 } },
      now: () => 0,
    });
    const first = await world.send("GET", "/openapi.json", { key: null });
    expect(first.headers.ratelimit).toBeDefined();
    const etag = String(first.headers.etag);
    const again = await world.app.inject({
      url: "/openapi.json",
      headers: { "if-none-match": etag },
    });
    expect(first.body.paths["/openapi.json"].get.responses["304"].description).toContain(
      "If-None-Match",
    );
    expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, "", etag]);
    const other = await world.app.inject({
      url: "/openapi.json",
      headers: { "if-none-match": '"other"' },
    });
    expect(other.statusCode).toBe(200);
  });
});

async function listen({ app, key }: World) {
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    headers: { "x-api-key": key, "content-type": "application/json" },
  };
}

/** Sends a body but for its last byte. The server has it some time later. */
function stall(url: string, headers: Record<string, string>, body: Buffer): Socket {
  const { port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  const lines = Object.entries({ ...headers, "content-length": body.length + 1 }).map(
    ([k, v]) => `${k}: ${v}`,
  );
  socket.write(`POST /api/v1/mint HTTP/1.1\r\nhost: x\r\n${lines.join("\r\n")}\r\n\r\n`);
  socket.write(body);
  return socket;
}

function hex(n: number): string {
  return `0x${Buffer.from(String(n)).toString("hex")}`;
}
