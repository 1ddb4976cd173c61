import { text } from "node:stream/consumers";
import { z } from "zod";

/** An address, in lower case. */
export const addressVariable = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "not an address")
  .transform((value) => value.toLowerCase() as `0x${string}`);
export const integerVariable = z.string().regex(/^\d{1,15}$/, "not a whole number");
export const urlsVariable = z
  .string()
  .transform((list) => list.split(",").filter((url) => url !== ""))
  .pipe(z.array(z.url()));

/** Committee members as `<address>=<url of the service>`, with commas between. */
export const membersVariable = z
  .string()
  .transform((list) => list.split(",").map((member) => member.trim()))
  .pipe(z.array(z.string().regex(/^0x[0-9a-fA-F]{40}=https?:\/\/\S+$/, "not <address>=<url>")))
  .transform((list) =>
    list.map((member) => ({ address: member.slice(0, 42).toLowerCase() as `0x${string}`, url: member.slice(43) })),
  );

/** What a process reads of its environment. Throws with the names and reasons of what is missing or wrong; values may be secret. */
export function readEnvironment<S extends z.ZodType>(schema: S, usage: string): z.output<S> {
  const parsed = schema.safeParse(process.env);
  if (parsed.success) return parsed.data;
  const reasons = parsed.error.issues.map(({ path: [name, ...inner], message }) => {
    if (process.env[String(name)] === undefined) return `  ${String(name)} is missing`;
    return `  ${[name, ...inner].join(".")}: ${message}`;
  });
  throw new Error(`set in the environment what is missing or wrong:\n${reasons.join("\n")}\n${usage}`);
}

const PRIVATE_KEY = /^0x[0-9a-fA-F]{64}$/;

/** A private key from the variable, or from standard input when that is a pipe or a file. It is never shown. */
export async function readPrivateKey(variable: string): Promise<`0x${string}`> {
  const given = process.env[variable] ?? (process.stdin.isTTY ? undefined : (await text(process.stdin)).trim());
  if (given === undefined || given === "") {
    throw new Error(`set ${variable} to the private key, or give it on standard input`);
  }
  if (!PRIVATE_KEY.test(given)) throw new Error(`${variable}: not a private key (0x and 64 hex digits)`);
  return given as `0x${string}`;
}
