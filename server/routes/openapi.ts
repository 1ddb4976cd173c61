import { sendTag, tagOf } from "../http/etag.ts";
import { openApi } from "../schemas/service.ts";
import type { Service } from "../service.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

/** A server's document never changes, so its bytes are made once. */
const documents = new WeakMap<Service, { readonly bytes: Buffer; readonly tag: string }>();

function documentOf(service: Service) {
  const known = documents.get(service);
  if (known !== undefined) return known;
  const bytes = Buffer.from(JSON.stringify(service.document()));
  const made = { bytes, tag: tagOf(bytes) };
  documents.set(service, made);
  return made;
}

export const openApiEndpoints: readonly Endpoint[] = [
  endpoint("Service", "public", "GET /openapi.json", "getOpenApiDocument", {
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
      reply.header("cache-control", "no-cache");
      if (sendTag(request, reply, tag)) return reply.send();
      request.account?.share();
      reply.type("application/json; charset=utf-8");
      return bytes;
    },
  }),
];
