import { readFile } from "node:fs/promises";
import { pageScript } from "./bundle.ts";
import { contentPolicy, documentOf, hashSource, type Page, pageFile } from "./files.ts";

/**
 * The static exit page: one HTML file with its script and style, which works from a disk. Its policy allows these two by
 * their hashes, and no request at all: the page talks to the wallet only. The core hashes with WebAssembly.
 */
export async function exitPageHtml(): Promise<{ readonly html: string; readonly policy: string }> {
  const style = await readFile(new URL("shared/style.css", import.meta.url), "utf8");
  const script = (await pageScript("exit")).toString();
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

/** The same file, served, and as a file to save. */
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
