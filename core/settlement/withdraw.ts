import type { Engine } from "../engine.ts";
import type { PendingWithdrawal } from "../engine-types.ts";
import type { L1Committer, L1Reader } from "../ports.ts";

/** Withdrawals of one transaction. */
const MAX_ITEMS = 20;

/**
 * Sends the pending withdrawals that would succeed now, together, and returns how many. Each is tried by simulation first: one that would fail is left
 * out, with its reason on record, so that a token that always refuses costs nobody else anything. Immature ERC-721 vaults simply wait.
 */
export async function sendWithdrawals(
  engine: Engine,
  l1: L1Reader & L1Committer,
  signal?: AbortSignal,
): Promise<number> {
  const maturity = await l1.maturity();
  const now = (await l1.block("latest"))?.timestamp ?? 0n;
  const ready: PendingWithdrawal[] = [];
  for await (const pending of engine.pendingWithdrawals()) {
    signal?.throwIfAborted();
    const { withdrawal, standard, call } = pending;
    if (standard === "erc721" && call.header.committedAt + maturity > now) continue;
    if (await giveUp(engine, pending, l1)) continue;
    const refusal = await l1.checkWithdrawal(call);
    if (refusal !== null) await engine.recordWithdrawalAttempt(withdrawal.withdrawalId, refusal);
    else if (ready.push(pending) === MAX_ITEMS) break;
  }
  if (ready.length === 0) return 0;
  await l1.withdraw(
    ready.map(({ call }) => call),
    {
      ...(signal && { signal }),
      onSent: async (txHash) => {
        for (const { withdrawal } of ready) await engine.recordWithdrawalSubmitted(withdrawal.withdrawalId, txHash);
      },
    },
  );
  return ready.length;
}

/** Releases the reservation once the authorization can never be used again: its deadline lies before a finalized block. */
async function giveUp(engine: Engine, { withdrawal }: PendingWithdrawal, l1: L1Reader): Promise<boolean> {
  const finalized = await l1.block(await l1.finalizedBlockNumber());
  if (finalized === null || finalized.timestamp <= withdrawal.deadline) return false;
  const reason = withdrawal.failure ?? "the authorization expired before L1 could take it";
  await engine.recordWithdrawalFailed(withdrawal.withdrawalId, reason, finalized.timestamp);
  return true;
}
