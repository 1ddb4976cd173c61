import { UsageError } from "./exit-codes.ts";

/** A secret from the environment, or from standard input with `--key-stdin`; never from an argument. */
export async function secret(variable: string, fromStdin: boolean): Promise<string | undefined> {
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

/** A private key from the variable, or from standard input if that is a pipe or a file. It is never shown. */
export async function privateKey(variable: string): Promise<`0x${string}`> {
  const given = process.env[variable] ?? (await secret(variable, !process.stdin.isTTY));
  if (given === undefined || given === "") {
    throw new UsageError(`set ${variable} to the private key, or give it on standard input`);
  }
  if (!/^0x[0-9a-fA-F]{64}$/.test(given)) {
    throw new UsageError(`${variable}: not a private key (0x and 64 hex digits)`);
  }
  return given as `0x${string}`;
}

/** An option, or a variable of the environment. */
export function setting(option: unknown, variable: string, what: string): string {
  const value = typeof option === "string" ? option : process.env[variable];
  if (value === undefined || value === "") throw new UsageError(`give ${what}, or ${variable}`);
  return value;
}
