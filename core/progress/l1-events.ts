import { committedCount } from "../batches/batches.ts";
import { least } from "../blocks.ts";
import { applyMade, NOBODY, requireWhole } from "../deposits/makings.ts";
import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import {
  type Address,
  batchIdOf,
  type Hash,
  MAX_AMOUNT,
  MODES,
  type Uuid,
  type VaultId,
} from "../model.ts";
import type { L1Event, MadeEvent } from "../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "../protocol/bounds.ts";
import { isMadeVaultId, MAX_MAKING_VAULTS, unpackMadeVaultId } from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import type {
  ActivityRecord,
  BatchRecord,
  PortalRecord,
  WithdrawalRecord,
} from "../store/records.ts";
import * as records from "../store/records.ts";
import { keyOf, PRESENT, placeOfL1Event, prefixOf } from "../store/store-keys.ts";
import { isPaidBehind, judgeBatch, judgeSpender, keepPaid } from "../transfers/judge.ts";
import { applyPower, type PowerEvent } from "../transfers/powers.ts";
import { orNull, requireHash } from "../validate.ts";
import * as vaults from "../vaults/activity.ts";
import { readMaking } from "../vaults/makings.ts";
import { latestVault, placeOf, readVault } from "../vaults/vaults.ts";
import {
  applyCommitted,
  foreign,
  type Imported,
  isRecordedCommit,
  newestCommitted,
  observing,
  requireOurs,
} from "./batch-progress.ts";
import { putCheckpoint, type ReadOptions } from "./portals.ts";

/** The range of blocks whose events the caller has read. */
export interface EventsOptions extends ReadOptions {
  /**
   * The first block of which `events` has all; default: the one after the last observed block.
   * Events of blocks that were observed before are added where the node left them out.
   */
  readonly fromBlock?: bigint;
  /**
   * The newest block that is known to be final. What L1 made by itself counts from then on;
   * default: nothing after the recorded final blocks.
   */
  readonly finalized?: bigint;
}

/**
 * Returns the number of events that it added; null, and then nothing has changed, when events
 * before them are missing.
 */
export async function recordEvents(
  ledger: Ledger,
  chainId: bigint,
  events: readonly L1Event[],
  toBlock: bigint,
  { signal, blockHash: given, fromBlock, finalized: final = -1n }: EventsOptions = {},
): Promise<number | null> {
  requireBigint("toBlock", toBlock, 0n, MAX_UINT64);
  const blockHash = given === undefined ? null : requireHash("blockHash", given);
  for (const event of events) requireForm(event);
  return observing(ledger, `events of ${chainId}`, signal, async (group) => {
    const portal = ledger.l1.portalOn(chainId, group);
    const { observed, finalized } = portal;
    const first = fromBlock ?? (observed === null ? 0n : observed + 1n);
    const read = events.filter(({ blockNumber }) => blockNumber >= first && blockNumber <= toBlock);
    read.sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
    // All checks come before the first change.
    for (const event of read) await requireKnown(ledger, group, portal, event);
    const known = finalized ?? -1n;
    const isFinal = ({ blockNumber }: L1Event) => blockNumber <= (final > known ? final : known);
    if (observed !== null && first <= observed)
      await requireRecorded(ledger, chainId, read, first, least(toBlock, observed));
    const added: L1Event[] = [];
    for (const event of read) {
      // A reorganisation can give the number of a making to another one.
      if (!isFinal(event) && namesUnknownMaking(ledger, group, event)) continue;
      if (!(await isApplied(ledger, group, chainId, event))) added.push(event);
    }
    const isGap = await followsGap(ledger, group, added);
    if (isGap && fromBlock !== undefined) return null;
    if (isGap && skipsMaking(ledger, group, added)) throw leftOut(toBlock);
    const [earliest] = added;
    let finalAfter = finalized;
    if (earliest !== undefined && finalized !== null && earliest.blockNumber <= finalized) {
      // The added events become final with the next step of finality.
      finalAfter = earliest.blockNumber - 1n;
      const step = { chainId, blockNumber: finalAfter, blockHash: null };
      ledger.journal.record(group, { kind: "l1Finalized", ...step });
    }
    for (const event of added) await applyEvent(ledger, group, chainId, event);
    const isNew = observed === null || toBlock > observed;
    if (isNew) {
      ledger.journal.record(group, {
        kind: "l1Observed",
        chainId,
        blockNumber: toBlock,
        blockHash,
      });
      if (blockHash !== null) putCheckpoint(group, chainId, toBlock, blockHash);
    }
    if (isNew || finalAfter !== finalized)
      ledger.l1.portals.set(group, {
        ...portal,
        observed: isNew ? toBlock : observed,
        finalized: finalAfter,
      });
    return added.length;
  });
}

