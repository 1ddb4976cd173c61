import { zeroAddress } from "viem";
import { z } from "zod";
import { type Hex, MintmarkError, STATUSES } from "../../core/index.ts";
import { CHECKSUM_WRONG, checksumHolds, MAX_TRANSFER_DEADLINE } from "../../core/internal.ts";
import {
  MAX_GROUP_TRANSFERS,
  MAX_TRANSFER_HOPS,
  TRANSFERS_TYPES,
  transfersDigest,
} from "../../core/protocol/index.ts";
import { type Endpoint, endpoint, entriesOf, json, paged } from "./api/endpoint.ts";
import { examining } from "./api/examined.ts";
import * as s from "./api/fields.ts";
import { submissionOf, transferPreparationToWire, typedDataOf } from "./typed-data.ts";
import { vaultContent } from "./vaults.ts";

const part = s.amount.describe(
  "Quantized units for the receiver; 0 is all that is left. Less than that splits the vault.",
);

/** The signed receiver: the zero address stands for a redemption. */
export const signedReceiver = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "Give an address: 0x and 40 hex digits.")
  .refine(checksumHolds, CHECKSUM_WRONG)
  .transform((text) => text.toLowerCase() as Hex)
  .describe("The receiver. The zero address redeems: it burns the units.");

const deadline = s.decimal(MAX_TRANSFER_DEADLINE);

function listOf<S extends z.ZodType>(transfer: S) {
  return z
    .array(transfer)
    .min(1, "Give at least one transfer.")
    .max(MAX_GROUP_TRANSFERS, `Give at most ${MAX_GROUP_TRANSFERS} transfers.`);
}

const transferBody = s.requestComponent("NewTransfer", {
  transfers: listOf(
    z.strictObject({ vaultId: s.vaultId, amount: part, to: signedReceiver }),
  ).describe(
    "In the order that was signed, each vault once. All have one owner and one application.",
  ),
  deadline: deadline.describe("Seconds since 1970, as signed, as a decimal string."),
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

const transferPreparationBody = s.requestComponent("NewTransferPreparation", {
  transfers: listOf(
    z
      .strictObject({
        vaultId: s.vaultId,
        amount: part.prefault("0"),
        to: s.address.optional().describe("The receiver."),
        redeem: z.literal(true).optional().describe("Instead of `to`: burn the units for ever."),
      })
      .refine(
        ({ to, redeem }) => (to === undefined) !== (redeem === undefined),
        "Give either to or redeem.",
      ),
  ),
  deadline: deadline
    .optional()
    .describe(
      "Seconds since 1970, an hour to 30 days ahead, as a decimal string. Default: in a day.",
    ),
});

const EXAMPLE = {
  transfers: [{ vaultId: "1048578", amount: "0", to: `0x${"70".repeat(20)}` }],
  deadline: "1893456000",
};

const transferPreparation = s.responseComponent("TransferPreparation", {
  ownerAddress: s.outAddress,
  digest: s.outHash.describe("What the signature signs."),
  typedData: typedDataOf(["Transfers"], TRANSFERS_TYPES, EXAMPLE),
  submit: submissionOf({ path: "/api/v1/transfers", body: EXAMPLE }),
});

const burntOrGiven = s.outDecimal
  .nullable()
  .describe(
    "Units of the new vault, or burnt. null while unknown: the batch settles how much is left of a vault.",
  );

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
    .describe(
      "null before the batch is sealed, and for a redemption. It is certain once the status is `settled`.",
    ),
  amount: burntOrGiven,
  amountDecimal: s.outAmountDecimal.nullable(),
  ...s.outToken,
  hops: z
    .int()
    .describe(
      `Transfers since the mint, this one included. A vault can be transferred ${MAX_TRANSFER_HOPS} times.`,
    ),
  failure: z.string().nullable().describe("Why this transfer moves nothing."),
});

const transferList = s.responseComponent("Transfer", {
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
  transfers: z
    .array(transferred)
    .describe("As signed; a split has two entries, its change second."),
});

const ownersTransferList = s.responseComponent(
  "OwnersTransfer",
  transferList.extend({ transfers: z.array(transferred.omit({ userId: true, toUserId: true })) }),
);

