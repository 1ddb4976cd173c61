import { MintmarkError } from "../errors.ts";
import type { Environment } from "../model.ts";
import { EVENT_TYPES } from "../store/event-record.ts";

const MAX_URL = 2_000;

/** The address in its canonical form. Where it leads is looked at when it is connected to. */
export function requireUrl(environment: Environment, url: string): string {
  const parsed = typeof url === "string" && url.length <= MAX_URL && URL.canParse(url) ? new URL(url) : null;
  const allowed = environment === "live" ? ["https:"] : ["https:", "http:"];
  if (!parsed || !allowed.includes(parsed.protocol) || parsed.username || parsed.password || parsed.hash) {
    const schemes = allowed.map((scheme) => `${scheme}//`).join(" or ");
    throw invalid("/url", `Give an address with ${schemes}, without credentials or fragment.`);
  }
  return parsed.href;
}

/** The types, each once. */
export function requireTypes(types: readonly string[]): string[] {
  const unknown = types.findIndex((type) => !EVENT_TYPES.has(type));
  if (unknown >= 0) throw invalid(`/types/${unknown}`, "No such type of event; docs/api.md lists them.");
  return [...new Set(types)];
}

function invalid(pointer: string, detail: string): MintmarkError {
  return new MintmarkError("validation_failed", detail, { issues: [{ pointer, code: "validation_failed", detail }] });
}
