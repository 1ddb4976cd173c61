import { v7 as uuidv7 } from "uuid";
import { recoverAddress } from "viem";
import { orAborted, type WaitOptions } from "../abort.ts";
import type { StoredVault } from "../columns/vault-columns.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { List } from "../ledger/list.ts";
import { markRequest } from "../ledger/marks.ts";
import type { Uuid, VaultId } from "../model.ts";
import { type Address, type Hash, type Hex, MAX_AMOUNT, MODES, type Principal, type Withdrawal } from "../model.ts";
import { withdrawalDigest } from "../protocol/typed-data.ts";
import { requireNotLeftOut } from "../sealing/left-out.ts";
import { requireNotVoid } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import {
  type ActivityRecord,
  bigRecord,
  type WithdrawalRecord,
  withdrawalIdRecord,
  withdrawalRecord,
} from "../store/records.ts";
import {
  activityKey,
  applicationWithdrawalKey,
  authorizationKey,
  endOf,
  journalKey,
  transactionKey,
  userTransactionKey,
  vaultEventsOf,
  withdrawalByKey,
  withdrawalKey,
  withdrawalsOfAsset,
  withdrawalsOfUser,
  withdrawalsOfVault,
} from "../store/store-keys.ts";
import { requireKey, requireScope } from "../tenants/api-keys.ts";
import { requireAddress, requireUuid } from "../validate.ts";
import { listWithdrawals, type WithdrawalFilter } from "../vaults/transactions.ts";
import { batchAt, decodeActivity, placeOf, readVault } from "../vaults/vaults.ts";
import { putActivity, putWithdrawal, reserve, setPending, withdrawalView } from "../vaults/withdrawals.ts";
import { portalOf } from "./portals.ts";

/** Least seconds until the deadline of a new request. With less it would not reach L1 in time. */
const MIN_VALIDITY = 60n;
/** Seconds until the engine gives up a withdrawal that L1 keeps refusing, and frees its reserve: 30 days. */
const MAX_VALIDITY = 2_592_000n;
const MAX_UINT64 = (1n << 64n) - 1n;
/** r, s and v, as the contract's ECDSA takes them. */
const ECDSA_SIGNATURE = /^0x[0-9a-f]{130}$/;
/** Bound for the signatures of wallet contracts, which have forms of their own. */
const SIGNATURE = /^0x(?:[0-9a-f]{2}){1,4096}$/;
const SECP256K1_HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** A repeated request is recognised among this many earlier totals of a vault. */
const MAX_TOTALS = 1_000;

/**
 * Takes an owner's signed withdrawal and reserves its quantity. The same signed request again returns the same
 * withdrawal in its current state, also when it was paid, has failed, or is past its deadline.
 */
async function requestWithdrawal(
  ledger: Ledger,
  principal: Principal,
  request: WithdrawalRequest,
  signal?: AbortSignal,
): Promise<Withdrawal> {
  const { vault, portal, ...asked } = await readRequest(ledger, principal, request);
  const earlier = await earlierWithdrawal(ledger, portal, asked);
  if (earlier !== undefined) return withdrawalView(ledger, earlier);
  requireAcceptable(ledger, asked, vault);
  const key = activityKey(asked.vaultId);
  const [stored] = await ledger.store.getMany([key]);
  const withdrawnBefore = decodeActivity(stored).withdrawn;
  const digest = withdrawalDigest(portal, { ...asked, withdrawnBefore });
  await requireSignature(ledger, portal.chainId, vault.owner, digest, asked.signature, signal);
  const authorization = authorizationKey(digest);
  const record = await ledger.writer.run<WithdrawalRecord | null>(
    {
      weight: 1,
      keys: () => [key, authorization],
      apply(group, [onDisk, taken]) {
        requireKey(ledger, principal);
        // The same request arrived twice at once.
        if (group.resolve(authorization, taken) !== undefined) return null;
        ledger.requirePromising();
        const activity = decodeActivity(group.resolve(key, onDisk));
        requireBalance(vault, activity, withdrawnBefore, asked.quantity);
        // A concurrent change may have made it unacceptable since the first check.
        requireNotVoid(ledger.voids, placeOf(asked.vaultId), "latest");
        return acceptWithdrawal(ledger, group, vault, activity, { ...asked, withdrawnBefore, digest });
      },
    },
    signal,
  );
  const accepted = record ?? (await earlierWithdrawal(ledger, portal, asked));
  if (accepted === undefined) throw new MintmarkError("store_corrupt", "An authorization names no withdrawal.");
  return withdrawalView(ledger, accepted);
}

