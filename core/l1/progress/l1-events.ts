import type { Ledger } from "../../ledger/ledger.ts";
import { type Address, type Hash, MAX_AMOUNT, type Uuid } from "../../model.ts";
import type { L1Event } from "../../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "../../protocol/bounds.ts";
import type { EntryOf } from "../../store/entries.ts";
import type { Group } from "../../store/group.ts";
import { decodeRecord, encodeRecord } from "../../store/layout.ts";
import type { ActivityRecord, PortalRecord, WithdrawalRecord } from "../../store/records.ts";
import * as records from "../../store/records.ts";
import { keyOf } from "../../store/store-keys.ts";
import { judgeSpender } from "../../transfers/judge.ts";
import { applyPower } from "../../transfers/powers.ts";
import { orNull, requireHash } from "../../validate.ts";
import * as vaults from "../../vaults/activity.ts";
import { placeOf, readVault } from "../../vaults/vaults.ts";
import {
  applyCommitted,
  foreign,
  type Imported,
  observing,
  requireOurs,
} from "./batch-progress.ts";
import { latestPortal, putCheckpoint, type ReadOptions } from "./portals.ts";

export async function recordEvents(
  ledger: Ledger,
  chainId: bigint,
  events: readonly L1Event[],
  toBlock: bigint,
  { signal, blockHash: given }: ReadOptions = {},
): Promise<void> {
  requireBigint("toBlock", toBlock, 0n, MAX_UINT64);
  const blockHash = given === undefined ? null : requireHash("blockHash", given);
  for (const event of events) requireForm(event);
  await observing(ledger, signal, async (group) => {
    const portal = latestPortal(ledger, chainId);
    const cursor = portal.observed;
    if (cursor !== null && toBlock <= cursor) return;
    const isFresh = ({ blockNumber }: L1Event) =>
      (cursor === null || blockNumber > cursor) && blockNumber <= toBlock;
    const fresh = events.filter(isFresh);
    fresh.sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
    // All checks come before the first change.
    for (const event of fresh) await requireKnown(ledger, portal, event);
    for (const event of fresh) await applyEvent(ledger, group, chainId, event);
    ledger.record(group, { kind: "l1Observed", chainId, blockNumber: toBlock, blockHash });
    if (blockHash !== null) putCheckpoint(group, chainId, toBlock, blockHash);
    ledger.portals.set(group, { ...portal, observed: toBlock });
  });
}

/**
 * Throws {@link foreign} for an event of another store's contract, or of data that this store lost.
 */
async function requireKnown(ledger: Ledger, portal: PortalRecord, event: L1Event): Promise<void> {
  if (event.type === "batchCommitted" || event.type === "batchImported")
    requireOurs(ledger, portal, event);
  if (event.type === "withdrawn") await requireVault(ledger, portal, event.vaultId);
  if (event.type === "duplicateVoided") await requireVault(ledger, portal, event.laterVaultId);
}

/** Requires that the vault's token lives on the event's chain: no other chain pays it. */
async function requireVault(
  ledger: Ledger,
  { chainId }: PortalRecord,
  vaultId: bigint,
): Promise<void> {
  const vault = await orNull("vault_not_found", async () => readVault(ledger, placeOf(vaultId)));
  if (vault !== null && ledger.assetAt(vault.assetIndex).chainId === chainId) return;
  throw foreign(
    ledger,
    chainId,
    `Chain ${chainId} tells of vault ${vaultId}, which this store does not know there.`,
  );
}

async function applyEvent(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  event: L1Event,
): Promise<unknown> {
  switch (event.type) {
    case "batchCommitted":
      return applyCommitted(ledger, group, event);
    case "batchImported":
      return applyImported(ledger, group, chainId, event);
    case "withdrawn": {
      const { vaultId, quantity, withdrawnTotal: total } = event;
      const recipient = event.recipient.toLowerCase() as Address;
      return applyWithdrawn(ledger, group, event, { chainId, vaultId, quantity, total, recipient });
    }
    case "duplicateVoided": {
      // The later vault has nothing left: an ERC-721 has one unit.
      const exhausted = {
        chainId,
        vaultId: event.laterVaultId,
        quantity: 0n,
        total: 1n,
        recipient: null,
      };
      return applyWithdrawn(ledger, group, event, exhausted);
    }
    case "authorizationCancelled":
      return applyCancelled(ledger, group, chainId, event);
    case "sessionAuthorized":
    case "sessionRevoked":
    case "transfersApproved":
    case "transfersCancelled":
      // The settlement contract alone keeps them, because a mirror pays no transferred vault.
      if (chainId === ledger.settlement.chainId) return applyPower(ledger, group, event);
  }
}

