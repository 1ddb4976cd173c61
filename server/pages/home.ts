import { readFile } from "node:fs/promises";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Service } from "../service.ts";

const FOLDER = new URL("./home/", import.meta.url);

/** The page needs only the explorer's style. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Links to this server's pages. */
const LINKS = {
  reference: "/docs",
  openapi: "/openapi.json",
  explorer: "/explorer",
  health: "/healthz",
  readiness: "/readyz",
} as const;

/** `GET /`: a page with links for browsers, the same links as JSON for other clients. */
export function mountHome(app: FastifyInstance, { engine, version }: Pick<Service, "engine" | "version">): void {
  let page: Promise<Buffer> | undefined;
  app.get("/", async (request, reply) => {
    reply.headers({ vary: "accept", "cache-control": "no-cache", "referrer-policy": "no-referrer" });
    if (!wantsPage(request)) return { name: "Mintmark", version, environment: engine.environment, links: LINKS };
    page ??= readFile(new URL("index.html", FOLDER));
    return reply
      .header("content-security-policy", POLICY)
      .type("text/html; charset=utf-8")
      .send(await page);
  });
}

function wantsPage({ headers: { accept = "" } }: FastifyRequest): boolean {
  return accept.includes("text/html");
}
