import { v7 as uuidv7 } from "uuid";
import { recoverAddress } from "viem";
import type { PendingWithdrawal, WithdrawalRequest } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import { type Address, type Hash, type Hex, MAX_AMOUNT, type Principal, type Uuid, type Withdrawal } from "../model.ts";
import { withdrawalDigest } from "../protocol/typed-data.ts";
import type { WithdrawalEventType } from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import {
  type ActivityRecord,
  activityRecord,
  type WithdrawalRecord,
  withdrawalIdRecord,
  withdrawalRecord,
} from "../store/records.ts";
import { endOf } from "../store/store.ts";
import {
  activityKey,
  applicationWithdrawalKey,
  authorizationKey,
  journalKey,
  PREFIX,
  pendingWithdrawalKey,
  transactionKey,
  userTransactionKey,
  withdrawalKey,
} from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-chunk.ts";
import { tell, withdrawalEvent } from "./event-log.ts";
import type { Ledger } from "./ledger.ts";
import { vaultProof } from "./proofs.ts";
import { readUsers } from "./users.ts";
import { requireAddress, requireHash, requireText, requireUuid } from "./validate.ts";
import { batchAt, decodeActivity, placeOf, readVault } from "./vaults.ts";
import { requireNotVoid } from "./void-runs.ts";

/** Seconds that an authorization must still be good for when it is taken: less would not reach L1 in time. */
const MIN_VALIDITY = 60n;
/** Seconds. A withdrawal that L1 keeps refusing is tried, and its quantity reserved, no longer than this: 30 days. */
const MAX_VALIDITY = 2_592_000n;
const MAX_UINT64 = (1n << 64n) - 1n;
/** r, s and v, as the contract's ECDSA takes them. */
const ECDSA_SIGNATURE = /^0x[0-9a-f]{130}$/;
/** Wallet contracts take signatures of their own form; this bounds them. */
const SIGNATURE = /^0x(?:[0-9a-f]{2}){1,4096}$/;
const SECP256K1_HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** Takes an owner's signed withdrawal and reserves its quantity. */
export async function requestWithdrawal(
  ledger: Ledger,
  principal: Principal,
  request: WithdrawalRequest,
): Promise<Withdrawal> {
  const { vault, ...asked } = await requireRequest(ledger, principal, request);
  const key = activityKey(asked.vaultId);
  const [stored] = await ledger.store.getMany([key]);
  const withdrawnBefore = decodeActivity(stored).withdrawn;
  const digest = withdrawalDigest(ledger.settlement, { ...asked, withdrawnBefore });
  await requireSignature(ledger, vault.owner, digest, asked.signature);
  const record = await ledger.writer.run<WithdrawalRecord>({
    weight: 1,
    keys: () => [key],
    apply(group, [onDisk]) {
      const activity = decodeActivity(group.resolve(key, onDisk));
      requireBalance(vault, activity, withdrawnBefore, asked.quantity);
      // It may have become so since the request was looked at.
      requireNotVoid(ledger.voids, placeOf(asked.vaultId), "latest");
      return acceptWithdrawal(ledger, group, vault, activity, { ...asked, withdrawnBefore, digest });
    },
  });
  return withdrawalView(ledger, record);
}

async function requireRequest(ledger: Ledger, principal: Principal, request: WithdrawalRequest) {
  const { vaultId, quantity, deadline } = request;
  for (const [name, value] of Object.entries({ vaultId, quantity, deadline })) {
    if (typeof value !== "bigint") throw new MintmarkError("validation_failed", `${name} must be a bigint`);
  }
  if (quantity < 1n || quantity > MAX_AMOUNT) throw new MintmarkError("amount_out_of_range");
  if (deadline > MAX_UINT64) throw new MintmarkError("validation_failed", "deadline must be below 2^64");
  const now = BigInt(Math.floor(ledger.clock() / 1000));
  if (deadline < now + MIN_VALIDITY || deadline > now + MAX_VALIDITY) throw new MintmarkError("deadline_invalid");
  const signature = String(request.signature).toLowerCase() as Hex;
  if (!SIGNATURE.test(signature)) throw new MintmarkError("validation_failed", "signature must be 0x hex");
  const place = placeOf(vaultId);
  const { applicationIndex } = ledger.application(principal.applicationId);
  const batch = batchAt(ledger, place);
  const vault = await readVault(ledger, place);
  if (vault.applicationIndex !== applicationIndex) throw new MintmarkError("vault_not_found");
  const { chainId } = ledger.assetAt(vault.assetIndex);
  if (chainId !== ledger.settlement.chainId) {
    throw new MintmarkError(
      "validation_failed",
      `The token lives on chain ${chainId}: withdraw from the mirror there.`,
    );
  }
  if (batch.status === "open") throw new MintmarkError("proof_not_ready", "The vault's batch is not sealed yet.");
  requireNotVoid(ledger.voids, place);
  const recipient = request.recipient === undefined ? vault.owner : requireAddress("recipient", request.recipient);
  return { vaultId, quantity, deadline, signature, recipient, vault };
}

