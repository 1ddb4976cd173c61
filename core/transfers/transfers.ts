import { getSignPayload } from "ox/TypedData";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { List } from "../ledger/list.ts";
import { readUsers } from "../ledger/user-records.ts";
import type { Address, Hash, Hex, Uuid, VaultId } from "../model.ts";
import {
  type SessionMessage,
  sessionTypedData,
  type Transfer,
  type TransfersMessage,
} from "../protocol/transfer.ts";
import type { TransferSession } from "../protocol/transfer-rules.ts";
import { decodeRecord } from "../store/layout.ts";
import { type TransferListRecord, transferIdRecord, transferListRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { requireScope } from "../tenants/api-keys.ts";
import { requireAddress, requireHash, requireUuid } from "../validate.ts";
import { readActivities } from "../vaults/activity.ts";
import {
  requireDeadline,
  type SignedOptions,
  signedForm,
  usualDeadline,
  type VaultCaller,
} from "../vaults/signed-requests.ts";
import type { ScanOptions } from "../vaults/transaction-scan.ts";
import { readSession } from "./powers.ts";
import type { TransferRequest } from "./request.ts";
import { askedList, requestTransfers, requireTransferable } from "./request.ts";
import type { TransferFilter, TransferList, VaultHistory } from "./views.ts";
import { historyOf, listTransfers, transferListView } from "./views.ts";

export function transfersOf(context: EngineContext): Transfers {
  return {
    async prepare(caller, preparation) {
      if (!("owner" in caller)) requireScope(caller, "transfer");
      const { ledger } = context;
      ledger.l1.requirePromising();
      const { deadline = usualDeadline(ledger, "transfer") } = preparation;
      const { transfers, digest, asked } = await askedList(ledger, caller, {
        ...preparation,
        deadline,
      });
      requireDeadline(ledger, deadline, "transfer");
      const ids = transfers.map(({ vaultId }) => vaultId);
      requireTransferable(ledger, asked, await readActivities(ledger, ids, null), null);
      return { owner: asked[0]!.vault.owner, transfers, deadline, digest };
    },
    async request(caller, request, wait) {
      if (!("owner" in caller)) requireScope(caller, "transfer");
      const list = await requestTransfers(context, caller, request, wait?.signal);
      return transferListView(context.ledger, list);
    },
    list: (applicationId, filter = {}, options = {}) =>
      listTransfers(context, applicationId, filter, options),
    history: async (vaultId) => historyOf(context.ledger, vaultId),
    async session(owner, key) {
      const { ledger } = context;
      const given = [requireAddress("owner", owner), requireAddress("key", key)] as const;
      const known = await readSession((at) => ledger.store.get(at), ...given);
      if (known === null) return null;
      const { blockNumber, ...session } = known;
      const { finalized = null } =
        ledger.l1.portals.durable.get(ledger.services.settlement.chainId) ?? {};
      const isFinal = session.authorizedAt !== 0n && finalized !== null && blockNumber <= finalized;
      return { ...session, isFinal };
    },
    signedSession({ owner, ...session }, signature, options) {
      const { ledger } = context;
      const message = { ...session, owner: requireAddress("owner", owner) };
      const digest = getSignPayload(sessionTypedData(ledger.services.settlement, message));
      const { chainId } = ledger.services.settlement;
      const signed = { chainId, owner: message.owner, digest, signature };
      return signedForm(ledger.services, signed, options);
    },
    async get(caller, given) {
      const { ledger } = context;
      const transferId = given.startsWith("0x") ? await idOfDigest(ledger, given as Hash) : given;
      const stored = await ledger.store.get(
        keyOf.transferList(requireUuid("transferId", transferId)),
      );
      const list =
        stored === undefined
          ? null
          : decodeRecord(transferListRecord, stored, `Transfer ${transferId}`);
      if (list === null || !(await isListOf(ledger, caller, list)))
        throw new MintmarkError("transfer_not_found");
      return transferListView(ledger, list);
    },
  };
}

/** The transfers that an owner wants to sign. */
export interface TransferPreparation {
  /** 1 to 1,024, each vault once. */
  readonly transfers: readonly Transfer[];
  /** Seconds since 1970; default in a day. */
  readonly deadline?: bigint | undefined;
}

/** The owner signs `transfersTypedData(settlement, prepared)`. */
export interface PreparedTransfers extends TransfersMessage {
  readonly owner: Address;
  /** The hash of the typed data. */
  readonly digest: Hash;
}

/** A key that may transfer for an owner, as L1 has it. Times are seconds since 1970. */
export interface KeySession extends TransferSession {
  /** Whether the authorization is final, and so counts for requests. */
  readonly isFinal: boolean;
}

/** The list that was taken under a signed message last. */
async function idOfDigest(ledger: Ledger, digest: Hash): Promise<Uuid> {
  const stored = await ledger.store.get(keyOf.transferDigest(requireHash("digest", digest)));
  if (stored === undefined) throw new MintmarkError("transfer_not_found");
  return decodeRecord(transferIdRecord, stored, "The transfers of a digest");
}

/**
 * Whether the vaults of a list are the caller's: an application's, or those of the owner who gives.
 */
async function isListOf(
  ledger: Ledger,
  caller: Uuid | { readonly owner: Address },
  { applicationIndex, transfers }: TransferListRecord,
): Promise<boolean> {
  if (typeof caller === "string")
    return ledger.tenants.application(caller, null).applicationIndex === applicationIndex;
  const [giver] = await readUsers(ledger, applicationIndex, [transfers[0]?.userIndex ?? 0]);
  return giver?.ownerAddress === requireAddress("owner", caller.owner);
}

/**
 * Transfers and redemptions of vaults, by their owners' signatures.
 *
 * @example
 * const message = { transfers: [{ vaultId, amount: 0n, to: friend }], deadline };
 * const signature = await owner.signTypedData(transfersTypedData(engine.settlement, message));
 * const { transferId } = await engine.transfers.request(principal, { ...message, signature });
 */
export interface Transfers {
  /**
   * The message that the owner signs for these transfers, after all checks of a request but that of
   * the signature. Rejects as `request` does. Changes nothing.
   */
  prepare(caller: VaultCaller, preparation: TransferPreparation): Promise<PreparedTransfers>;
  /**
   * Checks the owner's signature and holds the vaults: all transfers or none. The receivers become
   * users of the vaults' application. The same signed transfers again resolve with the same list,
   * unless it failed: then they are tried anew.
   *
   * Rejects with every bad transfer in `issues`: `vault_not_found`, `vault_spent`,
   * `asset_not_transferable`, `proof_not_ready` before the vault is final on L1,
   * `withdrawal_pending`, `transfer_too_deep`, `amount_out_of_range`.
   */
  request(caller: VaultCaller, request: TransferRequest, wait?: WaitOptions): Promise<TransferList>;
  /**
   * An application's lists, newest first. A page can be short although more follow, as with {@link
   * Transactions.list}.
   */
  list(applicationId: Uuid, filter?: TransferFilter, options?: ScanOptions): List<TransferList>;
  /**
   * Where a vault of any application comes from, and where it went. Rejects with `vault_not_found`.
   */
  history(vaultId: VaultId): Promise<VaultHistory>;
  /**
   * A caller's list, by its id, or by its digest unless it has failed. Rejects with
   * `transfer_not_found`.
   */
  get(caller: Uuid | { readonly owner: Address }, transferId: Uuid | Hash): Promise<TransferList>;
  /** The session of an owner with a key; null when L1 has told of none. */
  session(owner: Address, key: Address): Promise<KeySession | null>;
  /**
   * An owner's signature over a session, in the form that L1 takes. Rejects with
   * `signature_invalid`, and with `l1_failed` when a wallet contract cannot be asked.
   */
  signedSession(session: SessionMessage, signature: Hex, options?: SignedOptions): Promise<Hex>;
}
