import { z } from "zod";
import * as core from "../../core/index.ts";
import { isSignatureRefused } from "../../core/internal.ts";
import { MAX_LISTED_VAULTS, TYPED_DATA_TYPES } from "../../core/protocol/index.ts";
import { paidBy } from "../http/access/rate-account.ts";
import { type Call, type Endpoint, endpoint, entriesOf, json, paged } from "./api/endpoint.ts";
import { examining } from "./api/examined.ts";
import * as s from "./api/fields.ts";
import { preparationToWire, submissionOf, typedDataOf } from "./typed-data.ts";

const WITHDRAWALS = "/api/v1/withdrawals";
const OWNERS = "/owner/v1/withdrawals";

/** A withdrawal takes this from a vault, and the owner signs it. */
const taken = {
  vaultId: s.vaultId,
  quantity: s.positive.describe("Quantized units, as a decimal string."),
};
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

export const listedVault = z.strictObject({
  ...taken,
  withdrawnBefore: s.amount.prefault("0").describe("The vault's `withdrawnBalance`. Default: 0."),
});

export const withdrawalBody = s.requestComponent("NewWithdrawals", {
  vaults: vaultsOf(listedVault).describe(
    "In the order that was signed. All have one owner, and their tokens live on one chain.",
  ),
  ...signed,
  signature: s.signature.describe(
    "The owner's EIP-712 `WithdrawalList(ListedVault[] vaults,address recipient,uint64 deadline)ListedVault(uint64 vaultId,uint64 withdrawnBefore,uint64 quantity)`. The domain has name Mintmark, version 1, and the chain and contract that pay the tokens: their own chain, and there the settlement contract or its mirror.",
  ),
});

/** The fields of a preparation that say how, not what. */
const signing = {
  recipient: s.address.optional().describe("Default: the owner."),
  deadline: s.seconds
    .optional()
    .describe("Seconds since 1970, as a decimal string. Default: in seven days."),
};

const prepared = z.strictObject({
  vaultId: s.vaultId,
  quantity: s.positive.optional().describe("Quantized units. Default: all that are left."),
});

