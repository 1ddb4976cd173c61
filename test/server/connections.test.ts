import { createServer } from "node:http";
import { expect, test } from "vitest";
import { boundConnections } from "../../server/http/fastify-app.ts";
import { Connection } from "./connection.ts";

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
