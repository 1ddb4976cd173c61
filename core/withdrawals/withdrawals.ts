import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { List } from "../ledger/list.ts";
import type { Address, Uuid, VaultId, Withdrawal } from "../model.ts";
import type { ListedVault, PortalIdentity } from "../ports.ts";
import { cancellationId, type WithdrawalListMessage } from "../protocol/typed-data.ts";
import { decodeRecord } from "../store/layout.ts";
import { withdrawalRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { requireUuid } from "../validate.ts";
import {
  isSignatureRefused,
  pendingOf,
  readActivities,
  withdrawalView,
} from "../vaults/activity.ts";
import { lineageFaults } from "../vaults/makings.ts";
import { requireWithdrawable } from "../vaults/movable.ts";
import {
  faultOf,
  requireDeadline,
  type SignedOptions,
  usualDeadline,
  type VaultCaller,
} from "../vaults/signed-requests.ts";
import type { ScanOptions } from "../vaults/transaction-scan.ts";
import { listWithdrawals, type WithdrawalFilter } from "../vaults/transactions.ts";
import { ownVaults } from "../vaults/vaults.ts";
import {
  askedVaults,
  type ListedWithdrawal,
  requestWithdrawals,
  type WithdrawalListRequest,
  without,
} from "./requests.ts";

/** The withdrawals that an owner wants to sign. */
export interface WithdrawalPreparation {
  /** 1 to 256, each vault once; `quantity` in units, default all that are left. */
  readonly vaults: readonly { readonly vaultId: VaultId; readonly quantity?: bigint }[];
  /** Default: the owner. */
  readonly recipient?: Address;
  /** Seconds since 1970; default in seven days. */
  readonly deadline?: bigint;
}

/** The owner signs `withdrawalListTypedData(portal, prepared)`. */
export interface PreparedWithdrawals extends WithdrawalListMessage {
  readonly owner: Address;
  /** The contract that pays: the domain of the message. */
  readonly portal: PortalIdentity;
  /** The vaults that can be withdrawn now, in the order of the request; at least one. */
  readonly vaults: readonly ListedVault[];
  /** The vaults that are left out, with the reason. */
  readonly refused: readonly { readonly vaultId: VaultId; readonly error: MintmarkError }[];
}

async function prepareWithdrawals(
  ledger: Ledger,
  caller: VaultCaller,
  preparation: WithdrawalPreparation,
): Promise<PreparedWithdrawals> {
  const asked = await askedVaults(ledger, caller, preparation);
  const { vaultIds, found, owner, chainId, portal, recipient } = asked;
  const { deadline = usualDeadline(ledger, "withdrawal") } = preparation;
  requireDeadline(ledger, deadline, "withdrawal");
  const ended = await lineageFaults(ledger, found);
  const [activities, cancelled] = await Promise.all([
    readActivities(ledger, vaultIds, null),
    ledger.store.getMany(
      vaultIds.map((vaultId) => keyOf.cancellation(chainId, owner, cancellationId(vaultId))),
    ),
  ]);
  const dead = (await pendingOf(ledger, activities)).filter(isSignatureRefused);
  const vaults: ListedVault[] = [];
  const refused: { vaultId: VaultId; error: MintmarkError }[] = [];
  for (const [i, { vaultId, quantity }] of preparation.vaults.entries()) {
    const error = faultOf(() => {
      const located = found[i];
      if (!located) throw new MintmarkError("vault_not_found");
      const activity = without(activities[i]!, dead);
      const left = located.vault.amount - activity.withdrawn;
      const listed = { vaultId, withdrawnBefore: activity.withdrawn, quantity: quantity ?? left };
      const isCancelled = cancelled[i] !== undefined;
      const vault = { ...located, ended: ended[i] ?? null, isCancelled, activity };
      requireWithdrawable(ledger, caller, listed, vault, null);
      vaults.push(listed);
    });
    if (error !== null) refused.push({ vaultId, error });
  }
  const [first] = refused;
  if (vaults.length === 0 && first !== undefined) throw first.error;
  return { owner, portal, vaults, recipient, deadline, refused };
}

export function withdrawalsOf(context: EngineContext): Withdrawals {
  return {
    request: (caller, request, options) => requestWithdrawals(context, caller, request, options),
    prepare: (caller, preparation) => prepareWithdrawals(context.ledger, caller, preparation),
    async newestOf(owner, vaultIds) {
      const { ledger } = context;
      const asked = vaultIds.map((vaultId) => ({ vaultId }));
      const vaults = await ownVaults(ledger, { owner }, asked);
      return Promise.all(
        vaults.map(async (located, i) => {
          const application =
            located && ledger.tenants.applications.durable.get(located.vault.applicationIndex);
          if (!application) return null;
          const newest = { vaultId: vaultIds[i] as VaultId, limit: 1 };
          return (
            (await listWithdrawals(context, application.applicationId, newest)).data[0] ?? null
          );
        }),
      );
    },
    async get(applicationId, withdrawalId) {
      const { ledger } = context;
      const { applicationIndex } = ledger.tenants.application(applicationId, null);
      const stored = await ledger.store.get(
        keyOf.withdrawal(requireUuid("withdrawalId", withdrawalId)),
      );
      const record =
        stored === undefined
          ? null
          : decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
      if (record?.applicationIndex !== applicationIndex)
        throw new MintmarkError("withdrawal_not_found");
      return withdrawalView(ledger, record);
    },
    list: (applicationId, filter = {}, options = {}) =>
      listWithdrawals(context, applicationId, filter, options),
  };
}

/**
 * Withdrawals of vaults to L1.
 *
 * @example
 * const list = { vaults: [{ vaultId, withdrawnBefore: 0n, quantity: 1n }], deadline, signature };
 * const [{ withdrawal }] = await engine.withdrawals.request(principal, list);
 */
export interface Withdrawals {
  /**
   * Checks the owner's signature and reserves the quantities. Each vault is accepted or refused by
   * itself, in the order of the list; a list that is wrong as a whole, or of which nothing is
   * accepted, rejects. A vault has one pending withdrawal at a time. The same signed list again
   * resolves with the same withdrawals in their current state, also after they were paid or failed,
   * and tries the vaults again that were refused before.
   */
  request(
    caller: VaultCaller,
    request: WithdrawalListRequest,
    options?: SignedOptions,
  ): Promise<readonly ListedWithdrawal[]>;
  /**
   * The message that an owner signs to withdraw from vaults now. Vaults that cannot be withdrawn
   * are left out with the reason; when none is left, rejects with the first reason. Changes
   * nothing.
   */
  prepare(caller: VaultCaller, preparation: WithdrawalPreparation): Promise<PreparedWithdrawals>;
  /**
   * The newest withdrawal of each vault, in the order of the ids; null for one without any, or of
   * another owner.
   */
  newestOf(owner: Address, vaultIds: readonly VaultId[]): Promise<readonly (Withdrawal | null)[]>;
  /** Rejects with `withdrawal_not_found`. */
  get(applicationId: Uuid, withdrawalId: Uuid): Promise<Withdrawal>;
  /** Newest first. Pages can be short, as with {@link Transactions.list}. */
  list(applicationId: Uuid, filter?: WithdrawalFilter, options?: ScanOptions): List<Withdrawal>;
}
