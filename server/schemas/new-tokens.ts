import { z } from "zod";
import { isVisible, NOT_HIDDEN } from "../../core/internal.ts";
import { asset } from "./assets.ts";
import * as s from "./common.ts";

const text = (max: number) =>
  z
    .string()
    .min(1, "Give at least one character.")
    .max(max, `Give at most ${max} characters.`)
    .refine((given) => isVisible(given), `Give text ${NOT_HIDDEN}.`);

export const newTokenBody = s.requestComponent("NewToken", {
  standard: s.standard,
  name: text(200),
  symbol: text(50),
  admin: s.address.describe("Who administers the token: its metadata, its royalty, its minter."),
  cap: z
    .string()
    .regex(/^\d{1,20}(?:\.\d{1,9})?$/, "Give whole tokens, such as 1000000.")
    .optional()
    .describe("ERC-20: the most whole tokens that can ever exist; default no limit."),
  uri: text(2_000)
    .optional()
    .describe("What stands before each id (ERC-721), or a template with `{id}` (ERC-1155). Default: this server."),
  royalty: z
    .strictObject({
      receiver: s.address,
      percent: z.string().regex(/^(?:100|\d{1,2}(?:\.\d{1,2})?)$/, "Give percent from 0 to 100, such as 2.5."),
    })
    .optional()
    .describe("ERC-721 and ERC-1155: what marketplaces ask of each sale (ERC-2981)."),
  transferable: z.boolean().optional().describe("Whether owners can give vaults away; default false."),
});

export const tokenCreation = s.responseComponent("TokenCreation", {
  assetId: s.outUuid.describe("The id that the asset will have."),
  chainId: s.outDecimal,
  data: s.outHex.describe("Input of the transaction that creates the token. It has no receiver."),
});

const call = z.strictObject({ to: s.outAddress, data: s.outHex });

export const tokenProgress = s.responseComponent("TokenProgress", {
  status: z
    .enum(["sent", "created", "registered", "added"])
    .describe(
      "`sent`: the chain has not mined it. `created`: `lock` and `register` are missing. `registered`: not final yet. `added`: the asset is here.",
    ),
  contractAddress: s.outAddress.nullable(),
  lock: call
    .extend({ from: s.outAddress })
    .nullable()
    .describe("Makes the settlement contract the only minter for ever. From the admin."),
  register: call.nullable().describe("Puts the token into the settlement contract's registry."),
  asset: asset.nullable(),
});
