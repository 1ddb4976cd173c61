import { createHash } from "node:crypto";

/**
 * Content-Security-Policy of a page whose scripts and styles are this server's files, none inline,
 * and which asks this server alone. Scripts write no text as HTML, unless a policy of
 * `trusted-types` has cleaned it.
 *
 * @param sources - in place of the page's own, by directive
 */
export function contentPolicy(sources: Readonly<Record<string, string>> = {}): string {
  const directives = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
    ...sources,
  };
  return Object.entries(directives)
    .map((directive) => directive.join(" "))
    .join("; ");
}

/** A script or a style of a page, as a policy names it. */
export function hashSource(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
