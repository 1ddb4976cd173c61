import { z } from "zod";
import { type Hex, STATUSES } from "../../core/index.ts";
import { CHECKSUM_WRONG, checksumHolds } from "../../core/internal.ts";
import { MAX_GROUP_TRANSFERS, MAX_TRANSFER_HOPS, TRANSFERS_TYPES } from "../../core/protocol/index.ts";
import {
  address,
  amount,
  createdBetween,
  outAddress,
  outDecimal,
  outHash,
  outTime,
  outUnits,
  outUuid,
  page,
  pageOf,
  requestComponent,
  responseComponent,
  seconds,
  vaultId,
} from "./common.ts";
import { vaultContent } from "./vaults.ts";
import { submissionOf, typedDataExample, typedDataOf } from "./withdrawals.ts";

const part = amount.meta({
  description: "Quantized units for the receiver; 0 is all that is left. Less than that splits the vault.",
});

/** As signed: the zero address is the receiver of a redemption. */
const signedReceiver = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "Give an address: 0x and 40 hex digits.")
  .refine(checksumHolds, CHECKSUM_WRONG)
  .transform((text) => text.toLowerCase() as Hex)
  .meta({ description: "The receiver. The zero address redeems: it burns the units." });

function listOf<S extends z.ZodType>(transfer: S) {
  return z
    .array(transfer)
    .min(1, "Give at least one transfer.")
    .max(MAX_GROUP_TRANSFERS, `Give at most ${MAX_GROUP_TRANSFERS} transfers.`);
}

export const transferBody = requestComponent(
  "NewTransfer",
  z.strictObject({
    transfers: listOf(z.strictObject({ vaultId, amount: part, to: signedReceiver })).meta({
      description: "In the order that was signed, each vault once. All have one owner and one application.",
    }),
    deadline: seconds.meta({ description: "Seconds since 1970, as signed, as a decimal string." }),
    signature: z
      .string()
      .regex(
        /^0x(?:[0-9a-fA-F]{128}(?:[0-9a-fA-F]{2})?)?$/,
        "Give 0x and 64 or 65 bytes in hex, or 0x for an approval on L1.",
      )
      .transform((text) => text.toLowerCase() as Hex)
      .meta({
        description:
          "EIP-712 `Transfers(Transfer[] transfers,uint64 deadline)Transfer(uint64 vaultId,uint64 amount,address to)` by the owner or by a session key of the owner, in the settlement contract's domain. `0x` if the owner has approved the list on L1.",
      }),
  }),
);

export const transferPreparationBody = requestComponent(
  "NewTransferPreparation",
  z.strictObject({
    transfers: listOf(
      z
        .strictObject({
          vaultId,
          amount: part.prefault("0"),
          to: address.optional().meta({ description: "The receiver." }),
          redeem: z.literal(true).optional().meta({ description: "Instead of `to`: burn the units for ever." }),
        })
        .refine(({ to, redeem }) => (to === undefined) !== (redeem === undefined), "Give either to or redeem."),
    ),
    deadline: seconds
      .optional()
      .meta({ description: "Seconds since 1970, an hour to 30 days ahead, as a decimal string. Default: in a day." }),
  }),
);

/** What the documentation shows of a preparation. */
const EXAMPLE = {
  transfers: [{ vaultId: "1048578", amount: "0", to: `0x${"70".repeat(20)}` }],
  deadline: "1893456000",
};

export const transferPreparation = responseComponent(
  "TransferPreparation",
  z.strictObject({
    ownerAddress: outAddress,
    digest: outHash.meta({ description: "What the signature signs." }),
    typedData: typedDataOf(["Transfers"], typedDataExample("Transfers", TRANSFERS_TYPES, EXAMPLE)),
    submit: submissionOf({ path: "/api/v1/transfers", body: EXAMPLE }),
  }),
);

const burntOrGiven = outDecimal.nullable().meta({
  description: "Units of the new vault, or burnt. null while unknown: the batch settles how much is left of a vault.",
});

const transferred = z.strictObject({
  transactionId: z.string(),
  vaultId: outDecimal.meta({ description: "The vault that is spent." }),
  assetId: outUuid,
  tokenId: outDecimal.nullable().meta({ description: "null for ERC-20." }),
  userId: outUuid.meta({ description: "The user who gives." }),
  from: outAddress.meta({ description: "The address of the user who gives." }),
  to: outAddress.nullable().meta({ description: "The receiver; the zero address redeems. null for change." }),
  toUserId: outUuid.nullable().meta({ description: "The user of the new vault; null for a redemption." }),
  isChange: z.boolean().meta({ description: "Whether it is what the giver keeps of a split vault." }),
  newVaultId: outDecimal.nullable().meta({
    description: "null before the batch is sealed, and for a redemption. It is certain once the status is `settled`.",
  }),
  amount: burntOrGiven,
  ...outUnits,
  hops: z.int().meta({
    description: `Transfers since the mint, this one included. A vault can be transferred ${MAX_TRANSFER_HOPS} times.`,
  }),
  failure: z.string().nullable().meta({ description: "Why this transfer moves nothing." }),
});

const listFields = {
  transferId: outUuid,
  status: z.enum(STATUSES).meta({
    description:
      "A receiver can rely on a transfer that is `finalized` and has no `failure` in `transfers`. Before that the word of the operator is all.",
  }),
  digest: outHash,
  deadline: outDecimal,
  l1TxHash: outHash.nullable(),
  l1BlockNumber: outDecimal.nullable(),
  failure: z.string().nullable(),
  createdAt: outTime,
  updatedAt: outTime,
};

export const transferList = responseComponent(
  "Transfer",
  z.strictObject({
    ...listFields,
    transfers: z.array(transferred).meta({ description: "As signed; a split has two entries, its change second." }),
  }),
);

export const ownersTransferList = responseComponent(
  "OwnersTransfer",
  z.strictObject({ ...listFields, transfers: z.array(transferred.omit({ userId: true, toUserId: true })) }),
);

export const transferPage = responseComponent("TransferPage", pageOf(transferList));

export const transferQuery = z.strictObject({ status: z.enum(STATUSES).optional(), ...createdBetween, ...page });

const step = z.strictObject({
  status: z.enum(STATUSES),
  vaultId: outDecimal.meta({ description: "The vault that is spent." }),
  from: outAddress.meta({ description: "Its owner." }),
  to: outAddress.meta({ description: "The receiver; the zero address redeems. Of change it is the giver." }),
  isChange: z.boolean(),
  newVaultId: outDecimal.nullable().meta({ description: "null before the batch is sealed, and for a redemption." }),
  amount: burntOrGiven,
  createdAt: outTime,
});

function historyOf<S extends z.ZodType>(each: S) {
  return z.strictObject({
    before: z.array(each).meta({
      description: `The transfers from the mint to the vault, oldest first; at most ${MAX_TRANSFER_HOPS}.`,
    }),
    after: z
      .array(each)
      .meta({ description: "What took the vault: the receiver's part and the change. Empty while nothing did." }),
  });
}

export const history = responseComponent("VaultHistory", historyOf(step.extend({ transferId: outUuid })));
export const publicHistory = responseComponent(
  "PublicVaultHistory",
  historyOf(step).extend({
    vault: vaultContent.nullable().meta({ description: "What the vault holds; null for one that holds nothing." }),
  }),
);

export const transferParams = z.strictObject({
  transferId: z
    .string()
    .regex(
      /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]{64})$/i,
      "Give a UUID, or a digest: 0x and 64 hex digits.",
    )
    .transform((text) => text.toLowerCase())
    .meta({ description: "The transfer's id, or the digest that was signed." }),
});
