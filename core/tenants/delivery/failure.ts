import { visible } from "../../protocol/text.ts";
import { ForbiddenAddress } from "./address-policy.ts";

const CLOSED = "closed the connection before it answered";
const UNTRUSTED = "has a certificate that no known authority has signed";

/** Sentences for error codes of Node and OpenSSL, about a receiver named by host and port. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "accepts no connection",
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
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
export function failureOf(error: unknown, { host, hostname }: URL): string {
  if (error instanceof ForbiddenAddress) return error.message;
  const { code = "", syscall = "", message = "" } = error as Partial<NodeJS.ErrnoException>;
  if (syscall.startsWith("query")) {
    if (code === "ENOTFOUND") return `The host name ${hostname} does not exist.`;
    if (code === "ENODATA") return `The host name ${hostname} has no address.`;
    return `The name servers do not tell the address of ${hostname} (${code}).`;
  }
  if (code.startsWith("HPE_")) return `The receiver ${host} did not answer in HTTP.`;
  const known = FAILURES[code];
  if (known !== undefined) return `The receiver ${host} ${known}.`;
  return `The request failed: ${visible(message.slice(0, 500)) || code || "no reason is known"}`;
}
