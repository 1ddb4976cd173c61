import { z } from "zod";
import type { Hex } from "../../../core/index.ts";
import { CHECKSUM_WRONG, checksumHolds } from "../../../core/internal.ts";

/** An address in lower case, after checking its checksum. `asked` names the address and ends the sentence "Give …". */
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
  .regex(/^0x[0-9a-fA-F]{40}=https?:\/\/\S+$/, "Give each as <address>=<url of its service>, separated by commas.")
  .refine((text) => checksumHolds(text.slice(0, 42)), CHECKSUM_WRONG)
  .refine((text) => isPlainUrl(text.slice(43)), "Give each service by a whole URL without a user name or password.")
  .transform((text) => ({ address: text.slice(0, 42).toLowerCase() as Hex, url: text.slice(43) }));