const step = z.strictObject({
  status: z.enum(STATUSES),
  vaultId: s.outDecimal.describe("The vault that is spent."),
  from: s.outAddress.describe("Its owner."),
  to: s.outAddress.describe("The receiver; the zero address redeems. Of change it is the giver."),
  isChange: z.boolean(),
  newVaultId: s.outDecimal
    .nullable()
    .describe("null before the batch is sealed, and for a redemption."),
  amount: burntOrGiven,
  createdAt: s.outTime,
});

function historyOf<S extends z.ZodType>(each: S) {
  return z.strictObject({
    before: z
      .array(each)
      .describe(
        `The transfers from the mint to the vault, oldest first; at most ${MAX_TRANSFER_HOPS}.`,
      ),
    after: z
      .array(each)
      .describe(
        "What took the vault: the receiver's part and the change. Empty while nothing did.",
      ),
  });
}

const history = s.responseComponent(
  "VaultHistory",
  historyOf(step.extend({ transferId: s.outUuid })),
);
const publicHistory = s.responseComponent(
  "PublicVaultHistory",
  historyOf(step).extend({
    vault: vaultContent
      .nullable()
      .describe("What the vault holds; null for one that holds nothing."),
  }),
);

/** These refuse a list of transfers before anyone has signed it. */
const PREPARATION_ERRORS = [
  "history_diverged",
  "l1_not_compared",
  "vault_not_found",
  "vault_void",
  "vault_spent",
  "asset_not_transferable",
  "proof_not_ready",
  "withdrawal_pending",
  "insufficient_balance",
  "transfer_too_deep",
  "amount_out_of_range",
  "batch_too_large",
  "deadline_invalid",
] as const;

/** Both kinds of callers prepare and request transfers by these. */
const PREPARING = {
  body: transferPreparationBody,
  cost: entriesOf("transfers"),
  example: { transfers: [{ vaultId: "9223372036854775808", to: `0x${"70".repeat(20)}` }] },
  success: json(200, "What to sign.", transferPreparation),
  errors: PREPARATION_ERRORS,
} as const;

const REQUESTING = {
  body: transferBody,
  cost: entriesOf("transfers"),
  example: {
    transfers: [{ vaultId: "9223372036854775808", amount: "0", to: `0x${"70".repeat(20)}` }],
    deadline: "1893456000",
    signature: `0x${"00".repeat(65)}`,
  },
  errors: [...PREPARATION_ERRORS, "signature_invalid"],
} as const;

export const transferEndpoints: readonly Endpoint[] = [
  endpoint("Transfers", "transfer", "POST /api/v1/transfers/prepare", "prepareTransfers", {
    summary: "What an owner signs to give vaults or parts of them away, or to redeem them",
    description:
      "Answers EIP-712 typed data for `eth_signTypedData_v4`, and the request to send with the signature. Changes nothing. One vault that cannot be transferred refuses all.",
    ...PREPARING,
    async handle({ engine, principal, body }) {
      const prepared = await engine.transfers.prepare(principal, asSigned(body));
      return transferPreparationToWire(engine.settlement, prepared, "/api/v1/transfers");
    },
  }),
  endpoint("Transfers", "transfer", "POST /api/v1/transfers", "createTransfer", {
    summary: "Transfer or redeem up to 1,024 vaults with one signature of their owner",
    description:
      "Takes all transfers or none, and holds their vaults at once. Owner and receivers pay no gas. The same signed list always returns the same transfer; a failed one is tried anew.",
    ...REQUESTING,
    success: {
      ...json(202, "Accepted.", transferList),
      headers: { Location: "Path of the transfer." },
    },
    async handle({ engine, principal, body, reply }) {
      const accepted = await engine.transfers.request(principal, body);
      reply.header("location", `/api/v1/transfers/${accepted.transferId}`);
      return accepted;
    },
  }),
  endpoint("Transfers", "read", "GET /api/v1/transfers", "listTransfers", {
    summary: "Transfers of the application, newest first",
    description:
      "A page can be shorter than `limit` even if there is a next one: it examines a bounded number of transfers. `GET /api/v1/transactions?type=transfer` lists each vault of them, with more filters.",
    ...paged("TransferPage", transferList),
    query: z.strictObject({ status: z.enum(STATUSES).optional(), ...s.createdBetween, ...s.page }),
    inTurn: true,
    handle: ({ engine, applicationId, query, ...call }) =>
      examining(call, (options) => engine.transfers.list(applicationId, query, options())),
  }),
  endpoint("Vaults", "read", "GET /api/v1/vaults/{vaultId}/history", "getVaultHistory", {
    summary: "The transfers that led to a vault, and what took it",
    success: json(200, "The transfers, waiting ones too.", history),
    async handle({ engine, applicationId, params: { vaultId } }) {
      await engine.vaults.get(applicationId, vaultId);
      return await engine.transfers.history(vaultId);
    },
  }),
  endpoint("Vaults", "public", "GET /public/v1/vaults/{vaultId}/history", "getPublicVaultHistory", {
    summary: "The transfers in sealed batches that led to a vault, and that took it",
    success: json(200, "The transfers; L1 holds the data of each.", publicHistory),
    errors: ["vault_void"],
    async handle({ engine, params: { vaultId } }) {
      const { before, after } = await engine.transfers.history(vaultId);
      const vault = await engine.vaults.content(vaultId);
      // Waiting transfers are not public yet.
      const told = after.filter(({ status }) => status !== "accepted");
      return { before, after: told, vault: vault.amount === 0n ? null : vault };
    },
  }),
  endpoint("Transfers", "read", "GET /api/v1/transfers/{transferId}", "getTransfer", {
    summary: "One transfer, with every vault that it takes and makes",
    success: json(200, "The transfer.", transferList),
    handle: ({ engine, applicationId, params }) =>
      engine.transfers.get(applicationId, params.transferId),
  }),
];

