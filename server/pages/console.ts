import { readFile } from "node:fs/promises";
import type { Service } from "../service.ts";
import { pageScript } from "./bundle.ts";
import { contentPolicy, type Page, pageFile } from "./files.ts";

const FOLDER = new URL("./console/", import.meta.url);
const CHARTS = new URL("./uPlot.min.css", import.meta.resolve("uplot"));

/** The console of applications' teams and of the operator. It looks like the explorer, whose style it shares. */
export function consolePage({ engine }: Pick<Service, "engine">): Page {
  return {
    address: "/console",
    // Images of tokens are at their issuers' hosts; the page asks for them only when its reader wants them.
    policy: contentPolicy({ "img-src": "'self' https: data:" }),
    async load() {
      const [html, style, charts, script] = await Promise.all([
        readFile(new URL("index.html", FOLDER)),
        readFile(new URL("style.css", FOLDER)),
        readFile(CHARTS),
        pageScript("console"),
      ]);
      return [
        pageFile("", html, "index.html"),
        pageFile("style.css", Buffer.concat([charts, style])),
        pageFile("settings.json", JSON.stringify({ environment: engine.environment })),
        pageFile("console.js", script),
      ];
    },
  };
}
