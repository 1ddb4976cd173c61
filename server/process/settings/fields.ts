import { z } from "zod";
import { CHECKSUM_WRONG, checksumHolds, type Hex } from "../../../core/basics.ts";

/** Fields of settings, which come as text. `asked` ends a message, or is one. */

export const text = z.string().min(1);

export function described<S extends Readonly<Record<string, z.ZodType>>>(
  settings: S,
  about: Readonly<Record<keyof S, string>>,
): S {
  return Object.fromEntries(
    Object.entries(settings).map(([name, schema]) => [name, schema.describe(about[name] ?? "")]),
  ) as unknown as S;
}

/** A whole number of at most nine digits. */
export const count = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "Give a whole number.")
    .transform(Number)
    .refine((value) => value >= least && value <= most, `Give a number from ${least} to ${most}.`);

/** A whole number of any size, in the digits of a pattern. */
export const whole = (pattern: RegExp, asked: string) =>
  z.string(asked).regex(pattern, asked).transform(BigInt);

export const url = (what: string) => z.url({ protocol: /^https?$/, error: `Give ${what}.` });

export const privateKey = (asked: string) =>
  z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, `${asked}: 0x and 64 hex digits.`)
    .transform((key) => key as Hex);

/** Values with commas between; by default none. */
export const listOf = <Z extends z.ZodType<unknown, string>>(
  element: Z,
  most = Number.MAX_SAFE_INTEGER,
) =>
  z
    .string()
    .transform((list) => list.split(",").map((part) => part.trim()))
    .pipe(z.array(element).max(most))
    .default([]);

export const json = (read: (given: string) => string, asked: string) =>
  z.string().transform((given, context) => {
    try {
      return JSON.parse(read(given)) as unknown;
    } catch {
      context.addIssue({ code: "custom", message: asked });
      return z.NEVER;
    }
  });

/**
 * An address in lower case, after checking its checksum. `asked` names the address and ends the
 * sentence "Give …".
 */
export const address = (asked: string) =>
  z
    .string(`Give ${asked}.`)
    .regex(/^0x[0-9a-fA-F]{40}$/, `Give ${asked}.`)
    .refine(checksumHolds, CHECKSUM_WRONG)
    .transform((text) => text.toLowerCase() as Hex);

/** Requests carry no credentials of a URL. */
function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === "" && password === "";
}

/** `0x…=http://…`: the address of a committee member or an issuer, and its service. */
export const member = z
  .string()
  .regex(
    /^0x[0-9a-fA-F]{40}=https?:\/\/\S+$/,
    "Give each as <address>=<url of its service>, separated by commas.",
  )
  .refine((text) => checksumHolds(text.slice(0, 42)), CHECKSUM_WRONG)
  .refine(
    (text) => isPlainUrl(text.slice(43)),
    "Give each service by a whole URL without a user name or password.",
  )
  .transform((text) => ({ address: text.slice(0, 42).toLowerCase() as Hex, url: text.slice(43) }));
