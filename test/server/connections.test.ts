import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HeldBytes } from "../../server/http/access/rate-account.ts";
import { addressGroup } from "../../server/http/address.ts";
import { boundConnections, RECOGNIZED } from "../../server/http/connections.ts";
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

test("hundreds of new connections from one address delay neither a tenant's nor another address", async () => {
  let strangers = 0;
  const server = createServer((request, response) => {
    if (request.url === "/tenant") request.socket.emit(RECOGNIZED, "tenant");
    if (request.url === "/stranger") strangers += 1;
    response.end("well");
  });
  boundConnections(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const opened: Connection[] = [];
  const open = (from: string, path: string) => {
    const connection = new Connection(port, from).write(REQUEST.replace("/", path));
    opened.push(connection);
    return connection;
  };
  try {
    await open("127.0.0.1", "/tenant").answer();
    for (let i = 0; i < 400; i++) open("127.0.0.2", "/stranger");
    await expect.poll(() => strangers).toBeGreaterThan(0);
    await Promise.all([
      open("127.0.0.1", "/tenant").answer(),
      open("127.0.0.3", "/other").answer(),
    ]);
    expect(strangers).toBeLessThan(200);
    await expect.poll(() => strangers).toBe(400);
  } finally {
    for (const { socket } of opened) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});

test.each([
  ["nothing", ""],
  ["one byte", "G"],
  ["a request", REQUEST],
])("hundreds of addresses that send %s and close at once delay nobody", async (_, sent) => {
  const server = createServer((_request, response) => response.end("well"));
  let begun = 0;
  const [begin] = server.listeners("connection");
  if (begin === undefined) throw new Error("no listener");
  server.removeAllListeners("connection");
  server.on("connection", (socket) => {
    begun += 1;
    begin.call(server, socket);
  });
  boundConnections(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const first = new Connection(port, "127.0.0.1");
  expect((await first.write(REQUEST).answer()).status).toBe(200);
  let accepted = 0;
  server.on("connection", () => {
    accepted += 1;
  });
  try {
    const strangers = Array.from(
      { length: 600 },
      (_, i) => new Connection(port, `127.2.${i >> 8}.${i & 255}`),
    );
    for (const { socket } of strangers) socket.once("connect", () => socket.end(sent));
    await expect.poll(() => accepted).toBe(600);
    const already = begun;
    const monitor = new Connection(port, "127.0.0.9").write(REQUEST);
    expect((await monitor.answer()).status).toBe(200);
    monitor.socket.destroy();
    // Some had not closed yet when they were looked at.
    expect(begun - already).toBeLessThan(130);
  } finally {
    first.socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});

test("a peer that ends its side after a whole request is answered", async () => {
  const server = createServer((_request, response) => response.end("well"));
  boundConnections(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const connection = new Connection(port);
  try {
    connection.socket.end(REQUEST);
    expect((await connection.answer()).status).toBe(200);
  } finally {
    connection.socket.destroy();
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
/**
 * A mint under a name of its own, so long that it needs a room; `é` so that a piece can end within
 * a character.
 */
const mintOf = (token: number) => {
  const users = [{ userId: world.users[0], mints: entries(world, token) }];
  return Buffer.from(`${" ".repeat(200_000)}${JSON.stringify({ users, [`é${token}`]: 0 })}`);
};

test("bodies that arrive in pieces, several at once, are each read whole", async () => {
  const answers = await Promise.all(
    [1, 2, 3, 4].map(async (token) => {
      const body = mintOf(token);
      const connection = new Connection(port).write(
        head("/api/v1/mint", "Transfer-Encoding: chunked"),
      );
      // The last cut is between the two bytes of the é.
      const cuts = [0, 70_000, 140_000, body.indexOf("é") + 1, body.length];
      for (const [i, end] of cuts.slice(1).entries())
        connection.write(chunk(body.subarray(cuts[i], end)));
      const { body: answer } = await connection.write("0\r\n\r\n").answer();
      return JSON.parse(Buffer.from(answer, "latin1").toString());
    }),
  );
  expect(answers.map(({ errors }) => errors[0].pointer)).toEqual(["/é1", "/é2", "/é3", "/é4"]);
});

test("a body that comes in thousands of pieces is read whole, and in order", async () => {
  const tokens = Array.from({ length: 2_000 }, (_, i) => `"${i}":0`);
  const text = `{"users":[],${tokens.join()},"last":0}`;
  const cut = (size: number) =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
      chunk(Buffer.from(text.slice(size * i, size * (i + 1)))),
    );
  const codeOf = async (pieces: readonly Buffer[]) => {
    const connection = new Connection(port).write(
      head("/api/v1/mint", "Transfer-Encoding: chunked"),
    );
    const { body } = await connection
      .write(Buffer.concat([...pieces, Buffer.from("0\r\n\r\n")]))
      .answer();
    return JSON.parse(body).code;
  };
  const pieces = cut(16);
  expect(pieces.length).toBeGreaterThan(1_000);
  expect(await codeOf(pieces)).toBe("validation_failed");
  expect(await codeOf([...pieces.slice(0, 500), ...pieces.slice(501)])).toBe("malformed_json");
  // Node's parser takes a microsecond for each piece, also of a closed connection.
  expect(await codeOf(cut(5))).toBe("malformed_request");
});

test("a body of unknown length is refused as soon as it is too long, and its connection closed", async () => {
  const connection = new Connection(port).write(
    head("/api/v1/users", "Transfer-Encoding: chunked"),
  );
  for (let sent = 0; sent <= 64 * 1024; sent += 16 * 1024)
    connection.write(chunk(Buffer.alloc(16 * 1024, " ")));
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
  const other = new Connection(port)
    .write(head("/api/v1/mint", `Content-Length: ${body.length}`))
    .write(body);
  expect(JSON.parse((await other.answer()).body).code).toBe("validation_failed");
  expect(await world.snapshot()).toEqual(before);
});

/** The smallest piece that a body may have on average. */
const SMALL = `10\r\n${" ".repeat(16)}\r\n`;

test.each([
  ["/oauth/token", FORM],
  ["/oauth/token", "application/json"],
  ["/owner/v1/challenge", "application/json"],
])(
  "a body for %s as %s in small pieces takes no more memory than its caller pays for",
  async (path, type) => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const used = () => {
      collect();
      return process.memoryUsage().heapUsed + process.memoryUsage().external;
    };
    const start = head(path, "Transfer-Encoding: chunked", type);
    const taken = async () => {
      const [before, paid] = [used(), memory.total];
      const callers = Array.from({ length: 100 }, (_, i) =>
        new Connection(port, `127.0.1.${i + 1}`).write(start + SMALL.repeat(500)),
      );
      // The account and the buffer of each.
      await expect.poll(() => memory.total - paid).toBeGreaterThanOrEqual(100 * (8 * 1024 + 8_000));
      const more = used() - before;
      const closed = callers.map(({ socket }) => once(socket, "close"));
      for (const { socket } of callers) socket.destroy();
      await Promise.all(closed);
      await expect.poll(() => memory.total).toBe(paid);
      return more;
    };
    await taken(); // Compiles the code, whose memory would count
    // With what both ends of the connections take in this process.
    expect(await taken()).toBeLessThan(100 * 64 * 1024);
  },
);

test("a caller pays for the pieces of a body", async () => {
  const publicReads = { units: 100, windowSeconds: 1_000 };
  await using own = await createWorld({ rateLimits: { publicReads }, now: () => 0 });
  const start = head("/owner/v1/challenge", "Transfer-Encoding: chunked");
  const pieces = `10\r\n{${" ".repeat(15)}\r\n${SMALL.repeat(998)}1\r\n}\r\n0\r\n\r\n`;
  const { head: answer } = await new Connection(await listen(own.app))
    .write(start + pieces)
    .answer();
  expect(answer).toMatch(/^ratelimit: "public";r=68;/im);
});

test("connections of tenants outlast those of strangers, one for each of many addresses", async () => {
  await using world = await createWorld({ mostConnections: 8 });
  const port = await listen(world.app);
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
    // A key that is wrong is none. Another tenant takes connections only of strangers and of its
    // own.
    for (let i = 0; i < 20; i++)
      expect(await sends(open(`127.0.1.${i}`), "mm_test_wrong")).toBe(401);
    for (let i = 0; i < 20; i++)
      expect(await sends(open(`127.0.2.${i}`), world.otherKey)).toBe(200);
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
