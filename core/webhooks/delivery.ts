import { once } from "node:events";
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";
import { retryAfterMs } from "../backoff.ts";
import { visible } from "../protocol/text.ts";
import {
  ForbiddenAddress,
  guardedLookup,
  requireReachable,
  type WebhookReach,
} from "./address-policy.ts";

/**
 * The outcome of a delivery. `gone`: the endpoint wants no more, by status 410. `status` is null
 * without an answer.
 */
export type Outcome =
  | { readonly kind: "delivered"; readonly status: number }
  | {
      readonly kind: "failed";
      readonly status: number | null;
      readonly failure: string;
      readonly retryAfterMs?: number | undefined;
    }
  | { readonly kind: "gone"; readonly status: number; readonly failure: string };

/** Most bytes to read of an answer. Only its status matters. */
const ANSWER_BYTES = 16 * 1024;

/** Posts events to endpoints, at allowed addresses only. Does not follow redirects. */
export class Deliverer implements Disposable {
  readonly #reach: WebhookReach;
  readonly #timeoutMs: number;
  readonly #lookup: ReturnType<typeof guardedLookup>;
  readonly #agents: { readonly "http:": http.Agent; readonly "https:": https.Agent };

  constructor(reach: WebhookReach, timeoutMs: number) {
    this.#reach = reach;
    this.#timeoutMs = timeoutMs;
    this.#lookup = guardedLookup(reach);
    const options = { keepAlive: true };
    this.#agents = { "http:": new http.Agent(options), "https:": new https.Agent(options) };
  }

  [Symbol.dispose](): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  /** Rejects only with the signal's reason. */
  async post(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    try {
      const answer = await this.#send(
        new URL(url),
        headers,
        body,
        AbortSignal.any([signal, timeout]),
      );
      const { statusCode: status = 0 } = answer;
      if (status >= 200 && status < 300) return { kind: "delivered", status };
      const failure = `The endpoint answered ${status}.`;
      if (status === 410) return { kind: "gone", status, failure };
      const busy = status === 429 || status === 503;
      const wait = busy && { retryAfterMs: retryAfterMs(answer.headers["retry-after"]) };
      return { kind: "failed", status, failure, ...wait };
    } catch (error) {
      signal.throwIfAborted();
      const failure = timeout.aborted
        ? `No answer within ${this.#timeoutMs / 1000} s.`
        : failureOf(error, new URL(url));
      return { kind: "failed", status: null, failure };
    }
  }

  async #send(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ) {
    requireReachable(this.#reach, url);
    const secure = url.protocol === "https:";
    const { request } = secure ? https : http;
    const send = (agent: http.Agent | false) => {
      const options = { method: "POST", headers, signal, agent, lookup: this.#lookup as never };
      // A failure after the answer does not matter.
      return request(url, options)
        .on("error", () => {})
        .end(body);
    };
    const first = send(this.#agents[secure ? "https:" : "http:"]);
    const answer = await answerTo(first).catch((error: NodeJS.ErrnoException) => {
      // The endpoint may have closed an idle connection at the moment of its next use. That is not
      // its failure.
      if (!first.reusedSocket || !CLOSED.has(error.code ?? "")) throw error;
      return answerTo(send(false));
    });
    // Only the status matters, so the rest may fail.
    await discard(answer).catch(() => {});
    return answer;
  }
}

const CLOSED = new Set(["ECONNRESET", "EPIPE"]);

async function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return answer;
}

/**
 * Reads an answer to its end, so its connection can be used again. Closes the connection of a long
 * answer.
 */
async function discard(answer: IncomingMessage): Promise<void> {
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length;
    if (bytes > ANSWER_BYTES) break;
  }
}

const CLOSES = "closed the connection before it answered";
const UNTRUSTED = "has a certificate that no known authority has signed";

/** Sentences for error codes of Node and OpenSSL, about an endpoint named by host and port. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "accepts no connection",
  ECONNRESET: CLOSES,
  EPIPE: CLOSES,
  ETIMEDOUT: "did not answer the connection",
  EHOSTUNREACH: "cannot be reached",
  ENETUNREACH: "cannot be reached",
  EPROTO: "failed the TLS handshake",
  CERT_HAS_EXPIRED: "has a certificate that has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "has a certificate for another name",
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
};

/** Says in one line why no answer came, for the webhook's application. */
function failureOf(error: unknown, { host, hostname }: URL): string {
  if (error instanceof ForbiddenAddress) return error.message;
  const { code = "", syscall = "", message = "" } = error as Partial<NodeJS.ErrnoException>;
  if (syscall.startsWith("query")) {
    if (code === "ENOTFOUND") return `The host name ${hostname} does not exist.`;
    if (code === "ENODATA") return `The host name ${hostname} has no address.`;
    return `The name servers do not tell the address of ${hostname} (${code}).`;
  }
  if (code.startsWith("HPE_")) return `The endpoint ${host} did not answer in HTTP.`;
  const known = FAILURES[code];
  if (known !== undefined) return `The endpoint ${host} ${known}.`;
  return `The request failed: ${visible(message.slice(0, 500)) || code || "no reason is known"}`;
}