/**
 * Requires that the node still tells of what was recorded of these blocks, which are on the chain.
 * Absence is no evidence, so nothing is taken back.
 */
async function requireRecorded(
  ledger: Ledger,
  chainId: bigint,
  read: readonly L1Event[],
  first: bigint,
  last: bigint,
): Promise<void> {
  const places = new Set(read.map(({ blockNumber, logIndex }) => `${blockNumber} ${logIndex}`));
  const commits = new Set(
    read.map((event) =>
      event.type === "batchCommitted" ? batchIdOf(event.mode, event.batchNumber) : null,
    ),
  );
  const range = {
    gte: prefixOf.l1Event(chainId, first),
    lt: prefixOf.l1Event(chainId, last + 1n),
  };
  for await (const [key] of ledger.store.entries(range)) {
    const { blockNumber, logIndex } = placeOfL1Event(key);
    if (!places.has(`${blockNumber} ${logIndex}`)) throw leftOut(blockNumber);
  }
  const isSince = ({ l1BlockNumber }: BatchRecord) => (l1BlockNumber ?? 0n) >= first;
  for (const { mode, batchNumber, l1BlockNumber } of newestCommitted(ledger, chainId, isSince))
    if (l1BlockNumber !== null && l1BlockNumber <= last)
      if (!commits.has(batchIdOf(mode, batchNumber))) throw leftOut(l1BlockNumber);
}

function leftOut(blockNumber: bigint): MintmarkError {
  const detail = `the node leaves out an event of block ${blockNumber} that it told of before`;
  return new MintmarkError("l1_failed", `${detail}; nothing is taken back, and it is asked again`);
}

/** Whether nothing of the event is left to apply. */
async function isApplied(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  event: L1Event,
): Promise<boolean> {
  const { type, blockNumber, logIndex } = event;
  if (type === "batchCommitted") return isRecordedCommit(ledger, group, event);
  if (type === "assetTransferable") return true;
  const key =
    type === "batchImported"
      ? keyOf.import(chainId, event.mode, event.batchNumber)
      : keyOf.l1Event(chainId, blockNumber, logIndex);
  return (await ledger.store.get(key)) !== undefined;
}

/**
 * Whether L1's own counts show that events before these are missing: a commit counts the commits
 * before it, and a withdrawal names the vault's total.
 */
async function followsGap(
  ledger: Ledger,
  group: Group,
  added: readonly L1Event[],
): Promise<boolean> {
  if (skipsMaking(ledger, group, added)) return true;
  let commits = MODES.reduce((sum, mode) => sum + committedCount(ledger, mode, group), 0);
  const totals = new Map<VaultId, bigint>();
  for (const event of added) {
    if (event.type === "batchCommitted" && event.sequence > BigInt(commits++)) return true;
    if (event.type !== "withdrawn") continue;
    const { vaultId, quantity, withdrawnTotal } = event;
    const before =
      totals.get(vaultId) ?? (await vaults.readActivity(ledger, group, vaultId)).withdrawn;
    if (withdrawnTotal - quantity > before) return true;
    totals.set(vaultId, withdrawnTotal);
  }
  return false;
}

/** The making that an event makes or withdraws from; null for none. */
function makingOf(event: L1Event): bigint | null {
  if (event.type === "made") return event.making;
  if (event.type !== "withdrawn" || !isMadeVaultId(event.vaultId)) return null;
  return unpackMadeVaultId(event.vaultId).making;
}

