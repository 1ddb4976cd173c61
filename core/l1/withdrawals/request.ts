import type { WaitOptions } from "../../abort.ts";
import { MintmarkError } from "../../errors.ts";
import type { EngineContext } from "../../ledger/context.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { List } from "../../ledger/list.ts";
import type { Address, Hex, Principal, Uuid, VaultId, Withdrawal } from "../../model.ts";
import { MAX_AMOUNT } from "../../model.ts";
import type { ListedVault } from "../../ports.ts";
import { MAX_UINT64 } from "../../protocol/bounds.ts";
import { withdrawalDigest } from "../../protocol/typed-data.ts";
import { decodeRecord, encodeRecord } from "../../store/layout.ts";
import { bigRecord, type WithdrawalRecord, withdrawalIdRecord, withdrawalRecord } from "../../store/records.ts";
import { activityKey, authorizationKey, endOf, vaultEventsOf, withdrawalKey } from "../../store/store-keys.ts";
import { requireKey, requireScope } from "../../tenants/api-keys.ts";
import { requireAddress, requireUuid } from "../../validate.ts";
import { withdrawalView } from "../../vaults/activity.ts";
import { listWithdrawals, type WithdrawalFilter } from "../../vaults/transactions.ts";
import { decodeActivity, placeOf, readVault } from "../../vaults/vaults.ts";
import { portalOf } from "../progress/portals.ts";
import {
  acceptWithdrawal,
  requireAcceptable,
  requireDeadline,
  requireReady,
  requireSignature,
  signatureOf,
  type WithdrawalCaller,
} from "./acceptance.ts";
import {
  isAlone,
  type ListedWithdrawal,
  ownedBy,
  ownVaults,
  requestWithdrawalList,
  type WithdrawalListRequest,
} from "./list.ts";
import { type PreparedWithdrawals, prepareWithdrawals, type WithdrawalPreparation } from "./preparation.ts";

/** A repeated request is recognised among this many earlier totals of a vault. */
const MAX_TOTALS = 1_000;

/**
 * Takes an owner's signed withdrawal and reserves its quantity. The same signed request again returns the same
 * withdrawal in its current state, also when it was paid, has failed, or is past its deadline.
 */
async function requestWithdrawal(
  { ledger, writer }: EngineContext,
  caller: WithdrawalCaller,
  request: WithdrawalRequest & { readonly withdrawnBefore?: bigint },
  signal?: AbortSignal,
): Promise<Accepted> {
  const { vault, portal, ...asked } = await readRequest(ledger, caller, request);
  const earlier = await earlierWithdrawal(ledger, portal, asked);
  if (earlier !== undefined) return { withdrawal: await withdrawalView(ledger, earlier), repeated: true };
  requireDeadline(ledger, asked.deadline);
  requireReady(ledger, asked.vaultId, vault);
  const key = activityKey(asked.vaultId);
  const [stored] = await ledger.store.getMany([key]);
  const { withdrawnBefore = decodeActivity(stored).withdrawn } = request;
  const digest = withdrawalDigest(portal, { ...asked, withdrawnBefore });
  await requireSignature(ledger, portal.chainId, vault.owner, digest, asked.signature, signal);
  const authorization = authorizationKey(digest);
  const accepted = await writer.run<WithdrawalRecord | Uuid>(
    {
      weight: 1,
      keys: () => [key, authorization],
      apply(group, [onDisk, taken]) {
        if (!("owner" in caller)) requireKey(ledger, caller);
        // The same request arrived twice at once, or the owner signed anew with another signature.
        const earlierId = group.resolve(authorization, taken);
        if (earlierId !== undefined) return decodeRecord(withdrawalIdRecord, earlierId, "An authorization");
        ledger.requirePromising();
        const activity = decodeActivity(group.resolve(key, onDisk));
        requireAcceptable(ledger, caller, { ...asked, withdrawnBefore }, vault, activity);
        const accepted = acceptWithdrawal(ledger, group, vault, activity, { ...asked, withdrawnBefore, digest });
        group.stage(authorization, encodeRecord(withdrawalIdRecord, accepted.withdrawalId));
        return accepted;
      },
    },
    signal,
  );
  const repeated = typeof accepted === "string";
  const record = repeated ? await readWithdrawal(ledger, accepted) : accepted;
  return { withdrawal: await withdrawalView(ledger, record), repeated };
}

interface Accepted {
  readonly withdrawal: Withdrawal;
  /** Whether an earlier request with the same signed message was accepted. */
  readonly repeated: boolean;
}

