interface SwaggerUi {
  SwaggerUIBundle(options: Readonly<Record<string, unknown>>): unknown;
}

/** Swagger UI has its dark colours under this class only. */
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
follow();
dark.addEventListener("change", follow);

/** Swagger UI for this server's document. A visitor's credentials stay in memory, and end with the page. */
(globalThis as unknown as SwaggerUi).SwaggerUIBundle({
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
