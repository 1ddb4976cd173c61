import { type Endpoint, endpoint } from "../http/endpoint.ts";
import {
  withdrawal,
  withdrawalBody,
  withdrawalListBody,
  withdrawalListReply,
  withdrawalPage,
  withdrawalParams,
  withdrawalQuery,
} from "../schemas/withdrawals.ts";
import { listedWithdrawalToWire, pageToWire, withdrawalToWire } from "../wire/wire.ts";

export const withdrawalEndpoints: readonly Endpoint[] = [
  endpoint({
    method: "POST",
    path: "/api/v1/withdrawals",
    tag: "Withdrawals",
    access: "withdraw",
    summary: "Withdraw from a vault to its token's chain with its owner's signature",
    description:
      "Reserves the quantity at once. The withdrawal is sent to the token's chain when the vault's batch is available there and has matured. The same signed request always returns the same withdrawal.",
    body: withdrawalBody,
    example: {
      vaultId: "9223372036854775808",
      quantity: "1",
      deadline: "1893456000",
      signature: `0x${"00".repeat(65)}`,
    },
    success: {
      status: 202,
      description: "Accepted.",
      schemas: [withdrawal],
      headers: { Location: "Path of the withdrawal." },
    },
    errors: [
      "history_diverged",
      "l1_not_compared",
      "vault_not_found",
      "vault_void",
      "withdrawal_pending",
      "amount_out_of_range",
      "insufficient_balance",
      "signature_invalid",
      "chain_not_supported",
      "deadline_invalid",
      "proof_not_ready",
      "l1_failed",
    ],
    async handle({ service: { engine }, principal, body, reply }) {
      const accepted = await engine.withdrawals.request(principal, body);
      reply.header("location", `/api/v1/withdrawals/${accepted.withdrawalId}`);
      return withdrawalToWire(accepted);
    },
  }),
  endpoint({
    method: "POST",
    path: "/api/v1/withdrawals/bulk",
    tag: "Withdrawals",
    access: "withdraw",
    summary: "Withdraw from up to 256 vaults with one signature of their owner",
    description:
      "Accepts or refuses each vault separately; check each entry of the response. The same signed list returns the same withdrawals, and retries refused vaults.",
    body: withdrawalListBody,
    cost: countVaults,
    example: {
      vaults: [
        { vaultId: "9223372036854775808", quantity: "1" },
        { vaultId: "9223372036854775809", quantity: "50", withdrawnBefore: "10" },
      ],
      deadline: "1893456000",
      signature: `0x${"00".repeat(65)}`,
    },
    success: { status: 202, description: "The result for each vault.", schemas: [withdrawalListReply] },
    errors: [
      "history_diverged",
      "l1_not_compared",
      "vault_not_found",
      "signature_invalid",
      "chain_not_supported",
      "deadline_invalid",
      "l1_failed",
    ],
    async handle({ service: { engine }, principal, body }) {
      return { vaults: (await engine.withdrawals.requestList(principal, body)).map(listedWithdrawalToWire) };
    },
  }),
  endpoint({
    method: "GET",
    path: "/api/v1/withdrawals",
    tag: "Withdrawals",
    access: "read",
    summary: "Withdrawals of the application, newest first",
    description: "A page can be shorter than `limit` even if there is a next one.",
    query: withdrawalQuery,
    success: { status: 200, description: "One page.", schemas: [withdrawalPage] },
    errors: ["cursor_invalid"],
    async handle({ service: { engine, turns }, principal, query }) {
      await turns.turn(principal.keyId);
      return pageToWire(await engine.withdrawals.list(principal.applicationId, query), withdrawalToWire);
    },
  }),
  endpoint({
    method: "GET",
    path: "/api/v1/withdrawals/{withdrawalId}",
    tag: "Withdrawals",
    access: "read",
    summary: "One withdrawal",
    params: withdrawalParams,
    success: { status: 200, description: "The withdrawal.", schemas: [withdrawal] },
    errors: ["withdrawal_not_found"],
    async handle({ service: { engine }, principal, params }) {
      return withdrawalToWire(await engine.withdrawals.get(principal.applicationId, params.withdrawalId));
    },
  }),
];

function countVaults(body: unknown): number {
  const vaults = (body as { vaults?: unknown } | null)?.vaults;
  return Array.isArray(vaults) ? Math.max(1, vaults.length) : 1;
}