type WithdrawnFacts = Pick<
  EntryOf<"vaultWithdrawn">,
  "chainId" | "vaultId" | "quantity" | "total" | "recipient"
>;

/**
 * Applies the withdrawn total of a vault, whoever withdrew. Settles a pending request, or makes it
 * fail.
 */
async function applyWithdrawn(
  ledger: Ledger,
  group: Group,
  event: L1Event,
  facts: WithdrawnFacts,
): Promise<void> {
  const { blockNumber, logIndex } = event;
  const { chainId, vaultId, total } = facts;
  const eventKey = keyOf.l1Event(chainId, blockNumber, logIndex);
  if ((await group.read(ledger.store, eventKey)) !== undefined) return;
  const txHash = requireHash("txHash", event.txHash);
  const { time } = ledger.record(group, {
    kind: "vaultWithdrawn",
    ...facts,
    blockNumber,
    logIndex,
    txHash,
  });
  const before = await vaults.readActivity(ledger, group, vaultId);
  // A token that pays refuses no longer.
  let activity: ActivityRecord = { ...before, withdrawn: total, refusal: null, updatedAt: time };
  const decided: Uuid[] = [];
  for (const withdrawalId of activity.pending) {
    const known = await vaults.latestWithdrawal(ledger, group, withdrawalId);
    // After a reorganisation, a request that was signed later may wait until earlier ones are paid
    // again.
    if (known.withdrawnBefore >= total) continue;
    activity = vaults.release(activity, known, time);
    decided.push(known.withdrawalId);
    const after = decide(known, facts, { l1TxHash: txHash, l1BlockNumber: blockNumber }, time);
    const type = after.status === "failed" ? "withdrawal.failed" : "withdrawal.settled";
    vaults.putWithdrawal(ledger, group, after, known, type);
  }
  const { userIndex } = await readVault(ledger, placeOf(vaultId));
  vaults.putActivity(ledger, group, { vaultId, userIndex }, activity);
  group.stage(
    eventKey,
    encodeRecord(records.l1EventRecord, { ...records.NO_EVENT, vaultId, withdrawalIds: decided }),
  );
  group.put(
    keyOf.vaultEvent(vaultId, blockNumber, logIndex),
    encodeRecord(records.bigRecord, total),
  );
  await judgeSpender(ledger, group, vaultId, time);
}

/**
 * A mirror knows a batch, so its vaults are withdrawn there with this header. The first header
 * stays.
 */
async function applyImported(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  event: Imported,
): Promise<void> {
  const { mode, batchNumber, blockNumber, logIndex, committedAt, sequence: l1Sequence } = event;
  const key = keyOf.import(chainId, mode, batchNumber);
  if ((await group.read(ledger.store, key)) !== undefined) return;
  const header = { committedAt, l1Sequence };
  ledger.record(group, {
    kind: "batchImported",
    chainId,
    mode,
    batchNumber,
    blockNumber,
    logIndex,
    ...header,
  });
  group.stage(key, encodeRecord(records.importRecord, header));
  const imported = { ...records.NO_EVENT, imported: { mode, batchNumber } };
  group.stage(
    keyOf.l1Event(chainId, blockNumber, logIndex),
    encodeRecord(records.l1EventRecord, imported),
  );
}

/**
 * Only the very withdrawal that a request asks for settles it. Any other one makes its
 * authorization unusable.
 */
function decide(
  known: WithdrawalRecord,
  { quantity, total, recipient }: WithdrawnFacts,
  onL1: Pick<WithdrawalRecord, "l1TxHash" | "l1BlockNumber">,
  time: number,
): WithdrawalRecord {
  const asked =
    known.withdrawnBefore + known.quantity === total &&
    known.quantity === quantity &&
    known.recipient === recipient;
  if (asked) {
    const submittedAt = known.submittedAt ?? time;
    return {
      ...known,
      ...onL1,
      status: "settled",
      failure: null,
      submittedAt,
      settledAt: time,
      updatedAt: time,
    };
  }
  const failure =
    "The owner has withdrawn from this vault on L1, so the authorization is no longer good.";
  return { ...known, status: "failed", failure, failedAt: time, updatedAt: time };
}

