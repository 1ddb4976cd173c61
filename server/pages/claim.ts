import { readFile } from "node:fs/promises";
import { pageScript } from "./bundle.ts";
import { type Page, pageFile } from "./files.ts";

const FOLDER = new URL("./claim/", import.meta.url);

/** Nothing from other hosts: the page holds a key that whoever reads it could claim with. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** Where the holder of a claim link names an owner. The link's key is in the fragment and signs in the browser. */
export const claimPage: Page = {
  address: "/claim",
  policy: POLICY,
  async load() {
    const [html, style, script] = await Promise.all([
      readFile(new URL("index.html", FOLDER)),
      readFile(new URL("style.css", FOLDER)),
      pageScript("claim"),
    ]);
    return [pageFile("", html, "index.html"), pageFile("style.css", style), pageFile("claim.js", script)];
  },
};
