import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { FORM } from "./endpoint.ts";
import { ServerError } from "./errors.ts";
import { parseJson } from "./json.ts";
import type { Rooms } from "./rooms.ts";

/** Takes JSON bodies and no others. */
export function acceptJson(app: FastifyInstance, rooms: Rooms): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", (request: FastifyRequest, payload: IncomingMessage, done) => {
    refuseEncodings(request);
    receive(request, payload, (error, chunks) => {
      if (error !== null) return done(error);
      try {
        done(
          null,
          joined(chunks, rooms, (body) => (body.length === 0 ? undefined : parseJson(body))),
        );
      } catch (refusal) {
        done(refusal as Error);
      }
    });
  });
}

/** Pieces of a body that are held one by one. A body sent byte by byte would otherwise take five hundred times its length. */
const MOST_PIECES = 1_024;

/** Collects a body's chunks within the route's limit. Fastify's own way would copy them once more, into a new buffer each time. */
function receive(
  { headers, routeOptions: { bodyLimit } }: FastifyRequest,
  payload: IncomingMessage,
  done: (error: Error | null, chunks: readonly Buffer[]) => void,
): void {
  if (Number(headers["content-length"]) > bodyLimit) {
    done(new ServerError("body_too_large"), []);
    return;
  }
  const blocks: Buffer[] = [];
  const pieces: Buffer[] = [];
  let length = 0;
  const end = (error: Error | null) => {
    payload.off("data", take).off("end", ended).off("error", failed);
    done(error, [...blocks, ...pieces]);
  };
  const take = (chunk: Buffer) => {
    length += chunk.length;
    if (length > bodyLimit) end(new ServerError("body_too_large"));
    else if (pieces.push(chunk) === MOST_PIECES) blocks.push(Buffer.concat(pieces.splice(0)));
  };
  const ended = () => end(null);
  // The connection broke, so nobody will read what this is answered with.
  const failed = () => end(new ServerError("malformed_request", "The body ended early."));
  payload.on("data", take).on("end", ended).on("error", failed);
}

/** What `read` makes of the chunks as one; it must not keep them. */
function joined<T>(chunks: readonly Buffer[], rooms: Rooms, read: (body: Buffer) => T): T {
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return read(first);
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const room = rooms.take(length);
  try {
    let at = 0;
    for (const chunk of chunks) at += chunk.copy(room, at);
    return read(room.subarray(0, length));
  } finally {
    rooms.give(room);
  }
}

/** Takes OAuth's forms and no others; each name at most once, as RFC 6749 asks. */
export function acceptForm(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(FORM, { parseAs: "string" }, async (request: FastifyRequest, body: string) => {
    refuseEncodings(request);
    const fields = [...new URLSearchParams(body)];
    const form = Object.fromEntries(fields);
    if (Object.keys(form).length !== fields.length) throw new ServerError("malformed_request", "A field occurs twice.");
    return form;
  });
}

/** Compressed bodies could grow without bound, and JSON is UTF-8. */
function refuseEncodings({ headers }: FastifyRequest): void {
  const encoding = headers["content-encoding"] ?? "identity";
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers["content-type"] ?? "")?.[1] ?? "utf-8";
  if (encoding.toLowerCase() !== "identity" || !/^utf-?8$/i.test(charset)) {
    throw new ServerError("unsupported_media_type");
  }
}
