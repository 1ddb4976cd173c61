import type { FastifyInstance, FastifyRequest } from "fastify";
import { FORM } from "./endpoint.ts";
import { ServerError } from "./errors.ts";
import { parseJson } from "./json.ts";

/** Takes JSON bodies and no others. */
export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request: FastifyRequest, body: Buffer, done) => {
    refuseEncodings(request);
    done(null, body.length === 0 ? undefined : parseJson(body));
  });
}

/** Takes OAuth's forms and no others; each name at most once, as RFC 6749 asks. */
export function acceptForm(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(FORM, { parseAs: "string" }, async (request: FastifyRequest, body: string) => {
    refuseEncodings(request);
    const fields = [...new URLSearchParams(body)];
    const form = Object.fromEntries(fields);
    if (Object.keys(form).length !== fields.length) throw new ServerError("malformed_request", "A field occurs twice.");
    return form;
  });
}

/** Compressed bodies could grow without bound, and JSON is UTF-8. */
function refuseEncodings({ headers }: FastifyRequest): void {
  const encoding = headers["content-encoding"] ?? "identity";
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers["content-type"] ?? "")?.[1] ?? "utf-8";
  if (encoding.toLowerCase() !== "identity" || !/^utf-?8$/i.test(charset)) {
    throw new ServerError("unsupported_media_type");
  }
}