const preparationBody = s.requestComponent(
  "NewWithdrawalPreparation",
  z
    .strictObject({
      vaults: vaultsOf(prepared)
        .optional()
        .describe("The vaults; or else name `ownerAddress` and `assetId`."),
      ownerAddress: s.address
        .optional()
        .describe("With `assetId`: all vaults of this owner and token."),
      assetId: s.uuid.optional(),
      tokenId: s.tokenId.optional().describe("With `assetId`: of this token id only."),
      cursor: s.page.cursor.describe(
        "`nextCursor` of the preparation before, with the same token.",
      ),
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

const ownersPreparationBody = s.requestComponent("NewOwnersPreparation", {
  vaultIds: z.array(s.vaultId).min(1, "Give at least one vault.").max(MAX_LISTED_VAULTS),
  ...signing,
});

const WITHDRAWAL_STATUSES = ["accepted", "submitted", "settled", "finalized", "failed"] as const;

export const withdrawal = s.responseComponent("Withdrawal", {
  withdrawalId: s.outUuid,
  userId: s.outUuid,
  chainId: s.outDecimal.describe(
    "The chain of the vault's token; `l1TxHash` and `l1BlockNumber` are of this chain.",
  ),
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

/** The answer to a list, with each withdrawal as the caller may see it. */
function listReply<W extends z.ZodType>(shown: W) {
  const error = refusal.nullable().describe("Why this vault was not accepted; null when it was.");
  const one = z.strictObject({ vaultId: s.outDecimal, withdrawal: shown.nullable(), error });
  return z.strictObject({ vaults: z.array(one).describe("In the order of the request.") });
}

const withdrawalsReply = s.responseComponent("WithdrawalsReply", listReply(withdrawal));

/** The user's id is the application's own. */
export const ownersWithdrawal = s.responseComponent(
  "OwnersWithdrawal",
  withdrawal.omit({ userId: true }),
);

const ownersReply = s.responseComponent("OwnersWithdrawalsReply", listReply(ownersWithdrawal));

const ownersQuery = z.strictObject({
  vaultId: z
    .union([s.vaultId, z.array(s.vaultId).max(100)], "Give 1 to 100 vault ids.")
    .transform((given) => (typeof given === "bigint" ? [given] : given))
    .describe("Repeat it for several, up to 100."),
});

const ownersWithdrawals = s.responseComponent("OwnersWithdrawals", {
  vaults: z
    .array(z.strictObject({ vaultId: s.outDecimal, withdrawal: ownersWithdrawal.nullable() }))
    .describe(
      "In the order of the request; `withdrawal` is null for a vault that has none, or another owner.",
    ),
});

const EXAMPLE = {
  vaults: [{ vaultId: "1048578", withdrawnBefore: "0", quantity: "1" }],
  recipient: `0x${"70".repeat(20)}`,
  deadline: "1893456000",
};

const preparation = s.responseComponent("WithdrawalPreparation", {
  ownerAddress: s.outAddress.describe("Who signs."),
  typedData: typedDataOf(
    ["WithdrawalList"],
    { WithdrawalList: TYPED_DATA_TYPES.WithdrawalList, ListedVault: TYPED_DATA_TYPES.ListedVault },
    EXAMPLE,
  ),
  submit: submissionOf({ path: WITHDRAWALS, body: EXAMPLE }),
  refused: z.array(z.strictObject({ vaultId: s.outDecimal, error: refusal })).meta({
    description: "Vaults that cannot be withdrawn now, and are left out.",
    examples: [[]],
  }),
  nextCursor: z
    .string()
    .nullable()
    .describe(
      "For the owner's further vaults of the token; null when there are none, or vaults were named.",
    ),
});

export const withdrawalQuery = z.strictObject({
  status: z.enum(WITHDRAWAL_STATUSES).optional(),
  userId: s.uuid.optional(),
  ownerAddress: s.address.optional().describe("Only those of all users of this owner."),
  assetId: s.uuid.optional(),
  vaultId: s.vaultId.optional(),
  ...s.createdBetween,
  ...s.page,
});

/** These refuse a preparation or a list as a whole. */
const LIST_ERRORS = [
  "history_diverged",
  "vault_not_found",
  "chain_not_supported",
  "deadline_invalid",
] as const;

/** These refuse the first vault, when none is left. */
const VAULT_ERRORS = [
  "vault_void",
  "vault_spent",
  "withdrawal_pending",
  "amount_out_of_range",
  "insufficient_balance",
  "proof_not_ready",
] as const;

/** These also refuse a signed list. */
const SIGNED_ERRORS = ["l1_not_compared", "signature_invalid", "l1_failed"] as const;

const SIGNED = { deadline: "1893456000", signature: `0x${"00".repeat(65)}` };

export const withdrawalEndpoints: readonly Endpoint[] = [
  endpoint("Withdrawals", "withdraw", "POST /api/v1/withdrawals/prepare", "prepareWithdrawals", {
    summary:
      "What an owner signs to withdraw from vaults, or from all of a token, with one signature",
    description:
      "Answers EIP-712 typed data for `eth_signTypedData_v4`, and the request to send with the signature. Changes nothing. Leaves vaults out that cannot be withdrawn now; it is an error when none is left.",
    body: preparationBody,
    cost: entriesOf("vaults"),
    example: {
      vaults: [
        { vaultId: "9223372036854775808" },
        { vaultId: "9223372036854775809", quantity: "50" },
      ],
    },
    success: json(200, "What to sign.", preparation),
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, "cursor_invalid"],
    async handle(call) {
      const { vaults, recipient, deadline } = call.body;
      const found = vaults === undefined ? await vaultsOfToken(call) : { vaults, nextCursor: null };
      const wanted = { vaults: found.vaults, recipient, deadline };
      const prepared = await call.engine.withdrawals.prepare(call.principal, wanted);
      return preparationToWire(prepared, WITHDRAWALS, found.nextCursor);
    },
  }),
  endpoint("Withdrawals", "withdraw", `POST ${WITHDRAWALS}`, "createWithdrawals", {
    summary: "Withdraw from up to 256 vaults to their tokens' chain with one signature",
    description:
      "Reserves the quantities at once, and sends each vault to its token's chain when its batch is available there and has matured. Accepts or refuses each vault separately; check each entry of the response. It is an error when none is accepted. The same signed list returns the same withdrawals, and retries refused vaults.",
    body: withdrawalBody,
    cost: entriesOf("vaults"),
    example: {
      vaults: [
        { vaultId: "9223372036854775808", quantity: "1" },
        { vaultId: "9223372036854775809", quantity: "50", withdrawnBefore: "10" },
      ],
      ...SIGNED,
    },
    success: json(202, "The result for each vault.", withdrawalsReply),
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, ...SIGNED_ERRORS],
    handle: async ({ engine, principal, body, request }) => ({
      vaults: (await engine.withdrawals.request(principal, body, paidBy(request))).map(listedView),
    }),
  }),
  endpoint("Withdrawals", "read", "GET /api/v1/withdrawals", "listWithdrawals", {
    summary: "Withdrawals of the application, newest first",
    description: "A page can be shorter than `limit` even if there is a next one.",
    ...paged("WithdrawalPage", withdrawal),
    query: withdrawalQuery,
    inTurn: true,
    handle: ({ engine, applicationId, query, ...call }) =>
      examining(call, (options) => engine.withdrawals.list(applicationId, query, options())),
  }),
  endpoint("Withdrawals", "read", "GET /api/v1/withdrawals/{withdrawalId}", "getWithdrawal", {
    summary: "One withdrawal",
    success: json(200, "The withdrawal.", withdrawal),
    handle: ({ engine, applicationId, params }) =>
      engine.withdrawals.get(applicationId, params.withdrawalId),
  }),
];

/**
 * Withdrawals by the operator's relay for a signed-in owner, whatever application its vaults are
 * of. Each costs the operator gas, so an owner withdraws whole vaults, only so many a day, and each
 * vault of a list costs a unit of its address's rate.
 */
export const ownerWithdrawalEndpoints: readonly Endpoint[] = [
  endpoint("Owners", "owner", `POST ${OWNERS}/prepare`, "prepareOwnerWithdrawals", {
    summary: "What the signed-in owner signs to withdraw its vaults",
    description:
      "Like `POST /api/v1/withdrawals/prepare`, for whole vaults of the owner in any application.",
    body: ownersPreparationBody,
    cost: entriesOf("vaultIds"),
    example: { vaultIds: ["9223372036854775808", "9223372036854775809"] },
    success: json(200, "What to sign.", preparation),
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body: { vaultIds, ...signing } }) {
      // Refuse before the owner signs for nothing.
      ownerRelay.requireFor(owner, vaultIds.length);
      const vaults = vaultIds.map((vaultId) => ({ vaultId }));
      const prepared = await engine.withdrawals.prepare({ owner }, { vaults, ...signing });
      return preparationToWire(prepared, OWNERS);
    },
  }),
  endpoint("Owners", "owner", `POST ${OWNERS}`, "createOwnerWithdrawals", {
    summary: "Withdraw up to 256 vaults of the signed-in owner with one signature",
    description:
      "Takes whole vaults: `quantity` is all that is left of each. Otherwise like the list of an application.",
    body: withdrawalBody,
    cost: entriesOf("vaults"),
    example: { vaults: [{ vaultId: "9223372036854775808", quantity: "1" }], ...SIGNED },
    success: json(202, "The result for each vault.", ownersReply),
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, ...SIGNED_ERRORS, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body, request }) {
      const vaultIds = body.vaults.map(({ vaultId }) => vaultId);
      const newest = await engine.withdrawals.newestOf(owner, vaultIds);
      // A repeated list is answered as before, and costs nothing more.
      const fresh = body.vaults.filter(
        ({ withdrawnBefore }, i) => !covers(newest[i], withdrawnBefore),
      ).length;
      const withdraw = () => engine.withdrawals.request({ owner }, body, paidBy(request));
      const listed = await ownerRelay.count(owner, fresh, withdraw, (listed) => {
        return listed.filter((each) => each.error === null && !each.repeated).length;
      });
      return { vaults: listed.map(listedView) };
    },
  }),
  endpoint("Owners", "owner", `GET ${OWNERS}`, "listOwnerWithdrawals", {
    summary: "The newest withdrawal of each of the signed-in owner's vaults",
    query: ownersQuery,
    success: json(200, "As they are now.", ownersWithdrawals),
    errors: ["vault_not_found"],
    async handle({ engine, owner, query: { vaultId: vaultIds } }) {
      const newest = await engine.withdrawals.newestOf(owner, vaultIds);
      return { vaults: vaultIds.map((vaultId, i) => ({ vaultId, withdrawal: newest[i] ?? null })) };
    },
  }),
];

