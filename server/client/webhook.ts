import type { Event } from "./api.ts";

/** The headers of a delivery, as Node and `fetch` give them. */
export type DeliveryHeaders = Headers | Readonly<Record<string, string | string[] | undefined>>;

/** A delivery may be older or newer by so many seconds, as clocks differ. */
const TOLERANCE_SECONDS = 300;

/**
 * The event of a webhook's request. Rejects for one that the server has not signed, and for an old
 * one. A server repeats an event until it gets an answer of 2xx, so keep the last `sequence`.
 *
 * @param secret - the webhook's, `whsec_…`
 * @param body - the text of the request, exactly as it came
 * @example
 * const event = await webhookEvent(secret, request.headers, await request.text());
 * if (event.type === "batch.finalized") console.log(event.data.batchId);
 */
export async function webhookEvent(
  secret: string,
  headers: DeliveryHeaders,
  body: string,
): Promise<Event> {
  const [id, sentAt, signatures] = ["id", "timestamp", "signature"].map((name) => {
    const header = `webhook-${name}`;
    const value = headers instanceof Headers ? headers.get(header) : headers[header];
    if (typeof value !== "string") throw new Error(`the header ${header} is missing`);
    return value;
  });
  if (!(Math.abs(Date.now() / 1000 - Number(sentAt)) <= TOLERANCE_SECONDS))
    throw new Error("the request is too old, or its clock is wrong");
  const key = await hmacKey(secret);
  const signed = new TextEncoder().encode(`${id}.${sentAt}.${body}`);
  for (const signature of (signatures ?? "").split(" ")) {
    const given = bytesOf(signature.replace(/^v1,/, ""));
    if (given !== null && (await crypto.subtle.verify("HMAC", key, given, signed)))
      return JSON.parse(body) as Event;
  }
  throw new Error("the signature is not the server's");
}

async function hmacKey(secret: string) {
  const bytes = bytesOf(secret.replace(/^whsec_/, ""));
  if (bytes === null || bytes.length === 0)
    throw new Error("the secret is not a webhook's, whsec_…");
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [
    "verify",
  ]);
}

/** The bytes of a base64 text; null for other text. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
