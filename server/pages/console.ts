import { readFile } from "node:fs/promises";
import type { Service } from "../service.ts";
import { pageScript } from "./bundle.ts";
import { type Page, pageFile } from "./files.ts";

const FOLDER = new URL("./console/", import.meta.url);
const CHARTS = new URL("./uPlot.min.css", import.meta.resolve("uplot"));

/** Scripts and styles are this server's files, none inline, and only this server is asked. */
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

/** The console of applications' teams and of the operator. It looks like the explorer, whose style it shares. */
export function consolePage({ engine }: Pick<Service, "engine">): Page {
  return {
    address: "/console",
    policy: POLICY,
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
