import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions } from "../ledger/list.ts";
import { readUsers } from "../ledger/users.ts";
import type { Address, Hash, Status, Uuid, VaultId } from "../model.ts";
import { packVaultId } from "../protocol/vault.ts";
import { decodeRecord } from "../store/layout.ts";
import { type TransferListRecord, transferIdRecord, transferListRecord } from "../store/records.ts";
import { transferDigestKey, transferListKey } from "../store/store-keys.ts";
import { requireScope } from "../tenants/api-keys.ts";
import { requireAddress, requireHash, requireUuid } from "../validate.ts";
import { findPage } from "../vaults/transaction-page.ts";
import { failureOfFault, outputsOf, placeIn } from "../vaults/transfer-lists.ts";
import { readVaults, statusOf } from "../vaults/vaults.ts";
import type { TransferCaller } from "./checks.ts";
import { historyOf, type VaultHistory } from "./history.ts";
import { readSession } from "./powers.ts";
import { type PreparedTransfers, prepareTransfers, type TransferPreparation } from "./prepare.ts";
import { requestTransfers, type TransferRequest } from "./request.ts";

export function transfersOf(context: EngineContext): Transfers {
  return {
    async prepare(caller, preparation) {
      if (!("owner" in caller)) requireScope(caller, "transfer");
      return prepareTransfers(context.ledger, caller, preparation);
    },
    async request(caller, request, wait) {
      if (!("owner" in caller)) requireScope(caller, "transfer");
      const list = await requestTransfers(context.ledger, caller, request, wait?.signal);
      return transferListView(context.ledger, list);
    },
    list: (applicationId, filter = {}) =>
      listOf(context, "transfers", applicationId, filter, async (start) => {
        const { ledger } = context;
        const { found, next } = await findPage(ledger, applicationId, filter, start, {
          type: "transfer",
          order: "desc",
          wanted: ({ source }) => source.type === "transfer" && source.output.position === 0,
        });
        const lists = found.flatMap(({ source }) => (source.type === "transfer" ? [source.list] : []));
        return { data: await Promise.all(lists.map((list) => transferListView(ledger, list))), next };
      }),
    history: async (vaultId) => historyOf(context.ledger, vaultId),
    session: async (owner, key) => sessionOf(context.ledger, owner, key),
    async get(caller, given) {
      const { ledger } = context;
      const transferId = given.startsWith("0x") ? await idOfDigest(ledger, given as Hash) : given;
      const stored = await ledger.store.get(transferListKey(requireUuid("transferId", transferId)));
      const list = stored === undefined ? null : decodeRecord(transferListRecord, stored, `Transfer ${transferId}`);
      if (list === null || !(await isListOf(ledger, caller, list))) throw new MintmarkError("transfer_not_found");
      return transferListView(ledger, list);
    },
  };
}

/** Filter of a list of transfers. */
export interface TransferFilter extends PageOptions {
  /** Milliseconds since 1970 of the request, exclusive. */
  readonly createdAfter?: number | undefined;
  readonly createdBefore?: number | undefined;
}

/** A key that may transfer for an owner, as L1 has it. Times are seconds since 1970. */
export interface KeySession {
  /** 0 for a key that was revoked before any authorization: it never can be authorized. */
  readonly authorizedAt: bigint;
  /** Last second. */
  readonly until: bigint;
  /** 0 for never. */
  readonly revokedAt: bigint;
  /** Most units of one transfer. */
  readonly limit: bigint;
  /** The only asset type; zero for every asset of the owner. */
  readonly assetType: Hash;
  /** Whether the authorization is final, and so counts for requests. */
  readonly isFinal: boolean;
}

async function sessionOf(ledger: Ledger, owner: Address, key: Address): Promise<KeySession | null> {
  const given = [requireAddress("owner", owner), requireAddress("key", key)] as const;
  const known = await readSession((at) => ledger.store.get(at), ...given);
  if (known === null) return null;
  const { blockNumber, ...session } = known;
  const { finalized = null } = ledger.portals.get(ledger.settlement.chainId) ?? {};
  const isFinal = session.authorizedAt !== 0n && finalized !== null && blockNumber <= finalized;
  return { ...session, isFinal };
}

/** The list that was taken under a signed message last. */
async function idOfDigest(ledger: Ledger, digest: Hash): Promise<Uuid> {
  const stored = await ledger.store.get(transferDigestKey(requireHash("digest", digest)));
  if (stored === undefined) throw new MintmarkError("transfer_not_found");
  return decodeRecord(transferIdRecord, stored, "The transfers of a digest");
}

/** Whether the vaults of a list are the caller's: an application's, or those of the owner who gives. */
async function isListOf(
  ledger: Ledger,
  caller: Uuid | { readonly owner: Address },
  { applicationIndex, transfers }: TransferListRecord,
): Promise<boolean> {
  if (typeof caller === "string") return ledger.application(caller).applicationIndex === applicationIndex;
  const [giver] = await readUsers(ledger, applicationIndex, [transfers[0]?.userIndex ?? 0]);
  return giver?.ownerAddress === requireAddress("owner", caller.owner);
}