/** ECDSA here; anything else a wallet contract must answer for on L1, if the engine can ask there. */
async function requireSignature(ledger: Ledger, owner: Address, digest: Hash, signature: Hex): Promise<void> {
  if (ECDSA_SIGNATURE.test(signature) && BigInt(`0x${signature.slice(66, 130)}`) <= SECP256K1_HALF_ORDER) {
    const signer = await recoverAddress({ hash: digest, signature }).catch(() => null);
    if (signer?.toLowerCase() === owner) return;
  }
  if (ledger.verifySignature !== undefined && (await ledger.verifySignature(owner, digest, signature))) return;
  throw new MintmarkError("signature_invalid");
}

function requireBalance(vault: StoredVault, activity: ActivityRecord, withdrawnBefore: bigint, quantity: bigint): void {
  if (activity.pending.length > 0) throw new MintmarkError("withdrawal_pending");
  // What was signed names the total before it; if that has moved on, the signature is over another one.
  if (activity.withdrawn !== withdrawnBefore) throw new MintmarkError("signature_invalid");
  if (vault.amount - activity.withdrawn < quantity) throw new MintmarkError("insufficient_balance");
}

type Accepted = Pick<
  WithdrawalRecord,
  "vaultId" | "quantity" | "recipient" | "withdrawnBefore" | "deadline" | "digest" | "signature"
>;

function acceptWithdrawal(
  ledger: Ledger,
  group: Group,
  vault: StoredVault,
  activity: ActivityRecord,
  accepted: Accepted,
): WithdrawalRecord {
  const { applicationIndex, userIndex } = vault;
  const application = ledger.applications.latest(applicationIndex);
  if (application === undefined) throw new Error("a vault's application is missing");
  const sequence = application.nextSequence;
  const { vaultId, quantity, recipient, withdrawnBefore, deadline, digest, signature } = accepted;
  const facts = {
    ...{ withdrawalId: uuidv7(), applicationIndex, userIndex, sequence, vaultId, quantity, recipient },
    ...{ withdrawnBefore, deadline, digest, signature },
  };
  const recorded = ledger.record(group, { kind: "withdrawalRequested", ...facts });
  ledger.putApplication(group, { ...application, nextSequence: sequence + 1 });
  const untouched = { l1TxHash: null, l1BlockNumber: null, failure: null };
  const notYet = { submittedAt: null, settledAt: null, finalizedAt: null, failedAt: null };
  const times = { ...notYet, createdAt: recorded.time, updatedAt: recorded.time };
  const journalSequence = recorded.sequence;
  const record: WithdrawalRecord = { ...facts, journalSequence, status: "accepted", ...untouched, ...times };
  const reference = journalKey(journalSequence).subarray(1);
  group.put(transactionKey(applicationIndex, sequence), reference);
  group.put(userTransactionKey(applicationIndex, userIndex, sequence), reference);
  group.put(applicationWithdrawalKey(applicationIndex, sequence), reference);
  group.stage(authorizationKey(digest), encodeRecord(withdrawalIdRecord, record.withdrawalId));
  setPending(group, record);
  putWithdrawal(ledger, group, record, "withdrawal.accepted");
  putActivity(group, vaultId, reserve(activity, record, recorded.time));
  return record;
}

export function reserve(
  activity: ActivityRecord,
  { withdrawalId, quantity }: WithdrawalRecord,
  now: number,
): ActivityRecord {
  const pending = [...activity.pending, withdrawalId];
  return { ...activity, reserved: activity.reserved + quantity, pending, updatedAt: now };
}

