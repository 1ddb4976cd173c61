import { hostname } from "node:os";
import { type FastifyReply, type FastifyRequest, LogController } from "fastify";

const INFO = 30;
const ORIGIN = `"pid":${process.pid},"hostname":${JSON.stringify(hostname())}`;

/** The address without its query, which may hold what a caller should have put into a header. */
export function pathOf({ url }: Pick<FastifyRequest, "url">): string | undefined {
  return url?.split("?", 1)[0];
}

/** One line a request, when it is over: who asked for what, the answer, and its time. */
export class RequestLog extends LogController {
  readonly #write: ((line: string) => void) | null;

  /** @param write - null for no lines of requests that went well */
  constructor(write: ((line: string) => void) | null) {
    super();
    this.#write = write;
  }

  override incomingRequest(request: FastifyRequest): void {
    // Node tells a socket's address only while it is open, unless it was asked before.
    void request.ip;
  }

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    if (error) {
      request.log.error({ req: request, res: reply, responseTime: reply.elapsedTime, err: error }, "request errored");
    } else this.#write?.(completed(request, reply));
  }
}

/** What `request.log.info({ req, res, responseTime }, "request completed")` writes, in a third of the time: it is the one line of every request. */
function completed(request: FastifyRequest, { statusCode, elapsedTime }: FastifyReply): string {
  const { id, method, ip } = request;
  return (
    `{"level":${INFO},"time":${Date.now()},${ORIGIN},"reqId":${JSON.stringify(id)},` +
    `"req":{"method":"${method}","path":${JSON.stringify(pathOf(request))},"remoteAddress":${JSON.stringify(ip)}},` +
    `"res":{"statusCode":${statusCode}},"responseTime":${elapsedTime},"msg":"request completed"}\n`
  );
}
