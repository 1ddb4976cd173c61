import { readFile } from "node:fs/promises";
import type { Service } from "../service.ts";
import { chartStyle, pageScripts, type SCRIPTS } from "./bundle.ts";
import { documentOf, type Page, type PageFile, pageFile, styledBy } from "./files.ts";
import { contentPolicy, hashSource } from "./policy.ts";

interface Parts {
  readonly title: string;
  readonly address?: string;
  readonly policy: string;
  /** A browser without scripts shows this. */
  readonly noScript: string;
  /** Styles behind the one that all pages share. */
  readonly styles?: readonly URL[];
  /** The script reads these at its start. */
  readonly settings?: object;
  readonly others?: () => Promise<readonly PageFile[]>;
}

const SHARED = new URL("./shared/style.css", import.meta.url);

function scriptedPage(folder: (typeof SCRIPTS)[number], parts: Parts): Page {
  const { title, address = `/${folder}`, policy, styles = [], settings, others } = parts;
  const head = `${styledBy(address)}
    <script type="module" src="${address}/${folder}.js"></script>`;
  const body = `<div id="app"><main><p class="quiet">Loading…</p></main></div>
    <noscript><p class="notice">${parts.noScript}</p></noscript>`;
  return {
    address,
    policy,
    async load() {
      const read = await Promise.all([SHARED, ...styles].map((url) => readFile(url, "utf8")));
      return [
        pageFile("", documentOf(title, head, body), "index.html"),
        pageFile("style.css", read.join("\n")),
        ...[...(await pageScripts(folder))].map(([name, script]) => pageFile(name, script)),
        ...(settings ? [pageFile("settings.json", JSON.stringify(settings))] : []),
        ...((await others?.()) ?? []),
      ];
    },
  };
}

/**
 * Where the holder of a claim link names an owner. The link's key is in the fragment and signs in
 * the browser. Only images come from other hosts: whoever reads the key could claim with it.
 */
export const claimPage = scriptedPage("claim", {
  title: "Claim a token",
  noScript: "Your browser signs the claim, which needs JavaScript.",
  // The application chose the token's image, as it gave the link.
  policy: contentPolicy({ "img-src": "'self' https: data:" }),
});

export function consolePage({ engine, newTokens }: Pick<Service, "engine" | "newTokens">): Page {
  return scriptedPage("console", {
    title: "Mintmark console",
    noScript: "The console needs JavaScript. The same is possible with the HTTP API: /docs.",
    // Images of tokens are at other hosts; the page asks for them only when its reader wants them.
    policy: contentPolicy({ "img-src": "'self' https: data:" }),
    styles: [chartStyle, new URL("./console/style.css", import.meta.url)],
    settings: { environment: engine.environment, newTokens: newTokens !== undefined },
  });
}

/**
 * The explorer: batches, vaults and state. The core's own code checks them against L1 in the
 * visitor's browser.
 *
 * Requests may go to the visitor's Ethereum node: any over TLS, or one on the visitor's own
 * machine. The core hashes with WebAssembly. A token's image comes from the host that its metadata
 * names, when the visitor asks for it. This server would otherwise fetch what any tenant names. An
 * image runs no script.
 */
export function explorerPage(
  service: Pick<Service, "engine" | "explorerRpc" | "ownerRelay">,
): Page {
  const { engine, explorerRpc, ownerRelay } = service;
  return scriptedPage("explorer", {
    title: "Mintmark explorer",
    noScript:
      "Proofs are checked in your browser, which needs JavaScript. The same data is at /public/v1/batches.",
    policy: contentPolicy({
      "script-src": "'self' 'wasm-unsafe-eval'",
      "img-src": "'self' https: data:",
      "connect-src": "'self' https: http://127.0.0.1:* http://localhost:*",
    }),
    settings: {
      environment: engine.environment,
      rpc: explorerRpc ?? null,
      relayVaults: ownerRelay.vaultsPerDay,
    },
    others: async () => [
      pageFile("icon.svg", await readFile(new URL("./shared/icon.svg", import.meta.url))),
    ],
  });
}

/** The interactive reference: this server's OpenAPI document, with requests to try. */
export const referencePage = scriptedPage("reference", {
  address: "/docs",
  title: "Mintmark API",
  noScript: "The reference needs JavaScript. The document it shows is at /openapi.json.",
  policy: contentPolicy(),
  styles: [new URL("./reference/style.css", import.meta.url)],
});

/**
 * The static exit page: one HTML file with its script and style, which works from a disk. Its
 * policy allows these two by their hashes, and no request at all: the page talks to the wallet
 * only. The core hashes with WebAssembly.
 */
export async function exitPageHtml(): Promise<{ readonly html: string; readonly policy: string }> {
  const style = await readFile(SHARED, "utf8");
  const script = String((await pageScripts("exit")).get("exit.js"));
  const policy = contentPolicy({
    "script-src": `${hashSource(script)} 'wasm-unsafe-eval'`,
    "style-src": hashSource(style),
    "img-src": "data:",
    "connect-src": "'none'",
  });
  const head = `<meta http-equiv="content-security-policy" content="${policy.replace("frame-ancestors 'none'; ", "")}">
    <meta name="referrer" content="no-referrer">
    <link rel="icon" href="data:,">
    <style>${style}</style>`;
  const body = `<header class="top"><span class="brand">Mintmark</span></header>
    <div id="app"></div>
    <noscript><p class="notice">This page checks proofs in your browser, which needs JavaScript.</p></noscript>
    <script type="module">${script}</script>`;
  return { html: documentOf("Mintmark exit", head, body), policy };
}

/** One file is served as the page, and a second time to be saved. */
export const exitPage: Page = {
  address: "/exit",
  policy: contentPolicy(),
  async load() {
    const { html, policy } = await exitPageHtml();
    return [
      { ...pageFile("", html, "index.html"), policy },
      { ...pageFile("mintmark-exit.html", html), policy },
    ];
  },
};
