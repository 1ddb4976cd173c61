import { Agent, type ClientRequest, request } from "node:http";
import { connect, type Socket } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";

/**
 * Attackers as a process of their own. Reads a {@link Target} and the names of attacks, and attacks
 * until it is killed. It opens each connection again a second after the server has closed it.
 */
const AGAIN_MS = 1_000;
const UNREAD_MS = 20_000;
const MIB = 1024 * 1024;

interface Target {
  readonly port: number;
  /** Keys of a tenant, which stays within its limits. */
  readonly keys: readonly string[];
}

/** Keeps one connection from a loopback address busy with `start`. */
function hold(port: number, address: string, start: (socket: Socket) => void): void {
  const socket = connect({ port, host: "127.0.0.1", localAddress: address }, () => start(socket));
  socket.resume();
  socket.on("error", () => {});
  socket.on("close", () => setTimeout(hold, AGAIN_MS, port, address, start));
}

const head = (path: string, length: number, fields = "") =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${fields}\r\n`;

/** Sends a request. Resolves with the status of its answer, null without one. */
function statusOf(sent: ClientRequest, body: string): Promise<number | null> {
  return new Promise((resolve) => {
    sent.once("error", () => resolve(null));
    sent.once("response", (answer) => {
      answer.resume().once("error", () => {});
      answer.once("close", () => resolve(answer.statusCode ?? null));
    });
    sent.end(body);
  });
}

export const ATTACKS: Readonly<Record<string, (target: Target) => void>> = {
  /**
   * Answers that nobody reads. Who does not read notices no end, so each connection ends by itself.
   */
  "unread-answers"({ port }) {
    for (let i = 0; i < 4; i++) {
      hold(port, `127.0.1.${i + 1}`, (socket) => {
        socket.pause().write("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(140));
        setTimeout(() => socket.destroy(), UNREAD_MS);
      });
    }
  },

  /** Bodies without an end, from callers without a key. */
  "endless-bodies"({ port }) {
    for (let i = 0; i < 8_960; i++)
      hold(port, `127.0.2.${(i % 16) + 1}`, (socket) =>
        socket.write(`${head("/oauth/token", 100)}{`),
      );
  },

  /** Bodies in pieces of one byte. */
  "small-pieces"({ port }) {
    for (let i = 0; i < 400; i++) {
      const type = i % 2 === 0 ? "application/json" : "application/x-www-form-urlencoded";
      const path = i % 4 === 0 ? "/owner/v1/challenge" : "/oauth/token";
      hold(port, `127.0.4.${(i % 4) + 1}`, (socket) => {
        socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n`);
        socket.write(`Transfer-Encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(65_000)}`);
      });
    }
  },

  /** Headers that come byte by byte. */
  "slow-headers"({ port }) {
    for (let i = 0; i < 400; i++) {
      hold(port, `127.0.5.${(i % 16) + 1}`, (socket) => {
        socket.write("GET /healthz HTTP/1.1\r\nX: ");
        const slowly = setInterval(() => socket.write("x"), 500);
        socket.once("close", () => clearInterval(slowly));
      });
    }
  },

  /** One silent connection for each of many addresses. */
  "silent-connections"({ port }) {
    for (let i = 0; i < 4_000; i++) hold(port, `127.1.${i >> 8}.${i & 255}`, () => {});
  },

  /** Streams of events, more than a key may have. */
  streams({ port, keys }) {
    const asked = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n";
    for (const key of keys)
      for (let i = 0; i < 20; i++)
        hold(port, "127.0.6.1", (socket) => socket.write(`${asked}X-Api-Key: ${key}\r\n\r\n`));
  },

  /** Bodies without an end with a tenant's keys: a few large ones each, and many small ones. */
  "tenant-bodies"({ port, keys }) {
    const large = Buffer.alloc(1.9 * MIB, " ");
    for (const key of keys) {
      const field = `X-Api-Key: ${key}\r\n`;
      for (let i = 0; i < 65; i++) {
        hold(port, "127.0.3.1", (socket) => {
          socket.write(head("/api/v1/mint", large.length + 1, field));
          socket.write(large);
        });
      }
      for (let i = 0; i < 400; i++)
        hold(port, "127.0.3.1", (socket) => socket.write(`${head("/api/v1/mint", 100, field)}{`));
    }
  },

  /** Ten uploads of bad rows at once, each again after its answer. */
  uploads({ port, keys }) {
    const body = `ownerAddress,tokenId\n${"x,y\n".repeat(400_000)}`;
    const agent = new Agent({ keepAlive: true, localAddress: "127.0.7.1" });
    const upload = async (key: string) => {
      const headers = { "x-api-key": key, "content-type": "text/csv" };
      const where = { port, path: "/api/v1/drops", method: "POST" };
      for (;;) {
        const status = await statusOf(request({ ...where, agent, headers }), body);
        if (status === null || status === 429) await pause(100);
      }
    };
    for (const key of keys) for (let i = 0; i < 2; i++) void upload(key);
  },
};

if (import.meta.main) {
  const { attacks, ...target } = (await json(process.stdin)) as Target & {
    readonly attacks: readonly string[];
  };
  for (const name of attacks) ATTACKS[name]?.(target);
}
