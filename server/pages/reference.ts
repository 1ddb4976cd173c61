import { readFile } from "node:fs/promises";
import { pageScript } from "./bundle.ts";
import { type Page, pageFile } from "./files.ts";

const FOLDER = new URL("./reference/", import.meta.url);
/** Swagger UI as the package brings it: two files, served from here, so that the page works without any other host. */
const SWAGGER = new URL("./static/", import.meta.resolve("@fastify/swagger-ui/package.json"));

/** No other hosts, no inline script. Swagger UI sets styles by script and draws arrows from data addresses. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The interactive reference: this server's own OpenAPI document, with requests that can be tried. */
export const referencePage: Page = {
  address: "/docs",
  policy: POLICY,
  async load() {
    const [html, style, swaggerStyle, swagger, script] = await Promise.all([
      readFile(new URL("index.html", FOLDER)),
      readFile(new URL("style.css", FOLDER)),
      readFile(new URL("swagger-ui.css", SWAGGER)),
      readFile(new URL("swagger-ui-bundle.js", SWAGGER)),
      pageScript("reference"),
    ]);
    return [
      pageFile("", html, "index.html"),
      pageFile("style.css", style),
      pageFile("swagger-ui.css", swaggerStyle),
      // The newline ends the comment that Swagger UI's file ends with.
      pageFile("reference.js", Buffer.concat([swagger, Buffer.from("\n"), script])),
    ];
  },
};
