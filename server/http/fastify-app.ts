import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { handleClientError, refuseExpectation, refuseTunnel } from "./client-error.ts";
import { handleError, notFoundHandler, ServerError } from "./errors.ts";
import { HostNames, requestId, requireClear, watchConnection } from "./incoming.ts";
import { type LogOptions, logging } from "./log.ts";

/** Milliseconds without progress after which a connection can be closed. */
const STALLED_MS = 10_000;

interface AppOptions
  extends Pick<FastifyServerOptions, "bodyLimit" | "trustProxy" | "return503OnClosing" | "forceCloseConnections"> {
  /** Default: no log. */
  readonly log?: LogOptions | undefined;
  /** Names of this server in `Host`, besides those that {@link HostNames} always accepts. */
  readonly hosts: readonly string[];
  /** Timeout for receiving a whole request, in seconds. */
  readonly requestTimeoutSeconds: number;
  /** Milliseconds without progress after which a connection is closed. Default 10,000. */
  readonly stalledMs?: number | undefined;
  /** Default: {@link handleError}. */
  readonly errorHandler?: typeof handleError;
  /** Methods of the routes on a path, for 405. Default: none. */
  readonly methodsOf?: (path: string) => readonly string[];
}

/** The common part of this package's servers: log, request ids, timeouts, and one form of refusals. */
export function fastifyApp(options: AppOptions): FastifyInstance {
  const {
    log,
    hosts,
    requestTimeoutSeconds,
    methodsOf = () => [],
    errorHandler = handleError,
    stalledMs = STALLED_MS,
    ...rest
  } = options;
  const names = new HostNames(hosts);
  const app = Fastify({
    ...logging(log),
    ...rest,
    genReqId: requestId,
    requestTimeout: requestTimeoutSeconds * 1000,
    connectionTimeout: stalledMs,
    // Node swaps the two timeouts if the one for headers, 60 s by default, is longer.
    http: {
      headersTimeout: requestTimeoutSeconds * 1000,
      connectionsCheckingInterval: Math.min(5000, requestTimeoutSeconds * 500),
      // Our own hook refuses the request, in the form of every other error.
      requireHostHeader: false,
    },
    frameworkErrors: handleError,
    clientErrorHandler: handleClientError,
  });
  app.decorateRequest("problemCode", null);
  app.setErrorHandler(errorHandler);
  app.setNotFoundHandler(notFoundHandler(methodsOf));
  // Routes with bodies bring their own parsers. An unknown route gets 404 whatever its body is.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  // Hooks of every request use callbacks, because a promise would cost more than the hook itself.
  app.addHook("onRequest", (request, reply, done) => {
    if (!watchConnection(request.raw, reply.raw, stalledMs)) return;
    reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
    requireClear(request.raw);
    if (!names.has(request.headers.host)) throw new ServerError("host_unknown");
    done();
  });
  app.server.on("checkExpectation", refuseExpectation).on("connect", refuseTunnel);
  return app;
}
