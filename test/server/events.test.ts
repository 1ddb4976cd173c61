import { PassThrough } from "node:stream";
import { afterEach, describe, expect, test, vi } from "vitest";
import { shutDown } from "../../server/process/shutdown.ts";
import { event } from "../../server/routes/events.ts";
import { eventually } from "../eventually.ts";
import { createWorld, entries, refusal, type World, type WorldOptions } from "./fixture.ts";
import { EventStreamClient, listen } from "./sse.ts";

let world: World;
let address: string;
const start = async (options: WorldOptions = {}) => {
  world = await createWorld(options);
  address = await listen(world.app);
};
afterEach(() => world[Symbol.asyncDispose]());

const STREAM = { accept: "text/event-stream" };
const open = (query = "", headers: Record<string, string> = {}) =>
  EventStreamClient.open(`${address}/api/v1/events${query}`, {
    ...STREAM,
    "x-api-key": world.key,
    ...headers,
  });

let minted = 0;
const mint = async (): Promise<string> => {
  const { engine, key, users } = world;
  const request = { users: [{ userId: users[0], mints: entries(world, minted++) }] };
  return (await engine.mint(await engine.keys.authenticate(key), request as unknown)).mintId;
};
const mintElsewhere = async () => {
  const { engine, otherKey, otherUser, erc721 } = world;
  const mints = [{ ...entries(world, minted++)[1], assetId: erc721.assetId }];
  await engine.mint(await engine.keys.authenticate(otherKey), {
    users: [{ userId: otherUser, mints }],
  } as unknown);
};

/** Enablements of the fixture. */
const FIRST = 3;

describe("the stream of events", () => {
  test("gives the application its own events only, in the documented form", async () => {
    await start();
    const client = await open();
    expect(client.response.headers.get("content-type")).toBe("text/event-stream");
    expect(client.response.headers.get("cache-control")).toBe("no-store");
    await client.take(FIRST);
    await mintElsewhere();
    const mintId = await mint();
    await mintElsewhere();
    await world.engine.operator.seal("zk-rollup");
    const [mintEvent, sealed] = await client.take(2);
    expect(mintEvent).toMatchObject({
      id: "4",
      data: { type: "mint.accepted", data: { mintId, users: 1, mints: 3 } },
    });
    expect(sealed?.data).toMatchObject({
      sequence: 5,
      type: "batch.sealed",
      data: { batchId: "zk-rollup-0" },
    });
    for (const { data } of [mintEvent, sealed].filter((one) => one !== undefined))
      event.parse(data);
    client.hangUp();
  });

  test("resumes where the client stopped, however often it reconnects", async () => {
    await start();
    const seen: string[] = [];
    let last = "0";
    for (let round = 0; round < 5; round++) {
      await mint();
      // The address that EventSource repeats names where it began; what it saw last goes before.
      const client = await open("?after=0", { "last-event-id": last });
      await mint();
      for (const { id } of await client.take(round === 0 ? FIRST + 1 : 2)) seen.push(id);
      last = seen.at(-1) ?? "";
      client.hangUp();
    }
    expect(seen).toEqual(seen.map((_, i) => String(i + 1)));
    const rest = await open(`?after=${last}`);
    expect((await rest.take(1)).map(({ id }) => Number(id))).toEqual([seen.length + 1]);
    rest.hangUp();
  });

  test("waits for a client that does not read, and loses nothing", async () => {
    await start();
    const client = await open();
    await Promise.all(Array.from({ length: 3000 }, mint));
    expect((await world.send("GET", "/api/v1/events?after=3000&limit=1")).status).toBe(200);
    const taken = await client.take(3000 + FIRST);
    expect(taken.map(({ id }) => id)).toEqual(taken.map((_, i) => String(i + 1)));
    client.hangUp();
  });

  /** No heartbeat looks at the credentials meanwhile. */
  const PATIENT = { heartbeatMs: 3_600_000 };

  test("sends heartbeats while nothing happens", async () => {
    await start({ heartbeatMs: 10 });
    const client = await open(`?after=${FIRST}`);
    const next = client.take(1);
    await eventually(async () => {
      if (client.comments < 3) throw new Error("no heartbeat yet");
    });
    await mint();
    expect((await next)[0]?.id).toBe("4");
    client.hangUp();
  });

  test.each([
    ["its key is revoked", () => world.engine.keys.revoke(world.keyId)],
    ["the application is suspended", () => world.engine.applications.suspend(world.applicationId)],
    ["the server shuts down", () => shutDown(world.app, { deadlineMs: 600_000 })],
  ])("ends in order when %s", async (_, happens) => {
    await start(PATIENT);
    const client = await open();
    await client.take(FIRST);
    const rest = client.rest();
    await happens();
    expect(await rest).toEqual([]);
  });

  test.each([
    ["is removed", null, (personId: string) => world.engine.people.remove(personId)],
    ["signs out", null, (_: string, token: string) => world.engine.people.signOut(token)],
    ["signs out", "application", (_: string, token: string) => world.engine.people.signOut(token)],
  ])("ends in order when a person who reads it %s, of %s", async (_, team, happens) => {
    await start(PATIENT);
    const { people } = world.engine;
    const applicationId = team === null ? null : world.applicationId;
    const { link } = await people.invite({
      applicationId,
      role: team === null ? "operator" : "viewer",
      name: "Ada",
    });
    const { token, person } = await people.signIn({ link: link ?? "" });
    const client = await EventStreamClient.open(`${address}/api/v1/events`, {
      ...STREAM,
      "mintmark-console": "1",
      "mintmark-application": world.applicationId,
      cookie: `mintmark_sign_in=${token}`,
    });
    await client.take(FIRST);
    const rest = client.rest();
    await happens(person.personId, token);
    expect(await rest).toEqual([]);
  });

  test("ends when its credentials expire", async () => {
    let now = Date.now();
    await start({ heartbeatMs: 10, clock: () => now });
    const key = await world.newKey(["read"], { expiresAt: now + 1_000 });
    const client = await open("", { "x-api-key": key });
    await client.take(FIRST);
    now += 1_000;
    expect(await client.rest()).toEqual([]);
  });

  test("has a limit per key", async () => {
    await start({ streamsPerKey: 12 });
    const clients = await Promise.all(Array.from({ length: 12 }, () => open()));
    const refused = await open();
    expect(refused.response.status).toBe(429);
    expect(await refused.response.json()).toMatchObject({ code: "too_many_streams" });
    const other = await open("", { "x-api-key": await world.newKey(["read"]) });
    expect(other.response.status).toBe(200);
    clients[0]?.hangUp();
    await eventually(async () => {
      const again = await open();
      clients.push(again);
      expect(again.response.status).toBe(200);
    });
    for (const client of [...clients, other]) client.hangUp();
  });
});

