import { v7 as uuidv7 } from "uuid";
import { orAborted } from "../../abort.ts";
import { MintmarkError } from "../../errors.ts";
import type { EngineContext } from "../../ledger/context.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { markRequest } from "../../ledger/marks.ts";
import type { Address, Hash, Hex, Principal, Uuid, VaultId, Withdrawal } from "../../model.ts";
import { MODES } from "../../model.ts";
import type { ListedVault, PortalIdentity } from "../../ports.ts";
import { isSignedBy } from "../../protocol/signature.ts";
import {
  MAX_LISTED_VAULTS,
  withdrawalDigest,
  withdrawalListDigest,
} from "../../protocol/typed-data.ts";
import { requireNotLeftOut, requireNotVoid } from "../../sealing/void-runs.ts";
import type { Group } from "../../store/group.ts";
import { decodeRecord, encodeRecord } from "../../store/layout.ts";
import type { ActivityRecord, WithdrawalRecord } from "../../store/records.ts";
import {
  bigRecord,
  withdrawalIdRecord,
  withdrawalListRecord,
  withdrawalRecord,
} from "../../store/records.ts";
import { endOf, keyOf, prefixOf, requestByKey } from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { requireKey } from "../../tenants/api-keys.ts";
import { requireAddress } from "../../validate.ts";
import { putActivity, putWithdrawal, reserve, withdrawalView } from "../../vaults/activity.ts";
import { batchAt, decodeActivity, ownVaults, placeOf } from "../../vaults/vaults.ts";
import { portalOf } from "../progress/portals.ts";

/** Earlier totals of a vault among which a repeated request is recognised. */
const MAX_TOTALS = 1_000;

/** What an owner has signed once for many vaults. */
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
  /** The owner's EIP-712 `WithdrawalList` message, of the same domain as a single withdrawal's. */
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

/** A list, or a withdrawal from one vault, of which the total before it may be unknown. */
interface SignedRequest extends Omit<WithdrawalListRequest, "vaults"> {
  readonly vaults: readonly (Omit<ListedVault, "withdrawnBefore"> & {
    readonly withdrawnBefore?: bigint;
  })[];
}

export async function requestWithdrawals(
  { ledger, writer }: EngineContext,
  caller: WithdrawalCaller,
  request: SignedRequest,
  isList: boolean,
  signal?: AbortSignal,
): Promise<ListedWithdrawal[]> {
  const signature = signatureOf(request);
  const { deadline } = request;
  requireEachOnce(request.vaults);
  const found = await ownVaults(ledger, caller, request.vaults);
  const { owner, chainId } = commonTo(ledger, found);
  const recipient =
    request.recipient === undefined ? owner : requireAddress("recipient", request.recipient);
  // The owner signs for the contract that pays on the token's chain. The message is worthless
  // elsewhere.
  const portal = portalOf(ledger, chainId);
  const common = { chainId, recipient, deadline, signature };
  const { listed, isKnown } = isList
    ? { listed: request.vaults as readonly ListedVault[], isKnown: false }
    : await signedTotal(ledger, portal, { ...(request.vaults[0] as ListedVault), ...common });
  const [first] = listed as readonly [ListedVault];
  const digest = isList
    ? withdrawalListDigest(portal, { vaults: listed, ...common })
    : withdrawalDigest(portal, { ...first, ...common });
  const key = (isList ? keyOf.withdrawalList : keyOf.authorization)(digest);
  const earlier = decodeSigned(await ledger.store.get(key), listed, isList);
  if (!isList && earlier === undefined) {
    requireDeadline(ledger, deadline);
    requireReady(ledger, first.vaultId, found[0] as StoredVault);
  }
  if (!isKnown && earlier?.signature !== signature)
    await requireSignature(ledger, chainId, owner, digest, signature, signal);
  const outcomes = await writer.run<Outcome[]>(
    {
      weight: listed.length,
      keys: () => [key, ...listed.map(({ vaultId }) => keyOf.activity(vaultId))],
      apply(group, [stored, ...activities]) {
        if (!("owner" in caller)) requireKey(ledger, caller);
        const known = decodeSigned(group.resolve(key, stored), listed, isList);
        const list = known ?? {
          signature,
          vaults: listed.map((vault) => ({ ...vault, withdrawalId: null })),
        };
        // What is wrong with the request as a whole is said of it, unless some of it was accepted
        // before.
        const fault = faultOf(() => {
          ledger.requirePromising();
          requireDeadline(ledger, deadline);
        });
        if (fault !== null && known === undefined) throw fault;
        const checked = listed.map((each, i) => {
          const [vault, earlierId] = [found[i] ?? null, list.vaults[i]?.withdrawalId ?? null];
          if (vault === null) return new MintmarkError("vault_not_found");
          if (earlierId !== null) return { withdrawalId: earlierId, repeated: true };
          const activity = decodeActivity(
            group.resolve(keyOf.activity(each.vaultId), activities[i]),
          );
          const ownFault = faultOf(() => {
            if (isList) requireListable(ledger, each.vaultId);
            requireAcceptable(ledger, caller, each, vault, activity);
          });
          return fault ?? ownFault ?? { vault, activity };
        });
        if (checked.every(isOutcome)) return checked;
        if (isList && known === undefined)
          ledger.record(group, { kind: "withdrawalListSigned", digest, signature, vaults: listed });
        const accepted = checked.map((one, i) => {
          if (isOutcome(one)) return one;
          const single = isList ? "0x" : signature;
          const facts = {
            ...(listed[i] as ListedVault),
            ...common,
            digest,
            signature: single,
          } as const;
          const { withdrawalId } = acceptWithdrawal(ledger, group, one.vault, one.activity, facts);
          return { withdrawalId, repeated: false };
        });
        // Vaults of another application keep the withdrawals that it asked for.
        const vaults = list.vaults.map((vault, i) => {
          const outcome = accepted[i];
          return outcome && "withdrawalId" in outcome
            ? { ...vault, withdrawalId: outcome.withdrawalId }
            : vault;
        });
        const record = isList
          ? encodeRecord(withdrawalListRecord, { signature: list.signature ?? signature, vaults })
          : encodeRecord(withdrawalIdRecord, vaults[0]?.withdrawalId as Uuid);
        group.stage(key, record);
        return accepted;
      },
    },
    signal,
  );
  return Promise.all(listed.map((each, i) => viewOf(ledger, each, outcomes[i] as Outcome)));
}

