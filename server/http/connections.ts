import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { setImmediate, setTimeout } from "node:timers/promises";
import { timeUuid } from "../../core/internal.ts";
import { addressGroup } from "./address.ts";
import { problem, type ServerErrorCode } from "./errors.ts";
import { EventLoopTurns } from "./turns.ts";

/** Least average bytes of a chunked body's pieces. */
const PIECE_BYTES = 16;
/** Pieces that may be smaller. */
const SMALL_PIECES = 64;

/**
 * Ends a request whose body comes in tiny pieces. Node's parser calls `push` for each, thousands of
 * times for what it reads at once: 400 connections delayed everybody by 18 s, however soon they
 * were refused.
 */
export function boundPieces(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  let spare = SMALL_PIECES * PIECE_BYTES;
  // Nobody needs the rest of a body that was answered before its end.
  response.once("finish", () => {
    if (!request.complete) close();
  });
  const close = () => {
    deafen(socket);
    socket.destroySoon();
  };
  request.push = (piece: Buffer | null) => {
    if (socket.writableEnded) return false;
    spare += piece === null ? 0 : piece.length - PIECE_BYTES;
    if (spare >= 0) return Object.getPrototypeOf(request).push.call(request, piece);
    if (!response.headersSent) socket.write(answer("malformed_request", TINY_PIECES));
    close();
    return false;
  };
}

/**
 * Lets the parser of a socket that is about to close skip the bodies in what it has read: Node's
 * would report each piece even of a closed connection. Node keeps parsers for other sockets, so
 * this one listens again in the end.
 */
function deafen(socket: Socket & { parser?: Record<number, unknown> | null }): void {
  const { parser } = socket;
  const [key, report] =
    Object.entries(parser ?? {}).find(
      ([, each]) => each instanceof Function && each.name === "parserOnBody",
    ) ?? [];
  if (!parser || key === undefined) return;
  parser[Number(key)] = null;
  socket.once("close", () => {
    parser[Number(key)] = report;
  });
}

const TINY_PIECES = `The body came in pieces of less than ${PIECE_BYTES} bytes. Send it in larger ones, or with a Content-Length.`;

const MOST_CONNECTIONS = 12_288;

/**
 * Connections that the kernel keeps until the server takes them; give it to `listen`. Node takes
 * one in each pass of its event loop. What exceeds the queue, 511 by default, is dropped: its
 * clients try again after 1, 3 and 7 s, and some hear of a reset after half a minute.
 */
export const BACKLOG = 4_096;

/**
 * Milliseconds between two connections of strangers, so that they take a tenth of the event loop.
 */
const STRANGER_MS = 4;
/** Strangers who are looked at together, whether they are still there. */
const LOOKED_AT = 64;

/** Most addresses of tenants that are remembered. */
const MOST_KNOWN = 10_000;

/** Emitted on a socket with the tenant of a request whose credentials were right. */
export const RECOGNIZED = "mintmark:recognized";

/**
 * Keeps at most `most` connections, half of them for callers that were {@link RECOGNIZED}. One too
 * many ends the oldest of the address, the IPv6 /48 or the tenant with the most, so that no others
 * take the connections of a tenant. New connections begin one after the other, and addresses take
 * turns, because thousands that begin at once would delay everybody. Those from addresses of
 * tenants do not wait for strangers.
 */
export function boundConnections(server: Server, most = MOST_CONNECTIONS): void {
  const strangers = new Crowds();
  const tenants = new Crowds();
  const turns = new EventLoopTurns();
  const known = new Set<string>();
  const [begin] = server.listeners("connection");
  if (begin === undefined) throw new Error("the server does not serve HTTP");
  server.off("connection", begin as () => void);
  Object.assign(server, { pauseOnConnect: true });
  const start = (socket: Socket): void => {
    if (!server.listening) socket.destroy();
    if (socket.destroyed) return;
    begin.call(server, socket);
    socket.resume();
  };
  const waiting = new Entrance(start);
  server.on("connection", async (socket) => {
    const address = addressGroup(socket.remoteAddress, 48);
    // Node's HTTP server listens to it only later.
    socket.on("error", () => {});
    strangers.add(address, socket);
    socket.once("close", () => strangers.delete(address, socket));
    socket.once(RECOGNIZED, (tenant: string) => {
      known.delete(address);
      known.add(address);
      const [oldest = address] = known;
      if (known.size > MOST_KNOWN) known.delete(oldest);
      if (!strangers.delete(address, socket)) return;
      tenants.add(tenant, socket);
      socket.once("close", () => tenants.delete(tenant, socket));
    });
    if (strangers.count + tenants.count > most)
      (strangers.count > most / 2 ? strangers : tenants).endOne();
    if (!known.has(address)) return waiting.add(address, socket);
    await turns.turn(address);
    start(socket);
  });
}