type Asked = Pick<WithdrawalRecord, "vaultId" | "quantity" | "recipient" | "deadline" | "signature">;

/**
 * The withdrawal that was accepted for the same signed request. The owner signed one of the vault's earlier withdrawn
 * totals, and the store has each of them.
 */
async function earlierWithdrawal(
  ledger: Ledger,
  portal: Parameters<typeof withdrawalDigest>[0],
  asked: Asked,
): Promise<WithdrawalRecord | undefined> {
  const totals = new Set([0n, decodeActivity(await ledger.store.get(activityKey(asked.vaultId))).withdrawn]);
  const events = vaultEventsOf(asked.vaultId);
  const newest = { gte: events, lt: endOf(events), reverse: true, limit: MAX_TOTALS };
  for await (const [, total] of ledger.store.entries(newest))
    totals.add(decodeRecord(bigRecord, total, "A vault's total"));
  const digests = [...totals].map((withdrawnBefore) => withdrawalDigest(portal, { ...asked, withdrawnBefore }));
  const ids = await ledger.store.getMany(digests.map(authorizationKey));
  for (const id of ids) {
    if (id === undefined) continue;
    const withdrawalId = decodeRecord(withdrawalIdRecord, id, "An authorization");
    const stored = await ledger.store.get(withdrawalKey(withdrawalId));
    if (stored === undefined) throw new MintmarkError("store_corrupt", `Withdrawal ${withdrawalId} is missing.`);
    const record = decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
    if (record.signature === asked.signature) return record;
  }
  return undefined;
}

/** Reads what a request claims. {@link requireAcceptable} decides whether it is acceptable now. */
async function readRequest(ledger: Ledger, principal: Principal, request: WithdrawalRequest) {
  const { vaultId, quantity, deadline } = request;
  for (const [name, value] of Object.entries({ vaultId, quantity, deadline })) {
    if (typeof value !== "bigint") throw new MintmarkError("validation_failed", `${name} must be a bigint`);
  }
  if (quantity < 1n || quantity > MAX_AMOUNT) throw new MintmarkError("amount_out_of_range");
  if (deadline > MAX_UINT64) throw new MintmarkError("validation_failed", "deadline must be below 2^64");
  const signature = String(request.signature).toLowerCase() as Hex;
  if (!SIGNATURE.test(signature)) throw new MintmarkError("validation_failed", "signature must be 0x hex");
  const place = placeOf(vaultId);
  const { applicationIndex } = ledger.application(principal.applicationId);
  const vault = await readVault(ledger, place);
  if (vault.applicationIndex !== applicationIndex) throw new MintmarkError("vault_not_found");
  const { chainId } = ledger.assetAt(vault.assetIndex);
  // The owner signs for the contract that pays on the token's chain. The message is worthless elsewhere.
  const portal = portalOf(ledger, chainId);
  const recipient = request.recipient === undefined ? vault.owner : requireAddress("recipient", request.recipient);
  return { chainId, vaultId, quantity, deadline, signature, recipient, vault, portal };
}

function requireAcceptable(ledger: Ledger, { vaultId, deadline }: Asked, vault: StoredVault): void {
  const now = BigInt(Math.floor(ledger.journalClock.now() / 1000));
  if (deadline < now + MIN_VALIDITY || deadline > now + MAX_VALIDITY) throw new MintmarkError("deadline_invalid");
  const place = placeOf(vaultId);
  if (batchAt(ledger, place).status === "open") {
    throw new MintmarkError("proof_not_ready", "The vault's batch is not sealed yet.");
  }
  requireNotVoid(ledger.voids, place);
  requireNotLeftOut(batchAt(ledger, place), ledger.assetAt(vault.assetIndex));
}

/** Checks ECDSA here, and anything else with the wallet contract on the token's chain, if the engine can reach it. */
async function requireSignature(
  ledger: Ledger,
  chainId: bigint,
  owner: Address,
  digest: Hash,
  signature: Hex,
  signal?: AbortSignal,
): Promise<void> {
  if (ECDSA_SIGNATURE.test(signature) && BigInt(`0x${signature.slice(66, 130)}`) <= SECP256K1_HALF_ORDER) {
    const signer = await recoverAddress({ hash: digest, signature }).catch(() => null);
    if (signer?.toLowerCase() === owner) return;
  }
  const verified = ledger.verifySignature?.(chainId, owner, digest, signature);
  if (verified !== undefined && (await orAborted(verified, signal))) return;
  throw new MintmarkError("signature_invalid");
}

