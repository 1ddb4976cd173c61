import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { afterAll, describe, expect, test, vi } from "vitest";
import type { ClusterNode } from "../../core/cluster/index.ts";
import { Drops, MintmarkError } from "../../core/index.ts";
import { until } from "../../scripts/demo/until.ts";
import { buildServer } from "../../server/app.ts";
import { serveInCluster } from "../../server/process/forwarding.ts";
import { createWorld, refusal, type World } from "../server/fixture.ts";

interface LogEntry {
  readonly level: number;
  readonly code?: string;
}
const log: LogEntry[] = [];
const folder = mkdtempSync(join(tmpdir(), "mintmark-drops-"));
const stream = { write: (line: string) => void log.push(JSON.parse(line)) };
// Standbys ask a server for its role.
const extend = async (app: FastifyInstance) =>
  void app.addHook("onSend", async (_, reply) => void reply.header("mintmark-role", "leader"));
const world = await createWorld({
  drops: join(folder, "drops"),
  log: { level: "info", stream },
  extend,
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const PATH = "/api/v1/drops";
const owner = (index: number) => `0x${(0x1000 + index).toString(16).padStart(40, "0")}` as const;
const CSV = { "content-type": "text/csv" };
const rowsOf = (first: number, count: number, amount = 5) =>
  `ownerAddress,amount\n${Array.from({ length: count }, (_, i) => `${owner(first + i)},${amount}`).join("\n")}\n`;
const HEADER = "ownerAddress,amount\n".length;
const query = () => `?assetId=${world.erc20.assetId}&dataAvailabilityMode=ZkRollup`;
const upload = (raw: string, headers: Record<string, string> = {}, path = `${PATH}${query()}`) =>
  world.send("POST", path, { raw, headers: { ...CSV, ...headers } });
const ended = (dropId: string) =>
  until(
    "the drop's end",
    async () => (await world.send("GET", `${PATH}/${dropId}`)).body,
    ({ status }) => status !== "running" && status !== "queued",
  );
const balanceOf = async (ownerAddress: `0x${string}`) => {
  const { data } = await world.engine.vaults.list(world.applicationId, { ownerAddress });
  return data.reduce((sum, { amount }) => sum + amount, 0n);
};

/** Where the server listens. */
let listening: Promise<string> | undefined;
function address(): Promise<string> {
  listening ??= world.app.listen({ host: "127.0.0.1", port: 0 });
  return listening;
}

test("rows are taken, minted in the background, and told of one by one; again they are the same drop", async () => {
  const rows = rowsOf(0, 250);
  const { status, body: drop } = await upload(rows);
  expect([status, drop.rows, drop.failure]).toEqual([202, 250, null]);
  expect(await ended(drop.dropId)).toMatchObject({
    status: "done",
    minted: 250,
    refused: 0,
    dryRun: false,
  });
  const { text, headers } = await world.send("GET", `${PATH}/${drop.dropId}/result`);
  expect(headers["content-type"]).toBe("application/x-ndjson");
  const lines = text.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).row)).toEqual(
    Array.from({ length: 250 }, (_, i) => i + 2),
  );
  const again = await upload(rows);
  expect([again.body.dropId, again.headers["idempotency-replayed"]]).toEqual([drop.dropId, "true"]);
  expect(await balanceOf(owner(249))).toBe(5n);
  const { body: list } = await world.send("GET", PATH);
  expect(list.data.map(({ dropId }: { dropId: string }) => dropId)).toContain(drop.dropId);
});

