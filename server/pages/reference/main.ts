interface Globals {
  SwaggerUIBundle(options: Readonly<Record<string, unknown>>): unknown;
  readonly trustedTypes?: { createPolicy(name: string, rules: { createHTML(html: string): string }): unknown };
}
const { SwaggerUIBundle, trustedTypes } = globalThis as unknown as Globals;

/** Tags that Swagger UI makes of Markdown. Without attributes they run nothing. */
const OTHER_TAG = /<(?!\/?(?:p|code|pre|em|strong|ul|ol|li|br|h[1-6]|table|thead|tbody|tr|th|td|div)>)/g;
trustedTypes?.createPolicy("default", { createHTML: (html) => html.replaceAll(OTHER_TAG, "&lt;") });

/** Swagger UI has its dark colours under this class only. */
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
follow();
dark.addEventListener("change", follow);

/** Swagger UI for this server's document. A visitor's credentials stay in memory, and end with the page. */
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  filter: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  // The validator is on another host.
  validatorUrl: null,
});
