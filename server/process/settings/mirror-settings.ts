import { z } from "zod";
import { MAX_MEMBERS } from "../../../core/protocol/index.ts";
import { address, member } from "./member-setting.ts";

const integer = (meaning: string, digits: number) =>
  z.union([z.string().regex(new RegExp(`^\\d{1,${digits}}$`)), z.int().min(0)], `Give ${meaning}.`).transform(BigInt);

/** A mirror of the state on another chain, and the settings for that chain. */
const mirror = z.strictObject({
  chainId: integer("the chain's id", 19),
  contract: address("the address of the StateMirror contract"),
  rpcUrl: z.url({ protocol: /^https?$/, error: "Give the address of the chain's RPC." }),
  fromBlock: integer("the block of the mirror's deployment", 18).default(0n),
  confirmations: integer("a number of blocks", 6).optional(),
  maxFeePerGas: integer("an amount of wei", 30).optional(),
  /** Its committee, unless it is the state's own. */
  members: z.array(member).max(MAX_MEMBERS).optional(),
  threshold: z.int().min(1).max(MAX_MEMBERS).optional(),
});

export type MirrorSetting = z.output<typeof mirror>;

/** JSON, because each has several settings. */
export const mirrorSettings = z
  .string()
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      context.addIssue({ code: "custom", message: "Give a JSON array of mirrors." });
      return z.NEVER;
    }
  })
  .pipe(z.array(mirror, "Give a JSON array of mirrors.").max(64))
  .refine((given) => new Set(given.map(({ chainId }) => chainId)).size === given.length, "Give one mirror per chain.")
  .refine(
    (given) => given.every(({ members, threshold }) => (members === undefined) === (threshold === undefined)),
    "Give members and threshold of a mirror together, or neither: then it has the state's committee.",
  );