/**
 * Strangers' connections wait here, and begin one after another. Addresses take turns. A peer that
 * has ended its connection may have left, or may wait for an answer to all that it has sent. So it
 * begins when nobody else waits; without a byte, it never begins.
 */
class Entrance {
  readonly #waiting = new Map<string, Set<Socket>>();
  readonly #ended = new Set<Socket>();
  readonly #begin: (socket: Socket) => void;
  #isOpen = false;

  constructor(begin: (socket: Socket) => void) {
    this.#begin = begin;
  }

  add(address: string, socket: Socket): void {
    const own = this.#waiting.get(address) ?? new Set();
    this.#waiting.set(address, own.add(socket));
    if (!this.#isOpen) void this.#admitAll();
  }

  async #admitAll(): Promise<void> {
    this.#isOpen = true;
    while (this.#waiting.size > 0 || this.#ended.size > 0) {
      if (this.#waiting.size === 0) await this.#admitEnded();
      const next = Array.from({ length: LOOKED_AT }, () => this.#next()).filter(
        (each) => each !== null,
      );
      // Only reads show that a peer has ended its connection: one for its bytes, one for its end.
      for (const socket of next) socket.read(0);
      for (let passes = 0; passes < 3; passes++) await setImmediate();
      for (const socket of next) {
        if (socket.readableEnded) socket.destroy();
        if (socket.destroyed) continue;
        if (hasEnded(socket)) this.#ended.add(socket);
        else await this.#admit(socket);
      }
    }
    this.#isOpen = false;
  }

  async #admitEnded(): Promise<void> {
    const [socket] = this.#ended;
    if (socket === undefined) return;
    this.#ended.delete(socket);
    if (!socket.destroyed) await this.#admit(socket);
  }

  async #admit(socket: Socket): Promise<void> {
    this.#begin(socket);
    // A server that closes ends each at once.
    if (!socket.destroyed) await setTimeout(STRANGER_MS);
  }

  /** The oldest connection of the address whose turn it is; null for none. */
  #next(): Socket | null {
    const [first] = this.#waiting;
    if (first === undefined) return null;
    const [address, own] = first;
    const [socket = null] = own;
    if (socket !== null) own.delete(socket);
    // Puts the address behind the others.
    this.#waiting.delete(address);
    if (own.size > 0) this.#waiting.set(address, own);
    return socket;
  }
}

/** The peer sends no more. `readableEnded` tells it only once all that it has sent is taken. */
function hasEnded(socket: Socket & { readonly _readableState?: { readonly ended: boolean } }) {
  return socket._readableState?.ended === true;
}

/** Sockets by the name of whom they belong to. */
class Crowds {
  count = 0;
  readonly #crowds = new Map<string, Set<Socket>>();

  add(name: string, socket: Socket): void {
    this.#crowds.set(name, (this.#crowds.get(name) ?? new Set()).add(socket));
    this.count += 1;
  }

  delete(name: string, socket: Socket): boolean {
    const crowd = this.#crowds.get(name);
    if (crowd?.delete(socket) !== true) return false;
    if (crowd.size === 0) this.#crowds.delete(name);
    this.count -= 1;
    return true;
  }

  /** Ends the oldest socket of the largest crowd. */
  endOne(): void {
    let [name, most] = ["", new Set<Socket>()];
    for (const [each, crowd] of this.#crowds)
      if (crowd.size > most.size) [name, most] = [each, crowd];
    const [oldest] = most;
    if (oldest === undefined) return;
    this.delete(name, oldest);
    oldest.destroy();
  }
}

/** A whole answer as text, for a socket whose connection closes after it. */
export function answer(code: ServerErrorCode, detail?: string): string {
  const requestId = timeUuid(Date.now());
  const body = problem(code, requestId, detail);
  const text = JSON.stringify(body);
  return [
    `HTTP/1.1 ${body.status} ${STATUS_CODES[body.status]}`,
    "Connection: close",
    "Content-Type: application/problem+json",
    `Content-Length: ${Buffer.byteLength(text)}`,
    `X-Request-Id: ${requestId}`,
    "",
    text,
  ].join("\r\n");
}
