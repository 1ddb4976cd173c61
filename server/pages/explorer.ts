import { readFile } from "node:fs/promises";
import type { Service } from "../service.ts";
import { type Page, pageFile } from "./files.ts";
import { browserModules } from "./modules.ts";

const FOLDER = new URL("./explorer/", import.meta.url);
/** `.ts` in the repository, `.js` in the package. */
const EXTENSION = import.meta.url.slice(import.meta.url.lastIndexOf("."));

/**
 * Scripts and styles are this server's files, none inline. Requests may leave for the Ethereum node that the visitor names: any over
 * TLS, or one on the visitor's own machine. WebAssembly is what the core hashes with.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self' https: http://127.0.0.1:* http://localhost:*",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** The explorer: batches, vaults and state, checked in the visitor's browser by the core's own code against what L1 says. */
export function explorerPage({ engine, explorerRpc }: Pick<Service, "engine" | "explorerRpc">): Page {
  return {
    address: "/explorer",
    policy: POLICY,
    async load() {
      const [html, style, icon, modules] = await Promise.all([
        readFile(new URL("index.html", FOLDER), "utf8"),
        readFile(new URL("style.css", FOLDER)),
        readFile(new URL("icon.svg", FOLDER)),
        browserModules(`server/pages/explorer/main${EXTENSION}`),
      ]);
      const settings = { environment: engine.environment, rpc: explorerRpc ?? null };
      return [
        pageFile("", html.replaceAll("{{extension}}", EXTENSION), "index.html"),
        pageFile("style.css", style),
        pageFile("icon.svg", icon),
        pageFile("settings.json", JSON.stringify(settings)),
        ...modules.map(({ path, source }) => pageFile(`modules/${path}`, source)),
      ];
    },
  };
}
