import { type FastifyReply, type FastifyRequest, LogController } from "fastify";

/** One line a request, when it is over: who asked for what, the answer, and its time. */
export class RequestLog extends LogController {
  override incomingRequest(request: FastifyRequest): void {
    // Node tells a socket's address only while it is open, unless it was asked before.
    void request.ip;
  }

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    const line = { req: request, res: reply, responseTime: reply.elapsedTime };
    if (error) request.log.error({ ...line, err: error }, "request errored");
    else request.log.info(line, "request completed");
  }
}
