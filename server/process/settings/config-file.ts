import { readFileSync } from "node:fs";
import { ALL_SETTINGS } from "./process-settings.ts";
import { isSecret } from "./settings.ts";

interface ConfigFile {
  readonly texts: Readonly<Record<string, string>>;
  readonly problems: readonly string[];
}

export const NO_FILE: ConfigFile = { texts: {}, problems: [] };

/** The field of a variable: `chainId` for `MINTMARK_CHAIN_ID`. */
export function fieldOf(variable: string): string {
  const [first = "", ...rest] = variable.replace("MINTMARK_", "").toLowerCase().split("_");
  return first + rest.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("");
}

/** Reads a JSON object of texts, whole numbers, or arrays of texts. Lists all faults instead of throwing. */
export function readConfigFile(path: string): ConfigFile {
  const fail = (detail: string): ConfigFile => ({ texts: {}, problems: [`MINTMARK_CONFIG: ${detail}`] });
  let fields: unknown;
  try {
    fields = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    // A parser's message quotes the text, which could be secret.
    return fail(error instanceof SyntaxError ? `${path} is not JSON.` : `${path} cannot be read.`);
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields))
    return fail(`${path} must hold an object.`);
  const variables = new Map(Object.keys(ALL_SETTINGS).map((name) => [fieldOf(name), name]));
  const texts: Record<string, string> = {};
  const problems: string[] = [];
  for (const [field, value] of Object.entries(fields)) {
    const variable = variables.get(field);
    const text = textOf(value);
    if (variable === undefined)
      problems.push(`${field} in ${path}: no such setting${hint(field, [...variables.keys()])}`);
    else if (isSecret(variable)) problems.push(`${field} in ${path}: is secret; give ${variable} in the environment`);
    else if (text === undefined)
      problems.push(`${field} in ${path}: Give a text, a whole number, or an array of texts or objects.`);
    else texts[variable] = text;
  }
  return { texts, problems };
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  if (!Array.isArray(value)) return undefined;
  if (value.every((item) => typeof item === "string")) return value.join(",");
  return value.every((item) => typeof item === "object" && item !== null) ? JSON.stringify(value) : undefined;
}

/** `; did you mean …?` for a known name with at most two typing errors. */
export function hint(name: string, known: readonly string[]): string {
  const near = known.map((candidate) => [distance(name, candidate), candidate] as const).sort(([a], [b]) => a - b)[0];
  return near !== undefined && near[0] <= 2 ? `; did you mean ${near[1]}?` : "";
}

/** The Levenshtein distance of two words: insertions, deletions and changes of letters. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const change = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, change));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