export function release(
  activity: ActivityRecord,
  { withdrawalId, quantity }: WithdrawalRecord,
  now: number,
): ActivityRecord {
  const pending = activity.pending.filter((id) => id !== withdrawalId);
  return { ...activity, reserved: activity.reserved - quantity, pending, updatedAt: now };
}

export function putActivity(group: Group, vaultId: bigint, activity: ActivityRecord): void {
  group.stage(activityKey(vaultId), encodeRecord(activityRecord, activity));
}

export async function readActivity(ledger: Ledger, group: Group, vaultId: bigint): Promise<ActivityRecord> {
  return decodeActivity(await group.read(ledger.store, activityKey(vaultId)));
}

/** Writes a withdrawal as it now is, and tells its application and listeners. */
export function putWithdrawal(ledger: Ledger, group: Group, record: WithdrawalRecord, type: WithdrawalEventType): void {
  tell(ledger, group, record.applicationIndex, record.updatedAt, withdrawalEvent(type, record));
  group.stage(withdrawalKey(record.withdrawalId), encodeRecord(withdrawalRecord, record));
  group.onDurable(() => {
    const application = ledger.applications.get(record.applicationIndex);
    if (application === undefined) return;
    // The user's id is the one thing that the record does not hold; whoever listens gets it a read later.
    void withdrawalView(ledger, record).then((withdrawal) =>
      ledger.emit("withdrawal", { applicationId: application.applicationId, withdrawal }),
    );
  });
}

export function setPending(group: Group, record: WithdrawalRecord): void {
  group.put(pendingWithdrawalKey(record.journalSequence), encodeRecord(withdrawalIdRecord, record.withdrawalId));
}

export function clearPending(group: Group, record: WithdrawalRecord): void {
  group.remove(pendingWithdrawalKey(record.journalSequence));
}

/** A withdrawal as the writer has it. Throws `withdrawal_not_found`. */
export async function latestWithdrawal(ledger: Ledger, group: Group, withdrawalId: Uuid): Promise<WithdrawalRecord> {
  const record = await group.read(ledger.store, withdrawalKey(requireUuid("withdrawalId", withdrawalId)));
  if (record === undefined) throw new MintmarkError("withdrawal_not_found");
  return decodeRecord(withdrawalRecord, record, `Withdrawal ${withdrawalId}`);
}

export async function readWithdrawal(ledger: Ledger, applicationId: Uuid, withdrawalId: Uuid): Promise<Withdrawal> {
  const { applicationIndex } = ledger.application(applicationId);
  const stored = await ledger.store.get(withdrawalKey(requireUuid("withdrawalId", withdrawalId)));
  const record = stored === undefined ? null : decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
  if (record?.applicationIndex !== applicationIndex) throw new MintmarkError("withdrawal_not_found");
  return withdrawalView(ledger, record);
}

/** A withdrawal as its application sees it. */
export async function withdrawalView(ledger: Ledger, record: WithdrawalRecord): Promise<Withdrawal> {
  const [user] = await readUsers(ledger, record.applicationIndex, [record.userIndex]);
  const { withdrawalId, vaultId, quantity, recipient, withdrawnBefore, deadline, status } = record;
  const { l1TxHash, l1BlockNumber, failure, createdAt, updatedAt } = record;
  const message = { withdrawalId, userId: user?.userId ?? "", vaultId, quantity, recipient, withdrawnBefore, deadline };
  return { ...message, status, l1TxHash, l1BlockNumber, failure, createdAt, updatedAt };
}

/** A transaction that carries the withdrawal is on its way. */
export async function recordWithdrawalSubmitted(ledger: Ledger, withdrawalId: Uuid, txHash: Hash): Promise<Withdrawal> {
  const l1TxHash = requireHash("txHash", txHash);
  return changePending(ledger, withdrawalId, "withdrawal.submitted", (record, group) => {
    if (record.l1TxHash === l1TxHash) return record;
    const { time } = ledger.record(group, {
      kind: "withdrawalSubmitted",
      withdrawalId: record.withdrawalId,
      txHash: l1TxHash,
    });
    return { ...record, status: "submitted", l1TxHash, submittedAt: record.submittedAt ?? time, updatedAt: time };
  });
}

