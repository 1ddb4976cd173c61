import { once } from "node:events";
import { createServer } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HeldBytes } from "../../server/http/access/account.ts";
import { addressGroup } from "../../server/http/access/rate-limit.ts";
import { boundConnections } from "../../server/http/fastify-app.ts";
import { FORM } from "../../server/http/wire/body.ts";
import { Connection, listen } from "./connection.ts";
import { createWorld, entries, type World } from "./fixture.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

test("an address with many connections loses its own, and no other address loses one", async () => {
  const server = createServer((_request, response) => response.end("well"));
  boundConnections(server, 4);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  const opened: Connection[] = [];
  const open = (from: string) => {
    const connection = new Connection(address.port, from);
    opened.push(connection);
    return connection;
  };
  const sends = async (connection: Connection) => (await connection.write(REQUEST).answer()).status;
  try {
    const honest = open("127.0.0.1");
    expect(await sends(honest)).toBe(200);
    // Two strangers open many connections each, silent ones and ones with requests.
    const silent = Array.from({ length: 40 }, () => open("127.0.0.2").write("G"));
    await expect.poll(() => silent.filter(({ socket }) => socket.closed).length).toBe(37);
    for (let i = 0; i < 40; i++) expect(await sends(open("127.0.0.3"))).toBe(200);
    expect(await sends(honest)).toBe(200);
    expect(await sends(open("127.0.0.4"))).toBe(200);
    expect(await sends(honest)).toBe(200);
    await expect.poll(() => opened.filter(({ socket }) => !socket.closed).length).toBe(4);
  } finally {
    for (const { socket } of opened) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});

const memory = new HeldBytes();
let world: World;
let port: number;
beforeAll(async () => {
  world = await createWorld({ memory });
  port = await listen(world.app);
});
afterAll(() => world[Symbol.asyncDispose]());

const head = (path: string, field: string, type = "application/json") =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${world.key}\r\nContent-Type: ${type}\r\n${field}\r\n\r\n`;
const chunk = (bytes: Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
/** A mint under a name of its own, so long that it needs a room; `é` so that a piece can end within a character. */
const mintOf = (token: number) => {
  const users = [{ userId: world.users[0], mints: entries(world, token) }];
  return Buffer.from(`${" ".repeat(200_000)}${JSON.stringify({ users, [`é${token}`]: 0 })}`);
};

test("bodies that arrive in pieces, several at once, are each read whole", async () => {
  const answers = await Promise.all(
    [1, 2, 3, 4].map(async (token) => {
      const body = mintOf(token);
      const connection = new Connection(port).write(head("/api/v1/mint", "Transfer-Encoding: chunked"));
      // The last cut is between the two bytes of the é.
      const cuts = [0, 70_000, 140_000, body.indexOf("é") + 1, body.length];
      for (const [i, end] of cuts.slice(1).entries()) connection.write(chunk(body.subarray(cuts[i], end)));
      const { body: answer } = await connection.write("0\r\n\r\n").answer();
      return JSON.parse(Buffer.from(answer, "latin1").toString());
    }),
  );
  expect(answers.map(({ errors }) => errors[0].pointer)).toEqual(["/é1", "/é2", "/é3", "/é4"]);
});

test("a body that comes in thousands of pieces is read whole, and in order", async () => {
  const tokens = Array.from({ length: 2_000 }, (_, i) => `"${i}":0`);
  const text = `{"users":[],${tokens.join()},"last":0}`;
  const pieces = Array.from({ length: Math.ceil(text.length / 5) }, (_, i) =>
    chunk(Buffer.from(text.slice(5 * i, 5 * i + 5))),
  );
  const connection = new Connection(port).write(head("/api/v1/mint", "Transfer-Encoding: chunked"));
  const { body } = await connection.write(Buffer.concat([...pieces, Buffer.from("0\r\n\r\n")])).answer();
  expect(pieces.length).toBeGreaterThan(3_000);
  expect(JSON.parse(body).code).toBe("validation_failed");
  const { body: damaged } = await new Connection(port)
    .write(head("/api/v1/mint", "Transfer-Encoding: chunked"))
    .write(Buffer.concat([...pieces.slice(0, 1_500), ...pieces.slice(1_501), Buffer.from("0\r\n\r\n")]))
    .answer();
  expect(JSON.parse(damaged).code).toBe("malformed_json");
});

test("a body of unknown length is refused as soon as it is too long, and its connection closed", async () => {
  const connection = new Connection(port).write(head("/api/v1/users", "Transfer-Encoding: chunked"));
  for (let sent = 0; sent <= 64 * 1024; sent += 16 * 1024) connection.write(chunk(Buffer.alloc(16 * 1024, " ")));
  const answer = await connection.answer();
  expect(JSON.parse(answer.body)).toMatchObject({ status: 413, code: "body_too_large" });
  expect(answer.head).toMatch(/connection: close/i);
});

test("a connection that breaks off within a body harms no other", async () => {
  const before = await world.snapshot();
  const broken = new Connection(port).write(head("/api/v1/mint", "Content-Length: 300000"));
  broken.write(mintOf(9).subarray(0, 150_000));
  const closed = once(broken.socket, "close");
  broken.socket.destroy();
  await closed;
  const body = Buffer.from("{}");
  const other = new Connection(port).write(head("/api/v1/mint", `Content-Length: ${body.length}`)).write(body);
  expect(JSON.parse((await other.answer()).body).code).toBe("validation_failed");
  expect(await world.snapshot()).toEqual(before);
});

test.each([
  ["/oauth/token", FORM],
  ["/oauth/token", "application/json"],
  ["/owner/v1/challenge", "application/json"],
])("a body for %s as %s in pieces of one byte takes no more memory than its caller pays for", async (path, type) => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const used = () => {
    collect();
    return process.memoryUsage().heapUsed + process.memoryUsage().external;
  };
  const [before, paid] = [used(), memory.total];
  const start = head(path, "Transfer-Encoding: chunked", type);
  const callers = Array.from({ length: 100 }, (_, i) =>
    new Connection(port, `127.0.1.${i + 1}`).write(start + "1\r\n \r\n".repeat(1_000)),
  );
  // The account and the buffer of each.
  await expect.poll(() => memory.total - paid).toBeGreaterThanOrEqual(100 * (8 * 1024 + 1_000));
  // With what both ends of the connections take in this process.
  expect(used() - before).toBeLessThan(100 * 64 * 1024);
  for (const { socket } of callers) socket.destroy();
  await expect.poll(() => memory.total).toBe(paid);
});

test("a caller pays for the pieces of a body", async () => {
  const publicReads = { units: 100, windowSeconds: 1_000 };
  await using own = await createWorld({ rateLimits: { publicReads }, now: () => 0 });
  const start = head("/owner/v1/challenge", "Transfer-Encoding: chunked");
  const pieces = `1\r\n{\r\n${"1\r\n \r\n".repeat(1_998)}1\r\n}\r\n0\r\n\r\n`;
  const { head: answer } = await new Connection(await listen(own.app)).write(start + pieces).answer();
  expect(answer).toMatch(/^ratelimit: "public";r=66;/im);
});

test("connections of tenants outlast those of strangers, one for each of many addresses", async () => {
  await using world = await createWorld();
  const port = await listen(world.app);
  boundConnections(world.app.server, 8);
  const opened: Connection[] = [];
  const open = (from: string) => {
    const connection = new Connection(port, from);
    opened.push(connection);
    return connection;
  };
  const sends = async (connection: Connection, key = world.key) => {
    const request = `GET /api/v1/limits HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${key}\r\n\r\n`;
    return (await connection.write(request).answer()).status;
  };
  try {
    // Both of one address, which so has more of them than any stranger.
    const honest = [open("127.0.0.1"), open("127.0.0.1")];
    for (const each of honest) expect(await sends(each)).toBe(200);
    for (let i = 2; i < 60; i++)
      await open(`127.0.0.${i}`).write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").answer();
    for (const each of honest) expect(await sends(each)).toBe(200);
    // A key that is wrong is none. Another tenant takes connections only of strangers and of its own.
    for (let i = 0; i < 20; i++) expect(await sends(open(`127.0.1.${i}`), "mm_test_wrong")).toBe(401);
    for (let i = 0; i < 20; i++) expect(await sends(open(`127.0.2.${i}`), world.otherKey)).toBe(200);
    expect(await sends(open("127.0.3.1"))).toBe(200);
    for (const each of honest) expect(await sends(each)).toBe(200);
    await expect.poll(() => opened.filter(({ socket }) => !socket.closed).length).toBe(8);
  } finally {
    for (const { socket } of opened) socket.destroy();
  }
});

test("the connections of one IPv6 /48 are those of one caller", () => {
  expect(addressGroup("2001:db8:1:2::5", 48)).toBe(addressGroup("2001:db8:1:ffff:5:6:7:8", 48));
  expect(addressGroup("2001:db8:1::", 48)).not.toBe(addressGroup("2001:db8:2::", 48));
  expect(addressGroup("127.0.0.1", 48)).toBe("127.0.0.1");
});