async function applyCancelled(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  event: L1Event & { readonly type: "authorizationCancelled" },
): Promise<void> {
  const { blockNumber, logIndex } = event;
  const eventKey = keyOf.l1Event(chainId, blockNumber, logIndex);
  if ((await group.read(ledger.store, eventKey)) !== undefined) return;
  const digest = requireHash("digest", event.digest);
  const { vaultId, withdrawalIds } = await authorizedBy(ledger, group, digest);
  const cancelled: WithdrawalRecord[] = [];
  for (const withdrawalId of withdrawalIds) {
    const known = await vaults.latestWithdrawal(ledger, group, withdrawalId);
    const { owner } = await readVault(ledger, placeOf(known.vaultId));
    // Anybody can cancel a digest of their own making. Only the owner's cancellation counts.
    if (vaults.isPending(known) && owner === event.signer.toLowerCase()) cancelled.push(known);
  }
  if (cancelled.length === 0) return;
  cancelled.sort((a, b) => a.journalSequence - b.journalSequence);
  const signer = event.signer.toLowerCase() as Address;
  const facts = { chainId, signer, digest, blockNumber, logIndex };
  const { time } = ledger.record(group, { kind: "authorizationCancelled", ...facts });
  const failure = "The owner has cancelled the authorization on L1.";
  for (const known of cancelled)
    vaults.putFailed(
      ledger,
      group,
      known,
      await vaults.readActivity(ledger, group, known.vaultId),
      failure,
      time,
    );
  const decided = {
    ...records.NO_EVENT,
    vaultId,
    withdrawalIds: cancelled.map(({ withdrawalId }) => withdrawalId),
  };
  group.stage(eventKey, encodeRecord(records.l1EventRecord, decided));
}

/**
 * What was accepted for a signed digest: the withdrawal of its vault, or those of a list's vaults.
 */
async function authorizedBy(ledger: Ledger, group: Group, digest: Hash) {
  const single = await group.read(ledger.store, keyOf.authorization(digest));
  if (single !== undefined) {
    const withdrawalId = decodeRecord(records.withdrawalIdRecord, single, "An authorization");
    const { vaultId } = await vaults.latestWithdrawal(ledger, group, withdrawalId);
    return { vaultId, withdrawalIds: [withdrawalId] };
  }
  const list = await group.read(ledger.store, keyOf.withdrawalList(digest));
  if (list === undefined) return { vaultId: null, withdrawalIds: [] };
  const { vaults: listed } = decodeRecord(
    records.withdrawalListRecord,
    list,
    "A list of withdrawals",
  );
  return { vaultId: null, withdrawalIds: listed.flatMap(({ withdrawalId }) => withdrawalId ?? []) };
}

const MAX_LOG_INDEX = 2 ** 32 - 1;

/** Checks an event's form, whichever reader gave it. Throws `validation_failed`. */
function requireForm(event: L1Event): void {
  requireHash("txHash", event.txHash);
  requireBigint("blockNumber", event.blockNumber, 0n, MAX_UINT64);
  requireInteger("logIndex", event.logIndex, 0, MAX_LOG_INDEX);
  if (event.type === "withdrawn") {
    requireBigint("quantity", event.quantity, 0n, MAX_AMOUNT);
    requireBigint("withdrawnTotal", event.withdrawnTotal, 0n, MAX_AMOUNT);
  }
  if ("digest" in event) requireHash("digest", event.digest);
  if (event.type === "sessionAuthorized") {
    requireHash("assetType", event.assetType);
    for (const name of ["until", "limit", "authorizedAt"] as const)
      requireBigint(name, event[name], 0n, MAX_UINT64);
  }
  if (event.type === "sessionRevoked") requireBigint("revokedAt", event.revokedAt, 0n, MAX_UINT64);
  if (event.type === "transfersApproved")
    requireBigint("approvedAt", event.approvedAt, 0n, MAX_UINT64);
  if (event.type === "transfersCancelled")
    requireBigint("cancelledAt", event.cancelledAt, 0n, MAX_UINT64);
  if (event.type === "batchCommitted" || event.type === "batchImported") {
    requireBigint("committedAt", event.committedAt, 0n, MAX_UINT64);
    requireBigint("sequence", event.sequence, 0n, MAX_UINT64);
  }
}