/**
 * Whether nothing can be accepted for the vault as listed, because this withdrawal of it stands.
 */
function covers(newest: core.Withdrawal | null | undefined, withdrawnBefore: bigint): boolean {
  if (!newest || newest.status === "failed" || isSignatureRefused(newest)) return false;
  return (
    newest.status === "accepted" ||
    newest.status === "submitted" ||
    newest.withdrawnBefore === withdrawnBefore
  );
}

function listedView({ vaultId, withdrawal, error }: core.ListedWithdrawal) {
  return { vaultId, withdrawal, error: error && { code: error.code, detail: error.message } };
}

type PreparationCall = Call<"withdraw", unknown, unknown, z.output<typeof preparationBody>>;

/**
 * The owner's next vaults of a token with something left, at most a list of them. Spent ones are
 * passed over, and each page costs what it examines.
 */
function vaultsOfToken({ engine, applicationId, body, ...call }: PreparationCall) {
  const { service, reply } = call;
  const { ownerAddress, assetId, tokenId, cursor } = body;
  return examining(call, async (options) => {
    const vaults: { vaultId: bigint }[] = [];
    let next: string | null | undefined = cursor;
    while (next !== null && vaults.length < MAX_LISTED_VAULTS) {
      await service.turns.turn(applicationId, reply.raw);
      const limit = Math.min(100, MAX_LISTED_VAULTS - vaults.length);
      const filter = { ownerAddress, assetId, tokenId, limit, cursor: next };
      const page = await engine.vaults.list(applicationId, filter, options());
      for (const { vaultId, status, amount, withdrawnBalance, transferredBalance } of page.data)
        if (status !== "failed" && amount > withdrawnBalance + transferredBalance)
          vaults.push({ vaultId });
      next = page.nextCursor;
    }
    if (vaults.length === 0)
      throw new core.MintmarkError("vault_not_found", "The owner has nothing left of this token.");
    return { vaults, nextCursor: next ?? null };
  });
}