test("NDJSON is taken, a dry run mints nothing, and an Idempotency-Key names another drop", async () => {
  const row = JSON.stringify({ ownerAddress: owner(1_000), amountDecimal: "7" });
  const ndjson = { "content-type": "application/x-ndjson; charset=utf-8" };
  const dry = await upload(row, ndjson, `${PATH}${query()}&dryRun=true`);
  expect(await ended(dry.body.dropId)).toMatchObject({
    status: "done",
    minted: 0,
    mintable: 1,
    dryRun: true,
  });
  expect(await balanceOf(owner(1_000))).toBe(0n);
  for (const key of ["may", "june", "june"]) {
    const { body } = await upload(row, { ...ndjson, "idempotency-key": key });
    expect(await ended(body.dropId)).toMatchObject({ status: "done", minted: 1 });
  }
  expect(await balanceOf(owner(1_000))).toBe(14n);
  const other = await upload(rowsOf(0, 1), { "idempotency-key": "june" });
  expect(refusal(other)).toMatchObject({ status: 422, code: "idempotency_key_reused" });
});

test("all rows arrive before they wait for others", async () => {
  const { promise: free, resolve: begin } = Promise.withResolvers<void>();
  const drops = new Drops({
    folder: join(folder, "arriving"),
    engine: world.engine,
    pace: () => free,
    onError() {},
  });
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  async function* sent() {
    for (let i = 0; i < 20; i++) yield Buffer.from(rowsOf(0, 1_000).slice(i === 0 ? 0 : HEADER));
    arrive();
  }
  const principal = await world.engine.keys.authenticate(world.key);
  const defaults = { assetId: world.erc20.assetId, dataAvailabilityMode: "validium" };
  const asked = { format: "csv", defaults, dryRun: true } as const;
  const taken = drops.upload(principal, asked, sent());
  await arrived;
  begin();
  expect((await taken).job.rows).toBe(20_000);
  await drops[Symbol.asyncDispose]();
});

describe("an upload", () => {
  const defaults = { assetId: world.erc20.assetId, dataAvailabilityMode: "validium" };
  const asked = { format: "csv", defaults, dryRun: true } as const;
  const principalOf = (key: string) => world.engine.keys.authenticate(key);
  const begin = (name: string, more: { readonly uploadingBytes?: number } = {}) =>
    new Drops({ folder: join(folder, name), engine: world.engine, onError() {}, ...more });

  test.each([
    ["wrong header", "colour\n", (i: number) => `red ${i}\n`, [1]],
    [
      "hundred faults",
      "ownerAddress,units\n",
      (i: number) => `x${i},1\n`,
      Array.from({ length: 100 }, (_, i) => 2 + i),
    ],
  ])("ends at a %s, and its bytes with it", async (_, header, row, faulty) => {
    await using drops = begin("faulty");
    let rows = 0;
    async function* sent() {
      yield Buffer.from(header);
      for (; rows < 4_000_000; rows += 1_000) {
        yield Buffer.from(Array.from({ length: 1_000 }, (_, i) => row(rows + i)).join(""));
        // A network is no quicker: the first bytes are read before the last have come.
        await setTimeout(2);
      }
    }
    const principal = await principalOf(world.key);
    const error = await drops.upload(principal, asked, sent()).catch((error: unknown) => error);
    expect(error).toMatchObject({
      code: "drop_invalid",
      issues: faulty.map((line) => ({ pointer: expect.stringMatching(`^/rows/${line}(/|$)`) })),
    });
    expect(rows).toBeLessThan(2_000_000);
    expect(readdirSync(join(folder, "faulty"))).toEqual([]);
  });

  test("that breaks off leaves nothing, and rejects with its own error", async () => {
    await using drops = begin("broken");
    const broken = new Error("the connection broke");
    async function* sent() {
      yield Buffer.from(rowsOf(0, 10_000));
      throw broken;
    }
    await expect(drops.upload(await principalOf(world.key), asked, sent())).rejects.toBe(broken);
    expect(readdirSync(join(folder, "broken"))).toEqual([]);
  });

  test("finds no room beside others whose bytes are as many as may be", async () => {
    await using drops = begin("full", { uploadingBytes: 1_000_000 });
    const [own, other] = [await principalOf(world.key), await principalOf(world.otherKey)];
    /** An upload that holds its bytes until it is told to end. */
    const hold = async (principal: typeof own, bytes: number) => {
      const [{ promise: held, resolve: tell }, end] = [
        Promise.withResolvers<void>(),
        Promise.withResolvers<void>(),
      ];
      async function* sent() {
        yield Buffer.from(`ownerAddress,amount\n${"\n".repeat(bytes - HEADER)}`);
        tell();
        await end.promise;
      }
      const outcome = drops.upload(principal, asked, sent()).then(
        () => "taken",
        ({ code }) => code,
      );
      const isHeld = await Promise.race([held.then(() => true), outcome.then(() => false)]);
      return { isHeld, outcome, end: end.resolve };
    };
    const first = await hold(own, 400_000);
    const second = await hold(own, 150_000);
    expect(await second.outcome).toBe("uploads_full");
    const third = await hold(other, 450_000);
    const fourth = await hold(own, 100_000);
    expect([first, third, fourth].map(({ isHeld }) => isHeld)).toEqual([true, true, true]);
    const fifth = await hold(other, 50_001);
    expect(await fifth.outcome).toBe("uploads_full");
    first.end();
    expect(await first.outcome).toBe("drop_invalid");
    const sixth = await hold(own, 350_000);
    expect(sixth.isHeld).toBe(true);
    for (const one of [third, fourth, sixth]) one.end();
    await Promise.all([third, fourth, sixth].map(({ outcome }) => outcome));
  });

  test("that finds no room is told when to come again", async () => {
    const full = vi.spyOn(Drops.prototype, "upload");
    full.mockRejectedValueOnce(new MintmarkError("uploads_full"));
    const refused = await upload(rowsOf(0, 1));
    full.mockRestore();
    expect([refused.status, refused.body.code, refused.headers["retry-after"]]).toEqual([
      503,
      "uploads_full",
      "10",
    ]);
  });
});

