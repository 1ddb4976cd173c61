import type { z } from "zod";
import {
  type Engine,
  MintmarkError,
  type Principal,
  type Vault,
  type WithdrawalPreparation,
} from "../../core/index.ts";
import { MAX_LISTED_VAULTS } from "../../core/protocol/index.ts";
import type { Account } from "../http/access/account.ts";
import { preparationToWire } from "../http/wire/typed-data.ts";
import { listedView } from "../schemas/wire.ts";
import * as s from "../schemas/withdrawals.ts";
import { type Endpoint, endpoint, entriesOf } from "./api/endpoint.ts";

/** What refuses a preparation or a list as a whole. */
export const LIST_ERRORS = ["history_diverged", "vault_not_found", "chain_not_supported", "deadline_invalid"] as const;

/** What refuses the one vault that is left of a preparation. */
export const VAULT_ERRORS = [
  "vault_void",
  "vault_spent",
  "withdrawal_pending",
  "amount_out_of_range",
  "insufficient_balance",
  "proof_not_ready",
] as const;

export const withdrawalEndpoints: readonly Endpoint[] = [
  endpoint("Withdrawals", "withdraw", "POST /api/v1/withdrawals/prepare", "prepareWithdrawals", {
    summary: "What an owner signs to withdraw from vaults, or from all of a token, with one signature",
    description:
      "Answers EIP-712 typed data for `eth_signTypedData_v4`, and the request to send with the signature. Changes nothing. Leaves vaults out that cannot be withdrawn now; it is an error when none is left.",
    body: s.preparationBody,
    cost: entriesOf("vaults"),
    example: { vaults: [{ vaultId: "9223372036854775808" }, { vaultId: "9223372036854775809", quantity: "50" }] },
    success: { status: 200, description: "What to sign.", schemas: [s.preparation] },
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, "cursor_invalid"],
    async handle({ engine, service: { turns }, applicationId, principal, body, request }) {
      const { vaults, recipient, deadline } = body;
      const found =
        vaults === undefined
          ? await vaultsOfToken(engine, principal, body, () => turns.turn(applicationId), request.account)
          : { vaults, nextCursor: null };
      const wanted = { ...found, ...(recipient && { recipient }), ...(deadline !== undefined && { deadline }) };
      const prepared = await engine.withdrawals.prepare(principal, wanted as WithdrawalPreparation);
      const paths = { one: "/api/v1/withdrawals", list: "/api/v1/withdrawals/bulk" };
      return preparationToWire(prepared, paths, found.nextCursor);
    },
  }),
  endpoint("Withdrawals", "withdraw", "POST /api/v1/withdrawals", "createWithdrawal", {
    summary: "Withdraw from a vault to its token's chain with its owner's signature",
    description:
      "Reserves the quantity at once. The withdrawal is sent to the token's chain when the vault's batch is available there and has matured. The same signed request always returns the same withdrawal.",
    body: s.withdrawalBody,
    example: {
      vaultId: "9223372036854775808",
      quantity: "1",
      deadline: "1893456000",
      signature: `0x${"00".repeat(65)}`,
    },
    success: {
      status: 202,
      description: "Accepted.",
      schemas: [s.withdrawal],
      headers: { Location: "Path of the withdrawal." },
    },
    errors: [
      "history_diverged",
      "l1_not_compared",
      "vault_not_found",
      "vault_void",
      "vault_spent",
      "withdrawal_pending",
      "amount_out_of_range",
      "insufficient_balance",
      "signature_invalid",
      "chain_not_supported",
      "deadline_invalid",
      "proof_not_ready",
      "l1_failed",
    ],
    async handle({ engine, principal, body, reply }) {
      const accepted = await engine.withdrawals.request(principal, body);
      reply.header("location", `/api/v1/withdrawals/${accepted.withdrawalId}`);
      return accepted;
    },
  }),
  endpoint("Withdrawals", "withdraw", "POST /api/v1/withdrawals/bulk", "createWithdrawalsBulk", {
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
      deadline: "1893456000",
      signature: `0x${"00".repeat(65)}`,
    },
    success: { status: 202, description: "The result for each vault.", schemas: [s.withdrawalListReply] },
    errors: [
      "history_diverged",
      "l1_not_compared",
      "vault_not_found",
      "signature_invalid",
      "chain_not_supported",
      "deadline_invalid",
      "l1_failed",
    ],
    async handle({ engine, principal, body }) {
      return { vaults: (await engine.withdrawals.requestList(principal, body)).map(listedView) };
    },
  }),
  endpoint("Withdrawals", "read", "GET /api/v1/withdrawals", "listWithdrawals", {
    summary: "Withdrawals of the application, newest first",
    description: "A page can be shorter than `limit` even if there is a next one.",
    query: s.withdrawalQuery,
    success: { status: 200, description: "One page.", schemas: [s.withdrawalPage] },
    inTurn: true,
    handle: ({ engine, applicationId, query }) => engine.withdrawals.list(applicationId, query),
  }),
  endpoint("Withdrawals", "read", "GET /api/v1/withdrawals/{withdrawalId}", "getWithdrawal", {
    summary: "One withdrawal",
    success: { status: 200, description: "The withdrawal.", schemas: [s.withdrawal] },
    errors: ["withdrawal_not_found"],
    handle: ({ engine, applicationId, params }) => engine.withdrawals.get(applicationId, params.withdrawalId),
  }),
];

/**
 * The owner's next vaults of a token with something left, at most a list of them. Spent ones are passed over, a page for
 * each unit of the rate.
 */
async function vaultsOfToken(
  engine: Engine,
  { applicationId }: Principal,
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
  if (vaults.length === 0) throw new MintmarkError("vault_not_found", "The owner has nothing left of this token.");
  return { vaults: vaults.map(({ vaultId }) => ({ vaultId })), nextCursor: next ?? null };
}

function restOf({ amount, withdrawnBalance, transferredBalance }: Vault): bigint {
  return amount - withdrawnBalance - transferredBalance;
}