/** L1 refused an attempt; the reservation stays. */
export async function recordWithdrawalAttempt(
  ledger: Ledger,
  withdrawalId: Uuid,
  failure: string,
): Promise<Withdrawal> {
  const reason = requireText("failure", failure, 2000);
  return changePending(ledger, withdrawalId, "withdrawal.attempt_refused", (record, group) =>
    attempted(ledger, group, record, reason),
  );
}

export function attempted(ledger: Ledger, group: Group, record: WithdrawalRecord, failure: string): WithdrawalRecord {
  if (record.failure === failure) return record;
  const { time } = ledger.record(group, { kind: "withdrawalAttempted", withdrawalId: record.withdrawalId, failure });
  return { ...record, failure, updatedAt: time };
}

/** Gives up a withdrawal whose authorization can no longer be used, and releases what it reserved. */
export async function recordWithdrawalFailed(
  ledger: Ledger,
  withdrawalId: Uuid,
  failure: string,
  l1Time: bigint,
): Promise<Withdrawal> {
  const reason = requireText("failure", failure, 2000);
  const record = await ledger.writer.alone(async (group) => {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    if (!isPending(known)) return known;
    const activity = await readActivity(ledger, group, known.vaultId);
    const usable = known.deadline >= l1Time && activity.withdrawn === known.withdrawnBefore;
    if (usable) throw new MintmarkError("withdrawal_pending", "The authorization can still be used on L1.");
    const { time } = ledger.record(group, {
      kind: "withdrawalFailed",
      withdrawalId: known.withdrawalId,
      failure: reason,
    });
    return putFailed(ledger, group, known, activity, reason, time);
  });
  return withdrawalView(ledger, record);
}

/** Ends a pending withdrawal and releases what it reserved. */
export function putFailed(
  ledger: Ledger,
  group: Group,
  known: WithdrawalRecord,
  activity: ActivityRecord,
  failure: string,
  time: number,
): WithdrawalRecord {
  const failed: WithdrawalRecord = { ...known, status: "failed", failure, failedAt: time, updatedAt: time };
  clearPending(group, known);
  putWithdrawal(ledger, group, failed, "withdrawal.failed");
  putActivity(group, known.vaultId, release(activity, known, time));
  return failed;
}

export function isPending({ status }: WithdrawalRecord): boolean {
  return status === "accepted" || status === "submitted";
}

/** Changes a withdrawal that is still pending; one that is no longer stays as it is. */
async function changePending(
  ledger: Ledger,
  withdrawalId: Uuid,
  type: WithdrawalEventType,
  change: (record: WithdrawalRecord, group: Group) => WithdrawalRecord,
): Promise<Withdrawal> {
  const record = await ledger.writer.alone(async (group) => {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    const changed = isPending(known) ? change(known, group) : known;
    if (changed !== known) putWithdrawal(ledger, group, changed, type);
    return changed;
  });
  return withdrawalView(ledger, record);
}

/** Withdrawals that L1 can be asked for, oldest first. */
export async function* pendingWithdrawals(ledger: Ledger): AsyncGenerator<PendingWithdrawal> {
  const prefix = Buffer.from([PREFIX.pendingWithdrawal]);
  for await (const [, stored] of ledger.store.entries({ gte: prefix, lt: endOf(prefix) })) {
    const withdrawalId = decodeRecord(withdrawalIdRecord, stored, "A pending withdrawal");
    const found = await ledger.store.get(withdrawalKey(withdrawalId));
    if (found === undefined) throw new MintmarkError("store_corrupt", `Withdrawal ${withdrawalId} is missing.`);
    const record = decodeRecord(withdrawalRecord, found, `Withdrawal ${withdrawalId}`);
    // The list was read from a snapshot: meanwhile it may have been settled.
    if (!isPending(record)) continue;
    const { vault, header, siblings } = await vaultProof(ledger, record.vaultId);
    if (header === null) continue;
    const { assetIndex } = await readVault(ledger, placeOf(record.vaultId));
    const { quantity, recipient, deadline, signature } = record;
    const authorization = { deadline, signature };
    yield {
      withdrawal: await withdrawalView(ledger, record),
      standard: ledger.assetAt(assetIndex).standard,
      call: { vault, header, siblings, quantity, recipient, authorization },
    };
  }
}
