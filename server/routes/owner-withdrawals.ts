import type { ListedWithdrawal, Withdrawal } from "../../core/index.ts";
import { preparationToWire } from "../http/wire/typed-data.ts";
import { listedView } from "../schemas/wire.ts";
import * as s from "../schemas/withdrawals.ts";
import { type Endpoint, endpoint, entriesOf } from "./api/endpoint.ts";
import { LIST_ERRORS, VAULT_ERRORS } from "./withdrawals.ts";

const LIST = "/owner/v1/withdrawals";

/** Whether nothing can be accepted for the vault as listed, because this withdrawal of it stands. */
function covers(newest: Withdrawal | null | undefined, withdrawnBefore: bigint): boolean {
  if (!newest || newest.status === "failed") return false;
  return newest.status === "accepted" || newest.status === "submitted" || newest.withdrawnBefore === withdrawnBefore;
}

function countAccepted(listed: readonly ListedWithdrawal[]): number {
  return listed.filter((each) => each.error === null && !each.repeated).length;
}

/**
 * Withdrawals by the operator's relay for a signed-in owner, whatever application its vaults are of. Each costs the
 * operator gas, so an owner withdraws whole vaults, only so many a day, and each vault of a list costs a unit of its
 * address's rate.
 */
export const ownerWithdrawalEndpoints: readonly Endpoint[] = [
  endpoint("Owners", "owner", "POST /owner/v1/withdrawals/prepare", "prepareOwnersWithdrawals", {
    summary: "What the signed-in owner signs to withdraw its vaults",
    description:
      "Like `POST /api/v1/withdrawals/prepare`, for whole vaults of the owner in any application. Ask for a vault that a transfer made alone: its answer is a single `Withdrawal`.",
    body: s.ownersPreparationBody,
    cost: entriesOf("vaultIds"),
    example: { vaultIds: ["9223372036854775808", "9223372036854775809"] },
    success: { status: 200, description: "What to sign.", schemas: [s.preparation] },
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body: { vaultIds, recipient, deadline } }) {
      // Before the owner signs in vain.
      ownerRelay.requireFor(owner, vaultIds.length);
      const prepared = await engine.withdrawals.prepare(
        { owner },
        {
          vaults: vaultIds.map((vaultId) => ({ vaultId })),
          ...(recipient && { recipient }),
          ...(deadline !== undefined && { deadline }),
        },
      );
      return preparationToWire(prepared, { one: null, list: LIST });
    },
  }),
  endpoint("Owners", "owner", `POST ${LIST}`, "createOwnersWithdrawals", {
    summary: "Withdraw up to 256 vaults of the signed-in owner with one signature",
    description:
      "Takes whole vaults: `quantity` is all that is left of each. Otherwise like the list of an application. For a vault that a transfer made, alone, the signature is over a single `Withdrawal`.",
    body: s.withdrawalListBody,
    cost: entriesOf("vaults"),
    example: {
      vaults: [{ vaultId: "9223372036854775808", quantity: "1" }],
      deadline: "1893456000",
      signature: `0x${"00".repeat(65)}`,
    },
    success: { status: 202, description: "The result for each vault.", schemas: [s.ownersListReply] },
    errors: [...LIST_ERRORS, ...VAULT_ERRORS, "l1_not_compared", "signature_invalid", "l1_failed", "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, body }) {
      const newest = await engine.withdrawals.newestOf(
        owner,
        body.vaults.map(({ vaultId }) => vaultId),
      );
      // A repeated list is answered as before, and costs nothing more.
      const fresh = body.vaults.filter(({ withdrawnBefore }, i) => !covers(newest[i], withdrawnBefore)).length;
      const request = () => engine.withdrawals.requestList({ owner }, body);
      const listed = await ownerRelay.count(owner, fresh, request, countAccepted);
      return { vaults: listed.map(listedView) };
    },
  }),
  endpoint("Owners", "owner", `GET ${LIST}`, "listOwnersWithdrawals", {
    summary: "The newest withdrawal of each of the signed-in owner's vaults",
    query: s.ownersQuery,
    success: { status: 200, description: "As they are now.", schemas: [s.ownersWithdrawals] },
    async handle({ engine, owner, query: { vaultId: vaultIds } }) {
      const newest = await engine.withdrawals.newestOf(owner, vaultIds);
      return { vaults: vaultIds.map((vaultId, i) => ({ vaultId, withdrawal: newest[i] ?? null })) };
    },
  }),
];
