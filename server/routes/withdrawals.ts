import type { z } from "zod";
import * as core from "../../core/index.ts";
import { MAX_LISTED_VAULTS } from "../../core/protocol/index.ts";
import type { Account } from "../http/access/rate-account.ts";
import { preparationToWire } from "../http/wire/typed-data.ts";
import { listedView } from "../schemas/wire.ts";
import * as s from "../schemas/withdrawals.ts";
import { type Endpoint, endpoint, entriesOf, json } from "./api/endpoint.ts";

/** What refuses a preparation or a list as a whole. */
const LIST_ERRORS = ["history_diverged", "vault_not_found", "chain_not_supported", "deadline_invalid"] as const;

/** What refuses the one vault that is left of a preparation. */
const VAULT_ERRORS = [
  "vault_void",
  "vault_spent",
  "withdrawal_pending",
  "amount_out_of_range",
  "insufficient_balance",
  "proof_not_ready",
] as const;

/** What else refuses what an owner has signed. */
const SIGNED_ERRORS = ["l1_not_compared", "signature_invalid", "l1_failed"] as const;

const SIGNED = { deadline: "1893456000", signature: `0x${"00".repeat(65)}` };
const OWNERS = "/owner/v1/withdrawals";

export const withdrawalEndpoints: readonly Endpoint[] = [
  endpoint("Withdrawals", "withdraw", "POST /api/v1/withdrawals/prepare", "prepareWithdrawals", {
    summary: "What an owner signs to withdraw from vaults, or from all of a token, with one signature",
    description:
      "Answers EIP-712 typed data for `eth_signTypedData_v4`, and the request to send with the signature. Changes nothing. Leaves vaults out that cannot be withdrawn now; it is an error when none is left.",
    body: s.preparationBody,
    cost: entriesOf("vaults"),
    example: { vaults: [{ vaultId: "9223372036854775808" }, { vaultId: "9223372036854775809", quantity: "50" }] },
    success: json(200, "What to sign.", s.preparation),
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, "cursor_invalid"],
    async handle({ engine, service: { turns }, applicationId, principal, body, request }) {
      const { vaults, recipient, deadline } = body;
      const found =
        vaults === undefined
          ? await vaultsOfToken(engine, principal, body, () => turns.turn(applicationId), request.account)
          : { vaults, nextCursor: null };
      const wanted = { ...found, ...(recipient && { recipient }), ...(deadline !== undefined && { deadline }) };
      const prepared = await engine.withdrawals.prepare(principal, wanted as core.WithdrawalPreparation);
      const paths = { one: "/api/v1/withdrawals", list: "/api/v1/withdrawals/bulk" };
      return preparationToWire(prepared, paths, found.nextCursor);
    },
  }),
  endpoint("Withdrawals", "withdraw", "POST /api/v1/withdrawals", "createWithdrawal", {
    summary: "Withdraw from a vault to its token's chain with its owner's signature",
    description:
      "Reserves the quantity at once. The withdrawal is sent to the token's chain when the vault's batch is available there and has matured. The same signed request always returns the same withdrawal.",
    body: s.withdrawalBody,
    example: { vaultId: "9223372036854775808", quantity: "1", ...SIGNED },
    success: { ...json(202, "Accepted.", s.withdrawal), headers: { Location: "Path of the withdrawal." } },
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, ...SIGNED_ERRORS],
    async handle({ engine, principal, body, reply }) {
      const accepted = await engine.withdrawals.request(principal, body);
      reply.header("location", `/api/v1/withdrawals/${accepted.withdrawalId}`);
      return accepted;
    },
  }),
  endpoint("Withdrawals", "withdraw", "POST /api/v1/withdrawals/bulk", "createWithdrawals", {
    summary: "Withdraw from up to 256 vaults with one signature of their owner",
    description:
      "Accepts or refuses each vault separately; check each entry of the response. The same signed list returns the same withdrawals, and retries refused vaults.",
    body: s.withdrawalListBody,
    cost: entriesOf("vaults"),
    example: {
      vaults: [
        { vaultId: "9223372036854775808", quantity: "1" },
        { vaultId: "9223372036854775809", quantity: "50", withdrawnBefore: "10" },
      ],
      ...SIGNED,
    },
    success: json(202, "The result for each vault.", s.withdrawalListReply),
    errors: [...LIST_ERRORS, ...SIGNED_ERRORS],
    handle: async ({ engine, principal, body }) => ({
      vaults: (await engine.withdrawals.requestList(principal, body)).map(listedView),
    }),
  }),
  endpoint("Withdrawals", "read", "GET /api/v1/withdrawals", "listWithdrawals", {
    summary: "Withdrawals of the application, newest first",
    description: "A page can be shorter than `limit` even if there is a next one.",
    query: s.withdrawalQuery,
    success: json(200, "One page.", s.withdrawalPage),
    inTurn: true,
    handle: ({ engine, applicationId, query }) => engine.withdrawals.list(applicationId, query),
  }),
  endpoint("Withdrawals", "read", "GET /api/v1/withdrawals/{withdrawalId}", "getWithdrawal", {
    summary: "One withdrawal",
    success: json(200, "The withdrawal.", s.withdrawal),
    errors: ["withdrawal_not_found"],
    handle: ({ engine, applicationId, params }) => engine.withdrawals.get(applicationId, params.withdrawalId),
  }),
];

