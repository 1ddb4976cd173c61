import type { LocalAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { accountOf, keyIn } from "../../server/process/account.ts";
import { member } from "../../server/process/settings/member-setting.ts";
import { UsageError } from "./exit-codes.ts";

/** A secret from the environment, its keystore, or standard input with `--key-stdin`; never from an argument. */
export async function secret(variable: string, fromStdin: boolean): Promise<string | undefined> {
  const keystore = process.env[`${variable}STORE`];
  if (!fromStdin && keystore) return keyIn(keystore, process.env[variable.replace(/KEY$/, "PASSWORD_FILE")]);
  if (!fromStdin) return process.env[variable];
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += chunk;
    if (text.length > 1024) throw new UsageError("standard input contains more than a key");
  }
  return text.trim();
}

/** Like `secret`, for a secret that is required. */
export async function requiredSecret(variable: string, fromStdin: boolean): Promise<string> {
  const value = await secret(variable, fromStdin);
  if (value === undefined || value === "") throw new UsageError(`give the key: ${variable}, or --key-stdin`);
  return value;
}

/** The account of a process, and what its log must never contain. */
interface ProcessAccount {
  readonly account: LocalAccount;
  readonly secrets: readonly string[];
}

/**
 * The account that `MINTMARK_<party>_KEYSTORE`, `MINTMARK_<party>_SIGNER` or `MINTMARK_<party>_KEY` name, or the private
 * key on standard input if that is a pipe or a file. The key is never shown.
 */
export async function processAccount(party: string): Promise<ProcessAccount> {
  const variable = `MINTMARK_${party}_KEY`;
  // An empty variable counts as unset, as in a server's settings.
  const [inEnvironment, keystore, passwordFile, service] = ["KEY", "KEYSTORE", "PASSWORD_FILE", "SIGNER"].map(
    (name) => process.env[`MINTMARK_${party}_${name}`] || undefined,
  );
  const sources = [inEnvironment, keystore, service].filter((source) => source !== undefined);
  if (sources.length > 1)
    throw new UsageError(`give one of ${variable}, ${variable}STORE and MINTMARK_${party}_SIGNER`);
  if (keystore !== undefined || service !== undefined) {
    const signer = service === undefined ? undefined : member.safeParse(service).data;
    if (service !== undefined && signer === undefined)
      throw new UsageError(`MINTMARK_${party}_SIGNER: give it as <address>=<url of its service>`);
    const account = await accountOf({ keystore, passwordFile, signer });
    if (account !== undefined) return { account, secrets: [] };
  }
  const given = inEnvironment ?? (await secret(variable, !process.stdin.isTTY));
  if (given === undefined || given === "") {
    throw new UsageError(`set ${variable} to the private key, or give it on standard input`);
  }
  if (!/^0x[0-9a-fA-F]{64}$/.test(given)) {
    throw new UsageError(`${variable}: not a private key (0x and 64 hex digits)`);
  }
  return { account: privateKeyToAccount(given as `0x${string}`), secrets: [given] };
}

/** An option, or a variable of the environment. */
export function setting(option: unknown, variable: string, what: string): string {
  const value = typeof option === "string" ? option : process.env[variable];
  if (value === undefined || value === "") throw new UsageError(`give ${what}, or ${variable}`);
  return value;
}
