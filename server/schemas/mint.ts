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
import { metadataJson } from "./metadata.ts";
import { vault } from "./vaults.ts";

const TOKEN_ID = "Give a token's id: a whole number below 2^256.";
const UNITS = "Give units: a whole number from 1 to 2^63 - 1.";

/** An entry of a mint. */
export const mintEntry = requestComponent(
  "MintEntry",
  z.strictObject({
    assetId: z.guid(),
    tokenId: z
      .union([z.string().regex(/^(?:0|[1-9]\d{0,77})$/, TOKEN_ID), z.int().min(0)], TOKEN_ID)
      .optional()
      .meta({
        description:
          "ERC-721 and ERC-1155: the token's id, below 2^256, as a decimal string, or an integer up to 2^53 - 1. Absent for ERC-20.",
      }),
    quantity: z.int().min(1).optional().meta({
      description:
        "Only for an ERC-721 asset with `nextTokenId`, instead of `tokenId`: mints this many tokens with the next ids, each counted as an entry; default 1. The response has their ids.",
    }),
    mintingBlob: z.string().optional().meta({
      description:
        'Names the token instead of `tokenId`: hex of the identifier text, with or without 0x, 1 to 255 bytes; `""` for ERC-20. Bytes that are not text need an asset with `rawBlobs`.',
    }),
    amount: z
      .union([z.int().min(1), z.string().regex(/^[1-9]\d{0,18}$/, UNITS)], UNITS)
      .optional()
      .meta({
        description:
          "Units of `quantum` base units each, 1 to 2^63 - 1, as an integer or a decimal string. From 2^53 on it must be a string: a number that would be rounded is refused. Absent or 1 for ERC-721.",
      }),
    amountDecimal: z
      .string()
      .regex(/^\d+(\.\d+)?$/, 'Give a decimal amount such as "12.5".')
      .optional()
      .meta({
        description:
          'ERC-20, instead of `amount`: the token\'s decimal amount, such as "12.5". It is `amount * quantum / 10^decimals`, must be a whole number of units, and is never rounded.',
      }),
    reference: reference.optional().meta({
      description: "Your own name for the mint, such as an order number; need not be unique.",
    }),
    metadata: metadataJson.optional(),
    dataAvailabilityMode: mode
      .optional()
      .meta({ description: "Optional when the asset or the application has a default." }),
  }),
);

/** The body of a mint, for the documentation. The core itself validates it, and reports every bad entry at once. */
export const mintBody = requestComponent(
  "MintRequest",
  z.strictObject({
    users: z
      .array(
        z.strictObject({
          userId: z.guid().optional().meta({ description: "A user of the application." }),
          ownerAddress: z
            .string()
            .regex(/^0x[0-9a-fA-F]{40}$/, "Give an address: 0x and 40 hex digits.")
            .optional()
            .meta({
              description:
                "Instead of `userId`: the L1 address to mint to. Mints for the address's first user, who is created with the mint if there is none; that needs the scope `users`.",
            }),
          mints: z.array(mintEntry).min(1),
        }),
      )
      .min(1),
  }),
);

export const mintQuery = z.strictObject({
  dryRun: flag.optional().meta({ description: "`true` checks everything and mints nothing." }),
});

const mintTransaction = responseComponent(
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
    time: z.int().meta({ description: "Time of the acknowledgement in milliseconds since 1970, as signed." }),
    signer: outAddress,
    signature: z.string().meta({ description: "EIP-712 `MintReceipt(bytes32 root,uint32 count,uint64 time)`." }),
    chainIds: z.record(z.string(), outDecimal).meta({ description: "The chain of each asset's token." }),
  }),
);

export const mintReply = responseComponent(
  "MintReply",
  z.strictObject({
    mintId: outUuid,
    vaults: z
      .array(vault)
      .meta({ description: "Every vault that the request touched, once, with its state after it." }),
    transactions: z.array(mintTransaction).meta({ description: "One per entry, in request order." }),
    receipt: receipt.nullable().meta({
      description:
        "The operator's signed receipt for the vaults as of this mint, whatever later mints add; null without a receipt key.",
    }),
  }),
);

export const dryRunReply = responseComponent(
  "DryRunReply",
  z.strictObject({
    dryRun: z.literal(true),
    users: z.int().meta({ description: "Users in the request." }),
    mints: z.int().meta({ description: "Entries that would have been minted." }),
  }),
);