function namesUnknownMaking(ledger: Ledger, group: Group, event: L1Event): boolean {
  return (makingOf(event) ?? 0n) > ledger.batches.makings.count(group);
}

/** Whether a making before these is missing: L1 numbers them without gaps. */
function skipsMaking(ledger: Ledger, group: Group, added: readonly L1Event[]): boolean {
  let made = BigInt(ledger.batches.makings.count(group));
  for (const event of added) {
    const making = makingOf(event);
    if (making === null || making <= made) continue;
    if (event.type !== "made" || making > made + 1n) return true;
    made = making;
  }
  return false;
}

/**
 * Throws {@link foreign} for an event of another store's contract, or of data that this store lost.
 */
async function requireKnown(
  ledger: Ledger,
  group: Group,
  portal: PortalRecord,
  event: L1Event,
): Promise<void> {
  if (event.type === "batchCommitted" || event.type === "batchImported")
    requireOurs(ledger, group, portal, event);
  if (event.type === "made") await requireSameMaking(ledger, group, portal, event);
  if (namesUnknownMaking(ledger, group, event)) return;
  if (event.type === "withdrawn") await requireVault(ledger, portal, event.vaultId);
  if (event.type === "duplicateVoided") await requireVault(ledger, portal, event.laterVaultId);
}

/** Requires that the event is whole, and that no other making was final under its number. */
async function requireSameMaking(
  ledger: Ledger,
  group: Group,
  { chainId }: PortalRecord,
  event: MadeEvent,
): Promise<void> {
  requireWhole(ledger, event);
  if (namesUnknownMaking(ledger, group, event)) return;
  const { batchRoot } = await readMaking(ledger, Number(event.making));
  if (batchRoot === event.batchRoot.toLowerCase()) return;
  throw foreign(ledger, chainId, `L1 has another making ${event.making} than this store.`);
}

/** Requires that the vault's token lives on the event's chain: no other chain pays it. */
async function requireVault(
  ledger: Ledger,
  { chainId }: PortalRecord,
  vaultId: bigint,
): Promise<void> {
  const vault = await orNull("vault_not_found", async () => readVault(ledger, placeOf(vaultId)));
  const chainOf = (assetIndex: number) =>
    assetIndex === NOBODY
      ? ledger.services.settlement.chainId
      : ledger.tenants.assetAt(assetIndex).chainId;
  if (vault !== null && chainOf(vault.assetIndex) === chainId) return;
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
    case "made":
      return applyMade(ledger, group, event);
    case "batchImported":
      return applyImported(ledger, group, chainId, event);
    case "withdrawn": {
      const { vaultId, quantity, withdrawnTotal: total } = event;
      const recipient = event.recipient.toLowerCase() as Address;
      return applyWithdrawn(ledger, group, event, { chainId, vaultId, quantity, total, recipient });
    }
    case "duplicateVoided": {
      // The later vault has nothing left: an ERC-721 has one unit.
      const vaultId = event.laterVaultId;
      const exhausted = { chainId, vaultId, quantity: 0n, total: 1n, recipient: null };
      return applyWithdrawn(ledger, group, event, exhausted);
    }
    case "authorizationCancelled":
      return applyCancelled(ledger, group, chainId, event);
    case "sessionAuthorized":
    case "sessionRevoked":
    case "transfersApproved":
    case "transfersCancelled":
      // The settlement contract alone keeps them, because a mirror pays no transferred vault.
      if (chainId === ledger.services.settlement.chainId)
        return applyLatePower(ledger, group, event);
  }
}

