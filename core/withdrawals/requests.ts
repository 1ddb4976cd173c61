import { v7 as uuidv7 } from "uuid";
import { argumentError, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { markRequest } from "../ledger/marks.ts";
import type { Address, Hex, Uuid, VaultId, Withdrawal } from "../model.ts";
import { MODES } from "../model.ts";
import type { ListedVault } from "../ports.ts";
import { portalOf } from "../progress/portals.ts";
import { ecdsaForm } from "../protocol/signature.ts";
import { cancellationId, MAX_LISTED_VAULTS, withdrawalListDigest } from "../protocol/typed-data.ts";
import { requireNotLeftOut, requireNotVoid } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import type { ActivityRecord, WithdrawalRecord } from "../store/records.ts";
import { withdrawalListRecord, withdrawalRecord } from "../store/records.ts";
import { keyOf, prefixOf, requestByKey } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { requireKey } from "../tenants/api-keys.ts";
import { requireAddress } from "../validate.ts";
import {
  isPending,
  isSignatureRefused,
  putActivity,
  putFailed,
  putWithdrawal,
  release,
  reserve,
  withdrawalView,
} from "../vaults/activity.ts";
import { lineageFaults } from "../vaults/makings.ts";
import { requireFree } from "../vaults/movable.ts";
import {
  faultOf,
  requireDeadline,
  type SignedOptions,
  signedForm,
  type VaultCaller,
} from "../vaults/signed-requests.ts";
import { batchAt, decodeActivity, ownVaults, placeOf } from "../vaults/vaults.ts";

/** A list of withdrawals that an owner has signed. */
export interface WithdrawalListRequest {
  /**
   * 1 to 256, each vault once, in the order that was signed. All have one owner, and tokens of one
   * chain.
   */
  readonly vaults: readonly ListedVault[];
  /** Default: the owner. */
  readonly recipient?: Address;
  /** Seconds since 1970, as signed. */
  readonly deadline: bigint;
  /**
   * The owner's EIP-712 `WithdrawalList` message. The domain's contract is the one that `portal`
   * names for the token's chain.
   */
  readonly signature: Hex;
}

/** One vault of a list: its withdrawal as it is now, or why it was not accepted. */
export type ListedWithdrawal =
  | {
      readonly vaultId: VaultId;
      readonly withdrawal: Withdrawal;
      /** Whether an earlier request with the same list was accepted for this vault. */
      readonly repeated: boolean;
      readonly error: null;
    }
  | { readonly vaultId: VaultId; readonly withdrawal: null; readonly error: MintmarkError };

type Outcome = { readonly withdrawalId: Uuid; readonly repeated: boolean } | MintmarkError;

export async function requestWithdrawals(
  { ledger, writer }: EngineContext,
  caller: VaultCaller,
  request: WithdrawalListRequest,
  options: SignedOptions = {},
): Promise<ListedWithdrawal[]> {
  const given = signatureOf(request);
  const { deadline, vaults: listed } = request;
  requireEachOnce(listed);
  const found = await ownVaults(ledger, caller, listed);
  const { owner, chainId } = commonTo(ledger, found);
  const recipient =
    request.recipient === undefined ? owner : requireAddress("recipient", request.recipient);
  // The owner signs for the contract that pays on the token's chain. The message is worthless
  // elsewhere.
  const portal = portalOf(ledger, chainId);
  const digest = withdrawalListDigest(portal, { vaults: listed, recipient, deadline });
  const key = keyOf.withdrawalList(digest);
  const earlier = decodeList(await ledger.store.get(key));
  if (earlier === undefined) requireDeadline(ledger, deadline, MIN_VALIDITY);
  // A wallet contract is asked once: it may answer otherwise later.
  const isKnown = earlier?.signature === given;
  const signed = { chainId, owner, digest, signature: given };
  const signature = isKnown
    ? ((await ecdsaForm(owner, digest, given)) ?? given)
    : await signedForm(ledger.services, signed, options);
  const hasRefused = earlier !== undefined && (await isRefused(ledger, earlier.vaults));
  const dead = await signatureRefused(ledger, listed);
  const ended = await lineageFaults(ledger, listed, found);
  const ids = [digest, ...listed.map(({ vaultId }) => cancellationId(vaultId))];
  const cancellations = ids.map((id) => keyOf.cancellation(chainId, owner, id));
  const outcomes = await writer.run<Outcome[]>(
    {
      weight: listed.length,
      keys: () => [
        key,
        ...listed.map(({ vaultId }) => keyOf.activity(vaultId)),
        ...cancellations,
        ...dead.map(keyOf.withdrawal),
      ],
      apply(group, [stored, ...others]) {
        if (!("owner" in caller)) requireKey(ledger, caller);
        const known = decodeList(group.resolve(key, stored));
        const isCancelled = cancellations.map(
          (cancellation, i) => group.resolve(cancellation, others[listed.length + i]) !== undefined,
        );
        const firstDead = listed.length + cancellations.length;
        const replaceable = dead
          .map((id, i) =>
            decodeWithdrawal(id, group.resolve(keyOf.withdrawal(id), others[firstDead + i])),
          )
          .filter(isSignatureRefused);
        // A fault of the whole list rejects it, unless part was accepted before.
        const fault = faultOf(() => {
          ledger.l1.requirePromising();
          requireDeadline(ledger, deadline, MIN_VALIDITY);
          if (isCancelled[0]) throw new MintmarkError("signature_invalid", CANCELLED_LIST);
        });
        if (fault !== null && known === undefined) throw fault;
        const checked = listed.map((each, i) => {
          const [vault, earlierId] = [found[i] ?? null, known?.vaults[i]?.withdrawalId ?? null];
          if (vault === null) return new MintmarkError("vault_not_found");
          if (earlierId !== null) return { withdrawalId: earlierId, repeated: true };
          const activity = decodeActivity(group.resolve(keyOf.activity(each.vaultId), others[i]));
          const replaced = replaceable.filter(({ vaultId }) => vaultId === each.vaultId);
          const ownFault = faultOf(() => {
            if (ended[i]) throw ended[i];
            if (isCancelled[1 + i]) throw new MintmarkError("signature_invalid", CANCELLED_VAULT);
            requireAcceptable(
              ledger,
              caller,
              each,
              vault,
              without(
                activity,
                replaced.map(({ withdrawalId }) => withdrawalId),
              ),
            );
          });
          return fault ?? ownFault ?? { vault, activity, replaced };
        });
        const [first] = checked;
        if (known === undefined && first instanceof MintmarkError && checked.every(isError))
          throw first;
        // A better signature takes the place of one that L1 refused.
        const isBetter = known !== undefined && known.signature !== signature && hasRefused;
        if (checked.every(isOutcome) && !isBetter) return checked;
        if (known === undefined || isBetter)
          ledger.journal.record(group, {
            kind: "withdrawalListSigned",
            digest,
            signature,
            vaults: listed,
          });
        if (isBetter) group.onDurable(() => ledger.l1.betterSignatures++);
        const accepted = checked.map((one, i) => {
          if (isOutcome(one)) return one;
          const activity = one.replaced.reduce(
            (before, known) => replaceWithdrawal(ledger, group, known, before),
            one.activity,
          );
          const { withdrawalId } = acceptWithdrawal(ledger, group, one.vault, activity, {
            ...listed[i]!,
            chainId,
            recipient,
            deadline,
            digest,
          });
          return { withdrawalId, repeated: false };
        });
        // Vaults of another application keep the withdrawals that it asked for.
        const vaults = listed.map((vault, i) => {
          const outcome = accepted[i];
          const withdrawalId =
            outcome && "withdrawalId" in outcome
              ? outcome.withdrawalId
              : (known?.vaults[i]?.withdrawalId ?? null);
          return { ...vault, withdrawalId };
        });
        const kept = known === undefined || isBetter ? signature : known.signature;
        const list = { signature: kept, vaults };
        group.stage(key, encodeRecord(withdrawalListRecord, list));
        return accepted;
      },
    },
    options?.signal,
  );
  return Promise.all(listed.map((each, i) => viewOf(ledger, each, outcomes[i]!)));
}

/** Whether L1 has refused one of these withdrawals, which still wait. */
async function isRefused(
  ledger: Ledger,
  listed: readonly { readonly withdrawalId: Uuid | null }[],
): Promise<boolean> {
  const asked = listed.flatMap(({ withdrawalId }) => withdrawalId ?? []);
  const records = await Promise.all(asked.map((id) => readWithdrawal(ledger, id)));
  return records.some((record) => isPending(record) && record.failure !== null);
}

/** The withdrawals of these vaults that wait although L1 has refused their signature. */
export async function signatureRefused(
  ledger: Ledger,
  listed: readonly Pick<ListedVault, "vaultId">[],
): Promise<Uuid[]> {
  const activities = await ledger.store.getMany(
    listed.map(({ vaultId }) => keyOf.activity(vaultId)),
  );
  const pending = activities.flatMap((stored) => decodeActivity(stored).pending);
  const records = await Promise.all(pending.map((id) => readWithdrawal(ledger, id)));
  return records.filter(isSignatureRefused).map(({ withdrawalId }) => withdrawalId);
}

/** The activity as if these withdrawals did not wait. */
export function without(activity: ActivityRecord, ended: readonly Uuid[]): ActivityRecord {
  return { ...activity, pending: activity.pending.filter((id) => !ended.includes(id)) };
}

const REPLACED =
  "L1 refused the signature, and the owner has signed another withdrawal of this vault.";

/** Fails a withdrawal whose signature L1 refuses. Returns the vault's activity afterwards. */
function replaceWithdrawal(
  ledger: Ledger,
  group: Group,
  known: WithdrawalRecord,
  activity: ActivityRecord,
): ActivityRecord {
  const { withdrawalId } = known;
  const { time } = ledger.journal.record(group, {
    kind: "withdrawalFailed",
    withdrawalId,
    failure: REPLACED,
  });
  putFailed(ledger, group, known, activity, REPLACED, time);
  return release(activity, known, time);
}

const CANCELLED_LIST = "The owner has cancelled this list on L1. Sign another one.";
export const CANCELLED_VAULT =
  "The owner has cancelled on L1 what it signs of this vault. Only the owner itself can withdraw it there.";

/** The stored list of a digest; undefined for none. */
function decodeList(stored: Buffer | undefined) {
  return stored && decodeRecord(withdrawalListRecord, stored, "A list of withdrawals");
}

/** Throws `store_corrupt` when it is missing. */
export async function readWithdrawal(
  ledger: Ledger,
  withdrawalId: Uuid,
): Promise<WithdrawalRecord> {
  return decodeWithdrawal(withdrawalId, await ledger.store.get(keyOf.withdrawal(withdrawalId)));
}

function decodeWithdrawal(withdrawalId: Uuid, stored: Buffer | undefined): WithdrawalRecord {
  if (stored === undefined)
    throw new MintmarkError("store_corrupt", `Withdrawal ${withdrawalId} is missing.`);
  return decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
}

function isError(checked: object): checked is MintmarkError {
  return checked instanceof MintmarkError;
}

function isOutcome(checked: Outcome | object): checked is Outcome {
  return "withdrawalId" in checked || checked instanceof MintmarkError;
}

export function requireEachOnce(listed: readonly Pick<ListedVault, "vaultId">[]): void {
  if (!Array.isArray(listed) || listed.length < 1 || listed.length > MAX_LISTED_VAULTS)
    throw argumentError("vaults", `must be 1 to ${MAX_LISTED_VAULTS} vaults`);
  if (new Set(listed.map(({ vaultId }) => vaultId)).size !== listed.length)
    throw argumentError("vaults", "must name each vault once");
}

/**
 * Whose vaults they are, and where they are paid: one signature is one owner's, for the contract of
 * one chain.
 */
export function commonTo(ledger: Ledger, found: readonly (StoredVault | null)[]) {
  const vaults = found.filter((vault) => vault !== null);
  const [first] = vaults;
  if (first === undefined) throw new MintmarkError("vault_not_found");
  const { chainId } = ledger.tenants.assetAt(first.assetIndex);
  if (vaults.some(({ owner }) => owner !== first.owner))
    throw argumentError("vaults", "must have one owner; sign one list for each owner");
  if (vaults.some(({ assetIndex }) => ledger.tenants.assetAt(assetIndex).chainId !== chainId))
    throw argumentError("vaults", "must have tokens of one chain; sign one list for each chain");
  return { owner: first.owner, chainId };
}

async function viewOf(
  ledger: Ledger,
  { vaultId }: ListedVault,
  outcome: Outcome,
): Promise<ListedWithdrawal> {
  if (outcome instanceof MintmarkError) return { vaultId, withdrawal: null, error: outcome };
  const { withdrawalId, repeated } = outcome;
  const withdrawal = await withdrawalView(ledger, await readWithdrawal(ledger, withdrawalId));
  return { vaultId, withdrawal, repeated, error: null };
}

/** Least seconds until the deadline of a new request. With less it would not reach L1 in time. */
export const MIN_VALIDITY = 60n;
/** Bound for the signatures of wallet contracts, which have forms of their own. */
const SIGNATURE = /^0x(?:[0-9a-f]{2}){0,4096}$/;

export function signatureOf(request: { readonly signature: Hex }): Hex {
  const signature = String(request.signature).toLowerCase() as Hex;
  if (!SIGNATURE.test(signature)) throw argumentError("signature", "must be 0x hex");
  return signature;
}

/** Throws unless the vault is sealed and can still be paid. */
export function requireReady(ledger: Ledger, vaultId: VaultId, vault: StoredVault): void {
  const place = placeOf(vaultId);
  // The slot of a redemption holds nothing. Neither does the slot of a transfer that does not
  // count.
  if (vault.amount === 0n) throw new MintmarkError("vault_not_found");
  if (batchAt(ledger, place).status === "open")
    throw new MintmarkError("proof_not_ready", "The vault's batch is not sealed yet.");
  requireNotVoid(ledger.batches.voids, place);
  requireNotLeftOut(batchAt(ledger, place), ledger.tenants.assetAt(vault.assetIndex));
}

/**
 * Throws unless the vault can be withdrawn as signed. Each withdrawal costs gas, so an owner takes
 * whole vaults.
 */
export function requireAcceptable(
  ledger: Ledger,
  caller: VaultCaller,
  { vaultId, withdrawnBefore, quantity }: ListedVault,
  vault: StoredVault,
  activity: ActivityRecord,
): void {
  requireReady(ledger, vaultId, vault);
  // A concurrent change may have made it unacceptable since the first check.
  requireNotVoid(ledger.batches.voids, placeOf(vaultId), "latest");
  requireFree(ledger, vaultId, activity);
  // The signature covers the withdrawn total before it. If that total has changed, the signature is
  // for another message.
  if (activity.withdrawn !== withdrawnBefore) throw new MintmarkError("signature_invalid");
  const left = vault.amount - activity.withdrawn;
  if (left < quantity) throw new MintmarkError("insufficient_balance");
  if ("owner" in caller && quantity < left)
    throw new MintmarkError(
      "amount_out_of_range",
      "An owner withdraws all that is left of a vault.",
    );
}

type Accepted = Pick<
  WithdrawalRecord,
  "chainId" | "vaultId" | "quantity" | "recipient" | "withdrawnBefore" | "deadline" | "digest"
>;

function acceptWithdrawal(
  ledger: Ledger,
  group: Group,
  vault: StoredVault,
  activity: ActivityRecord,
  accepted: Accepted,
): WithdrawalRecord {
  const { applicationIndex, userIndex } = vault;
  const sequence = ledger.tenants.applications.change(group, applicationIndex).nextSequence++;
  const requested = { withdrawalId: uuidv7(), applicationIndex, userIndex, sequence, ...accepted };
  const recorded = ledger.journal.record(group, { kind: "withdrawalRequested", ...requested });
  const journalSequence = recorded.sequence;
  const record: WithdrawalRecord = {
    ...requested,
    journalSequence,
    status: "accepted",
    l1TxHash: null,
    l1BlockNumber: null,
    failure: null,
    createdAt: recorded.time,
    submittedAt: null,
    settledAt: null,
    finalizedAt: null,
    failedAt: null,
    updatedAt: recorded.time,
  };
  const reference = keyOf.journal(journalSequence).subarray(1);
  group.put(keyOf.transaction(applicationIndex, sequence), reference);
  group.put(keyOf.userTransaction(applicationIndex, userIndex, sequence), reference);
  for (const of of [
    prefixOf.applicationWithdrawal(applicationIndex),
    prefixOf.userWithdrawal(applicationIndex, userIndex),
    prefixOf.assetWithdrawal(applicationIndex, vault.assetIndex),
    prefixOf.vaultWithdrawal(applicationIndex, accepted.vaultId),
  ])
    group.put(requestByKey(of, sequence), reference);
  const { mode } = placeOf(accepted.vaultId);
  markRequest(
    ledger,
    group,
    applicationIndex,
    sequence,
    [vault.assetIndex],
    mode === "made" ? 0 : 1 << MODES.indexOf(mode),
  );
  putWithdrawal(ledger, group, record, null, "withdrawal.accepted");
  putActivity(ledger, group, record, reserve(activity, record, recorded.time));
  return record;
}
