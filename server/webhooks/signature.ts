import { createHmac } from "node:crypto";

/**
 * The header fields of a delivery by Standard Webhooks: a `v1` signature, HMAC-SHA256 of `<id>.<timestamp>.<body>`, for each secret.
 * Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 *
 * @param secrets - `whsec_` and the key in base64
 * @param seconds - since 1970; receivers refuse what is minutes away from their own clock
 */
export function signatureHeaders(id: string, seconds: number, body: string, secrets: readonly string[]) {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": signatures.join(" "),
  };
}
