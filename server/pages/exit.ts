import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { pageScript } from "./bundle.ts";
import { documentOf, type Page, pageFile } from "./files.ts";

/**
 * The static exit page: one HTML file with its script and style, which works from a disk. Its policy allows these two by
 * their hashes, and no request at all: the page talks to the wallet only. The core hashes with WebAssembly.
 */
export async function exitPageHtml(): Promise<{ readonly html: string; readonly policy: string }> {
  const style = await readFile(new URL("shared/style.css", import.meta.url), "utf8");
  const script = (await pageScript("exit")).toString();
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}' 'wasm-unsafe-eval'`,
    `style-src '${hashOf(style)}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  const head = `<meta http-equiv="content-security-policy" content="${policy}">
    <meta name="referrer" content="no-referrer">
    <link rel="icon" href="data:,">
    <style>${style}</style>`;
  const body = `<header class="top"><span class="brand">Mintmark</span></header>
    <div id="app"></div>
    <noscript><p class="notice">This page checks proofs in your browser, which needs JavaScript.</p></noscript>
    <script type="module">${script}</script>`;
  return { html: documentOf("Mintmark exit", head, body), policy };
}

/** The same file, served, and as a file to save. */
export const exitPage: Page = {
  address: "/exit",
  policy: "default-src 'none'; frame-ancestors 'none'",
  async load() {
    const { html, policy } = await exitPageHtml();
    const served = { policy: `${policy}; frame-ancestors 'none'` };
    return [
      { ...pageFile("", html, "index.html"), ...served },
      { ...pageFile("mintmark-exit.html", html), ...served },
    ];
  },
};

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
