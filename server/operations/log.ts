import type { FastifyRequest, FastifyServerOptions } from "fastify";
import { pathOf, RequestLog } from "../http/request-log.ts";

/** API keys and the secrets of webhooks, wherever they turn up. */
const SECRETS = /mm_(?:test|live)_[A-Za-z0-9_-]+|whsec_[A-Za-z0-9+/=_%-]+/g;

/** What is sent as one, whatever it looks like, at any depth of a line. */
const CREDENTIALS = /("(?:x-api-key|authorization)":)"(?:[^"\\]|\\.)*"/gi;

const REDACTED = "[redacted]";

export interface LogOptions {
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** Default: standard output, by the turn. */
  readonly stream?: { write(line: string): void };
  /** Secrets that have no form of their own, such as private keys. */
  readonly secrets?: readonly string[];
}

/** Fastify's log: one JSON line an event, headers never, and each line swept for secrets before it is written. Without options, none. */
export function logging(options: LogOptions | undefined): Pick<FastifyServerOptions, "logger" | "logController"> {
  if (options === undefined) return { logger: false, logController: new RequestLog(null) };
  const { level, stream = new LinesOfATurn(process.stdout), secrets = [] } = options;
  // pino's own redaction clones every line's objects; one look at the text costs less and goes deeper.
  const streamWrite = (line: string) => swept(line.replace(CREDENTIALS, `$1"${REDACTED}"`), secrets);
  const serializers = {
    req: (request: FastifyRequest) => ({
      method: request.method,
      path: pathOf(request),
      remoteAddress: request.ip,
    }),
  };
  const write = TELLS_ALL.has(level) ? (line: string) => stream.write(streamWrite(line)) : null;
  return { logger: { level, stream, hooks: { streamWrite }, serializers }, logController: new RequestLog(write) };
}

/** Levels at which a request that went well is told of. */
const TELLS_ALL: ReadonlySet<string> = new Set(["trace", "debug", "info"] satisfies LogOptions["level"][]);

/** Writes the lines of one turn of the event loop together: under load a write for each costs as much as the line itself. */
class LinesOfATurn {
  readonly #out: { write(text: string): unknown };
  #lines = "";

  constructor(out: { write(text: string): unknown }) {
    this.#out = out;
    // An exit in the middle of a turn, whose reason is among its lines.
    process.on("exit", () => this.#flush());
  }

  write(line: string): void {
    if (this.#lines === "") setImmediate(() => this.#flush());
    this.#lines += line;
  }

  #flush(): void {
    const lines = this.#lines;
    this.#lines = "";
    if (lines !== "") this.#out.write(lines);
  }
}

/** A text without anything that looks like a secret, and without these. */
export function swept(text: string, secrets: readonly string[]): string {
  return secrets.reduce(without, withoutTokens(text.replace(SECRETS, REDACTED)));
}

/**
 * Without JWTs. Each run of their characters is looked at once: a pattern of their form would be tried from every `eyJ` on to the run's
 * end, and a path of nothing else took 40 ms.
 */
function withoutTokens(text: string): string {
  if (!text.includes("eyJ")) return text;
  return text.replace(/[\w.-]+/g, (run) => {
    const start = run.indexOf("eyJ");
    return start >= 0 && run.slice(start).split(".").length > 2 ? run.slice(0, start) + REDACTED : run;
  });
}

/** Secrets in hex turn up with `0x` and without, in either case. */
function without(line: string, secret: string): string {
  const digits = secret.replace(/^0x/, "");
  return line.replaceAll(digits, REDACTED).replaceAll(digits.toLowerCase(), REDACTED);
}