/**
 * What was accepted under a digest. A single withdrawal has the signature itself, so its digest
 * names only that.
 */
function decodeSigned(stored: Buffer | undefined, vaults: readonly ListedVault[], isList: boolean) {
  if (stored === undefined) return undefined;
  if (isList) return decodeRecord(withdrawalListRecord, stored, "A list of withdrawals");
  const withdrawalId = decodeRecord(withdrawalIdRecord, stored, "An authorization");
  return { signature: null, vaults: vaults.map((vault) => ({ ...vault, withdrawalId })) };
}

type Asked = Pick<
  WithdrawalRecord,
  "vaultId" | "quantity" | "recipient" | "deadline" | "signature"
>;

/**
 * The vault with the total that its owner signed: that of an earlier request with the same
 * signature, or the given one, or the present one.
 */
async function signedTotal(
  ledger: Ledger,
  portal: PortalIdentity,
  asked: Asked & { readonly withdrawnBefore?: bigint },
) {
  const { vaultId, quantity } = asked;
  const { withdrawn } = decodeActivity(await ledger.store.get(keyOf.activity(vaultId)));
  const totals = new Set([0n, withdrawn]);
  const events = prefixOf.vaultEvent(vaultId);
  const newest = { gte: events, lt: endOf(events), reverse: true, limit: MAX_TOTALS };
  for await (const [, total] of ledger.store.entries(newest))
    totals.add(decodeRecord(bigRecord, total, "A vault's total"));
  const before = [...totals];
  const digests = before.map((withdrawnBefore) =>
    withdrawalDigest(portal, { ...asked, withdrawnBefore }),
  );
  const ids = await ledger.store.getMany(digests.map(keyOf.authorization));
  for (const [i, id] of ids.entries()) {
    if (id === undefined) continue;
    const { signature } = await readWithdrawal(
      ledger,
      decodeRecord(withdrawalIdRecord, id, "An authorization"),
    );
    const withdrawnBefore = before[i] as bigint;
    if (signature === asked.signature)
      return { listed: [{ vaultId, quantity, withdrawnBefore }], isKnown: true };
  }
  return {
    listed: [{ vaultId, quantity, withdrawnBefore: asked.withdrawnBefore ?? withdrawn }],
    isKnown: false,
  };
}

/** Throws `store_corrupt` when it is missing. */
export async function readWithdrawal(
  ledger: Ledger,
  withdrawalId: Uuid,
): Promise<WithdrawalRecord> {
  const stored = await ledger.store.get(keyOf.withdrawal(withdrawalId));
  if (stored === undefined)
    throw new MintmarkError("store_corrupt", `Withdrawal ${withdrawalId} is missing.`);
  return decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
}

function isOutcome(checked: Outcome | object): checked is Outcome {
  return "withdrawalId" in checked || checked instanceof MintmarkError;
}

/** L1 takes no list for a vault that a transfer made. */
function isTransferred(ledger: Ledger, vaultId: VaultId): boolean {
  return batchAt(ledger, placeOf(vaultId)).transfers;
}

/**
 * Whether it is one vault, which a transfer made, so that its owner signs a single `Withdrawal`.
 */
export function isAlone(ledger: Ledger, vaults: readonly Pick<ListedVault, "vaultId">[]): boolean {
  const first = Array.isArray(vaults) && vaults.length === 1 ? vaults[0] : undefined;
  return first !== undefined && isTransferred(ledger, first.vaultId);
}

export function requireListable(ledger: Ledger, vaultId: VaultId): void {
  if (!isTransferred(ledger, vaultId)) return;
  const detail =
    "A transfer made this vault. Ask for it alone and sign one withdrawal, or use its exit kit.";
  throw new MintmarkError("validation_failed", detail);
}

