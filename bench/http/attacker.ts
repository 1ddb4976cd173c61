import { connect, type Socket } from "node:net";
import { json } from "node:stream/consumers";

/**
 * Attackers as a process of their own. Reads the port and a tenant's keys, and attacks until it is
 * killed. It opens each connection again a second after the server has closed it.
 */
const AGAIN_MS = 1_000;
const UNREAD_MS = 20_000;
const MIB = 1024 * 1024;
const { port, keys } = (await json(process.stdin)) as {
  readonly port: number;
  readonly keys: readonly string[];
};

/** Keeps one connection from a loopback address busy with `start`. */
function hold(address: string, start: (socket: Socket) => void): void {
  const socket = connect({ port, host: "127.0.0.1", localAddress: address }, () => start(socket));
  socket.resume();
  socket.on("error", () => {});
  socket.on("close", () => setTimeout(hold, AGAIN_MS, address, start));
}

const head = (path: string, length: number, fields = "") =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${fields}\r\n`;

// Answers that nobody reads. Who does not read notices no end, so each connection is opened anew.
for (let i = 0; i < 4; i++) {
  hold(`127.0.1.${i + 1}`, (socket) => {
    socket.pause().write("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(140));
    setTimeout(() => socket.destroy(), UNREAD_MS);
  });
}
// Bodies without an end, from callers without a key.
for (let i = 0; i < 8_960; i++)
  hold(`127.0.2.${(i % 16) + 1}`, (socket) => socket.write(`${head("/oauth/token", 100)}{`));
// Bodies in pieces of one byte.
for (let i = 0; i < 400; i++) {
  const type = i % 2 === 0 ? "application/json" : "application/x-www-form-urlencoded";
  const path = i % 4 === 0 ? "/owner/v1/challenge" : "/oauth/token";
  hold(`127.0.4.${(i % 4) + 1}`, (socket) => {
    socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n`);
    socket.write(`Transfer-Encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(65_000)}`);
  });
}
// Headers that come byte by byte.
for (let i = 0; i < 400; i++) {
  hold(`127.0.5.${(i % 16) + 1}`, (socket) => {
    socket.write("GET /healthz HTTP/1.1\r\nX: ");
    const slowly = setInterval(() => socket.write("x"), 500);
    socket.once("close", () => clearInterval(slowly));
  });
}
// One silent connection for each of many addresses.
for (let i = 0; i < 4_000; i++) hold(`127.1.${i >> 8}.${i & 255}`, () => {});
// Streams of events, more than a key may have.
const stream = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n";
for (const key of keys)
  for (let i = 0; i < 20; i++)
    hold("127.0.6.1", (socket) => socket.write(`${stream}X-Api-Key: ${key}\r\n\r\n`));
// Bodies without an end with a tenant's keys: a few large ones each, and many small ones.
const large = Buffer.alloc(1.9 * MIB, " ");
for (const key of keys) {
  const field = `X-Api-Key: ${key}\r\n`;
  for (let i = 0; i < 65; i++) {
    hold("127.0.3.1", (socket) => {
      socket.write(head("/api/v1/mint", large.length + 1, field));
      socket.write(large);
    });
  }
  for (let i = 0; i < 400; i++)
    hold("127.0.3.1", (socket) => socket.write(`${head("/api/v1/mint", 100, field)}{`));
}
