import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { guardedLookup, type Reach, requireReachable } from "./address-policy.ts";

/** What a receiver made of a delivery. `gone`: it asks for no more of them, by the status 410. */
export type Outcome =
  | { readonly kind: "delivered" }
  | { readonly kind: "failed"; readonly failure: string }
  | { readonly kind: "gone"; readonly failure: string };

/** Most bytes of an answer that are read; only its status counts. */
const ANSWER_BYTES = 16 * 1024;

/** Posts events to receivers, over connections that lead only where webhooks may lead. Redirects are not followed. */
export class Deliverer implements Disposable {
  readonly #reach: Reach;
  readonly #timeoutMs: number;
  readonly #agents: { readonly "http:": http.Agent; readonly "https:": https.Agent };

  constructor(reach: Reach, timeoutMs: number) {
    this.#reach = reach;
    this.#timeoutMs = timeoutMs;
    const options = { keepAlive: true, lookup: guardedLookup(reach) as never };
    this.#agents = { "http:": new http.Agent(options), "https:": new https.Agent(options) };
  }

  [Symbol.dispose](): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  /** Never rejects but with the signal's reason. */
  async post(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    try {
      const status = await this.#send(new URL(url), headers, body, AbortSignal.any([signal, timeout]));
      if (status >= 200 && status < 300) return { kind: "delivered" };
      return { kind: status === 410 ? "gone" : "failed", failure: `The receiver answered ${status}.` };
    } catch (error) {
      signal.throwIfAborted();
      const failure = timeout.aborted ? `No answer within ${this.#timeoutMs / 1000} s.` : reasonOf(error);
      return { kind: "failed", failure };
    }
  }

  async #send(url: URL, headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal): Promise<number> {
    requireReachable(this.#reach, url);
    const secure = url.protocol === "https:";
    const { request } = secure ? https : http;
    const sent = request(url, { method: "POST", headers, signal, agent: this.#agents[secure ? "https:" : "http:"] });
    sent.end(body);
    // One that fails after its answer has come is of no more interest.
    sent.on("error", () => {});
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    // What follows the status does not count, so it may fail.
    await discard(answer).catch(() => {});
    return answer.statusCode ?? 0;
  }
}

/** Reads an answer to its end, so that its connection can be used again, or cuts it off where it becomes too long. */
async function discard(answer: IncomingMessage): Promise<void> {
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length;
    if (bytes > ANSWER_BYTES) break;
  }
}

/** In one line: it is shown to the application. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replaceAll(/\p{Cc}+/gu, " ").slice(0, 500) || "failed";
}
