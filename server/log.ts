import type { FastifyRequest, FastifyServerOptions } from "fastify";

/** API keys, JWTs and the secrets of webhooks, wherever they turn up. */
const SECRETS = /mm_(?:test|live)_[A-Za-z0-9_-]+|eyJ[\w-]+\.[\w-]+\.[\w-]+|whsec_[A-Za-z0-9+/=_%-]+/g;

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

/** Pino's options: one JSON line an event, headers never, and each line swept for secrets before it is written. */
export function loggerOptions({
  level,
  stream = new LinesOfATurn(process.stdout),
  secrets = [],
}: LogOptions): FastifyServerOptions["logger"] {
  return {
    level,
    stream,
    // pino's own redaction clones every line's objects; one look at the text costs less and goes deeper.
    hooks: { streamWrite: (line) => swept(line.replace(CREDENTIALS, `$1"${REDACTED}"`), secrets) },
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
  return secrets.reduce(without, text.replace(SECRETS, REDACTED));
}

/** Secrets in hex turn up with `0x` and without, in either case. */
function without(line: string, secret: string): string {
  const digits = secret.replace(/^0x/, "");
  return line.replaceAll(digits, REDACTED).replaceAll(digits.toLowerCase(), REDACTED);
}