/** A list as its application sees it. */
export async function transferListView(ledger: Ledger, list: TransferListRecord): Promise<TransferList> {
  const { applicationIndex, transferId, digest, deadline, failure, createdAt, updatedAt } = list;
  const outputs = outputsOf(list);
  const indices = [
    ...new Set(outputs.flatMap(({ transfer, holderIndex }) => [transfer.userIndex, holderIndex ?? []].flat())),
  ];
  const users = await readUsers(ledger, applicationIndex, indices);
  const userIds = new Map(indices.map((index, i) => [index, users[i]?.userId ?? ""]));
  const places = outputs.flatMap(({ position }) => placeIn(list, position) ?? []);
  const vaults = await readVaults(ledger, places);
  const first = places[0];
  const batch = first && ledger.batches["zk-rollup"].get(first.batchNumber);
  return {
    transferId,
    status: first === undefined ? (list.status === "failed" ? "failed" : "accepted") : statusOf(ledger, first),
    digest,
    deadline,
    transfers: outputs.map(({ position, transfer, isChange, holderIndex }) => {
      const place = places[position];
      return {
        transactionId: `${transferId}.${position}`,
        vaultId: transfer.vaultId,
        userId: userIds.get(transfer.userIndex) ?? "",
        to: isChange ? null : transfer.to,
        toUserId: holderIndex === null ? null : (userIds.get(holderIndex) ?? ""),
        isChange,
        newVaultId: place === undefined || holderIndex === null ? null : packVaultId(place),
        amount: vaults[position]?.vault.amount ?? null,
        hops: transfer.hops,
        failure: transfer.fault === null ? list.failure : failureOfFault(transfer),
      };
    }),
    l1TxHash: batch?.l1TxHash ?? null,
    l1BlockNumber: batch?.l1BlockNumber ?? null,
    failure,
    createdAt,
    updatedAt,
  };
}

/** Transfers under one signature. They share everything but their vaults. */
export interface TransferList {
  readonly transferId: Uuid;
  readonly status: Status;
  /** Of the signed message. */
  readonly digest: Hash;
  /** Seconds since 1970. */
  readonly deadline: bigint;
  /** In the signed order; a split has two entries, the second of which is the change. */
  readonly transfers: readonly TransferredVault[];
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
  readonly failure: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** One vault that a transfer makes. */
export interface TransferredVault {
  readonly transactionId: string;
  /** The vault that is spent. */
  readonly vaultId: VaultId;
  /** The user who gives. */
  readonly userId: Uuid;
  /** The receiver; the zero address redeems. Null for change. */
  readonly to: Address | null;
  /** The user of the new vault; null for a redemption. */
  readonly toUserId: Uuid | null;
  readonly isChange: boolean;
  /** Null before the batch is sealed, and for a redemption. Until L1 has committed the batch, the id can change. */
  readonly newVaultId: VaultId | null;
  /** Units of the new vault; null before the batch is sealed. */
  readonly amount: bigint | null;
  /** Transfers since the mint, this one included; at most 8. */
  readonly hops: number;
  /** Why the transfer moves nothing: the list has failed, or L1 does not count its record. Null while it may. */
  readonly failure: string | null;
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
  /** The message that the owner signs for these transfers, with all checks of a request. Rejects as `request` does. */
  prepare(caller: TransferCaller, preparation: TransferPreparation): Promise<PreparedTransfers>;
  /**
   * Checks the owner's signature and holds the vaults: all transfers or none. The receivers become users of the vaults'
   * application. The same signed transfers again resolve with the same list, unless it failed: then they are tried anew.
   *
   * Rejects with every bad transfer in `issues`: `vault_not_found`, `vault_spent`, `asset_not_transferable`,
   * `proof_not_ready` before the vault is final on L1, `withdrawal_pending`, `transfer_too_deep`, `amount_out_of_range`.
   */
  request(caller: TransferCaller, request: TransferRequest, wait?: WaitOptions): Promise<TransferList>;
  /** Of an application, newest first. Pages can be short, as with {@link Transactions.list}. */
  list(applicationId: Uuid, filter?: TransferFilter): List<TransferList>;
  /** Where a vault of any application comes from, and where it went. Rejects with `vault_not_found`. */
  history(vaultId: VaultId): Promise<VaultHistory>;
  /**
   * A list of an application, or one of the owner's own, by its id, or by the digest that was signed unless it has
   * failed. Rejects with `transfer_not_found`.
   */
  get(caller: Uuid | { readonly owner: Address }, transferId: Uuid | Hash): Promise<TransferList>;
  /** The session of an owner with a key; null when L1 has told of none. */
  session(owner: Address, key: Address): Promise<KeySession | null>;
}
