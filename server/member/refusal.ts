import type { FastifyReply, FastifyRequest } from "fastify";
import type { CommitteeRefusal, RefusalReason } from "../../core/committee/index.ts";

/** The member has, or lacks, other batches; everything else is the batch's own fault. */
const CONFLICTS: ReadonlySet<RefusalReason> = new Set(["equivocation", "gap", "ahead"]);

/** Answers a refusal as problem details (RFC 9457) whose code is the reason. */
export function sendRefusal({ reason, message }: CommitteeRefusal, request: FastifyRequest, reply: FastifyReply) {
  const status = CONFLICTS.has(reason) ? 409 : 422;
  request.log.warn({ reason, detail: message }, "batch refused");
  const problem = {
    type: `urn:mintmark:refusal:${reason}`,
    title: "The committee member does not sign this batch.",
    status,
    code: reason,
    detail: message,
    requestId: request.id,
  };
  return reply
    .code(status)
    .type("application/problem+json")
    .send(Buffer.from(JSON.stringify(problem)));
}
