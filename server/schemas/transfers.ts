import { z } from "zod";
import { type Hex, STATUSES } from "../../core/index.ts";
import { CHECKSUM_WRONG, checksumHolds } from "../../core/internal.ts";
import { MAX_GROUP_TRANSFERS, MAX_TRANSFER_HOPS, TRANSFERS_TYPES } from "../../core/protocol/index.ts";
import * as s from "./common.ts";
import { vaultContent } from "./vaults.ts";
import { submissionOf, typedDataExample, typedDataOf } from "./withdrawals.ts";

const part = s.amount.describe(
  "Quantized units for the receiver; 0 is all that is left. Less than that splits the vault.",
);

/** As signed: the zero address is the receiver of a redemption. */
const signedReceiver = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "Give an address: 0x and 40 hex digits.")
  .refine(checksumHolds, CHECKSUM_WRONG)
  .transform((text) => text.toLowerCase() as Hex)
  .describe("The receiver. The zero address redeems: it burns the units.");

function listOf<S extends z.ZodType>(transfer: S) {
  return z
    .array(transfer)
    .min(1, "Give at least one transfer.")
    .max(MAX_GROUP_TRANSFERS, `Give at most ${MAX_GROUP_TRANSFERS} transfers.`);
}

export const transferBody = s.requestComponent("NewTransfer", {
  transfers: listOf(z.strictObject({ vaultId: s.vaultId, amount: part, to: signedReceiver })).describe(
    "In the order that was signed, each vault once. All have one owner and one application.",
  ),
  deadline: s.seconds.describe("Seconds since 1970, as signed, as a decimal string."),
  signature: z
    .string()
    .regex(
      /^0x(?:[0-9a-fA-F]{128}(?:[0-9a-fA-F]{2})?)?$/,
      "Give 0x and 64 or 65 bytes in hex, or 0x for an approval on L1.",
    )
    .transform((text) => text.toLowerCase() as Hex)
    .describe(
      "EIP-712 `Transfers(Transfer[] transfers,uint64 deadline)Transfer(uint64 vaultId,uint64 amount,address to)` by the owner or by a session key of the owner, in the settlement contract's domain. `0x` if the owner has approved the list on L1.",
    ),
});

export const transferPreparationBody = s.requestComponent("NewTransferPreparation", {
  transfers: listOf(
    z
      .strictObject({
        vaultId: s.vaultId,
        amount: part.prefault("0"),
        to: s.address.optional().describe("The receiver."),
        redeem: z.literal(true).optional().describe("Instead of `to`: burn the units for ever."),
      })
      .refine(({ to, redeem }) => (to === undefined) !== (redeem === undefined), "Give either to or redeem."),
  ),
  deadline: s.seconds
    .optional()
    .describe("Seconds since 1970, an hour to 30 days ahead, as a decimal string. Default: in a day."),
});

/** What the documentation shows of a preparation. */
const EXAMPLE = {
  transfers: [{ vaultId: "1048578", amount: "0", to: `0x${"70".repeat(20)}` }],
  deadline: "1893456000",
};

export const transferPreparation = s.responseComponent("TransferPreparation", {
  ownerAddress: s.outAddress,
  digest: s.outHash.describe("What the signature signs."),
  typedData: typedDataOf(["Transfers"], typedDataExample("Transfers", TRANSFERS_TYPES, EXAMPLE)),
  submit: submissionOf({ path: "/api/v1/transfers", body: EXAMPLE }),
});

const burntOrGiven = s.outDecimal
  .nullable()
  .describe("Units of the new vault, or burnt. null while unknown: the batch settles how much is left of a vault.");

const transferred = z.strictObject({
  transactionId: z.string(),
  vaultId: s.outDecimal.describe("The vault that is spent."),
  assetId: s.outUuid,
  tokenId: s.outDecimal.nullable().describe("null for ERC-20."),
  userId: s.outUuid.describe("The user who gives."),
  from: s.outAddress.describe("The address of the user who gives."),
  to: s.outAddress.nullable().describe("The receiver; the zero address redeems. null for change."),
  toUserId: s.outUuid.nullable().describe("The user of the new vault; null for a redemption."),
  isChange: z.boolean().describe("Whether it is what the giver keeps of a split vault."),
  newVaultId: s.outDecimal
    .nullable()
    .describe("null before the batch is sealed, and for a redemption. It is certain once the status is `settled`."),
  amount: burntOrGiven,
  ...s.outUnits,
  hops: z
    .int()
    .describe(`Transfers since the mint, this one included. A vault can be transferred ${MAX_TRANSFER_HOPS} times.`),
  failure: z.string().nullable().describe("Why this transfer moves nothing."),
});

const listFields = {
  transferId: s.outUuid,
  status: z
    .enum(STATUSES)
    .describe(
      "A receiver can rely on a transfer that is `finalized` and has no `failure` in `transfers`. Before that the word of the operator is all.",
    ),
  digest: s.outHash,
  deadline: s.outDecimal,
  l1TxHash: s.outHash.nullable(),
  l1BlockNumber: s.outDecimal.nullable(),
  failure: z.string().nullable(),
  createdAt: s.outTime,
  updatedAt: s.outTime,
};

export const transferList = s.responseComponent("Transfer", {
  ...listFields,
  transfers: z.array(transferred).describe("As signed; a split has two entries, its change second."),
});

export const ownersTransferList = s.responseComponent("OwnersTransfer", {
  ...listFields,
  transfers: z.array(transferred.omit({ userId: true, toUserId: true })),
});
export const transferPage = s.responseComponent("TransferPage", s.pageOf(transferList));
export const transferQuery = z.strictObject({ status: z.enum(STATUSES).optional(), ...s.createdBetween, ...s.page });

const step = z.strictObject({
  status: z.enum(STATUSES),
  vaultId: s.outDecimal.describe("The vault that is spent."),
  from: s.outAddress.describe("Its owner."),
  to: s.outAddress.describe("The receiver; the zero address redeems. Of change it is the giver."),
  isChange: z.boolean(),
  newVaultId: s.outDecimal.nullable().describe("null before the batch is sealed, and for a redemption."),
  amount: burntOrGiven,
  createdAt: s.outTime,
});

function historyOf<S extends z.ZodType>(each: S) {
  return z.strictObject({
    before: z
      .array(each)
      .describe(`The transfers from the mint to the vault, oldest first; at most ${MAX_TRANSFER_HOPS}.`),
    after: z.array(each).describe("What took the vault: the receiver's part and the change. Empty while nothing did."),
  });
}

export const history = s.responseComponent("VaultHistory", historyOf(step.extend({ transferId: s.outUuid })));
export const publicHistory = s.responseComponent(
  "PublicVaultHistory",
  historyOf(step).extend({
    vault: vaultContent.nullable().describe("What the vault holds; null for one that holds nothing."),
  }),
);
