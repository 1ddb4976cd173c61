import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Engine, MintmarkError } from "../../../core/index.ts";
import { parseJson } from "../../../core/internal.ts";
import { PUBLIC } from "../access/account.ts";
import { ServerError } from "../errors.ts";
import type { Turns } from "../turns.ts";
import type { BufferPool } from "./buffer-pool.ts";

/** The media type of OAuth's forms. */
export const FORM = "application/x-www-form-urlencoded";

/** Bodies up to this length are parsed at once; larger ones wait for their turn. */
const MOST_AT_ONCE = 64 * 1024;
/** Shorter bodies are parsed without a check of their structure: it takes a few milliseconds at most. */
const LEAST_COUNTED = 256 * 1024;

/** Accepts JSON bodies only. */
export function acceptJson(app: FastifyInstance, { buffers, turns, engine }: JsonService): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", async (request: FastifyRequest, payload: IncomingMessage) => {
    refuseEncodings(request);
    const { account } = request;
    const { chunks, length } = await receive(request, payload);
    if (length > MOST_AT_ONCE) await turns.turn(account?.caller.tenant ?? PUBLIC);
    if (length > LEAST_COUNTED) requireSparse(chunks, length, engine.limits);
    return length === 0 ? undefined : parseChunks(chunks, length, buffers);
  });
}

interface JsonService {
  readonly buffers: BufferPool;
  readonly turns: Turns;
  readonly engine: Pick<Engine, "limits">;
}

/** Bytes that each field, list entry, object and list has once, and the start of an escape, which no body needs. */
const STRUCTURE = [...":,{[\\"].map((text) => text.charCodeAt(0));

/** Least average bytes of a field in a mint request: the four fields of an entry have some 110. */
const FIELD_BYTES = 20;

/**
 * Refuses a body with more fields or values than a mint request of its length, or than the largest one, before parsing:
 * hundreds of thousands of keys would block the process for seconds. Throws `batch_too_large`.
 */
function requireSparse(
  chunks: readonly Buffer[],
  length: number,
  { mintsPerRequest, usersPerRequest }: Engine["limits"],
): void {
  // An entry has four fields and a user two; the rest is slack.
  const most = Math.min(6 * mintsPerRequest + 4 * usersPerRequest, length / FIELD_BYTES) + 256;
  for (const byte of STRUCTURE) {
    let found = 0;
    for (const chunk of chunks) {
      for (let at = chunk.indexOf(byte); at !== -1; at = chunk.indexOf(byte, at + 1)) {
        if (++found > most) throw new MintmarkError("batch_too_large", TOO_DENSE);
      }
    }
  }
}

const TOO_DENSE =
  "The body has more fields and values than a mint request of its length, or than the largest; see GET /api/v1/limits.";

/** Pieces of a body held separately. A body sent byte by byte would otherwise take five hundred times its length. */
const MOST_PIECES = 1_024;

/** A body as it arrived. */
interface Received {
  readonly chunks: readonly Buffer[];
  readonly length: number;
}

/**
 * Collects a body's chunks within the route's limit. Fastify's own way copies them again, into a new buffer each time.
 */
function receive(
  { headers, routeOptions: { bodyLimit }, account }: FastifyRequest,
  payload: IncomingMessage,
): Promise<Received> {
  if (Number(headers["content-length"]) > bodyLimit) throw new ServerError("body_too_large");
  const { promise, resolve, reject } = Promise.withResolvers<Received>();
  const blocks: Buffer[] = [];
  let pieces: Buffer[] = [];
  let length = 0;
  const refuse = (error: unknown) => {
    payload.off("data", take);
    pieces = [];
    reject(error);
  };
  const take = (chunk: Buffer) => {
    length += chunk.length;
    try {
      if (length > bodyLimit) throw new ServerError("body_too_large");
      account?.receive(chunk.length);
    } catch (refusal) {
      return refuse(refusal);
    }
    if (pieces.push(chunk) === MOST_PIECES) blocks.push(Buffer.concat(pieces.splice(0)));
  };
  payload.on("data", take);
  payload.on("end", () => resolve({ chunks: [...blocks, ...pieces], length }));
  // The connection broke, so nobody reads this response.
  payload.on("error", () => refuse(new ServerError("malformed_request", "The body ended early.")));
  return promise;
}

/** Parses a body of several chunks in a pooled buffer. */
function parseChunks(chunks: readonly Buffer[], length: number, buffers: BufferPool): unknown {
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return parseJson(first);
  const buffer = buffers.take(length);
  try {
    let at = 0;
    for (const chunk of chunks) at += chunk.copy(buffer, at);
    return parseJson(buffer.subarray(0, length));
  } finally {
    buffers.give(buffer);
  }
}

/** Accepts OAuth's forms, each name at most once (RFC 6749), and the same fields as a JSON object. */
export function acceptForm(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, async (request: FastifyRequest, body: Buffer) => {
    refuseEncodings(request);
    return parseJson(body);
  });
  app.addContentTypeParser(FORM, { parseAs: "string" }, async (request: FastifyRequest, body: string) => {
    refuseEncodings(request);
    // RFC 6749, 3.2: a field without a value counts as absent.
    const fields = [...new URLSearchParams(body)].filter(([, value]) => value !== "");
    const form = Object.fromEntries(fields);
    if (Object.keys(form).length !== fields.length) throw new ServerError("malformed_request", "A field occurs twice.");
    return form;
  });
}

/** Accepts bodies of these media types as streams. */
export function acceptStreams(app: FastifyInstance, types: readonly string[]): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser([...types], (request: FastifyRequest, payload: IncomingMessage, done) => {
    refuseEncodings(request);
    done(null, payload);
  });
}

/** Compressed bodies could grow without limit, and JSON is UTF-8. */
function refuseEncodings({ headers }: FastifyRequest): void {
  if (headers["content-type"] === "application/json" && headers["content-encoding"] === undefined) return;
  const encoding = headers["content-encoding"] ?? "identity";
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers["content-type"] ?? "")?.[1] ?? "utf-8";
  if (encoding.toLowerCase() !== "identity" || !/^utf-?8$/i.test(charset)) {
    throw new ServerError("unsupported_media_type");
  }
}
