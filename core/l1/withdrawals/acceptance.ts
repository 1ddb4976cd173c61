import { v7 as uuidv7 } from "uuid";
import { orAborted } from "../../abort.ts";
import { MintmarkError } from "../../errors.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { markRequest } from "../../ledger/marks.ts";
import { type Address, type Hash, type Hex, MODES, type Principal, type VaultId } from "../../model.ts";
import type { ListedVault } from "../../ports.ts";
import { isSignedBy } from "../../protocol/signature.ts";
import { requireNotLeftOut, requireNotVoid } from "../../sealing/void-runs.ts";
import type { Group } from "../../store/group.ts";
import type { ActivityRecord, WithdrawalRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { putActivity, putWithdrawal, reserve } from "../../vaults/activity.ts";
import { batchAt, placeOf } from "../../vaults/vaults.ts";

/** Least seconds until the deadline of a new request. With less it would not reach L1 in time. */
const MIN_VALIDITY = 60n;
/** Seconds until the engine gives up a withdrawal that L1 keeps refusing, and frees its reserve: 30 days. */
const MAX_VALIDITY = 2_592_000n;
/** Bound for the signatures of wallet contracts, which have forms of their own. */
const SIGNATURE = /^0x(?:[0-9a-f]{2}){1,4096}$/;

/** Asks for withdrawals: an application from its vaults, or an owner from its own of any application. */
export type WithdrawalCaller = Principal | { readonly owner: Address };

export function signatureOf(request: { readonly signature: Hex }): Hex {
  const signature = String(request.signature).toLowerCase() as Hex;
  if (!SIGNATURE.test(signature)) throw new MintmarkError("validation_failed", "signature must be 0x hex");
  return signature;
}

export function requireDeadline(ledger: Ledger, deadline: bigint): void {
  const now = BigInt(Math.floor(ledger.journalClock.now() / 1000));
  if (deadline < now + MIN_VALIDITY || deadline > now + MAX_VALIDITY) throw new MintmarkError("deadline_invalid");
}

/** Throws unless the vault is sealed and can still be paid. */
export function requireReady(ledger: Ledger, vaultId: VaultId, vault: StoredVault): void {
  const place = placeOf(vaultId);
  // The slot of a redemption holds nothing. Neither does the slot of a transfer that does not count.
  if (vault.amount === 0n) throw new MintmarkError("vault_not_found");
  if (batchAt(ledger, place).status === "open")
    throw new MintmarkError("proof_not_ready", "The vault's batch is not sealed yet.");
  requireNotVoid(ledger.voids, place);
  requireNotLeftOut(batchAt(ledger, place), ledger.assetAt(vault.assetIndex));
}

/** Checks ECDSA here, and anything else with the wallet contract on the token's chain, if the engine can reach it. */
export async function requireSignature(
  ledger: Ledger,
  chainId: bigint,
  owner: Address,
  digest: Hash,
  signature: Hex,
  signal?: AbortSignal,
): Promise<void> {
  if (await isSignedBy(owner, digest, signature)) return;
  const verified = ledger.verifySignature?.(chainId, owner, digest, signature);
  if (verified !== undefined && (await orAborted(verified, signal))) return;
  throw new MintmarkError("signature_invalid");
}

/** Throws unless the vault can be withdrawn as signed. Each withdrawal costs gas, so an owner takes whole vaults. */
export function requireAcceptable(
  ledger: Ledger,
  caller: WithdrawalCaller,
  { vaultId, withdrawnBefore, quantity }: ListedVault,
  vault: StoredVault,
  activity: ActivityRecord,
): void {
  requireReady(ledger, vaultId, vault);
  // A concurrent change may have made it unacceptable since the first check.
  requireNotVoid(ledger.voids, placeOf(vaultId), "latest");
  if (activity.pending.length > 0) throw new MintmarkError("withdrawal_pending");
  if (activity.spentBy !== null) throw new MintmarkError("vault_spent");
  // The signature covers the withdrawn total before it. If that total has changed, the signature is for another
  // message.
  if (activity.withdrawn !== withdrawnBefore) throw new MintmarkError("signature_invalid");
  const left = vault.amount - activity.withdrawn;
  if (left < quantity) throw new MintmarkError("insufficient_balance");
  if ("owner" in caller && quantity < left)
    throw new MintmarkError("amount_out_of_range", "An owner withdraws all that is left of a vault.");
}

type Accepted = Pick<
  WithdrawalRecord,
  "chainId" | "vaultId" | "quantity" | "recipient" | "withdrawnBefore" | "deadline" | "digest" | "signature"
>;

export function acceptWithdrawal(
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
  const { chainId, vaultId, quantity, recipient, withdrawnBefore, deadline, digest, signature } = accepted;
  const facts = {
    ...{ withdrawalId: uuidv7(), applicationIndex, userIndex, sequence, chainId, vaultId, quantity, recipient },
    ...{ withdrawnBefore, deadline, digest, signature },
  };
  const recorded = ledger.record(group, { kind: "withdrawalRequested", ...facts });
  ledger.putApplication(group, { ...application, nextSequence: sequence + 1 });
  const untouched = { l1TxHash: null, l1BlockNumber: null, failure: null };
  const notYet = { submittedAt: null, settledAt: null, finalizedAt: null, failedAt: null };
  const times = { ...notYet, createdAt: recorded.time, updatedAt: recorded.time };
  const journalSequence = recorded.sequence;
  const record: WithdrawalRecord = { ...facts, journalSequence, status: "accepted", ...untouched, ...times };
  const reference = keys.journalKey(journalSequence).subarray(1);
  group.put(keys.transactionKey(applicationIndex, sequence), reference);
  group.put(keys.userTransactionKey(applicationIndex, userIndex, sequence), reference);
  group.put(keys.applicationWithdrawalKey(applicationIndex, sequence), reference);
  for (const of of [
    keys.withdrawalsOfUser(applicationIndex, userIndex),
    keys.withdrawalsOfAsset(applicationIndex, vault.assetIndex),
    keys.withdrawalsOfVault(applicationIndex, vaultId),
  ])
    group.put(keys.requestByKey(of, sequence), reference);
  const { mode } = placeOf(vaultId);
  markRequest(ledger, group, applicationIndex, sequence, [vault.assetIndex], 1 << MODES.indexOf(mode));
  putWithdrawal(ledger, group, record, null, "withdrawal.accepted");
  putActivity(ledger, group, record, reserve(activity, record, recorded.time));
  return record;
}
