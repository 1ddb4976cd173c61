import { readFile } from "node:fs/promises";
import { pageScript } from "./bundle.ts";
import { contentPolicy, type Page, pageFile } from "./files.ts";

const FOLDER = new URL("./claim/", import.meta.url);

/** Where the holder of a claim link names an owner. The link's key is in the fragment and signs in the browser. */
export const claimPage: Page = {
  address: "/claim",
  // Nothing from other hosts: the page holds a key that whoever reads it could claim with.
  policy: contentPolicy(),
  async load() {
    const [html, style, script] = await Promise.all([
      readFile(new URL("index.html", FOLDER)),
      readFile(new URL("style.css", FOLDER)),
      pageScript("claim"),
    ]);
    return [pageFile("", html, "index.html"), pageFile("style.css", style), pageFile("claim.js", script)];
  },
};
