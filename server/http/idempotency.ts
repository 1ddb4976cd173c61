import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { MintmarkError, type Principal } from "../../core/index.ts";

/** Longest Idempotency-Key, in characters. */
export const MAX_IDEMPOTENCY_KEY = 255;
/** Most kept answers, of all applications. The oldest is deleted first. */
const MOST_ANSWERS = 10_000;
/** Most characters of all kept answers. */
const MOST_CHARACTERS = 64 * 1024 * 1024;
const KEEP_MS = 24 * 3_600_000;

/** The request's Idempotency-Key. Throws `validation_failed` for a wrong form. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && key.length <= MAX_IDEMPOTENCY_KEY && /^[\x20-\x7e]+$/.test(key)) return key;
  const detail = `Give 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters.`;
  const issue = { pointer: "/headers/idempotency-key", code: "validation_failed", detail } as const;
  throw new MintmarkError("validation_failed", undefined, { issues: [issue] });
}

/**
 * The id, under `name`, of the object that a request with an Idempotency-Key makes. The same application and key give
 * the same id. So a repeat after a restart finds the object of the first request.
 */
export function idOfRequest<Name extends string>(
  name: Name,
  { applicationId }: Principal,
  request: FastifyRequest,
): { readonly [name in Name]?: string } {
  const key = idempotencyKeyOf(request);
  if (key === undefined) return {};
  return { [name]: uuidOf(`${applicationId} ${key}`) } as { [name in Name]: string };
}

/** The UUID (version 8) of a text, from its hash. */
export function uuidOf(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

interface Kept {
  readonly digest: string;
  readonly at: number;
  /** null while the first request is in progress. */
  answer: { readonly status: number; readonly location: string | undefined; readonly text: string } | null;
}

/**
 * Repeats the first answer, status and body, to a POST with the same Idempotency-Key. Answers stay in memory for a day.
 * Refusals are not kept. Mints keep their keys in the store instead.
 */
export class KeptAnswers {
  readonly #kept = new Map<string, Kept>();
  #characters = 0;

  /**
   * Throws `idempotency_key_reused` for another request under the same key, `idempotency_in_progress` while the first
   * one runs.
   */
  async once(
    request: FastifyRequest,
    reply: FastifyReply,
    principal: Principal,
    key: string,
    run: () => unknown,
  ): Promise<string> {
    const name = `${principal.applicationId} ${key}`;
    const digest = createHash("sha256")
      .update(`${request.url} ${JSON.stringify(request.body)}`)
      .digest("hex");
    const known = this.#find(name);
    reply.type("application/json; charset=utf-8");
    if (known !== undefined) {
      if (known.digest !== digest) throw new MintmarkError("idempotency_key_reused");
      if (known.answer === null) throw new MintmarkError("idempotency_in_progress");
      const { status, location, text } = known.answer;
      reply.code(status).header("idempotency-replayed", "true");
      if (location !== undefined) reply.header("location", location);
      return text;
    }
    const fresh: Kept = { digest, at: performance.now(), answer: null };
    this.#kept.set(name, fresh);
    try {
      const text = JSON.stringify(await run());
      const location = reply.getHeader("location");
      fresh.answer = {
        status: reply.statusCode,
        location: location === undefined ? undefined : String(location),
        text,
      };
      this.#characters += text.length;
      return text;
    } catch (error) {
      this.#kept.delete(name);
      throw error;
    }
  }

  #find(name: string): Kept | undefined {
    const expired = performance.now() - KEEP_MS;
    for (const [oldest, { at, answer }] of this.#kept) {
      const fits = this.#kept.size < MOST_ANSWERS && this.#characters < MOST_CHARACTERS;
      if (answer === null || (at > expired && fits)) break;
      this.#characters -= answer.text.length;
      this.#kept.delete(oldest);
    }
    return this.#kept.get(name);
  }
}
