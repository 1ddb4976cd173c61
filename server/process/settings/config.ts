import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import type { z } from "zod";
import { type ErrorCode, MintmarkError } from "../../../core/basics.ts";
import { nearest } from "../../http/nearest.ts";
import { ALL_SETTINGS } from "./process-settings.ts";
import { type Config, isSecret, SETTINGS, settings } from "./settings.ts";

/** All missing or wrong settings, by name. Shows no values, because some are secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code = "validation_failed";
}

/** A keystore that cannot be opened. Its message names the file, and never the password. */
export class KeystoreError extends Error {
  override readonly name = "KeystoreError";
  readonly code = "keystore_invalid";
}

/** Commands read these besides settings. A shell often exports them for all commands. */
const OF_COMMANDS =
  /^MINTMARK_(?:CONFIG|URL|API_KEY|(?:OPERATOR|REGISTRAR|DEPLOYER|MEMBER|ISSUER|WATCHER|RELAY|OWNER|PAYER|SESSION)_(?:KEY|KEYSTORE|PASSWORD_FILE|SIGNER))$/;

type Texts = Readonly<Record<string, string | undefined>>;

/**
 * The server's settings, from environment and file. Throws `ConfigError` with all faults, unknown
 * names too.
 */
export function readConfig(environment: Texts): Config {
  return readSettings(settings, environment, Object.keys(SETTINGS));
}

/**
 * The settings of one process, from the environment and the file; see `readConfig`.
 *
 * @param known - all known names, others are refused; absent for commands, whose environment serves
 *   other processes too
 * @param flags - the flags of a command that gave settings, by their names; faults name these
 */
export function readSettings<S extends z.ZodType>(
  schema: S,
  environment: Texts,
  known?: readonly string[],
  flags: Texts = {},
): z.output<S> {
  const file = readConfigFile(environment.MINTMARK_CONFIG);
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, text]) => text !== undefined),
  );
  const texts: Texts = { ...file.texts, ...given };
  const result = schema.safeParse(texts);
  const issues = result.error?.issues ?? [];
  const unset = issues.filter(
    ({ path: [name], code }) => code !== "custom" && texts[String(name)] === undefined,
  );
  // Two or more of them are one line, because many sentences would hide the next step.
  const together = unset.length > 1 ? unset : [];
  const names = together.map(({ path: [name] }) => flags[String(name)] ?? String(name)).join(", ");
  const wrong = issues
    .filter((issue) => !together.includes(issue))
    .map(({ path: [name], message }) => {
      const place = String(name);
      const from =
        environment[place] === undefined && file.texts[place] !== undefined
          ? ` (${fieldOf(place)} in the file)`
          : "";
      return `${flags[place] ?? place}${from}: ${stateOf(texts[place])}${message}`;
    });
  const missing = names === "" ? [] : [`missing: ${names}; see --help`];
  const problems = [
    ...file.problems,
    ...missing,
    ...wrong,
    ...unknownVariables(environment, known),
  ];
  if (!result.success || problems.length > 0) throw new ConfigError(problems.join("\n"));
  return result.data;
}

/** Describes a refused text, before the sentence that says what to give. */
function stateOf(text: string | undefined): string {
  if (text === undefined) return "missing. ";
  if (text === "") return "empty. Remove it, or give a value. ";
  return /^wss?:/i.test(text) ? "a WebSocket's address; only HTTP is spoken. " : "";
}

function unknownVariables(environment: Texts, known: readonly string[] | undefined): string[] {
  if (known === undefined) return [];
  return Object.keys(environment)
    .filter(
      (name) => name.startsWith("MINTMARK_") && !(name in ALL_SETTINGS) && !OF_COMMANDS.test(name),
    )
    .map((name) => `${name}: no such setting${hint(name, known)}`);
}

/** The field of a variable: `chainId` for `MINTMARK_CHAIN_ID`. */
function fieldOf(variable: string): string {
  const [first = "", ...rest] = variable.replace("MINTMARK_", "").toLowerCase().split("_");
  return first + rest.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("");
}

/**
 * Reads a JSON object of texts, whole numbers, or arrays of texts. Lists all faults instead of
 * throwing.
 */
export function readConfigFile(path: string | undefined): {
  readonly texts: Texts;
  readonly problems: readonly string[];
} {
  if (path === undefined) return { texts: {}, problems: [] };
  const fail = (detail: string) => ({ texts: {}, problems: [`MINTMARK_CONFIG: ${detail}`] });
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
    else if (isSecret(variable))
      problems.push(`${field} in ${path}: is secret; give ${variable} in the environment`);
    else if (text === undefined)
      problems.push(
        `${field} in ${path}: Give a text, a whole number, or an array of texts or objects.`,
      );
    else texts[variable] = text;
  }
  return { texts, problems };
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  if (!Array.isArray(value)) return undefined;
  if (value.every((item) => typeof item === "string")) return value.join(",");
  return value.every((item) => typeof item === "object" && item !== null)
    ? JSON.stringify(value)
    : undefined;
}

/** `; did you mean …?` for a known name with at most two typing errors. */
function hint(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === null ? "" : `; did you mean ${near}?`;
}

const LOOK_AT: Partial<Record<ErrorCode, string>> = {
  l1_failed: "MINTMARK_RPC_URL, MINTMARK_CHAIN_ID and MINTMARK_CONTRACT must be of one chain",
  store_missing: "check MINTMARK_STORE",
  store_locked: "check MINTMARK_STORE, or stop the other process",
};

const BELONGS =
  "a store belongs permanently to one environment, chain and contract: check MINTMARK_STORE, and MINTMARK_ENVIRONMENT, MINTMARK_CHAIN_ID, MINTMARK_CONTRACT";

/** The reason why a server did not start, with the settings to check. May still contain secrets. */
export function startupError(error: unknown): string {
  if (error instanceof ConfigError || error instanceof KeystoreError) return error.message;
  if (error instanceof MintmarkError) {
    const isOfSettings = error.code === "store_mismatch" && error.issues.length > 0;
    const look = isOfSettings ? BELONGS : LOOK_AT[error.code];
    return look === undefined ? error.message : `${error.message}\n${look}`;
  }
  return listenFailure(error) ?? inspect(error);
}

/** Why a process cannot listen; null for another error. */
export function listenFailure(error: unknown): string | null {
  const { syscall, code, message, ...place } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
  };
  if (syscall !== "listen") return null;
  if (code !== "EADDRINUSE") return `MINTMARK_HOST, MINTMARK_PORT: ${message}`;
  return `another process listens on ${place.address}:${place.port}: stop it, or choose another MINTMARK_PORT`;
}
