import { hostname } from "node:os";
import { type FastifyReply, type FastifyRequest, LogController } from "fastify";

const INFO = 30;
const ORIGIN = `"pid":${process.pid},"hostname":${JSON.stringify(hostname())}`;

/** The URL without its query, which may contain a secret by mistake. */
export function pathOf({ url }: Pick<FastifyRequest, "url">): string | undefined {
  return url?.split("?", 1)[0];
}

/** One line for each finished request: caller, request, answer and time. */
export class RequestLog extends LogController {
  readonly #write: ((line: string) => void) | null;

  /** @param write - null to log only failed requests */
  constructor(write: ((line: string) => void) | null) {
    super();
    this.#write = write;
  }

  override incomingRequest(request: FastifyRequest): void {
    // Node knows a socket's address only while it is open, or after an earlier read.
    void request.ip;
  }

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    if (error) {
      request.log.error({ req: request, res: reply, responseTime: reply.elapsedTime, err: error }, "request errored");
    } else this.#write?.(completed(request, reply));
  }
}

/**
 * Writes the line of `request.log.info({ req, res, responseTime }, "request completed")` in a third of the time. Every
 * request has this line.
 */
function completed(request: FastifyRequest, { statusCode, elapsedTime }: FastifyReply): string {
  const { id, method, ip } = request;
  return (
    `{"level":${INFO},"time":${Date.now()},${ORIGIN},"reqId":${JSON.stringify(id)},` +
    `"req":{"method":"${method}","path":${JSON.stringify(pathOf(request))},"remoteAddress":${JSON.stringify(ip)}},` +
    `"res":{"statusCode":${statusCode}},"responseTime":${elapsedTime},"msg":"request completed"}\n`
  );
}