/** Applies a power, and decides the transfers once more that L1 committed after it. */
async function applyLatePower(ledger: Ledger, group: Group, event: PowerEvent): Promise<void> {
  const time = await applyPower(ledger, group, event);
  if (time === null) return;
  const isLater = ({ l1BlockNumber }: BatchRecord) => (l1BlockNumber ?? 0n) > event.blockNumber;
  for (const batch of newestCommitted(ledger, ledger.services.settlement.chainId, isLater))
    if (batch.transfers) await judgeBatch(ledger, group, batch, time);
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
  const { chainId, vaultId, total, recipient } = facts;
  const eventKey = keyOf.l1Event(chainId, blockNumber, logIndex);
  if ((await group.read(ledger.store, eventKey)) !== undefined) return;
  const txHash = requireHash("txHash", event.txHash);
  const { time } = ledger.journal.record(group, {
    kind: "vaultWithdrawn",
    ...facts,
    blockNumber,
    logIndex,
    txHash,
  });
  const before = await vaults.readActivity(ledger, group, vaultId);
  // A token that pays refuses no longer.
  // A node may have left out this event, and told of later ones.
  const isVoidInVain = recipient === null && (await isPaidBehind(ledger, group, vaultId));
  const withdrawn = total > before.withdrawn && !isVoidInVain ? total : before.withdrawn;
  let activity: ActivityRecord = { ...before, withdrawn, refusal: null, updatedAt: time };
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
  const { userIndex } = await latestVault(ledger, group, placeOf(vaultId));
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
  if (recipient !== null) await keepPaid(ledger, group, vaultId, time);
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
  ledger.journal.record(group, {
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

type Cancelled = L1Event & { readonly type: "authorizationCancelled" };

async function applyCancelled(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  event: Cancelled,
): Promise<void> {
  const { blockNumber, logIndex } = event;
  const eventKey = keyOf.l1Event(chainId, blockNumber, logIndex);
  if ((await group.read(ledger.store, eventKey)) !== undefined) return;
  const id = requireHash("id", event.id);
  const signer = event.signer.toLowerCase() as Address;
  const cancelled: WithdrawalRecord[] = [];
  for (const withdrawalId of await authorizedBy(ledger, group, id)) {
    const known = await vaults.latestWithdrawal(ledger, group, withdrawalId);
    const { owner } = await readVault(ledger, placeOf(known.vaultId));
    // Anybody can cancel for themselves. Only the owner's cancellation counts.
    if (vaults.isPending(known) && owner === signer) cancelled.push(known);
  }
  cancelled.sort((a, b) => a.journalSequence - b.journalSequence);
  const { time } = ledger.journal.record(group, {
    kind: "authorizationCancelled",
    chainId,
    signer,
    id,
    blockNumber,
    logIndex,
  });
  group.put(keyOf.cancellation(chainId, signer, id), PRESENT);
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
  const withdrawalIds = cancelled.map(({ withdrawalId }) => withdrawalId);
  const told = { ...records.NO_EVENT, withdrawalIds, cancelled: { signer, id } };
  group.stage(eventKey, encodeRecord(records.l1EventRecord, told));
}

/**
 * The withdrawals that a list of this digest, or lists' entries of the vault of this id, ask for.
 */
async function authorizedBy(ledger: Ledger, group: Group, id: Hash): Promise<readonly Uuid[]> {
  if (BigInt(id) <= MAX_UINT64)
    return (await vaults.readActivity(ledger, group, BigInt(id))).pending;
  const list = await group.read(ledger.store, keyOf.withdrawalList(id));
  if (list === undefined) return [];
  const { vaults: listed } = decodeRecord(
    records.withdrawalListRecord,
    list,
    "A list of withdrawals",
  );
  return listed.flatMap(({ withdrawalId }) => withdrawalId ?? []);
}
const MAX_LOG_INDEX = 2 ** 32 - 1;

/** Checks an event's form, whichever reader gave it. Throws `validation_failed`. */
function requireForm(event: L1Event): void {
  requireHash("txHash", event.txHash);
  requireBigint("blockNumber", event.blockNumber, 0n, MAX_UINT64);
  requireInteger("logIndex", event.logIndex, 0, MAX_LOG_INDEX);
  if (event.type === "made") {
    requireBigint("making", event.making, 1n, MAX_UINT64);
    requireHash("batchRoot", event.batchRoot);
    requireInteger("number of vaults", event.vaults.length, 1, MAX_MAKING_VAULTS);
  }
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
  }
  if ("sequence" in event) requireBigint("sequence", event.sequence, 0n, MAX_UINT64);
}