test("a refusal before the last byte reaches the caller", async () => {
  const url = new URL(await address());
  const headers = { ...CSV, "x-api-key": world.key };
  const sent = httpRequest({
    host: url.hostname,
    port: url.port,
    path: PATH,
    method: "POST",
    headers,
  });
  const answered = new Promise<unknown>((resolve, reject) => {
    sent.on("response", (response) => resolve(json(response))).on("error", reject);
  });
  sent.write("colour\nred\n");
  for (let i = 0; i < 64; i++) sent.write("x".repeat(65_536));
  sent.end();
  expect(await answered).toMatchObject({
    code: "drop_invalid",
    detail: expect.stringContaining('"colour"'),
  });
});

test("an upload pays for its length before it is read", async () => {
  await using poor = await createWorld({
    drops: join(folder, "poor"),
    rateLimits: { key: { units: 10_000, windowSeconds: 10_000 } },
  });
  const piece = Buffer.alloc(100 * 1024, "x");
  const send = async (pieces: number) => {
    const payload = Readable.from(Array.from({ length: pieces }, () => piece));
    const length = { "content-length": String(pieces * piece.length) };
    const headers = { ...CSV, ...length, "x-api-key": poor.key };
    const answer = await poor.app.inject({ method: "POST", url: PATH, headers, payload });
    return { code: answer.json().code, retry: Number(answer.headers["retry-after"]) };
  };
  expect((await send(60)).code).toBe("drop_invalid");
  expect(await send(70)).toEqual({ code: "rate_limited", retry: expect.closeTo(3_000, -2) });
  // The refused upload cost nothing.
  expect((await send(39)).code).toBe("drop_invalid");
});

