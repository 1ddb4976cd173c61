import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { boundConnections } from "../../server/http/fastify-app.ts";
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

let world: World;
let port: number;
beforeAll(async () => {
  world = await createWorld();
  port = await listen(world.app);
});
afterAll(() => world[Symbol.asyncDispose]());

const head = (path: string, field: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${world.key}\r\nContent-Type: application/json\r\n${field}\r\n\r\n`;
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
