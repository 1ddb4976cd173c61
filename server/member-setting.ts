import { z } from "zod";
import type { Hex } from "../core/index.ts";

/** `0x…=http://…`: a committee member's address and its service. */
export const member = z
  .string()
  .regex(
    /^0x[0-9a-fA-F]{40}=https?:\/\/\S+$/,
    "Give each member as <address>=<url of its service>, with commas between.",
  )
  .transform((text) => ({ address: text.slice(0, 42).toLowerCase() as Hex, url: text.slice(43) }));
