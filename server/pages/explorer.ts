import { readFile } from "node:fs/promises";
import type { Service } from "../service.ts";
import { pageScript } from "./bundle.ts";
import { contentPolicy, type Page, pageFile } from "./files.ts";

const FOLDER = new URL("./explorer/", import.meta.url);

/**
 * Requests may go to the visitor's Ethereum node: any over TLS, or one on the visitor's own machine. The core hashes
 * with WebAssembly. A token's image comes from its issuer's host, when the visitor asks for it: this server would
 * otherwise fetch what any tenant names. An image runs no script.
 */
const POLICY = contentPolicy({
  "script-src": "'self' 'wasm-unsafe-eval'",
  "img-src": "'self' https: data:",
  "connect-src": "'self' https: http://127.0.0.1:* http://localhost:*",
});

/** The explorer: batches, vaults and state. The core's own code checks them against L1 in the visitor's browser. */
export function explorerPage(service: Pick<Service, "engine" | "explorerRpc" | "ownerRelay">): Page {
  const { engine, explorerRpc, ownerRelay } = service;
  return {
    address: "/explorer",
    policy: POLICY,
    async load() {
      const [html, style, icon, script, withdraw] = await Promise.all([
        readFile(new URL("index.html", FOLDER)),
        readFile(new URL("style.css", FOLDER)),
        readFile(new URL("icon.svg", FOLDER)),
        pageScript("explorer"),
        pageScript("withdraw"),
      ]);
      const { environment } = engine;
      const settings = { environment, rpc: explorerRpc ?? null, relayVaults: ownerRelay.vaultsPerDay };
      return [
        pageFile("", html, "index.html"),
        pageFile("style.css", style),
        pageFile("icon.svg", icon),
        pageFile("settings.json", JSON.stringify(settings)),
        pageFile("explorer.js", script),
        // Loaded when an owner withdraws by its own transaction.
        pageFile("withdraw.js", withdraw),
      ];
    },
  };
}