test("rows that are read cost a unit for four, on credit, whether they are minted or not", async () => {
  const key = { units: 1_000, windowSeconds: 1_000_000 };
  await using poor = await createWorld({
    drops: join(folder, "rows"),
    rateLimits: { key },
    now: () => 0,
  });
  const send = async (raw: string) => {
    const url = `${PATH}?assetId=${poor.erc20.assetId}&dataAvailabilityMode=validium`;
    const headers = { ...CSV, "x-api-key": poor.key };
    const answer = await poor.app.inject({ method: "POST", url, headers, payload: raw });
    return [answer.statusCode, answer.headers.ratelimit];
  };
  const faulty = `ownerAddress,tokenId\n${"x,y\n".repeat(400)}`;
  // Any upload costs at least 500 units, which its rows can exceed.
  expect(await send(faulty)).toEqual([422, expect.stringContaining(";r=500;")]);
  expect(await send(rowsOf(0, 5_000))).toEqual([202, expect.stringContaining(";r=0;")]);
  expect((await send(faulty))[0]).toBe(429);
});

test("a drop is its application's own, and needs the scope to mint", async () => {
  const { body: drop } = await upload(rowsOf(2_000, 1));
  await ended(drop.dropId);
  for (const [method, path] of [
    ["GET", drop.dropId],
    ["GET", `${drop.dropId}/result`],
    ["DELETE", drop.dropId],
  ] as const) {
    const foreign = await world.send(method, `${PATH}/${path}`, { key: world.otherKey });
    expect(refusal(foreign)).toMatchObject({ status: 404, code: "drop_not_found" });
  }
  expect((await world.send("GET", PATH, { key: world.otherKey })).body.data).toEqual([]);
  const reader = await world.newKey(["read"]);
  expect(
    refusal(await world.send("POST", PATH, { key: reader, raw: "x", headers: CSV })).code,
  ).toBe("scope_missing");
});

test("a revoked key ends its drop, and another key of the application goes on with it", async () => {
  const { engine, applicationId } = world;
  const { key, secret } = await engine.keys.issue(applicationId, { mintQuota: 120n });
  const rows = rowsOf(3_000, 300);
  const { body: drop } = await world.send("POST", `${PATH}${query()}`, {
    key: secret,
    raw: rows,
    headers: CSV,
  });
  expect(await ended(drop.dropId)).toMatchObject({
    status: "failed",
    minted: 100,
    failure: { code: "quota_exceeded" },
  });
  await engine.keys.revoke(key.keyId);
  const again = await upload(rows);
  expect(again.body.dropId).toBe(drop.dropId);
  expect(await ended(drop.dropId)).toMatchObject({ status: "done", minted: 300 });
  for (const i of [0, 99, 100, 299]) expect(await balanceOf(owner(3_000 + i))).toBe(5n);
});

test("a standby asks the leader about drops, which has them", async () => {
  const leader = { name: "one", url: await address() };
  // The server asks this of its place in the cluster.
  const node = { fault: null, isLeader: false, leader, position: 1, reached: async () => {} };
  const extend = (app: FastifyInstance) =>
    serveInCluster(app, node as unknown as ClusterNode, "standby");
  await using standby = await buildServer({ engine: world.engine, onlyReads: true, extend });
  const ask = async (method: "GET" | "POST", url: string, payload?: string) => {
    const headers = { "x-api-key": world.key, ...(payload && CSV) };
    return (await standby.inject({ method, url, headers, ...(payload && { payload }) })).json();
  };
  const { dropId } = await ask("POST", `${PATH}${query()}`, rowsOf(4_000, 120));
  await ended(dropId);
  expect(await ask("GET", `${PATH}/${dropId}`)).toMatchObject({ status: "done", minted: 120 });
  expect((await ask("GET", PATH)).data[0].dropId).toBe(dropId);
});

