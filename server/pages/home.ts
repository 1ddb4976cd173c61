import { readFile } from "node:fs/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Service } from "../service.ts";
import { contentPolicy } from "./files.ts";

const FOLDER = new URL("./home/", import.meta.url);

/** The page needs only the explorer's style. */
const POLICY = contentPolicy({ "script-src": "'none'", "connect-src": "'none'" });

/** Links to this server's pages. */
const LINKS = {
  guide: "/guide/",
  reference: "/docs",
  openapi: "/openapi.json",
  console: "/console",
  explorer: "/explorer",
  exit: "/exit",
  health: "/healthz",
  readiness: "/readyz",
} as const;

const HOME = {
  heading: "Mintmark",
  lead: "This server mints ERC-20, ERC-721 and ERC-1155 tokens on layer 2 and settles them on Ethereum.",
};
const MISSING = { heading: "No such page", lead: "This server has no page at this address. These are its pages:" };

/** `GET /`: a page with links for browsers, the same links as JSON for other clients. An unknown page has them too. */
export async function mountHome(
  app: FastifyInstance,
  { engine, version }: Pick<Service, "engine" | "version">,
): Promise<void> {
  const template = await readFile(new URL("index.html", FOLDER), "utf8");
  const page = ({ heading, lead }: typeof HOME) =>
    template.replaceAll("{{heading}}", heading).replaceAll("{{lead}}", lead);
  const [home, missing] = [page(HOME), page(MISSING)];
  app.get("/", async (request, reply) => {
    reply.headers({ vary: "accept", "cache-control": "no-cache", "referrer-policy": "no-referrer" });
    if (!wantsPage(request)) return { name: "Mintmark", version, environment: engine.environment, links: LINKS };
    return asPage(reply).send(home);
  });
  app.addHook("onSend", (request, reply, payload, done) => {
    if (request.problemCode !== "route_not_found") return done(null, payload);
    reply.header("vary", "accept");
    if (!wantsPage(request)) return done(null, payload);
    asPage(reply);
    done(null, missing);
  });
}

function asPage(reply: FastifyReply): FastifyReply {
  return reply.header("content-security-policy", POLICY).type("text/html; charset=utf-8");
}

function wantsPage({ headers: { accept = "" } }: FastifyRequest): boolean {
  return accept.includes("text/html");
}
