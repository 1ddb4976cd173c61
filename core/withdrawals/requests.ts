import { v7 as uuidv7 } from "uuid";
import { argumentError, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { markRequest } from "../ledger/marks.ts";
import type { Address, Hex, Uuid, VaultId, Withdrawal } from "../model.ts";
import { MODES } from "../model.ts";
import type { ListedVault } from "../ports.ts";
import { cancellationId, MAX_LISTED_VAULTS, withdrawalListDigest } from "../protocol/typed-data.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import type { ActivityRecord, WithdrawalRecord } from "../store/records.ts";
import { withdrawalListRecord } from "../store/records.ts";
import { keyOf, prefixOf, requestByKey } from "../store/store-keys.ts";
import { requireKey, requireScope } from "../tenants/api-keys.ts";
import { requireAddress } from "../validate.ts";
import {
  decodeWithdrawal,
  failWithdrawal,
  isSignatureRefused,
  pendingOf,
  putActivity,
  putWithdrawal,
  readActivities,
  readWithdrawal,
  reserve,
  withdrawalView,
} from "../vaults/activity.ts";
import { lineageFaults } from "../vaults/makings.ts";
import { requireWithdrawable } from "../vaults/movable.ts";
import {
  faultOf,
  requireDeadline,
  type SignedOptions,
  signedForm,
  type VaultCaller,
} from "../vaults/signed-requests.ts";
import { commonTo, decodeActivity, type LocatedVault, ownVaults } from "../vaults/vaults.ts";

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

/** The vaults of a list that is signed, or will be. */
interface AskedVaults extends Pick<WithdrawalListRequest, "recipient"> {
  readonly vaults: readonly Pick<ListedVault, "vaultId">[];
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

/** A withdrawal of the list; without its record if an earlier request was accepted. */
interface Taken {
  readonly withdrawalId: Uuid;
  readonly record: WithdrawalRecord | null;
}

type Outcome = Taken | MintmarkError;

/** A vault of the list that can be withdrawn, and the withdrawals that the new one replaces. */
interface Acceptable {
  readonly located: LocatedVault;
  readonly activity: ActivityRecord;
  readonly replaced: readonly WithdrawalRecord[];
}

export async function requestWithdrawals(
  { ledger, writer }: EngineContext,
  caller: VaultCaller,
  request: WithdrawalListRequest,
  options: SignedOptions = {},
): Promise<ListedWithdrawal[]> {
  const { deadline, vaults: listed } = request;
  const asked = await askedVaults(ledger, caller, request);
  const { vaultIds, found, owner, chainId, portal, recipient } = asked;
  const given = signatureOf(request);
  const digest = withdrawalListDigest(portal, { vaults: listed, recipient, deadline });
  const key = keyOf.withdrawalList(digest);
  const earlier = decodeList(await ledger.store.get(key));
  if (earlier === undefined) requireDeadline(ledger, deadline, "withdrawal");
  const isKnown = earlier?.signature === given;
  const signed = { chainId, owner, digest, signature: given, isKnown };
  const signature = await signedForm(ledger.services, signed, options);
  // A wallet's answer takes a while, in which L1 may have made a vault anew.
  const ended = await lineageFaults(ledger, found);
  const pending = await pendingOf(ledger, await readActivities(ledger, vaultIds, null));
  const hasRefused = pending.some((one) => one.digest === digest && one.failure !== null);
  const dead = pending.filter(isSignatureRefused).map(({ withdrawalId }) => withdrawalId);
  const ids = [digest, ...vaultIds.map(cancellationId)];
  const cancellations = ids.map((id) => keyOf.cancellation(chainId, owner, id));
  const outcomes = await writer.run<Outcome[]>(
    {
      weight: listed.length,
      keys: () => [
        key,
        ...vaultIds.map(keyOf.activity),
        ...cancellations,
        ...dead.map(keyOf.withdrawal),
      ],
      apply(group, [stored, ...others]) {
        if (!("owner" in caller)) requireKey(ledger, group, caller);
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
          requireDeadline(ledger, deadline, "withdrawal");
          if (isCancelled[0]) throw new MintmarkError("signature_invalid", CANCELLED_LIST);
        });
        if (fault !== null && known === undefined) throw fault;
        const checked = listed.map((each, i): Outcome | Acceptable => {
          const [located, earlierId] = [found[i] ?? null, known?.vaults[i]?.withdrawalId ?? null];
          if (located === null) return new MintmarkError("vault_not_found");
          if (earlierId !== null) return { withdrawalId: earlierId, record: null };
          const activity = decodeActivity(group.resolve(keyOf.activity(each.vaultId), others[i]));
          const replaced = replaceable.filter(({ vaultId }) => vaultId === each.vaultId);
          const vault = {
            ...located,
            ended: ended[i] ?? null,
            isCancelled: isCancelled[1 + i] === true,
            activity: without(activity, replaced),
          };
          const ownFault = faultOf(() => requireWithdrawable(ledger, caller, each, vault, group));
          return fault ?? ownFault ?? { located, activity, replaced };
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
            (before, known) => failWithdrawal(ledger, group, known, before, REPLACED).freed,
            one.activity,
          );
          const record = acceptWithdrawal(ledger, group, one.located, activity, {
            ...listed[i]!,
            chainId,
            recipient,
            deadline,
            digest,
          });
          return { withdrawalId: record.withdrawalId, record };
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
  const views = vaultIds.map(async (vaultId, i): Promise<ListedWithdrawal> => {
    const outcome = outcomes[i]!;
    if (isError(outcome)) return { vaultId, withdrawal: null, error: outcome };
    const record = outcome.record ?? (await readWithdrawal(ledger, outcome.withdrawalId));
    const withdrawal = await withdrawalView(ledger, record);
    return { vaultId, withdrawal, repeated: outcome.record === null, error: null };
  });
  return Promise.all(views);
}

/**
 * Reads the vaults of a list, and what its message says of all of them. The owner signs for the
 * contract that pays on the token's chain: the message is worthless elsewhere.
 */
export async function askedVaults(
  ledger: Ledger,
  caller: VaultCaller,
  { vaults, recipient }: AskedVaults,
) {
  if (!("owner" in caller)) requireScope(caller, "withdraw");
  requireEachOnce(vaults);
  const found = await ownVaults(ledger, caller, vaults);
  const { owner, chainId } = commonTo(ledger, found);
  return {
    vaultIds: vaults.map(({ vaultId }) => vaultId),
    found,
    owner,
    chainId,
    recipient: recipient === undefined ? owner : requireAddress("recipient", recipient),
    portal: ledger.l1.portalOn(chainId, null),
  };
}

/** The activity as if these withdrawals did not wait. */
export function without(
  activity: ActivityRecord,
  ended: readonly Pick<WithdrawalRecord, "withdrawalId">[],
): ActivityRecord {
  const ids = ended.map(({ withdrawalId }) => withdrawalId);
  return { ...activity, pending: activity.pending.filter((id) => !ids.includes(id)) };
}

const REPLACED =
  "L1 refused the signature, and the owner has signed another withdrawal of this vault.";
const CANCELLED_LIST = "The owner has cancelled this list on L1. Sign another one.";

/** The stored list of a digest; undefined for none. */
function decodeList(stored: Buffer | undefined) {
  return stored && decodeRecord(withdrawalListRecord, stored, "A list of withdrawals");
}

function isError(checked: object): checked is MintmarkError {
  return checked instanceof MintmarkError;
}

function isOutcome(checked: Outcome | object): checked is Outcome {
  return "withdrawalId" in checked || checked instanceof MintmarkError;
}

function requireEachOnce(listed: readonly Pick<ListedVault, "vaultId">[]): void {
  if (!Array.isArray(listed) || listed.length < 1 || listed.length > MAX_LISTED_VAULTS)
    throw argumentError("vaults", `must be 1 to ${MAX_LISTED_VAULTS} vaults`);
  if (new Set(listed.map(({ vaultId }) => vaultId)).size !== listed.length)
    throw argumentError("vaults", "must name each vault once");
}

/** Bound for the signatures of wallet contracts, which have forms of their own. */
const SIGNATURE = /^0x(?:[0-9a-f]{2}){0,4096}$/;

function signatureOf(request: { readonly signature: Hex }): Hex {
  const signature = String(request.signature).toLowerCase() as Hex;
  if (!SIGNATURE.test(signature)) throw argumentError("signature", "must be 0x hex");
  return signature;
}

type Accepted = Pick<
  WithdrawalRecord,
  "chainId" | "vaultId" | "quantity" | "recipient" | "withdrawnBefore" | "deadline" | "digest"
>;

function acceptWithdrawal(
  ledger: Ledger,
  group: Group,
  { place: { mode }, vault }: LocatedVault,
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
  markRequest(
    ledger,
    group,
    applicationIndex,
    sequence,
    [vault.assetIndex],
    mode === "made" ? 0 : 1 << MODES.indexOf(mode),
  );
  putActivity(ledger, group, record, reserve(activity, record, recorded.time));
  putWithdrawal(ledger, group, record, null, "withdrawal.accepted");
  return record;
}