describe("a server that ends in the middle", () => {
  const drops = (name: string, engine = world.engine) =>
    new Drops({ folder: join(folder, name), engine, onError: (error) => expect(error).toBeNull() });
  const principal = () => ({
    applicationId: world.applicationId,
    keyId: world.keyId,
    scopes: ["mint", "users"] as const,
  });
  async function* bytes(text: string) {
    yield Buffer.from(text);
  }
  const ask = () => ({
    format: "csv" as const,
    defaults: { assetId: world.erc20.assetId, dataAvailabilityMode: "validium" },
    dryRun: false,
    onBytes: () => {},
  });

  /**
   * An engine that does so many mints; the next ones find it closed, before or after they are done.
   */
  function closing(mints: number, after: boolean) {
    let left = mints;
    const { engine } = world;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const mint: World["engine"]["mint"] = async (...args) => {
      if (left-- > 0) return engine.mint(...args);
      if (after) await engine.mint(...args);
      resolve();
      throw new MintmarkError("engine_closed");
    };
    return { engine: { ...engine, mint }, closed };
  }

  /** An engine whose mints wait for `release`. */
  function waiting() {
    const { engine } = world;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const mint: World["engine"]["mint"] = async (...args) => {
      reach();
      await released;
      return engine.mint(...args);
    };
    return { engine: { ...engine, mint }, reached, release };
  }

  test.each([
    [0, true],
    [2, false],
    [3, true],
  ])("after %i requests goes on with the next start (%s)", async (mints, after) => {
    const name = `ended-${mints}`;
    const first = 10_000 + 1_000 * mints;
    const { engine, closed } = closing(mints, after);
    const ending = drops(name, engine);
    const { job } = await ending.upload(principal(), ask(), bytes(rowsOf(first, 450, 9)));
    await closed;
    await ending[Symbol.asyncDispose]();
    writeFileSync(join(folder, name, job.dropId, "drop.json.new"), "{");
    const next = drops(name);
    await next.start();
    const done = await until(
      "the drop's end",
      () => next.get(world.applicationId, job.dropId),
      ({ status }) => status === "done",
    );
    expect(done).toMatchObject({ status: "done", minted: 450, refused: 0, unknown: 0 });
    await next[Symbol.asyncDispose]();
    expect(readdirSync(join(folder, name, job.dropId))).not.toContain("rows");
    for (const i of [0, 99, 100, 250, 449]) expect(await balanceOf(owner(first + i))).toBe(9n);
  });

  test("asks about rows that were sent a day ago, and takes the answer once", async () => {
    const { engine, closed } = closing(0, false);
    const rows = rowsOf(90_000, 150, 6);
    const ending = drops("unsure", engine);
    const { job } = await ending.upload(principal(), ask(), bytes(rows));
    await closed;
    await ending[Symbol.asyncDispose]();
    const progress = join(folder, "unsure", job.dropId, "progress.ndjson");
    const day = 24 * 3_600_000;
    const old = readFileSync(progress, "utf8").replace(/"at":\d+/, `"at":${Date.now() - day}`);
    writeFileSync(progress, old);
    const next = drops("unsure");
    await next.start();
    const end = () =>
      until(
        "the drop's end",
        () => next.get(world.applicationId, job.dropId),
        ({ status }) => status === "failed" || status === "done",
      );
    const { failure } = await end();
    expect(failure).toMatchObject({
      code: "drop_unsure",
      detail: expect.stringMatching(/^Rows 2 to 101 .*unsure=lost/),
    });
    await next.upload(principal(), { ...ask(), unsure: "lost" }, bytes(rows));
    expect(await end()).toMatchObject({ status: "done", minted: 150, failure: null });
    expect(readFileSync(join(folder, "unsure", job.dropId, "drop.json"), "utf8")).not.toContain(
      "lost",
    );
    await next[Symbol.asyncDispose]();
  });

  test("stops between two requests when it is asked to, and goes on with the same rows", async () => {
    const { engine, reached, release } = waiting();
    const own = drops("stopped", engine);
    const rows = rowsOf(50_000, 5_000, 3);
    const { job } = await own.upload(principal(), ask(), bytes(rows));
    // It is asked in the middle of a request, however fast the machine is.
    await reached;
    const stopping = own.stop(world.applicationId, job.dropId);
    release();
    const stopped = await stopping;
    expect(stopped.status).toBe("stopped");
    expect(stopped.minted).toBeLessThan(5_000);
    const { bytes: length, lines } = await own.result(world.applicationId, job.dropId);
    expect(Buffer.concat(await Array.fromAsync(lines)).length).toBe(length);
    expect((await own.upload(principal(), ask(), bytes(rows))).job.dropId).toBe(job.dropId);
    await own.stop(world.applicationId, job.dropId);
    await own[Symbol.asyncDispose]();
  });

  test("a drop that is uploaded before the start runs once", async () => {
    const { engine, reached, release } = waiting();
    const own = drops("early", engine);
    const { job } = await own.upload(principal(), ask(), bytes(rowsOf(95_000, 150, 8)));
    await reached;
    await own.start();
    release();
    await until(
      "the drop's end",
      () => own.get(world.applicationId, job.dropId),
      ({ status }) => status === "done",
    );
    // Waits for every run.
    await own[Symbol.asyncDispose]();
    expect(await own.list(world.applicationId)).toEqual([
      expect.objectContaining({ status: "done", minted: 150 }),
    ]);
    expect(await balanceOf(owner(95_001))).toBe(8n);
  });

  test("a queued drop stops at once, and goes on with the same rows", async () => {
    const { engine, reached, release } = waiting();
    const own = drops("queued", engine);
    const first = await own.upload(principal(), ask(), bytes(rowsOf(80_000, 150, 2)));
    const second = await own.upload(principal(), ask(), bytes(rowsOf(81_000, 150, 2)));
    await reached;
    const statuses = async () => (await own.list(world.applicationId)).map(({ status }) => status);
    expect(await statuses()).toEqual(["queued", "running"]);
    const { applicationId } = world;
    const stops = await Promise.all([1, 2].map(() => own.stop(applicationId, second.job.dropId)));
    expect(stops.map(({ status }) => status)).toEqual(["stopped", "stopped"]);
    expect(await statuses()).toEqual(["stopped", "running"]);
    const again = await own.upload(principal(), ask(), bytes(rowsOf(81_000, 150, 2)));
    expect([again.job.dropId, again.job.status]).toEqual([second.job.dropId, "queued"]);
    release();
    for (const { job } of [first, second]) {
      await until(
        "the drop's end",
        () => own.get(applicationId, job.dropId),
        ({ status, minted }) => status === "done" && minted === 150,
      );
    }
    expect(await balanceOf(owner(81_001))).toBe(2n);
    await own[Symbol.asyncDispose]();
  });

  test("and ten drops under way are as many as an application may have", async () => {
    const { engine, release } = waiting();
    const own = drops("many", engine);
    const many = Array.from({ length: 11 }, (_, i) =>
      own.upload(principal(), ask(), bytes(rowsOf(60_000, 2_000, i + 1))),
    );
    const outcomes = await Promise.allSettled(many);
    const refused = outcomes.flatMap((outcome) =>
      outcome.status === "rejected" ? [outcome.reason.code] : [],
    );
    expect(refused).toEqual(["too_many_drops"]);
    const accepted = outcomes.flatMap((outcome) =>
      outcome.status === "fulfilled" ? [outcome.value.job] : [],
    );
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === "rejected") continue;
      const again = await own.upload(principal(), ask(), bytes(rowsOf(60_000, 2_000, i + 1)));
      expect([again.replayed, again.job.dropId]).toEqual([true, outcome.value.job.dropId]);
    }
    expect(accepted).toHaveLength(10);
    const another = own.upload(principal(), ask(), bytes(rowsOf(60_000, 2_000, 99)));
    await expect(another).rejects.toMatchObject({ code: "too_many_drops" });
    const ending = own[Symbol.asyncDispose]();
    release();
    await ending;
  });
});
