import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Service } from "../service.ts";
import { documentOf, styledBy } from "./files.ts";
import { contentPolicy } from "./policy.ts";

/** The page needs only the explorer's style. */
const POLICY = contentPolicy({ "script-src": "'none'", "connect-src": "'none'" });

type Link = readonly [name: string, address: string, title: string, meaning: string];

/** The pages are for owners of tokens, and for whoever builds with them. */
const DOORS: readonly (readonly [
  title: string,
  meaning: string,
  main: Link,
  links: readonly Link[],
])[] = [
  [
    "I own tokens",
    "See them, give, trade and use them with your wallet, or take them to Ethereum.",
    ["owner", "/explorer#/owner", "My tokens", "Sign in with your wallet. It costs nothing."],
    [
      [
        "exit",
        "/exit",
        "Exit page",
        "Leave with an exit kit and a wallet; save it as one file that needs no server.",
      ],
      [
        "explorer",
        "/explorer",
        "Explorer",
        "Batches and vaults, with proofs that your browser checks.",
      ],
    ],
  ],
  [
    "I build",
    "Mint ERC-20, ERC-721 and ERC-1155 tokens on layer 2, over HTTP or in TypeScript.",
    ["guide", "/guide/", "Guide", "Quick starts, tasks and reference, with a search."],
    [
      [
        "console",
        "/console",
        "Console",
        "Your team's keys, assets, mints and what became of them.",
      ],
      ["reference", "/docs", "API reference", "Every request, to read and to try."],
      [
        "openapi",
        "/openapi.json",
        "OpenAPI document",
        "The same for machines; generate a client from it.",
      ],
      ["health", "/healthz", "Health", "Whether the process is alive."],
      ["readiness", "/readyz", "Readiness", "Whether everything works, and what does not."],
    ],
  ],
];
const LINKS = Object.fromEntries(
  DOORS.flatMap(([, , main, links]) => [main, ...links].map(([name, address]) => [name, address])),
);

const HOME = pageOf(
  "Mintmark",
  "Tokens on layer 2, which Ethereum settles and their owners can always take along.",
);
const MISSING = pageOf(
  "No such page",
  "This server has no page at this address. These are its pages:",
);

function pageOf(heading: string, lead: string): string {
  const doors = DOORS.map(([title, meaning, [, address, name, hint], links]) => {
    const facts = links.map(
      ([, path, text, said]) => `<dt><a href="${path}">${text}</a><dd>${said}`,
    );
    return `<section class="card door"><h2>${title}</h2><p>${meaning}</p>
      <p><a class="main" href="${address}">${name}</a></p><p class="quiet">${hint}</p>
      <dl class="facts">${facts.join("")}</dl></section>`;
  });
  const body = `<header class="top">
      <a class="brand" href="/">
        <svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><use href="/explorer/icon.svg#mark"></use></svg>
        <span>Mintmark</span>
      </a>
    </header>
    <main><h1>${heading}</h1><p class="lead">${lead}</p><div class="cards">${doors.join("")}</div></main>`;
  return documentOf(heading, styledBy("/explorer"), body);
}

/**
 * `GET /`: a page with links for browsers, the same links as JSON for other clients. An unknown
 * page has them too.
 */
export function mountHome(
  app: FastifyInstance,
  { engine, version }: Pick<Service, "engine" | "version">,
): void {
  app.get("/", async (request, reply) => {
    reply.headers({
      vary: "accept",
      "cache-control": "no-cache",
      "referrer-policy": "no-referrer",
    });
    if (!wantsPage(request))
      return { name: "Mintmark", version, environment: engine.environment, links: LINKS };
    return asPage(reply).send(HOME);
  });
  app.addHook("onSend", (request, reply, payload, done) => {
    if (request.problemCode !== "route_not_found") return done(null, payload);
    reply.header("vary", "accept");
    if (!wantsPage(request)) return done(null, payload);
    asPage(reply);
    done(null, MISSING);
  });
}

function asPage(reply: FastifyReply): FastifyReply {
  return reply.header("content-security-policy", POLICY).type("text/html; charset=utf-8");
}

function wantsPage({ headers: { accept = "" } }: FastifyRequest): boolean {
  return accept.includes("text/html");
}
