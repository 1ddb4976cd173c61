import { readFile } from "node:fs/promises";
import type { Service } from "../service.ts";
import { pageScript, type SCRIPTS } from "./bundle.ts";
import { contentPolicy, type Page, type PageFile, pageFile } from "./files.ts";

interface Parts {
  /** Default: the folder's name. */
  readonly address?: string;
  readonly policy: string;
  /** A library's style and script, which come before the page's own. */
  readonly library?: { readonly style?: URL; readonly script?: URL };
  readonly others?: () => Promise<readonly PageFile[]> | readonly PageFile[];
}

/** The page of a folder here: its `index.html`, its `style.css` and its script. */
function scriptedPage(
  folder: (typeof SCRIPTS)[number],
  { address = `/${folder}`, policy, library = {}, others = () => [] }: Parts,
): Page {
  return {
    address,
    policy,
    async load() {
      const [html, style, script, more] = await Promise.all([
        readFile(new URL(`./${folder}/index.html`, import.meta.url)),
        behind(library.style, readFile(new URL(`./${folder}/style.css`, import.meta.url))),
        behind(library.script, pageScript(folder)),
        others(),
      ]);
      return [
        pageFile("", html, "index.html"),
        pageFile("style.css", style),
        pageFile(`${folder}.js`, script),
        ...more,
      ];
    },
  };
}

/** The newline ends the library's last comment. */
async function behind(library: URL | undefined, own: Promise<Buffer>): Promise<Buffer> {
  return library === undefined ? own : Buffer.concat([await readFile(library), Buffer.from("\n"), await own]);
}

/**
 * Where the holder of a claim link names an owner. The link's key is in the fragment and signs in the browser. Nothing
 * comes from other hosts: whoever reads the key could claim with it.
 */
export const claimPage = scriptedPage("claim", { policy: contentPolicy() });

/** The console of applications' teams and of the operator. It looks like the explorer, whose style it shares. */
export function consolePage({ engine }: Pick<Service, "engine">): Page {
  return scriptedPage("console", {
    // Images of tokens are at their issuers' hosts; the page asks for them only when its reader wants them.
    policy: contentPolicy({ "img-src": "'self' https: data:" }),
    library: { style: new URL("./uPlot.min.css", import.meta.resolve("uplot")) },
    others: () => [pageFile("settings.json", JSON.stringify({ environment: engine.environment }))],
  });
}

/**
 * The explorer: batches, vaults and state. The core's own code checks them against L1 in the visitor's browser.
 *
 * Requests may go to the visitor's Ethereum node: any over TLS, or one on the visitor's own machine. The core hashes
 * with WebAssembly. A token's image comes from its issuer's host, when the visitor asks for it: this server would
 * otherwise fetch what any tenant names. An image runs no script.
 */
export function explorerPage(service: Pick<Service, "engine" | "explorerRpc" | "ownerRelay">): Page {
  const { engine, explorerRpc, ownerRelay } = service;
  return scriptedPage("explorer", {
    policy: contentPolicy({
      "script-src": "'self' 'wasm-unsafe-eval'",
      "img-src": "'self' https: data:",
      "connect-src": "'self' https: http://127.0.0.1:* http://localhost:*",
    }),
    async others() {
      const { environment } = engine;
      const settings = { environment, rpc: explorerRpc ?? null, relayVaults: ownerRelay.vaultsPerDay };
      return [
        pageFile("icon.svg", await readFile(new URL("./explorer/icon.svg", import.meta.url))),
        pageFile("settings.json", JSON.stringify(settings)),
        // Loaded when an owner withdraws by its own transaction.
        pageFile("withdraw.js", await pageScript("withdraw")),
      ];
    },
  });
}

/** Two files of the Swagger UI package, served from here, so the page needs no other host. */
const SWAGGER = new URL("./static/", import.meta.resolve("@fastify/swagger-ui/package.json"));

/** The interactive reference: this server's OpenAPI document, with requests to try. */
export const referencePage = scriptedPage("reference", {
  address: "/docs",
  // Nothing from other hosts, no inline script. Swagger UI sets styles by script, and its arrows are data addresses.
  // Its sanitizer has a policy of its own, and the page's default policy lets through what it has cleaned.
  policy: contentPolicy({
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "trusted-types": "default dompurify",
  }),
  library: { script: new URL("swagger-ui-bundle.js", SWAGGER) },
  others: async () => [pageFile("swagger-ui.css", await readFile(new URL("swagger-ui.css", SWAGGER)))],
});
