import type { FastifyRequest, FastifyServerOptions } from "fastify";

/** API keys and JWTs, wherever they turn up. */
const SECRETS = /mm_(?:test|live)_[A-Za-z0-9_-]+|eyJ[\w-]+\.[\w-]+\.[\w-]+/g;

export interface LogOptions {
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** Default: standard output. */
  readonly stream?: { write(line: string): void };
}

/** Pino's options: one JSON line an event, headers never, and each line swept for secrets before it is written. */
export function loggerOptions({ level, stream }: LogOptions): FastifyServerOptions["logger"] {
  return {
    level,
    ...(stream && { stream }),
    redact: { paths: ['*["x-api-key"]', "*.authorization", '*.headers["x-api-key"]', "*.headers.authorization"] },
    hooks: { streamWrite: (line) => line.replace(SECRETS, "[redacted]") },
    serializers: {
      req: (request: FastifyRequest) => ({
        method: request.method,
        // The query may hold what a caller should have put into a header.
        path: request.url?.split("?", 1)[0],
        remoteAddress: request.ip,
      }),
    },
  };
}