describe("many followers of one application", () => {
  const [followers, mints] = [60, 400];

  test("share what is read and encoded, and hear of many events in one write", async () => {
    await start({ streamsPerKey: followers });
    const clients = await Promise.all(
      Array.from({ length: followers }, () => open(`?after=${FIRST}`)),
    );
    const heard = clients.map((client) => client.take(mints));
    const writes = vi.spyOn(PassThrough.prototype, "write");
    const texts = vi.spyOn(JSON, "stringify");
    try {
      await Promise.all(Array.from({ length: mints }, mint));
      const sequences = Array.from({ length: mints }, (_, i) => String(FIRST + 1 + i));
      for (const events of await Promise.all(heard))
        expect(events.map(({ id }) => id)).toEqual(sequences);
      expect(writes.mock.calls.length).toBeLessThan((followers * mints) / 4);
      const encoded = texts.mock.calls.filter(([value]) => value?.type === "mint.accepted");
      expect(encoded.length).toBeLessThanOrEqual(mints);
    } finally {
      vi.restoreAllMocks();
      for (const client of clients) client.hangUp();
    }
  });

  test("are identified once for each key when another's access ends, and end with their own", async () => {
    await start({ streamsPerKey: followers, heartbeatMs: 3_600_000 });
    const second = await world.newKey(["read"]);
    const other = await world.engine.keys.issue(world.applicationId, { scopes: ["read"] });
    const clients = await Promise.all(
      Array.from({ length: followers }, (_, i) =>
        open(`?after=${FIRST}`, i % 2 === 0 ? {} : { "x-api-key": second }),
      ),
    );
    const authenticate = vi.spyOn(world.engine.keys, "authenticate");
    await world.engine.keys.revoke(other.key.keyId);
    expect(authenticate).toHaveBeenCalledTimes(2);
    authenticate.mockRestore();
    const rests = clients.map((client) => client.rest());
    await world.engine.keys.revoke(world.keyId);
    for (let i = 0; i < followers; i += 2) expect(await rests[i]).toEqual([]);
    await world.engine.applications.suspend(world.applicationId);
    for (const rest of rests) expect(await rest).toEqual([]);
  });

  test("hear nothing of another application", async () => {
    await start();
    const client = await open(`?after=${FIRST}`);
    const other = await EventStreamClient.open(`${address}/api/v1/events`, {
      ...STREAM,
      "x-api-key": world.otherKey,
    });
    await other.take(FIRST - 1);
    for (let i = 0; i < 20; i++) await (i % 2 === 0 ? mint() : mintElsewhere());
    const [own, others] = [await client.take(10), await other.take(10)];
    const users = (events: typeof own) => events.map(({ data }) => data.data.mints);
    expect(users(own)).toEqual(Array(10).fill(3));
    expect(users(others)).toEqual(Array(10).fill(1));
    client.hangUp();
    other.hangUp();
  });
});

describe("pages of events", () => {
  test("hold the same, and report whether there are more", async () => {
    await start();
    await mint();
    const first = await world.send("GET", "/api/v1/events?limit=3");
    expect(first.body.data.map(({ sequence }: { sequence: number }) => sequence)).toEqual([
      1, 2, 3,
    ]);
    expect(first.body.hasMore).toBe(true);
    const { body } = await world.send("GET", "/api/v1/events?after=3");
    expect(body).toMatchObject({ data: [{ sequence: 4, type: "mint.accepted" }], hasMore: false });
    const streamed = await open("?after=3");
    expect((await streamed.take(1))[0]?.data).toEqual(body.data[0]);
    streamed.hangUp();
  });

  test.each([
    ["?after=4", {}, ["/query/after validation_failed"]],
    ["?after=4", STREAM, ["/query/after validation_failed"]],
    ["?after=-1", STREAM, ["/query/after validation_failed"]],
    ["?limit=0&from=2", {}, ["/query/limit validation_failed", "/query/from validation_failed"]],
    ["", { ...STREAM, "last-event-id": "x" }, ["/headers/last-event-id validation_failed"]],
  ])("and streams refuse %s %j", async (query, headers, errors) => {
    await start();
    const answer = await world.send("GET", `/api/v1/events${query}`, { headers });
    expect(refusal(answer)).toEqual({ status: 400, code: "validation_failed", errors });
  });

  test("and streams need the scope read", async () => {
    await start();
    const answer = await world.send("GET", "/api/v1/events", { key: await world.newKey(["mint"]) });
    expect(refusal(answer)).toMatchObject({ status: 403, code: "scope_missing" });
  });
});