function requireBalance(vault: StoredVault, activity: ActivityRecord, withdrawnBefore: bigint, quantity: bigint): void {
  if (activity.pending.length > 0) throw new MintmarkError("withdrawal_pending");
  // The signature covers the withdrawn total before it. If that total has changed, the signature is for another
  // message.
  if (activity.withdrawn !== withdrawnBefore) throw new MintmarkError("signature_invalid");
  if (vault.amount - activity.withdrawn < quantity) throw new MintmarkError("insufficient_balance");
}

type Accepted = Pick<
  WithdrawalRecord,
  "chainId" | "vaultId" | "quantity" | "recipient" | "withdrawnBefore" | "deadline" | "digest" | "signature"
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
  const reference = journalKey(journalSequence).subarray(1);
  group.put(transactionKey(applicationIndex, sequence), reference);
  group.put(userTransactionKey(applicationIndex, userIndex, sequence), reference);
  group.put(applicationWithdrawalKey(applicationIndex, sequence), reference);
  for (const of of [
    withdrawalsOfUser(applicationIndex, userIndex),
    withdrawalsOfAsset(applicationIndex, vault.assetIndex),
    withdrawalsOfVault(applicationIndex, vaultId),
  ])
    group.put(withdrawalByKey(of, sequence), reference);
  const { mode } = placeOf(vaultId);
  markRequest(ledger, group, applicationIndex, sequence, [vault.assetIndex], 1 << MODES.indexOf(mode));
  group.stage(authorizationKey(digest), encodeRecord(withdrawalIdRecord, record.withdrawalId));
  setPending(group, record);
  putWithdrawal(ledger, group, record, null, "withdrawal.accepted");
  putActivity(ledger, group, record, reserve(activity, record, recorded.time));
  return record;
}

/** An owner's signed request. */
export interface WithdrawalRequest {
  readonly vaultId: VaultId;
  readonly quantity: bigint;
  /** Default: the owner. */
  readonly recipient?: Address;
  /** Seconds since 1970, as signed. */
  readonly deadline: bigint;
  /**
   * The owner's signature over the EIP-712 `Withdrawal` message. `withdrawnBefore` is the vault's `withdrawnBalance`.
   * The domain's contract is the one that `portal` names for the token's chain.
   */
  readonly signature: Hex;
}

export function withdrawalsOf(context: EngineContext): Withdrawals {
  return {
    async request(principal, request, wait) {
      requireScope(principal, "withdraw");
      return requestWithdrawal(context.ledger, principal, request, wait?.signal);
    },
    async get(applicationId, withdrawalId) {
      const { ledger } = context;
      const { applicationIndex } = ledger.application(applicationId);
      const stored = await ledger.store.get(withdrawalKey(requireUuid("withdrawalId", withdrawalId)));
      const record = stored === undefined ? null : decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
      if (record?.applicationIndex !== applicationIndex) throw new MintmarkError("withdrawal_not_found");
      return withdrawalView(ledger, record);
    },
    list: (applicationId, filter = {}) => listWithdrawals(context, applicationId, filter),
  };
}

/**
 * Withdrawals of vaults to L1.
 *
 * @example
 * const signed = { vaultId, quantity: 1n, deadline, signature };
 * const { withdrawalId } = await engine.withdrawals.request(principal, signed);
 */
export interface Withdrawals {
  /**
   * Checks the owner's signature and reserves the quantity. A vault has one pending withdrawal at a time. The same
   * signed request again resolves with the same withdrawal in its current state, also after it was paid or failed.
   */
  request(principal: Principal, request: WithdrawalRequest, wait?: WaitOptions): Promise<Withdrawal>;
  /** Rejects with `withdrawal_not_found`. */
  get(applicationId: Uuid, withdrawalId: Uuid): Promise<Withdrawal>;
  /** Newest first. Pages can be short, as with {@link Transactions.list}. */
  list(applicationId: Uuid, filter?: WithdrawalFilter): List<Withdrawal>;
}
