import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";

/** The entity tag of a body. Equal bytes have the same tag on every server. */
export function tagOf(body: string | Buffer): string {
  return `"${createHash("sha256").update(body).digest("base64url")}"`;
}

/**
 * Sets the tag of a body. Returns true when the client has that body, and then sets the status 304.
 */
export function sendTag(request: FastifyRequest, reply: FastifyReply, tag: string): boolean {
  reply.header("etag", tag);
  const known = request.headers["if-none-match"]
    ?.split(",")
    .map((text) => text.trim().replace(/^W\//, ""));
  const isKnown = known?.some((each) => each === tag || each === "*") === true;
  if (isKnown) reply.code(304);
  return isKnown;
}
