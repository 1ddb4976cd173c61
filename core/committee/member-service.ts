import { readBody } from "../archive/batch-source.ts";
import { MintmarkError } from "../errors.ts";
import type { Hex } from "../model.ts";

/** Answers are a few lines of JSON; a member that sends more is not listened to. */
const MAX_ANSWER_BYTES = 64 * 1024;
const SIGNATURE = /^0x[0-9a-f]{130}$/;

/** A committee member's service, over HTTP. Nothing it says is believed unchecked; how long it may take, the caller's signal decides. */
export class MemberService {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url.replace(/\/+$/, "");
  }

  /** The answer's JSON object. Rejects with `l1_failed` and the member's own code and detail when it refuses. */
  async ask(path: string, init: RequestInit): Promise<Readonly<Record<string, unknown>>> {
    const response = await this.#fetch(path, init);
    const text = new TextDecoder().decode(await readBody(response, MAX_ANSWER_BYTES));
    const answer = parseObject(text);
    if (response.ok && answer !== null) return answer;
    if (response.ok || answer === null) throw nonsense(`${response.status}, and not JSON`);
    const { code, detail } = answer;
    throw new MintmarkError("l1_failed", `refused (${short(code)}): ${short(detail)}`);
  }

  /** The `signature` of the answer, 65 bytes; whose it is, the caller finds out. */
  async askForSignature(path: string, init: RequestInit): Promise<Hex> {
    const { signature } = await this.ask(path, init);
    if (typeof signature !== "string" || !SIGNATURE.test(signature)) throw nonsense("no signature");
    return signature as Hex;
  }

  /** The same for a batch, whose data goes with an operator's signed request. */
  async sendBatch(path: string, data: Uint8Array, request: Hex, signal: AbortSignal): Promise<Hex> {
    return this.askForSignature(path, {
      method: "POST",
      headers: { "content-type": "application/octet-stream", authorization: `Operator ${request}` },
      // A view of its own buffer: what fetch takes must not be shared.
      body: Uint8Array.from(data),
      signal,
    });
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(`${this.#url}${path}`, { ...init, redirect: "error" });
    } catch (error) {
      // Node says only "fetch failed"; why, is in the cause.
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new MintmarkError("l1_failed", `cannot be reached at ${this.#url} (${cause})`, { cause: error });
    }
  }
}

export function nonsense(what: string): MintmarkError {
  return new MintmarkError("l1_failed", `answered nonsense: ${what}`);
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : null;
  } catch {
    return null;
  }
}

/** What a stranger says, cut to what a log line holds. */
function short(value: unknown): string {
  return String(value)
    .replaceAll(/[^\x20-\x7e]/g, " ")
    .slice(0, 200);
}
