import { z } from "zod";
import { MAX_LISTED_VAULTS, TYPED_DATA_TYPES } from "../../core/protocol/index.ts";
import * as s from "./common.ts";

/** What a withdrawal takes from a vault, and what else the owner signs. */
const taken = { vaultId: s.vaultId, quantity: s.amount.describe("Quantized units, as a decimal string.") };
const signed = {
  recipient: s.address.optional().describe("Default: the owner."),
  deadline: s.seconds.describe("Seconds since 1970, as signed, as a decimal string."),
};

function vaultsOf<V extends z.ZodType>(vault: V) {
  return z
    .array(vault)
    .min(1, "Give at least one vault.")
    .max(MAX_LISTED_VAULTS, `Give at most ${MAX_LISTED_VAULTS} vaults.`);
}

export const withdrawalBody = s.requestComponent("NewWithdrawal", {
  ...taken,
  ...signed,
  signature: s.signature.describe(
    "The owner's EIP-712 `Withdrawal(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity,address recipient,uint64 deadline)`, `withdrawnBefore` being the vault's `withdrawnBalance`. The domain has name Mintmark, version 1, and the chain and contract that pay the token: its own chain, and there the settlement contract or its mirror.",
  ),
});

export const withdrawalListBody = s.requestComponent("NewWithdrawalList", {
  vaults: vaultsOf(
    z.strictObject({
      ...taken,
      withdrawnBefore: s.amount.prefault("0").describe("The vault's `withdrawnBalance`. Default: 0."),
    }),
  ).describe("In the order that was signed. All have one owner, and their tokens live on one chain."),
  ...signed,
  signature: s.signature.describe(
    "The owner's EIP-712 `WithdrawalList(ListedVault[] vaults,address recipient,uint64 deadline)ListedVault(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity)`, with the domain of a single withdrawal.",
  ),
});

/** The fields of a preparation that say how, not what. */
const signing = {
  recipient: s.address.optional().describe("Default: the owner."),
  deadline: s.seconds.optional().describe("Seconds since 1970, as a decimal string. Default: in seven days."),
};

const prepared = z.strictObject({
  vaultId: s.vaultId,
  quantity: s.amount.optional().describe("Quantized units. Default: all that are left."),
});

export const preparationBody = s.requestComponent(
  "NewWithdrawalPreparation",
  z
    .strictObject({
      vaults: vaultsOf(prepared).optional().describe("The vaults; or else name `ownerAddress` and `assetId`."),
      ownerAddress: s.address.optional().describe("With `assetId`: all vaults of this owner and token."),
      assetId: s.uuid.optional(),
      tokenId: s.tokenId.optional().describe("With `assetId`: of this token id only."),
      cursor: s.page.cursor.describe("`nextCursor` of the preparation before, with the same token."),
      ...signing,
    })
    .refine(
      ({ vaults, ownerAddress, assetId, tokenId, cursor }) =>
        vaults === undefined
          ? ownerAddress !== undefined && assetId !== undefined
          : [ownerAddress, assetId, tokenId, cursor].every((field) => field === undefined),
      "Give either vaults, or ownerAddress and assetId.",
    ),
);

export const ownersPreparationBody = s.requestComponent("NewOwnersPreparation", {
  vaultIds: z.array(s.vaultId).min(1, "Give at least one vault.").max(MAX_LISTED_VAULTS),
  ...signing,
});

const WITHDRAWAL_STATUSES = ["accepted", "submitted", "settled", "finalized", "failed"] as const;

export const withdrawal = s.responseComponent("Withdrawal", {
  withdrawalId: s.outUuid,
  userId: s.outUuid,
  chainId: s.outDecimal.describe("Of the vault's token; `l1TxHash` and `l1BlockNumber` are of this chain."),
  vaultId: s.outDecimal,
  quantity: s.outDecimal,
  recipient: s.outAddress,
  withdrawnBefore: s.outDecimal,
  deadline: s.outDecimal,
  status: z.enum(WITHDRAWAL_STATUSES),
  l1TxHash: s.outHash.nullable(),
  l1BlockNumber: s.outDecimal.nullable(),
  failure: z.string().nullable(),
  createdAt: s.outTime,
  updatedAt: s.outTime,
});

const refusal = z.strictObject({ code: z.string(), detail: z.string() });

