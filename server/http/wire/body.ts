import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Engine, MintmarkError } from "../../../core/index.ts";
import { parseJson } from "../../../core/internal.ts";
import { PUBLIC } from "../access/rate-account.ts";
import { ServerError } from "../errors.ts";
import { type EventLoopTurns, endedEarly } from "../turns.ts";
import { BufferPool } from "./buffers.ts";

export const FORM = "application/x-www-form-urlencoded";

/** Bodies up to this length are parsed at once; larger ones wait for their turn. */
const MOST_AT_ONCE = 64 * 1024;
/**
 * Shorter bodies are parsed without a check of their structure: it takes a few milliseconds at
 * most.
 */
const LEAST_COUNTED = 256 * 1024;

export function acceptJson(app: FastifyInstance, { buffers, turns, engine }: JsonService): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    async (request: FastifyRequest, payload: IncomingMessage) => {
      refuseEncodings(request);
      const { account } = request;
      const { buffer, length } = await receive(request, payload, buffers);
      try {
        if (length > MOST_AT_ONCE) await turns.turn(account?.caller.tenant ?? PUBLIC);
        if (payload.socket.destroyed) throw endedEarly();
        const body = buffer.subarray(0, length);
        if (length > LEAST_COUNTED) requireSparse(body, engine.limits);
        return length === 0 ? undefined : parseJson(body);
      } finally {
        if (buffer.length > length) buffers.give(buffer);
      }
    },
  );
}

interface JsonService {
  readonly buffers: BufferPool;
  readonly turns: EventLoopTurns;
  readonly engine: Pick<Engine, "limits">;
}

/**
 * Bytes that each field, list entry, object and list has once, and the start of an escape, which no
 * body needs.
 */
const STRUCTURE = [...":,{[\\"].map((text) => text.charCodeAt(0));

/** Least average bytes of a field in a mint request: the four fields of an entry have some 110. */
const FIELD_BYTES = 20;

/**
 * Refuses a body with more fields or values than a mint request of its length, or than the largest
 * one, before parsing: hundreds of thousands of keys would block the process for seconds. Throws
 * `batch_too_large`.
 */
function requireSparse(body: Buffer, { mintsPerRequest, usersPerRequest }: Engine["limits"]): void {
  // An entry has four fields and a user two; the rest is slack.
  const most = Math.min(6 * mintsPerRequest + 4 * usersPerRequest, body.length / FIELD_BYTES) + 256;
  for (const byte of STRUCTURE) {
    let found = 0;
    for (let at = body.indexOf(byte); at !== -1; at = body.indexOf(byte, at + 1)) {
      if (++found > most) throw new MintmarkError("batch_too_large", TOO_DENSE);
    }
  }
}

const TOO_DENSE =
  "The body has more fields and values than a mint request of its length, or than the largest; see GET /api/v1/limits.";

/**
 * A body as it arrived: the first `length` bytes of a buffer. A longer buffer is one of the pool.
 */
interface Received {
  readonly buffer: Buffer;
  readonly length: number;
}

/**
 * Collects a body within the route's limit. The first piece stays as it is, and most bodies have no
 * other. Further ones are copied into one buffer at once, because a piece of one byte takes over a
 * hundred. The account pays for the buffer: at most twice of what has arrived.
 */
function receive(
  { headers, routeOptions: { bodyLimit }, account }: FastifyRequest,
  payload: IncomingMessage,
  buffers: BufferPool,
): Promise<Received> {
  const declared = Number(headers["content-length"] ?? bodyLimit);
  if (declared > bodyLimit) throw new ServerError("body_too_large");
  const { promise, resolve, reject } = Promise.withResolvers<Received>();
  let buffer: Buffer = Buffer.alloc(0);
  let [length, room] = [0, 0];
  const refuse = (error: unknown) => {
    payload.off("data", take);
    buffer = Buffer.alloc(0);
    reject(error);
  };
  const take = (piece: Buffer) => {
    const end = length + piece.length;
    try {
      if (end > bodyLimit) throw new ServerError("body_too_large");
      const larger = end <= room ? room : length === 0 ? end : Math.min(2 * end, declared);
      account?.receive(piece.length, larger - room);
      if (larger > room) {
        const before = buffer;
        buffer = length === 0 ? piece : buffers.take(larger);
        before.copy(buffer, 0, 0, length);
        if (before.length > length) buffers.give(before);
        room = larger;
      }
    } catch (refusal) {
      return refuse(refusal);
    }
    if (length > 0) piece.copy(buffer, length);
    length = end;
  };
  payload.on("data", take);
  payload.on("end", () => resolve({ buffer, length }));
  // The connection broke, so nobody reads this response.
  payload.on("error", () => refuse(new ServerError("malformed_request", "The body ended early.")));
  return promise;
}

/** Accepts bodies of a media type, and has each parsed whole. */
export function accept(app: FastifyInstance, type: string, parse: (body: Buffer) => unknown): void {
  // Nothing is given back here, because the parsed value may be the buffer itself.
  const buffers = new BufferPool();
  app.addContentTypeParser(type, async (request: FastifyRequest, payload: IncomingMessage) => {
    refuseEncodings(request);
    const { buffer, length } = await receive(request, payload, buffers);
    return parse(buffer.subarray(0, length));
  });
}

/**
 * Accepts OAuth's forms, each name at most once (RFC 6749), and the same fields as a JSON object.
 */
export function acceptForm(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  accept(app, "application/json", parseJson);
  accept(app, FORM, (body) => {
    // RFC 6749, 3.2: a field without a value counts as absent.
    const fields = [...new URLSearchParams(body.toString())].filter(([, value]) => value !== "");
    const form = Object.fromEntries(fields);
    if (Object.keys(form).length !== fields.length)
      throw new ServerError("malformed_request", "A field occurs twice.");
    return form;
  });
}

export function acceptStreams(app: FastifyInstance, types: readonly string[]): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    [...types],
    (request: FastifyRequest, payload: IncomingMessage, done) => {
      refuseEncodings(request);
      done(null, payload);
    },
  );
}

/** Compressed bodies could grow without limit, and JSON is UTF-8. */
function refuseEncodings({ headers }: FastifyRequest): void {
  if (headers["content-type"] === "application/json" && headers["content-encoding"] === undefined)
    return;
  const encoding = headers["content-encoding"] ?? "identity";
  const charset =
    /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers["content-type"] ?? "")?.[1] ?? "utf-8";
  if (encoding.toLowerCase() !== "identity" || !/^utf-?8$/i.test(charset)) {
    throw new ServerError("unsupported_media_type");
  }
}
