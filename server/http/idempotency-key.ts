import type { FastifyRequest } from "fastify";
import type { Principal } from "../../core/index.ts";
import { hashUuid } from "../../core/internal.ts";
import { invalid } from "./errors.ts";

export const MAX_IDEMPOTENCY_KEY = 255;

/** The request's Idempotency-Key. Throws `validation_failed` for a wrong form. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && key.length <= MAX_IDEMPOTENCY_KEY && /^[\x20-\x7e]+$/.test(key))
    return key;
  throw invalid(
    "/headers/idempotency-key",
    `Give 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters.`,
  );
}

/**
 * The id, under `name`, of the object that a request with an Idempotency-Key makes. The same
 * application and key give the same id. So a repeat after a restart finds the object of the first
 * request.
 */
export function idOfRequest<Name extends string>(
  name: Name,
  { applicationId }: Principal,
  request: FastifyRequest,
): { readonly [name in Name]?: string } {
  const key = idempotencyKeyOf(request);
  if (key === undefined) return {};
  return { [name]: hashUuid(`${applicationId} ${key}`) } as { [name in Name]: string };
}