/** A list of the one vault that a transfer made: its owner signs a single withdrawal, since L1 takes no list for it. */
async function requestAlone(
  context: EngineContext,
  caller: WithdrawalCaller,
  { vaults, ...signed }: WithdrawalListRequest,
  signal?: AbortSignal,
): Promise<readonly ListedWithdrawal[]> {
  const [listed] = vaults as readonly [ListedVault];
  const accepted = await requestWithdrawal(context, caller, { ...signed, ...listed }, signal);
  return [{ vaultId: listed.vaultId, ...accepted, error: null }];
}

async function readWithdrawal(ledger: Ledger, withdrawalId: Uuid): Promise<WithdrawalRecord> {
  const stored = await ledger.store.get(withdrawalKey(withdrawalId));
  if (stored === undefined) throw new MintmarkError("store_corrupt", `Withdrawal ${withdrawalId} is missing.`);
  return decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
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
    const record = await readWithdrawal(ledger, decodeRecord(withdrawalIdRecord, id, "An authorization"));
    if (record.signature === asked.signature) return record;
  }
  return undefined;
}

/** Reads what a request claims. {@link requireReady} decides whether it is acceptable now. */
async function readRequest(ledger: Ledger, caller: WithdrawalCaller, request: WithdrawalRequest) {
  const { vaultId, quantity, deadline } = request;
  for (const [name, value] of Object.entries({ vaultId, quantity, deadline })) {
    if (typeof value !== "bigint") throw new MintmarkError("validation_failed", `${name} must be a bigint`);
  }
  if (quantity < 1n || quantity > MAX_AMOUNT) throw new MintmarkError("amount_out_of_range");
  if (deadline > MAX_UINT64) throw new MintmarkError("validation_failed", "deadline must be below 2^64");
  const signature = signatureOf(request);
  const place = placeOf(vaultId);
  const isOwn = ownedBy(ledger, caller);
  const vault = await readVault(ledger, place);
  if (!isOwn(vault)) throw new MintmarkError("vault_not_found");
  const { chainId } = ledger.assetAt(vault.assetIndex);
  // The owner signs for the contract that pays on the token's chain. The message is worthless elsewhere.
  const portal = portalOf(ledger, chainId);
  const recipient = request.recipient === undefined ? vault.owner : requireAddress("recipient", request.recipient);
  return { chainId, vaultId, quantity, deadline, signature, recipient, vault, portal };
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
      return (await requestWithdrawal(context, principal, request, wait?.signal)).withdrawal;
    },
    async requestList(caller, request, wait) {
      if (!("owner" in caller)) requireScope(caller, "withdraw");
      const alone = "owner" in caller && isAlone(context.ledger, request.vaults);
      const take = alone ? requestAlone : requestWithdrawalList;
      return take(context, caller, request, wait?.signal);
    },
    prepare: (caller, preparation) => prepareWithdrawals(context.ledger, caller, preparation),
    async newestOf(owner, vaultIds) {
      const { ledger } = context;
      const vaults = await ownVaults(
        ledger,
        { owner },
        vaultIds.map((vaultId) => ({ vaultId })),
      );
      return Promise.all(
        vaults.map(async (vault, i) => {
          const application = vault && ledger.applications.get(vault.applicationIndex);
          if (!application) return null;
          const newest = { vaultId: vaultIds[i] as VaultId, limit: 1 };
          return (await listWithdrawals(context, application.applicationId, newest)).data[0] ?? null;
        }),
      );
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
  /**
   * The same for many vaults of one owner by one signature. Each vault is accepted or refused by itself, in the order
   * of the list; a list that is wrong as a whole rejects. The same signed list again resolves with the same
   * withdrawals, and tries the vaults again that were refused before. A vault that a transfer made is in no list: an
   * owner gives it alone, with the signature of a single `Withdrawal`, and a refusal of it rejects.
   */
  requestList(
    caller: WithdrawalCaller,
    request: WithdrawalListRequest,
    wait?: WaitOptions,
  ): Promise<readonly ListedWithdrawal[]>;
  /**
   * What an owner signs to withdraw from vaults now. Vaults that cannot be withdrawn are left out with the reason; when
   * none is left, rejects with the first reason. Changes nothing.
   */
  prepare(caller: WithdrawalCaller, preparation: WithdrawalPreparation): Promise<PreparedWithdrawals>;
  /** The newest withdrawal of each vault, in the order of the ids; null for one without any, or of another owner. */
  newestOf(owner: Address, vaultIds: readonly VaultId[]): Promise<readonly (Withdrawal | null)[]>;
  /** Rejects with `withdrawal_not_found`. */
  get(applicationId: Uuid, withdrawalId: Uuid): Promise<Withdrawal>;
  /** Newest first. Pages can be short, as with {@link Transactions.list}. */
  list(applicationId: Uuid, filter?: WithdrawalFilter): List<Withdrawal>;
}
