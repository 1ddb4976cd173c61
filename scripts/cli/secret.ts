import { UsageError } from "./exit-codes.ts";

/** A secret from the environment, or from standard input when the command was given `--key-stdin`; never from an argument. */
export async function secret(variable: string, fromStdin: boolean): Promise<string | undefined> {
  if (!fromStdin) return process.env[variable];
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += chunk;
    if (text.length > 1024) throw new UsageError("standard input holds more than a key");
  }
  return text.trim();
}

/** As `secret`, for what cannot be done without. */
export async function requiredSecret(variable: string, fromStdin: boolean): Promise<string> {
  const value = await secret(variable, fromStdin);
  if (value === undefined || value === "") throw new UsageError(`give the key: ${variable}, or --key-stdin`);
  return value;
}

/** An option, else a variable of the environment. */
export function setting(option: unknown, variable: string, what: string): string {
  const value = typeof option === "string" ? option : process.env[variable];
  if (value === undefined || value === "") throw new UsageError(`give ${what}, or ${variable}`);
  return value;
}
