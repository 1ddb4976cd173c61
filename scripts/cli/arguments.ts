import type { LocalAccount } from "viem";
import { MintmarkError } from "../../core/errors.ts";
import { MAX_AMOUNT } from "../../core/model.ts";
import { quantizedAmount, type Units } from "../../core/protocol/quantized.ts";
import { CHECKSUM_WRONG, checksumHolds } from "../../core/validate.ts";
import { createClient } from "../../server/client/index.ts";
import { member } from "../../server/process/settings/fields.ts";
import { secretParts } from "../../server/process/settings/node-secrets.ts";
import { instant } from "../../server/routes/api/fields.ts";
import type { Options } from "./command.ts";
import { UsageError } from "./exit.ts";

/** The help of commands that name an asset shows this. */
export const EXAMPLE_ASSET = "01a1fd1b-bf94-750b-a029-0cbe844c1620";
/** Seconds of a duration's unit. */
const UNITS: Readonly<Record<string, bigint>> = { m: 60n, h: 3_600n, d: 86_400n };

/** An address in lower case, not the zero address. `name` is the argument's, for the error. */
export function addressOf(text: unknown, name: string, advice = "give an address"): `0x${string}` {
  if (typeof text !== "string" || !/^0x(?!0{40}$)[0-9a-fA-F]{40}$/.test(text))
    throw new UsageError(`${name}: ${advice}`);
  if (!checksumHolds(text)) throw new UsageError(`${name}: ${CHECKSUM_WRONG}`);
  return text.toLowerCase() as `0x${string}`;
}

/** 1 to 2^63 - 1 quantized units. */
export function unitsOf(text: unknown, name: string): bigint {
  if (!/^[1-9]\d{0,18}$/.test(String(text)) || BigInt(String(text)) > MAX_AMOUNT)
    throw new UsageError(`${name}: give a whole number of units`);
  return BigInt(String(text));
}

/** Whole tokens, such as `12.5`, in quantized units. */
export function tokensOf(text: unknown, name: string, units: Units): bigint {
  try {
    return quantizedAmount(String(text), units);
  } catch (error) {
    throw error instanceof MintmarkError ? new UsageError(`${name} ${error.message}`) : error;
  }
}

/**
 * The units that `--amount` and `--units` name; undefined without both. `whole` tells what a whole
 * token has.
 */
export async function partOf(
  { amount, units }: Options,
  whole: () => Promise<Units>,
): Promise<bigint | undefined> {
  if (amount !== undefined && units !== undefined)
    throw new UsageError("give --amount or --units, not both");
  if (units !== undefined) return unitsOf(units, "--units");
  return amount === undefined ? undefined : tokensOf(amount, "--amount", await whole());
}

/**
 * A time, such as `2026-12-01T00:00:00Z`, or a duration from now, such as `12h`, in seconds since
 * 1970.
 */
export function secondsOf(text: unknown, name: string): bigint {
  const [, count, unit = ""] = /^([1-9]\d{0,4})([mhd])$/.exec(String(text)) ?? [];
  if (count !== undefined) return nowInSeconds() + BigInt(count) * (UNITS[unit] ?? 0n);
  const time = instant.safeParse(text);
  if (time.success) return BigInt(Math.floor(time.data / 1000));
  throw new UsageError(
    `${name}: give a time such as 2026-12-01T00:00:00Z, or a duration such as 90m, 12h or 7d`,
  );
}

export function nowInSeconds(): bigint {
  return BigInt(Math.floor(Date.now() / 1000));
}

/**
 * A secret from the environment, its keystore, or standard input with `--key-stdin`; never from an
 * argument.
 */
export async function secret(variable: string, fromStdin: boolean): Promise<string | undefined> {
  const keystore = process.env[`${variable}STORE`];
  if (!fromStdin && keystore)
    return (await import("../../server/process/account.ts")).keyIn(
      keystore,
      process.env[variable.replace(/KEY$/, "PASSWORD_FILE")],
    );
  if (!fromStdin) return process.env[variable];
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += chunk;
    if (text.length > 1024) throw new UsageError("standard input contains more than a key");
  }
  return text.trim();
}

export async function requiredSecret(variable: string, fromStdin: boolean): Promise<string> {
  const value = await secret(variable, fromStdin);
  if (value === undefined || value === "")
    throw new UsageError(`give the key: ${variable}, or --key-stdin`);
  return value;
}

/**
 * The account that `MINTMARK_<party>_KEYSTORE`, `MINTMARK_<party>_SIGNER` or `MINTMARK_<party>_KEY`
 * name, or the private key on standard input if that is a pipe or a file, and what the process's
 * log must never contain.
 */
export async function processAccount(
  party: string,
): Promise<{ account: LocalAccount; secrets: readonly string[] }> {
  const variable = `MINTMARK_${party}_KEY`;
  // An empty variable counts as unset, as in a server's settings.
  const [inEnvironment, keystore, passwordFile, service] = [
    "KEY",
    "KEYSTORE",
    "PASSWORD_FILE",
    "SIGNER",
  ].map((name) => process.env[`MINTMARK_${party}_${name}`] || undefined);
  const sources = [inEnvironment, keystore, service].filter((source) => source !== undefined);
  if (sources.length > 1)
    throw new UsageError(`give one of ${variable}, ${variable}STORE and MINTMARK_${party}_SIGNER`);
  const signer = service === undefined ? undefined : member.safeParse(service).data;
  if (service !== undefined && signer === undefined)
    throw new UsageError(`MINTMARK_${party}_SIGNER: give it as <address>=<url of its service>`);
  const { accountOf } = await import("../../server/process/account.ts");
  const account = await accountOf({ keystore, passwordFile, signer });
  if (account !== undefined) return { account, secrets: secretParts(signer?.url) };
  const given = inEnvironment ?? (await secret(variable, !process.stdin.isTTY));
  if (!given)
    throw new UsageError(`set ${variable} to the private key, or give it on standard input`);
  if (!/^0x[0-9a-fA-F]{64}$/.test(given))
    throw new UsageError(`${variable}: not a private key (0x and 64 hex digits)`);
  const key = given as `0x${string}`;
  const { privateKeyToAccount } = await import("viem/accounts");
  return { account: privateKeyToAccount(key), secrets: [given] };
}

export function setting(option: unknown, variable: string, what: string): string {
  const value = typeof option === "string" ? option : process.env[variable];
  if (value === undefined || value === "") throw new UsageError(`give ${what}, or ${variable}`);
  return value;
}

/** The options of a command that asks a server with an application's key. */
export const OVER_HTTP = {
  "--url <url>": "the server's address (MINTMARK_URL)",
  "--key-stdin": "read the API key from standard input (else MINTMARK_API_KEY)",
};

export const addressOfServer = (url: unknown) =>
  setting(url, "MINTMARK_URL", "the server's address: --url");

/** A client with the application's key, for {@link OVER_HTTP}. */
export async function clientOf({ url, keyStdin }: Options) {
  const baseUrl = addressOfServer(url);
  const apiKey = await requiredSecret("MINTMARK_API_KEY", keyStdin === true);
  return { baseUrl, apiKey, client: createClient({ baseUrl, apiKey }) };
}

export function textOf(option: Options[string]): string | undefined {
  return typeof option === "string" ? option : undefined;
}
