import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openEngine } from "../../core/index.ts";
import { shutDown } from "../../server/process/shutdown.ts";
import { addressOf, cleanEnvironment, SERVER, settingsOf } from "../cli/cli.ts";
import { eventually } from "../eventually.ts";
import { Connection, listen } from "./connection.ts";
import { createWorld, entries, SETTLEMENT, type World, type WorldOptions } from "./fixture.ts";

describe("over a real socket", () => {
  let world: World;
  let port: number;
  const start = async (options: WorldOptions = {}) => {
    world = await createWorld(options);
    port = await listen(world.app);
  };
  afterEach(() => world[Symbol.asyncDispose]());

  const mintRequest = (token = 1) => {
    const body = JSON.stringify({
      users: [{ userId: world.users[0], mints: entries(world, token) }],
    });
    const head = `POST /api/v1/mint HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${world.key}\r\nContent-Type: application/json\r\n`;
    return { head: `${head}Content-Length: ${body.length}\r\n\r\n`, body };
  };

  test("a shutdown finishes what runs, refuses what comes, and closes every connection", async () => {
    await start();
    const [running, idle] = [new Connection(port), new Connection(port)];
    const { head, body } = mintRequest();
    expect((await idle.write("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").answer()).status).toBe(200);
    const arrived = once(world.app.server, "request");
    running.write(head + body.slice(0, 50));
    await arrived;
    // So long a deadline that only an orderly end lets the test end.
    const done = shutDown(world.app, { deadlineMs: 600_000 });
    await once(idle.socket, "close");
    running.write(body.slice(50));
    const { status, head: fields, body: reply } = await running.answer();
    expect(status).toBe(200);
    expect(fields.toLowerCase()).toContain("connection: close");
    expect(JSON.parse(reply).transactions).toHaveLength(3);
    await done;
    const late = new Connection(port);
    const [error] = await once(late.socket, "error").catch((cause: unknown) => [cause]);
    expect(error).toMatchObject({ code: "ECONNREFUSED" });
    expect((await world.engine.transactions.list(world.applicationId)).data).toHaveLength(3);
  });

  test("a shutdown under load answers every request that came, and loses no mint that it acknowledged", async () => {
    await start();
    let [came, answered, token] = [0, 0, 0];
    world.app.server.on("request", () => {
      came += 1;
    });
    const minted: string[] = [];
    const client = async () => {
      const wire = new Connection(port);
      for (;;) {
        const { head, body } = mintRequest(++token);
        const answer = await wire
          .write(head + body)
          .answer()
          .catch(() => null);
        if (answer === null) return;
        answered += 1;
        const reply = JSON.parse(answer.body);
        if (answer.status === 200) minted.push(reply.mintId);
        else expect(reply).toMatchObject({ status: 503, code: "shutting_down" });
      }
    };
    const clients = Array.from({ length: 8 }, client);
    await eventually(() => expect(minted.length).toBeGreaterThan(40));
    await shutDown(world.app, { deadlineMs: 600_000 });
    await Promise.all(clients);
    expect(answered).toBe(came);
    for (const mintId of minted) {
      expect((await world.engine.mints.get(world.applicationId, mintId)).vaults).toHaveLength(3);
    }
  });

  test("while draining, every request gets 503, and connections end", async () => {
    await start();
    const wire = new Connection(port);
    expect((await wire.write("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").answer()).status).toBe(200);
    world.app.drain();
    const ready = await wire.write("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").answer();
    expect([ready.status, JSON.parse(ready.body).code]).toEqual([503, "shutting_down"]);
    await (wire.socket.closed || once(wire.socket, "close"));
    const { head, body } = mintRequest();
    const refused = await new Connection(port).write(head + body).answer();
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([503, "shutting_down"]);
    expect(world.engine.batches.getOpen("validium").vaultCount).toBe(0);
  });

  test("a connection that is busy past the deadline is cut", async () => {
    await start();
    const stuck = new Connection(port);
    const arrived = once(world.app.server, "request");
    stuck.write(mintRequest().head);
    await arrived;
    await shutDown(world.app, { deadlineMs: 50 });
    expect(stuck.socket.closed || (await once(stuck.socket, "close"))).toBeTruthy();
  });

  test("a request that does not arrive in time is told so", async () => {
    await start({ requestTimeoutSeconds: 0.2 });
    const { status, head, body } = await new Connection(port).write(mintRequest().head).answer();
    expect([status, JSON.parse(body).code]).toEqual([408, "request_timeout"]);
    expect(head).toContain("application/problem+json");
  });

  test.each([
    ["NONSENSE\r\n\r\n", 400, "malformed_request"],
    [
      `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`,
      431,
      "headers_too_large",
    ],
    [
      "POST /api/v1/mint HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
      400,
      "malformed_request",
    ],
    ["GET /healthz HTTP/1.1\r\n\r\n", 400, "malformed_request"],
    ["GET /api/v1/assets?symbol=%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed_request"],
    ["GET /api/v1/assets?symbol=% HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed_request"],
    ["GET /api/v1/assets?symbol=\u00ff HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed_request"],
    ["GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400, "malformed_request"],
    [
      "GET /api/v1/assets HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nauthorization: b\r\n\r\n",
      400,
      "malformed_request",
    ],
    ["CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method_not_allowed"],
    [
      "POST /api/v1/mint HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nContent-Length: 2\r\n\r\n",
      417,
      "expectation_failed",
    ],
    ["GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc", 400, "malformed_request"],
    [
      "POST /api/v1/mint HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      400,
      "malformed_request",
    ],
    [
      "POST /api/v1/mint HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
      400,
      "malformed_request",
    ],
    [`GET / HTTP/1.1\r\nHost: x\r\n${"a: b\r\n".repeat(1000)}\r\n`, 431, "headers_too_large"],
    ["GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "host_unknown"],
    ["GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400, "malformed_request"],
  ])("%.60j is answered in the form of every other error", async (bytes, expected, code) => {
    await start();
    const { status, head, body } = await new Connection(port).write(bytes).answer();
    expect(status).toBe(expected);
    expect(head.toLowerCase()).toContain("content-type: application/problem+json\r\n");
    expect(JSON.parse(body)).toMatchObject({
      code,
      status: expected,
      requestId: expect.any(String),
    });
  });
});

test("no secret is ever logged, wherever a caller puts it", async () => {
  const lines: string[] = [];
  const world = await createWorld({
    log: { level: "trace", stream: { write: (line) => void lines.push(line) } },
  });
  await using _ = world;
  const raw = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: world.keyId,
    client_secret: world.key,
  });
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const { body } = await world.send("POST", "/oauth/token", {
    key: null,
    raw: raw.toString(),
    headers: form,
  });
  const token: string = body.access_token;
  const misplaced = [
    world.send("GET", "/api/v1/assets"),
    world.send("GET", "/api/v1/assets", {
      key: null,
      headers: { authorization: `Bearer ${token}` },
    }),
    world.send("GET", `/api/v1/assets?api_key=${world.key}`, {}),
    world.send("GET", `/api/v1/transactions/${world.key.slice(0, 80)}`),
    world.app.inject({ url: `/${world.key}/${token}` }),
    world.app.inject({ url: `/api/v1/users/%zz${world.key}` }),
    world.send("POST", "/api/v1/users", { body: { ownerAddress: world.key, [world.key]: token } }),
    world.send("POST", "/api/v1/mint", { raw: `{"${world.key}":${token}}` }),
    world.send("GET", "/healthz", { headers: { "x-request-id": world.key.slice(0, 64) } }),
  ];
  await Promise.all(misplaced);
  world.app.log.error(
    { err: new Error(`failed for ${world.key}`), headers: { "x-api-key": world.key } },
    token,
  );
  const formless = ['of no "form"', "at any \\ depth"] as const;
  world.app.log.error({
    "x-api-key": formless[0],
    a: { b: { headers: { Authorization: formless[1] } } },
  });
  const log = lines.join("");
  expect(lines.length).toBeGreaterThan(10);
  const secret = world.key.split("_")[3]?.slice(0, 20) ?? "";
  expect(secret).toHaveLength(20);
  for (const part of [secret, token.split(".")[1], token.split(".")[2]])
    expect(log).not.toContain(part);
  for (const text of formless) expect(log).not.toContain(JSON.stringify(text).slice(1, -1));
  expect(log).toContain("[redacted]");
});

const ROOT = new URL("../../", import.meta.url).pathname;

describe("the process", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-server-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const run = (environment: Record<string, string>): ChildProcess => {
    return spawn(process.execPath, SERVER, {
      cwd: ROOT,
      env: cleanEnvironment(environment),
      stdio: ["ignore", "pipe", "pipe"],
    });
  };

  test("serves a store, ends in order on SIGTERM, and has logged no key", async () => {
    const options = {
      store: folder,
      settlement: SETTLEMENT,
      environment: "sandbox",
      createIfMissing: true,
    } as const;
    let applicationId: string;
    let key: string;
    {
      await using engine = await openEngine(options);
      ({ applicationId } = await engine.applications.create({ name: "Only" }));
      key = (await engine.keys.issue(applicationId)).secret;
    }
    const child = run({ ...settingsOf(folder, SETTLEMENT), MINTMARK_PORT: "0" });
    if (child.stdout === null || child.stderr === null) throw new Error("no pipes");
    const errors = text(child.stderr);
    const log: string[] = [];
    const address = await new Promise<string>((resolve, reject) => {
      child.on("exit", (code) => reject(new Error(`ended with ${code}: ${log.join("\n")}`)));
      createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
        log.push(line);
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
        if (found) resolve(found);
      });
    });
    const ended = once(child, "close");
    const headers = { "X-API-KEY": key, "content-type": "application/json" };
    const body = JSON.stringify({ ownerAddress: `0x${"12".repeat(20)}` });
    const created = await fetch(`${address}/api/v1/users`, { method: "POST", headers, body });
    expect(created.status).toBe(201);
    const { userId } = (await created.json()) as { userId: string };
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect(await errors).toBe("");
    expect(log.join("\n")).toContain('"msg":"shutting down"');
    expect(log.join("\n")).not.toContain(key.split("_")[3]);
    await using engine = await openEngine(options);
    expect((await engine.users.get(applicationId, userId)).userId).toBe(userId);
  });

  const settings = () => ({
    ...cleanEnvironment(),
    ...settingsOf(folder, SETTLEMENT),
    MINTMARK_PORT: "0",
  });

  const server = [process.execPath, ...SERVER];
  const here = {
    store: "",
    settlement: SETTLEMENT,
    environment: "sandbox",
    createIfMissing: true,
  } as const;

  test.each([
    ["npm", ["npm", "run", "server"], "SIGTERM"],
    ["npm", ["npm", "run", "server"], "SIGINT"],
    // The process that becomes 1 of a new process namespace, as a container's init is.
    ["unshare", ["unshare", "--pid", "--fork", "--kill-child", ...server], "SIGTERM"],
  ] as const)(
    "ends in order with what started it: %s, %#",
    async (_, [command, ...args], signal) => {
      await (await openEngine({ ...here, store: folder })).close();
      const child = spawn(command, args, {
        cwd: ROOT,
        env: settings(),
        stdio: ["ignore", "pipe", "pipe"],
      });
      if (child.stderr === null) throw new Error("no pipe");
      const errors = text(child.stderr);
      let address: string;
      try {
        address = await addressOf(child);
      } catch (error) {
        if (/unshare|ENOENT/.test(await errors)) return;
        throw error;
      }
      expect((await fetch(`${address}/healthz`)).status).toBe(200);
      const closed = once(child, "close");
      const { pid = 0 } = child;
      // unshare itself heeds no signal; a container's runtime sends it to the init.
      const init =
        command === "unshare" ? await readFile(`/proc/${pid}/task/${pid}/children`, "utf8") : pid;
      process.kill(Number(init), signal);
      // The pipes close when the last process of the tree has ended.
      await closed;
      await expect(fetch(`${address}/healthz`)).rejects.toThrow();
      await (await openEngine({ ...here, store: folder })).close();
    },
  );

  test("ends with an error when its store has failed, so that a supervisor sees it", async () => {
    let key: string;
    {
      await using engine = await openEngine({ ...here, store: folder });
      key = (
        await engine.keys.issue((await engine.applications.create({ name: "Only" })).applicationId)
      ).secret;
    }
    // No file may grow beyond 64 blocks of 512 bytes; a write beyond it fails, like that to a full
    // disk.
    const limited = 'trap "" XFSZ; ulimit -f 64; exec "$0" "$@"';
    const child = spawn("sh", ["-c", limited, ...server], {
      cwd: ROOT,
      env: settings(),
      stdio: "pipe",
    });
    const ended = once(child, "exit");
    const address = await addressOf(child);
    const headers = { "X-API-KEY": key, "content-type": "application/json" };
    const body = JSON.stringify({ ownerAddress: `0x${"12".repeat(20)}` });
    let status = 201;
    for (let users = 0; status === 201 && users < 5_000; users++) {
      status = (await fetch(`${address}/api/v1/users`, { method: "POST", headers, body })).status;
    }
    expect(status).toBe(503);
    expect(await ended).toEqual([1, null]);
  });

  /** A server on a new store, its log unread from its first line on. */
  const unread = async (environment: Record<string, string> = {}) => {
    await (await openEngine({ ...here, store: folder })).close();
    const child = run({ ...settings(), ...environment } as Record<string, string>);
    if (child.stdout === null || child.stderr === null) throw new Error("no pipes");
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    child.stdout.pause();
    const address = /http:\/\/127\.0\.0\.1:\d+/.exec(String(line))?.[0] ?? "";
    return { child, address, ended: once(child, "exit") };
  };

  test("serves on when the reader of its log has ended, and ends in order", async () => {
    const { child, address, ended } = await unread();
    child.stdout?.destroy();
    child.stderr?.destroy();
    for (let i = 0; i < 5; i++) expect((await fetch(`${address}/healthz`)).status).toBe(200);
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });

  test("serves and ends although nobody reads its log, whose pipe is full", async () => {
    const { child, address, ended } = await unread({ MINTMARK_DRAIN_SECONDS: "0" });
    // A pipe takes some 100 KiB, and each line of the log has the path.
    const path = "x".repeat(8_000);
    for (let i = 0; i < 60; i++) await (await fetch(`${address}/${path}`)).text();
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });

  test("does not start without a store, and creates none", async () => {
    const store = join(folder, "store");
    for (const name of [store, folder]) {
      const child = run({ ...settingsOf(name, SETTLEMENT), MINTMARK_PORT: "0" });
      if (child.stderr === null) throw new Error("no pipe");
      const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
      expect(code).toBe(1);
      expect(errors).toContain(`There is no store in ${name}.`);
      expect(errors).toContain("mintmark init");
    }
    expect(await readdir(folder)).toEqual([]);
  });

  test("does not start on a port that is taken, and says so in one line", async () => {
    await (await openEngine({ ...here, store: folder })).close();
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const child = run({ ...settings(), MINTMARK_PORT: `${port}` });
    if (child.stderr === null) throw new Error("no pipe");
    const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
    other.close();
    expect(code).toBe(1);
    expect(errors).toBe(
      `another process listens on 127.0.0.1:${port}: stop it, or choose another MINTMARK_PORT\n`,
    );
  });

  test("does not start with settings that are wrong, and names them", async () => {
    const child = run({ MINTMARK_STORE: folder, MINTMARK_PORT: "http" });
    if (child.stderr === null) throw new Error("no pipe");
    const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
    expect(code).toBe(2);
    for (const name of [
      "MINTMARK_ENVIRONMENT",
      "MINTMARK_CHAIN_ID",
      "MINTMARK_CONTRACT",
      "MINTMARK_PORT",
    ]) {
      expect(errors).toContain(name);
    }
  });
});