export function faultOf(check: () => unknown): MintmarkError | null {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof MintmarkError) return error;
    throw error;
  }
}

export function requireEachOnce(listed: readonly Pick<ListedVault, "vaultId">[]): void {
  if (!Array.isArray(listed) || listed.length < 1 || listed.length > MAX_LISTED_VAULTS)
    throw new MintmarkError("validation_failed", `A list has 1 to ${MAX_LISTED_VAULTS} vaults.`);
  if (new Set(listed.map(({ vaultId }) => vaultId)).size !== listed.length)
    throw new MintmarkError("validation_failed", "A list names each vault once.");
}

/**
 * Whose vaults they are, and where they are paid: one signature is one owner's, for the contract of
 * one chain.
 */
export function commonTo(ledger: Ledger, found: readonly (StoredVault | null)[]) {
  const vaults = found.filter((vault) => vault !== null);
  const [first] = vaults;
  if (first === undefined) throw new MintmarkError("vault_not_found");
  const { chainId } = ledger.assetAt(first.assetIndex);
  if (vaults.some(({ owner }) => owner !== first.owner))
    throw new MintmarkError(
      "validation_failed",
      "The vaults of a list have one owner. Sign one list for each owner.",
    );
  if (vaults.some(({ assetIndex }) => ledger.assetAt(assetIndex).chainId !== chainId)) {
    const detail = "The tokens of a list live on one chain. Sign one list for each chain.";
    throw new MintmarkError("validation_failed", detail);
  }
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
const MIN_VALIDITY = 60n;
/**
 * Seconds until the engine gives up a withdrawal that L1 keeps refusing, and frees its reserve: 30
 * days.
 */
const MAX_VALIDITY = 2_592_000n;
/** Bound for the signatures of wallet contracts, which have forms of their own. */
const SIGNATURE = /^0x(?:[0-9a-f]{2}){1,4096}$/;

/**
 * Asks for withdrawals: an application from its vaults, or an owner from its own of any
 * application.
 */
export type WithdrawalCaller = Principal | { readonly owner: Address };

export function signatureOf(request: { readonly signature: Hex }): Hex {
  const signature = String(request.signature).toLowerCase() as Hex;
  if (!SIGNATURE.test(signature))
    throw new MintmarkError("validation_failed", "signature must be 0x hex");
  return signature;
}

export function requireDeadline(ledger: Ledger, deadline: bigint): void {
  const now = BigInt(Math.floor(ledger.journalClock.now() / 1000));
  if (deadline < now + MIN_VALIDITY || deadline > now + MAX_VALIDITY)
    throw new MintmarkError("deadline_invalid");
}

/** Throws unless the vault is sealed and can still be paid. */
export function requireReady(ledger: Ledger, vaultId: VaultId, vault: StoredVault): void {
  const place = placeOf(vaultId);
  // The slot of a redemption holds nothing. Neither does the slot of a transfer that does not
  // count.
  if (vault.amount === 0n) throw new MintmarkError("vault_not_found");
  if (batchAt(ledger, place).status === "open")
    throw new MintmarkError("proof_not_ready", "The vault's batch is not sealed yet.");
  requireNotVoid(ledger.voids, place);
  requireNotLeftOut(batchAt(ledger, place), ledger.assetAt(vault.assetIndex));
}

/**
 * Checks ECDSA here, and anything else with the wallet contract on the token's chain, if the engine
 * can reach it.
 */
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

/**
 * Throws unless the vault can be withdrawn as signed. Each withdrawal costs gas, so an owner takes
 * whole vaults.
 */
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
  | "chainId"
  | "vaultId"
  | "quantity"
  | "recipient"
  | "withdrawnBefore"
  | "deadline"
  | "digest"
  | "signature"
>;

function acceptWithdrawal(
  ledger: Ledger,
  group: Group,
  vault: StoredVault,
  activity: ActivityRecord,
  accepted: Accepted,
): WithdrawalRecord {
  const { applicationIndex, userIndex } = vault;
  const sequence = ledger.applications.change(group, applicationIndex).nextSequence++;
  const facts = { withdrawalId: uuidv7(), applicationIndex, userIndex, sequence, ...accepted };
  const recorded = ledger.record(group, { kind: "withdrawalRequested", ...facts });
  const untouched = { l1TxHash: null, l1BlockNumber: null, failure: null };
  const notYet = { submittedAt: null, settledAt: null, finalizedAt: null, failedAt: null };
  const times = { ...notYet, createdAt: recorded.time, updatedAt: recorded.time };
  const journalSequence = recorded.sequence;
  const record: WithdrawalRecord = {
    ...facts,
    journalSequence,
    status: "accepted",
    ...untouched,
    ...times,
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
    1 << MODES.indexOf(mode),
  );
  putWithdrawal(ledger, group, record, null, "withdrawal.accepted");
  putActivity(ledger, group, record, reserve(activity, record, recorded.time));
  return record;
}
