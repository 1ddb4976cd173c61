import { createHash } from "node:crypto";
import { type Endpoint, endpoint } from "../http/endpoint.ts";
import { openApi } from "../schemas/service.ts";
import type { Service } from "../service.ts";

/** A server's document never changes, so its bytes are made once. */
const documents = new WeakMap<Service, { readonly bytes: Buffer; readonly tag: string }>();

function documentOf(service: Service) {
  const known = documents.get(service);
  if (known !== undefined) return known;
  const bytes = Buffer.from(JSON.stringify(service.document()));
  const made = { bytes, tag: `"${createHash("sha256").update(bytes).digest("base64url")}"` };
  documents.set(service, made);
  return made;
}

export const openApiEndpoints: readonly Endpoint[] = [
  endpoint({
    access: "public",
    method: "GET",
    path: "/openapi.json",
    tag: "Service",
    summary: "This document",
    headers: { "If-None-Match": "The `ETag` of an earlier response." },
    success: {
      status: 200,
      description: "OpenAPI 3.1.",
      schemas: [openApi],
      headers: { ETag: "Identifies this version of the document." },
      unchanged: "`If-None-Match` names the present document.",
    },
    handle({ service, request, reply }) {
      const { bytes, tag } = documentOf(service);
      reply.headers({ etag: tag, "cache-control": "no-cache" });
      const known = request.headers["if-none-match"]?.split(",").map((text) => text.trim().replace(/^W\//, ""));
      if (known?.includes(tag) || known?.includes("*")) return reply.code(304).send();
      reply.type("application/json; charset=utf-8");
      return bytes;
    },
  }),
];