/**
 * Transfers of a signed-in owner, whatever application the vaults are of. Their gas counts like
 * that of withdrawals.
 */
export const ownerTransferEndpoints: readonly Endpoint[] = [
  endpoint("Owners", "owner", "POST /owner/v1/transfers/prepare", "prepareOwnerTransfers", {
    summary: "What the signed-in owner signs to transfer or redeem its vaults",
    description:
      "Like `POST /api/v1/transfers/prepare`, for the owner's vaults in any one application.",
    ...PREPARING,
    errors: [...PREPARATION_ERRORS, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body }) {
      // Refuse before the owner signs for nothing.
      ownerRelay.requireFor(owner, body.transfers.length);
      const prepared = await engine.transfers.prepare({ owner }, asSigned(body));
      return transferPreparationToWire(engine.settlement, prepared, "/owner/v1/transfers");
    },
  }),
  endpoint("Owners", "owner", "POST /owner/v1/transfers", "createOwnerTransfer", {
    summary: "Transfer or redeem vaults of the signed-in owner with one signature",
    description:
      "Like `POST /api/v1/transfers`. The operator bears the gas for only so many vaults of an owner a day.",
    ...REQUESTING,
    success: json(202, "Accepted.", ownersTransferList),
    errors: [...REQUESTING.errors, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body }) {
      // A repeated list is answered as before, and costs nothing more.
      const digest = transfersDigest(engine.settlement, body);
      const known = await engine.transfers.get({ owner }, digest).catch(unlessNotFound);
      const count = known === null ? body.transfers.length : 0;
      const request = () => engine.transfers.request({ owner }, body);
      return await ownerRelay.count(owner, count, request, () => count);
    },
  }),
  endpoint("Owners", "owner", "GET /owner/v1/transfers/{transferId}", "getOwnerTransfer", {
    summary: "One transfer that the signed-in owner has signed",
    success: json(200, "As it is now.", ownersTransferList),
    handle: ({ engine, owner, params }) => engine.transfers.get({ owner }, params.transferId),
  }),
];

/** A preparation as it is signed: a redemption is a transfer to the zero address. */
function asSigned({ transfers, deadline }: z.output<typeof transferPreparationBody>) {
  return {
    transfers: transfers.map(({ vaultId, amount, to = zeroAddress }) => ({ vaultId, amount, to })),
    ...(deadline !== undefined && { deadline }),
  };
}

function unlessNotFound(error: unknown): null {
  if (error instanceof MintmarkError && error.code === "transfer_not_found") return null;
  throw error;
}
