import type { z } from "zod";
import { fieldOf, hint, NO_FILE, readConfigFile } from "./config-file.ts";
import { ALL_SETTINGS } from "./process-settings.ts";
import { type Config, SETTINGS, settings, storeSettings } from "./settings.ts";

/** All missing or wrong settings, by name. Shows no values, because some are secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code = "validation_failed";
}

/** What commands read besides settings. A shell often exports it for all of them. */
const OF_COMMANDS =
  /^MINTMARK_(?:CONFIG|URL|API_KEY|(?:OPERATOR|REGISTRAR|DEPLOYER|MEMBER|ISSUER|WATCHER|RELAY|OWNER|PAYER|SESSION)_(?:KEY|KEYSTORE|PASSWORD_FILE|SIGNER))$/;

type Texts = Readonly<Record<string, string | undefined>>;

/**
 * The process's settings, from the environment and the file. Throws `ConfigError` with all faults, unknown names too.
 */
export function readConfig(environment: Texts): Config {
  return readSettings(settings, environment, Object.keys(SETTINGS));
}

/** Like `readConfig`, but only the settings that open a store, for the operator's commands. */
export function readStoreConfig(environment: Texts): z.output<typeof storeSettings> {
  return readSettings(storeSettings, environment);
}

/**
 * The settings of one process, from the environment and the file; see `readConfig`.
 *
 * @param known - all known names, others are refused; absent for commands, whose environment serves other processes too
 * @param flags - the flags of a command that gave settings, by their names; faults name these
 */
export function readSettings<S extends z.ZodType>(
  schema: S,
  environment: Texts,
  known?: readonly string[],
  flags: Texts = {},
): z.output<S> {
  const file = environment.MINTMARK_CONFIG === undefined ? NO_FILE : readConfigFile(environment.MINTMARK_CONFIG);
  const texts = { ...file.texts, ...given(environment) };
  const result = schema.safeParse(texts);
  const issues = result.error?.issues ?? [];
  const unset = issues.filter(({ path: [name], code }) => code !== "custom" && texts[String(name)] === undefined);
  // Two or more of them are one line, because many sentences would hide the next step.
  const together = unset.length > 1 ? unset : [];
  const names = together.map(({ path: [name] }) => flags[String(name)] ?? String(name)).join(", ");
  const wrong = issues
    .filter((issue) => !together.includes(issue))
    .map(({ path: [name], message }) => {
      const place = String(name);
      const from =
        environment[place] === undefined && file.texts[place] !== undefined ? ` (${fieldOf(place)} in the file)` : "";
      return `${flags[place] ?? place}${from}: ${texts[place] === undefined ? "missing. " : ""}${message}`;
    });
  const missing = names === "" ? [] : [`missing: ${names}; see --help`];
  const problems = [...file.problems, ...missing, ...wrong, ...unknownVariables(environment, known)];
  if (!result.success || problems.length > 0) throw new ConfigError(problems.join("\n"));
  return result.data;
}

function given(environment: Texts): Texts {
  return Object.fromEntries(Object.entries(environment).filter(([, text]) => text !== undefined));
}

function unknownVariables(environment: Texts, known: readonly string[] | undefined): string[] {
  if (known === undefined) return [];
  return Object.keys(environment)
    .filter((name) => name.startsWith("MINTMARK_") && !(name in ALL_SETTINGS) && !OF_COMMANDS.test(name))
    .map((name) => `${name}: no such setting${hint(name, known)}`);
}
