import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { pageScript } from "./bundle.ts";
import { type Page, pageFile } from "./files.ts";

const FOLDER = new URL("./", import.meta.url);

/**
 * The static exit page: one HTML file with its script and style, which works from a disk. Its policy allows these two by
 * their hashes, and no request at all: the page talks to the wallet only. The core hashes with WebAssembly.
 */
export async function exitPageHtml(): Promise<{ readonly html: string; readonly policy: string }> {
  const [template, style, script] = await Promise.all([
    readFile(new URL("exit/index.html", FOLDER), "utf8"),
    readFile(new URL("shared/style.css", FOLDER), "utf8"),
    pageScript("exit").then((bytes) => bytes.toString()),
  ]);
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
  const parts: Readonly<Record<string, string>> = {
    policy: `<meta http-equiv="content-security-policy" content="${policy}">`,
    style: `<style>${style}</style>`,
    script: `<script type="module">${script}</script>`,
  };
  return { html: template.replaceAll(/<!--(policy|style|script)-->/g, (_, name: string) => parts[name] ?? ""), policy };
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
