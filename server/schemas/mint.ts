import { z } from "zod";
import { STATUSES } from "../../core/index.ts";
import {
  flag,
  mode,
  outAddress,
  outDecimal,
  outHash,
  outUuid,
  reference,
  requestComponent,
  responseComponent,
} from "./common.ts";
import { vault } from "./vaults.ts";

/** The body of a mint, for the documentation: the core itself validates it, and reports every bad entry at once. */
export const mintBody = requestComponent(
  "MintRequest",
  z.strictObject({
    users: z
      .array(
        z.strictObject({
          userId: z.guid().optional().meta({ description: "A user of the application." }),
          ownerAddress: z
            .string()
            .regex(/^0x[0-9a-fA-F]{40}$/)
            .optional()
            .meta({
              description:
                "In the place of `userId`: the L1 address to mint to. It is minted for the address's first user, who is created with the mint if there is none; that takes the scope `users`.",
            }),
          mints: z
            .array(
              z.strictObject({
                assetId: z.guid(),
                tokenId: z
                  .union([z.string().regex(/^(?:0|[1-9]\d{0,77})$/), z.int().min(0)])
                  .optional()
                  .meta({
                    description:
                      "Of ERC-721 and ERC-1155: the token's id, below 2^256, as a decimal string; an integer up to 2^53 - 1 is taken too. Absent for ERC-20.",
                  }),
                quantity: z.int().min(1).optional().meta({
                  description:
                    "Of an ERC-721 asset with `nextTokenId`, in the place of `tokenId`: mints so many tokens of the next ids, each counted as an entry; 1 when absent. The answer names them.",
                }),
                mintingBlob: z.string().optional().meta({
                  description:
                    'Names the token in the place of `tokenId`: hex of the identifier text, with or without 0x, 1 to 255 bytes; `""` for ERC-20. Bytes that are no text need an asset with `rawBlobs`.',
                }),
                amount: z
                  .union([z.int().min(1), z.string().regex(/^[1-9]\d{0,18}$/)])
                  .optional()
                  .meta({
                    description:
                      "Units of `quantum` base units each, 1 to 2^63 - 1. An integer, or a decimal string, which is needed from 2^53 on: a number that would be rounded is refused. Absent or 1 for ERC-721.",
                  }),
                amountDecimal: z
                  .string()
                  .regex(/^\d+(\.\d+)?$/)
                  .optional()
                  .meta({
                    description:
                      'Of ERC-20, in the place of `amount`: the token\'s decimal amount, such as "12.5". It is `amount * quantum / 10^decimals`, must be a whole number of units, and is never rounded.',
                  }),
                reference: reference.optional().meta({
                  description: "Your own name for the mint, such as an order's number; need not be unique.",
                }),
                dataAvailabilityMode: mode
                  .optional()
                  .meta({ description: "May be left out when the asset or the application has a default." }),
              }),
            )
            .min(1),
        }),
      )
      .min(1),
  }),
);

export const mintQuery = z.strictObject({
  dryRun: flag.optional().meta({ description: "`true` checks everything and mints nothing." }),
});

export const mintTransaction = responseComponent(
  "MintTransaction",
  z.strictObject({
    transactionId: z.string(),
    userIndex: z.int().min(0).meta({ description: "Position in the request's `users`." }),
    mintIndex: z.int().min(0).meta({
      description: "Position in that user's `mints`, where an entry of `quantity` n counts as n.",
    }),
    vaultId: outDecimal,
    status: z.enum(STATUSES),
  }),
);

const receipt = responseComponent(
  "MintReceipt",
  z.strictObject({
    root: outHash.meta({ description: "Root of the tree of the vaults' leaves, in their order here." }),
    count: z.int().meta({ description: "The number of these vaults." }),
    time: z.int().meta({ description: "When the mint was acknowledged, in ms since 1970: as it is signed." }),
    signer: outAddress,
    signature: z.string().meta({ description: "EIP-712 `MintReceipt(bytes32 root,uint32 count,uint64 time)`." }),
    chainIds: z.record(z.string(), outDecimal).meta({ description: "The chain of each asset's token." }),
  }),
);

export const mintReply = responseComponent(
  "MintReply",
  z.strictObject({
    mintId: outUuid,
    vaults: z.array(vault).meta({ description: "Every vault that the request touched, once, as it stood after it." }),
    transactions: z.array(mintTransaction).meta({ description: "One per entry, in request order." }),
    receipt: receipt.nullable().meta({
      description:
        "The operator's signed receipt for the vaults as this mint acknowledged them, whatever was minted into them since; null when it signs none.",
    }),
  }),
);

export const dryRunReply = responseComponent(
  "DryRunReply",
  z.strictObject({
    dryRun: z.literal(true),
    users: z.int().meta({ description: "Users that the request names." }),
    mints: z.int().meta({ description: "Entries that would have been minted." }),
  }),
);