/** What came of a list, with each withdrawal as the caller may see it. */
function listReply<W extends z.ZodType>(shown: W) {
  const error = refusal.nullable().describe("Why this vault was not accepted; null when it was.");
  const one = z.strictObject({ vaultId: s.outDecimal, withdrawal: shown.nullable(), error });
  return z.strictObject({ vaults: z.array(one).describe("In the order of the request.") });
}

export const withdrawalListReply = s.responseComponent("WithdrawalListReply", listReply(withdrawal));

/** The user's id is the application's own. */
export const ownersWithdrawal = s.responseComponent("OwnersWithdrawal", withdrawal.omit({ userId: true }));

export const ownersListReply = s.responseComponent("OwnersListReply", listReply(ownersWithdrawal));

export const ownersQuery = z.strictObject({
  vaultId: z
    .union([s.vaultId, z.array(s.vaultId).max(100)], "Give 1 to 100 vault ids.")
    .transform((given) => (typeof given === "bigint" ? [given] : given))
    .describe("Repeat it for several, up to 100."),
});

export const ownersWithdrawals = s.responseComponent("OwnersWithdrawals", {
  vaults: z
    .array(z.strictObject({ vaultId: s.outDecimal, withdrawal: ownersWithdrawal.nullable() }))
    .describe("In the order of the request; `withdrawal` is null for a vault that has none, or another owner."),
});

const field = z.strictObject({ name: z.string(), type: z.string() });

/** A preparation as the documentation shows it. */
const EXAMPLE = { vaultId: "1048578", quantity: "1", recipient: `0x${"70".repeat(20)}`, deadline: "1893456000" };
const fieldsOf = (types: Readonly<Record<string, string>>) =>
  Object.entries(types).map(([name, type]) => ({ name, type }));
/** EIP-712 typed data as wallets take them. */
export function typedDataOf<const T extends string>(primaryTypes: readonly T[], example: unknown) {
  return z
    .strictObject({
      domain: z.strictObject({
        name: z.string(),
        version: z.string(),
        chainId: z.int(),
        verifyingContract: s.outAddress,
      }),
      types: z.record(z.string(), z.array(field)),
      primaryType: z.enum(primaryTypes),
      message: z.record(z.string(), z.unknown()),
    })
    .meta({
      description: "For `eth_signTypedData_v4` as it is. Whole numbers of the message are decimal strings.",
      examples: [example],
    });
}

/** The request to send with the signature. */
export function submissionOf(example: { readonly path: string; readonly body: unknown }) {
  return z
    .strictObject({ path: z.string(), body: z.record(z.string(), z.unknown()) })
    .meta({ description: "Add `signature` to `body`, and POST it to `path`.", examples: [example] });
}

/** Typed data of an example, without the types of the domain that each has. */
export function typedDataExample(
  primaryType: string,
  types: Readonly<Record<string, readonly { readonly name: string; readonly type: string }[]>>,
  message: unknown,
) {
  return {
    domain: { name: "Mintmark", version: "1", chainId: 1, verifyingContract: `0x${"5e".repeat(20)}` },
    types: {
      EIP712Domain: fieldsOf({ name: "string", version: "string", chainId: "uint256", verifyingContract: "address" }),
      ...types,
    },
    primaryType,
    message,
  };
}

export const preparation = s.responseComponent("WithdrawalPreparation", {
  ownerAddress: s.outAddress.describe("Who signs."),
  typedData: typedDataOf(
    ["Withdrawal", "WithdrawalList"],
    typedDataExample("Withdrawal", { Withdrawal: TYPED_DATA_TYPES.Withdrawal }, { ...EXAMPLE, withdrawnBefore: "0" }),
  ),
  submit: submissionOf({ path: "/api/v1/withdrawals", body: EXAMPLE }),
  refused: z
    .array(z.strictObject({ vaultId: s.outDecimal, error: refusal }))
    .meta({ description: "Vaults that cannot be withdrawn now, and are left out.", examples: [[]] }),
  nextCursor: z
    .string()
    .nullable()
    .describe("For the owner's further vaults of the token; null when there are none, or vaults were named."),
});
export const withdrawalPage = s.responseComponent("WithdrawalPage", s.pageOf(withdrawal));

export const withdrawalQuery = z.strictObject({
  status: z.enum(WITHDRAWAL_STATUSES).optional(),
  userId: s.uuid.optional(),
  ownerAddress: s.address.optional().describe("Of all users of this owner."),
  assetId: s.uuid.optional(),
  vaultId: s.vaultId.optional(),
  ...s.createdBetween,
  ...s.page,
});