/**
 * Withdrawals by the operator's relay for a signed-in owner, whatever application its vaults are of. Each costs the
 * operator gas, so an owner withdraws whole vaults, only so many a day, and each vault of a list costs a unit of its
 * address's rate.
 */
export const ownerWithdrawalEndpoints: readonly Endpoint[] = [
  endpoint("Owners", "owner", `POST ${OWNERS}/prepare`, "prepareOwnerWithdrawals", {
    summary: "What the signed-in owner signs to withdraw its vaults",
    description:
      "Like `POST /api/v1/withdrawals/prepare`, for whole vaults of the owner in any application. Ask for a vault that a transfer made alone: its answer is a single `Withdrawal`.",
    body: s.ownersPreparationBody,
    cost: entriesOf("vaultIds"),
    example: { vaultIds: ["9223372036854775808", "9223372036854775809"] },
    success: json(200, "What to sign.", s.preparation),
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body: { vaultIds, ...signing } }) {
      // Refuse before the owner signs for nothing.
      ownerRelay.requireFor(owner, vaultIds.length);
      const vaults = vaultIds.map((vaultId) => ({ vaultId }));
      const prepared = await engine.withdrawals.prepare({ owner }, { vaults, ...signing });
      return preparationToWire(prepared, { one: null, list: OWNERS });
    },
  }),
  endpoint("Owners", "owner", `POST ${OWNERS}`, "createOwnerWithdrawals", {
    summary: "Withdraw up to 256 vaults of the signed-in owner with one signature",
    description:
      "Takes whole vaults: `quantity` is all that is left of each. Otherwise like the list of an application. For a vault that a transfer made, alone, the signature is over a single `Withdrawal`.",
    body: s.withdrawalListBody,
    cost: entriesOf("vaults"),
    example: { vaults: [{ vaultId: "9223372036854775808", quantity: "1" }], ...SIGNED },
    success: json(202, "The result for each vault.", s.ownersListReply),
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, ...SIGNED_ERRORS, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body }) {
      const vaultIds = body.vaults.map(({ vaultId }) => vaultId);
      const newest = await engine.withdrawals.newestOf(owner, vaultIds);
      // A repeated list is answered as before, and costs nothing more.
      const fresh = body.vaults.filter(({ withdrawnBefore }, i) => !covers(newest[i], withdrawnBefore)).length;
      const request = () => engine.withdrawals.requestList({ owner }, body);
      const listed = await ownerRelay.count(owner, fresh, request, countAccepted);
      return { vaults: listed.map(listedView) };
    },
  }),
  endpoint("Owners", "owner", `GET ${OWNERS}`, "listOwnerWithdrawals", {
    summary: "The newest withdrawal of each of the signed-in owner's vaults",
    query: s.ownersQuery,
    success: json(200, "As they are now.", s.ownersWithdrawals),
    async handle({ engine, owner, query: { vaultId: vaultIds } }) {
      const newest = await engine.withdrawals.newestOf(owner, vaultIds);
      return { vaults: vaultIds.map((vaultId, i) => ({ vaultId, withdrawal: newest[i] ?? null })) };
    },
  }),
];

/** Whether nothing can be accepted for the vault as listed, because this withdrawal of it stands. */
function covers(newest: core.Withdrawal | null | undefined, withdrawnBefore: bigint): boolean {
  if (!newest || newest.status === "failed") return false;
  return newest.status === "accepted" || newest.status === "submitted" || newest.withdrawnBefore === withdrawnBefore;
}

function countAccepted(listed: readonly core.ListedWithdrawal[]): number {
  return listed.filter((each) => each.error === null && !each.repeated).length;
}

/**
 * The owner's next vaults of a token with something left, at most a list of them. Spent ones are passed over, a page for
 * each unit of the rate.
 */
async function vaultsOfToken(
  engine: core.Engine,
  { applicationId }: core.Principal,
  { ownerAddress, assetId, tokenId, cursor }: z.output<typeof s.preparationBody>,
  turn: () => Promise<unknown>,
  account: Account | null,
) {
  const token = { ...(ownerAddress && { ownerAddress }), ...(assetId && { assetId }) };
  const filter = { ...token, ...(tokenId !== undefined && { tokenId }) };
  const vaults: { vaultId: bigint }[] = [];
  let next: string | null | undefined = cursor;
  for (let pages = 1; next !== null && vaults.length < MAX_LISTED_VAULTS; pages++) {
    await turn();
    account?.pay(pages);
    const limit = Math.min(100, MAX_LISTED_VAULTS - vaults.length);
    const page = await engine.vaults.list(applicationId, { ...filter, limit, ...(next && { cursor: next }) });
    vaults.push(...page.data.filter((vault) => restOf(vault) > 0n && vault.status !== "failed"));
    next = page.nextCursor;
  }
  if (vaults.length === 0) throw new core.MintmarkError("vault_not_found", "The owner has nothing left of this token.");
  return { vaults: vaults.map(({ vaultId }) => ({ vaultId })), nextCursor: next ?? null };
}

function restOf({ amount, withdrawnBalance, transferredBalance }: core.Vault): bigint {
  return amount - withdrawnBalance - transferredBalance;
}
