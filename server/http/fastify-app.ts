import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { HostNames } from "../access/host-names.ts";
import { type LogOptions, logging } from "../operations/log.ts";
import { handleClientError, refuseExpectation, refuseTunnel, requireClear } from "./client-error.ts";
import { handleError, notFoundHandler } from "./errors.ts";
import { requestId } from "./request-id.ts";

/** A connection on which nothing moves for this long is closed. */
const IDLE_CONNECTION_MS = 120_000;

export interface AppOptions
  extends Pick<FastifyServerOptions, "bodyLimit" | "trustProxy" | "return503OnClosing" | "forceCloseConnections"> {
  /** Default: no log. */
  readonly log?: LogOptions | undefined;
  /** Names that requests may call this server by, besides those that {@link HostNames} always takes. */
  readonly hosts: readonly string[];
  /** Longest time for a whole request to arrive, in seconds. */
  readonly requestTimeoutSeconds: number;
  /** Default: {@link handleError}. */
  readonly errorHandler?: typeof handleError;
  /** Methods that some route takes on a path. Default: none is told. */
  readonly methodsOf?: (path: string) => readonly string[];
}

/** What every server of this package has before its first route: log, request ids, time limits, and one form of refusals. */
export function fastifyApp(options: AppOptions): FastifyInstance {
  const { log, hosts, requestTimeoutSeconds, methodsOf = () => [], errorHandler = handleError, ...rest } = options;
  const names = new HostNames(hosts);
  const app = Fastify({
    ...logging(log),
    ...rest,
    genReqId: requestId,
    requestTimeout: requestTimeoutSeconds * 1000,
    connectionTimeout: IDLE_CONNECTION_MS,
    // Node swaps the two time limits if the headers' one, 60 s by default, is the longer.
    http: {
      headersTimeout: requestTimeoutSeconds * 1000,
      connectionsCheckingInterval: Math.min(5000, requestTimeoutSeconds * 500),
      // Our own hook answers, in the form of every other error.
      requireHostHeader: false,
    },
    frameworkErrors: handleError,
    clientErrorHandler: handleClientError,
  });
  app.decorateRequest("problemCode", null);
  app.setErrorHandler(errorHandler);
  app.setNotFoundHandler(notFoundHandler(methodsOf));
  // Routes that read bodies bring their own parsers. An unknown route is refused as such, whatever its body.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  // Hooks of every request call back: a promise each would cost more than the hook itself.
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
    requireClear(request.raw);
    names.require(request.headers.host);
    done();
  });
  app.server.on("checkExpectation", refuseExpectation).on("connect", refuseTunnel);
  return app;
}
