import { hostname } from "node:os";
import {
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from "fastify";

/** API keys and the secrets of webhooks, anywhere in a line. */
const SECRETS = /mm_(?:test|live)_[A-Za-z0-9_-]+|whsec_[A-Za-z0-9+/=_%-]+/g;

/** Values of credential fields, at any depth of a line. */
const CREDENTIALS = /("(?:x-api-key|authorization)":)"(?:[^"\\]|\\.)*"/gi;

const REDACTED = "[redacted]";

export interface LogOptions {
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** Default: standard output, once a turn of the event loop. */
  readonly stream?: { write(line: string): void };
  /** Secrets without a recognizable form, such as private keys. */
  readonly secrets?: readonly string[];
}

/** Fastify's log: one JSON line an event, without headers and secrets. No log without options. */
export function logging(
  options: LogOptions | undefined,
): Pick<FastifyServerOptions, "logger" | "logController"> {
  if (options === undefined) return { logger: false, logController: new RequestLog(null) };
  const { level, stream = new LinesOfATurn(), secrets = [] } = options;
  // pino's own redaction clones every line's objects. One scan of the text is cheaper and more
  // thorough.
  const streamWrite = (line: string) =>
    swept(line.replace(CREDENTIALS, `$1"${REDACTED}"`), secrets);
  const serializers = {
    req: (request: FastifyRequest) => ({
      method: request.method,
      path: pathOf(request),
      remoteAddress: request.ip,
    }),
  };
  const write = TELLS_ALL.has(level) ? (line: string) => stream.write(streamWrite(line)) : null;
  return {
    logger: { level, stream, hooks: { streamWrite }, serializers },
    logController: new RequestLog(write),
  };
}

/** Levels that log successful requests. */
const TELLS_ALL: ReadonlySet<string> = new Set([
  "trace",
  "debug",
  "info",
] satisfies LogOptions["level"][]);

/** Most bytes that wait for a reader of the log. Further lines are lost, so memory is bounded. */
const MOST_UNREAD = 1 << 22;

/**
 * Writes the lines of one turn of the event loop together: single writes would cost as much as
 * making the lines.
 */
class LinesOfATurn {
  #lines = "";
  #lost = 0;

  constructor() {
    // An exit in the middle of a turn would lose its last lines, which have its reason.
    process.on("exit", () => this.#flush());
  }

  write(line: string): void {
    if (process.stdout.writableLength > MOST_UNREAD) {
      this.#lost++;
      return;
    }
    if (this.#lines === "") setImmediate(() => this.#flush());
    if (this.#lost > 0) this.#lines += lostLines(this.#lost);
    this.#lost = 0;
    this.#lines += line;
  }

  #flush(): void {
    const lines = this.#lines;
    this.#lines = "";
    if (lines !== "") process.stdout.write(lines);
  }
}

function lostLines(count: number): string {
  const msg = `nobody read the log, so ${count} of its lines are lost`;
  return `${JSON.stringify({ level: WARN, time: Date.now(), pid: process.pid, msg })}\n`;
}

/** A text without anything that looks like a secret, and without `secrets`. */
export function swept(text: string, secrets: readonly string[]): string {
  return secrets.reduce(without, withoutTokens(text.replace(SECRETS, REDACTED)));
}

/**
 * Removes JWTs. Checks each run of their characters once: a regular expression would start at every
 * `eyJ` and read to the run's end, and took 40 ms for a path of such text.
 */
function withoutTokens(text: string): string {
  if (!text.includes("eyJ")) return text;
  return text.replace(/[\w.-]+/g, (run) => {
    const start = run.indexOf("eyJ");
    return start >= 0 && run.slice(start).split(".").length > 2
      ? run.slice(0, start) + REDACTED
      : run;
  });
}

/** Secrets in hex occur with and without `0x`, in either case. */
function without(line: string, secret: string): string {
  const digits = secret.replace(/^0x/, "");
  return line.replaceAll(digits, REDACTED).replaceAll(digits.toLowerCase(), REDACTED);
}

const INFO = 30;
const WARN = 40;
const ORIGIN = `"pid":${process.pid},"hostname":${JSON.stringify(hostname())}`;

/** The URL without its query, which may contain a secret by mistake. */
function pathOf({ url }: Pick<FastifyRequest, "url">): string | undefined {
  return url?.split("?", 1)[0];
}

/** One line for each finished request: caller, request, answer and time. */
class RequestLog extends LogController {
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

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    if (error) {
      request.log.error(
        { req: request, res: reply, responseTime: reply.elapsedTime, err: error },
        "request errored",
      );
    } else this.#write?.(completed(request, reply));
  }
}

/**
 * The line of `request.log.info({ req, res, responseTime }, "request completed")`, made in a third
 * of the time.
 */
function completed(request: FastifyRequest, { statusCode, elapsedTime }: FastifyReply): string {
  const { id, method, ip } = request;
  return (
    `{"level":${INFO},"time":${Date.now()},${ORIGIN},"reqId":${JSON.stringify(id)},` +
    `"req":{"method":"${method}","path":${JSON.stringify(pathOf(request))},"remoteAddress":${JSON.stringify(ip)}},` +
    `"res":{"statusCode":${statusCode}},"responseTime":${elapsedTime},"msg":"request completed"}\n`
  );
}
