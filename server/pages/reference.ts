import { readFile } from "node:fs/promises";
import { pageScript } from "./bundle.ts";
import { type Page, pageFile } from "./files.ts";

const FOLDER = new URL("./reference/", import.meta.url);
/** Two files of the Swagger UI package, served from here, so the page needs no other host. */
const SWAGGER = new URL("./static/", import.meta.resolve("@fastify/swagger-ui/package.json"));

/** Nothing from other hosts, no inline script. Swagger UI sets styles by script, and its arrows are data addresses. */
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

/** The interactive reference: this server's OpenAPI document, with requests to try. */
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
      // The newline ends the last comment of Swagger UI's file.
      pageFile("reference.js", Buffer.concat([swagger, Buffer.from("\n"), script])),
    ];
  },
};
