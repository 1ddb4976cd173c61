import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions } from "../ledger/list.ts";
import { readOwnUsers } from "../ledger/user-records.ts";
import type { Address, Hash, Status, Uuid, VaultId } from "../model.ts";
import { ZERO_ADDRESS } from "../protocol/hex.ts";
import { decimalAmount } from "../protocol/quantized.ts";
import { packVaultId } from "../protocol/vault.ts";
import { readEntry } from "../store/journal.ts";
import type { TransferListRecord } from "../store/records.ts";
import { keyOf, prefixOf } from "../store/store-keys.ts";
import { narrow } from "../vaults/transaction-range.ts";
import { requestsIn, type ScanOptions, ScanProgress } from "../vaults/transaction-scan.ts";
import { statusOfList, statusOfTransfer } from "../vaults/transactions.ts";
import * as lists from "../vaults/transfer-lists.ts";
import {
  batchAt,
  decodeActivity,
  hasSlot,
  placeOf,
  readVault,
  readVaults,
  tokenIn,
} from "../vaults/vaults.ts";

/**
 * Most work of one page, which has at least one list: a scan of 10,000 mints costs about the same.
 */
const MOST_WORK = 10_000;
/** Page cost: 20 a list, 2 a slot, 20 a slot shown. */
const WORK = { list: 20, slot: 2, shown: 20 };

export function listTransfers(
  context: EngineContext,
  applicationId: Uuid,
  filter: TransferFilter,
  options: ScanOptions = {},
): List<TransferList> {
  return listOf(context, "transfers", applicationId, filter, async ({ after, limit }, ledger) => {
    const { status, createdAfter, createdBefore } = filter;
    const { applicationIndex } = ledger.tenants.application(applicationId, null);
    const index = prefixOf.applicationTransfer(applicationIndex);
    const [part] =
      (await narrow(ledger, applicationId, { type: "transfer", createdAfter, createdBefore })) ??
      [];
    const { from, to } = part?.within ?? { from: 0, to: 0 };
    const range = { from, to: Math.min(to, after ?? to), ascending: false };
    const found: TransferListRecord[] = [];
    const work = new ScanProgress(options);
    let last = 0;
    let next: number | null = null;
    const requests = requestsIn(ledger.store, index, range);
    for await (const sequence of range.from < range.to ? requests : []) {
      if (found.length === limit || work.done >= MOST_WORK) {
        next = last;
        break;
      }
      await work.pause();
      const { entry } = await readEntry(ledger.store, sequence);
      if (entry.kind !== "transfersRequested")
        throw new MintmarkError("store_corrupt", "An index record is damaged.");
      const list = await lists.readTransferList(ledger, entry.transferId);
      // The newest list before the range comes too, because a request can reach beyond its first
      // sequence.
      if (list.firstSequence < from) break;
      const isWanted = status === undefined || status === statusOfList(ledger, list);
      if (isWanted) found.push(list);
      last = list.firstSequence;
      work.done +=
        WORK.list +
        lists.slotCount(list.transfers) * (isWanted ? WORK.slot + WORK.shown : WORK.slot);
    }
    await work.tell();
    return { data: await Promise.all(found.map((list) => transferListView(ledger, list))), next };
  });
}

export async function transferListView(
  ledger: Ledger,
  list: TransferListRecord,
): Promise<TransferList> {
  const {
    applicationIndex,
    transferId,
    digest,
    deadline,
    failure,
    batchNumber,
    createdAt,
    updatedAt,
  } = list;
  const outputs = lists.outputsOf(list);
  const indices = lists.usersOf(outputs);
  const users = await readOwnUsers(ledger, applicationIndex, indices);
  const userOf = new Map(indices.map((index, i) => [index, users[i]]));
  // An adopted list can take vaults of several applications, and ids that no batch has made.
  const spent = outputs
    .map(({ transfer }) => placeOf(transfer.vaultId))
    .filter((place) => hasSlot(ledger, place, null));
  const located = await readVaults(ledger, spent, null);
  const vaults = new Map(located.map(({ place, vault }) => [packVaultId(place), vault]));
  const listed = outputs.map((output) => ({ list, output }));
  const amounts = await lists.amountsOf(ledger, listed);
  const batch =
    batchNumber === null ? undefined : ledger.batches.records["zk-rollup"].durable.get(batchNumber);
  return {
    transferId,
    status: statusOfList(ledger, list),
    digest,
    deadline,
    transfers: outputs.map(({ position, transfer, isChange, holderIndex }) => {
      const place = lists.placeIn(list, position);
      const asset = ledger.tenants.assetAt(transfer.assetIndex);
      const { mintingBlob = "0x", owner = ZERO_ADDRESS } = vaults.get(transfer.vaultId) ?? {};
      const giver = userOf.get(transfer.userIndex);
      const amount = amounts[position] ?? null;
      return {
        transactionId: `${transferId}.${position}`,
        vaultId: transfer.vaultId,
        assetId: asset.assetId,
        tokenId: tokenIn(asset, mintingBlob),
        userId: giver?.userId ?? "",
        from: giver?.ownerAddress ?? owner,
        to: isChange ? null : transfer.to,
        toUserId: holderIndex === null ? null : (userOf.get(holderIndex)?.userId ?? ""),
        isChange,
        newVaultId: place === null || holderIndex === null ? null : packVaultId(place),
        amount,
        amountDecimal: amount === null ? null : decimalAmount(amount, asset),
        quantum: asset.quantum,
        decimals: asset.decimals,
        name: asset.name,
        symbol: asset.symbol,
        hops: transfer.hops,
        failure: transfer.fault === null ? list.failure : lists.failureOfFault(transfer),
      };
    }),
    l1TxHash: batch?.l1TxHash ?? null,
    l1BlockNumber: batch?.l1BlockNumber ?? null,
    failure,
    createdAt,
    updatedAt,
  };
}

/** Filter of a list of transfers. */
export interface TransferFilter extends PageOptions {
  readonly status?: Status | undefined;
  /** Milliseconds since 1970 of the request, exclusive. */
  readonly createdAfter?: number | undefined;
  readonly createdBefore?: number | undefined;
}

/** Transfers under one signature. They share everything but their vaults. */
export interface TransferList {
  readonly transferId: Uuid;
  readonly status: Status;
  /** The hash of the signed message. */
  readonly digest: Hash;
  /** Seconds since 1970. */
  readonly deadline: bigint;
  /** Entries in the signed order; a split has two, the second of which is the change. */
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
  readonly assetId: Uuid;
  /** Null for ERC-20, and for a vault that L1's history lacks. */
  readonly tokenId: bigint | null;
  /** The user who gives, and its address. */
  readonly userId: Uuid;
  readonly from: Address;
  /** The receiver; the zero address redeems. Null for change. */
  readonly to: Address | null;
  /** The user of the new vault; null for a redemption. */
  readonly toUserId: Uuid | null;
  readonly isChange: boolean;
  /**
   * Null before the batch is sealed, and for a redemption. Until L1 has committed the batch, the id
   * can change.
   */
  readonly newVaultId: VaultId | null;
  /**
   * Units of the new vault, or burnt. Null while unknown: the batch settles how much is left of a
   * vault.
   */
  readonly amount: bigint | null;
  /** The amount in whole tokens, such as "12.5"; null with it. */
  readonly amountDecimal: string | null;
  /** Base units of the token in one unit. */
  readonly quantum: bigint;
  readonly decimals: number;
  /** These two are the asset's. */
  readonly name: string;
  readonly symbol: string;
  /** Transfers since the mint, this one included; at most 8. */
  readonly hops: number;
  /**
   * Why the transfer moves nothing: the list has failed, or L1 does not count its record. Null
   * while it may.
   */
  readonly failure: string | null;
}

/** One vault that a transfer made, or a waiting one will make. */
export interface HistoryStep
  extends Pick<TransferList, "transferId" | "status">,
    Pick<TransferredVault, "vaultId" | "from" | "isChange" | "newVaultId" | "amount"> {
  /** The receiver; the zero address redeems. The giver, for change. */
  readonly to: Address;
  /** Milliseconds since 1970, of the request. */
  readonly createdAt: number;
}

/** Where a vault comes from, and where it went. */
export interface VaultHistory {
  /** The transfers from the mint to the vault, oldest first; at most 8. */
  readonly before: readonly HistoryStep[];
  /** The steps that took the vault: the receiver's part and the change. Empty while nothing did. */
  readonly after: readonly HistoryStep[];
}

export async function historyOf(ledger: Ledger, vaultId: VaultId): Promise<VaultHistory> {
  batchAt(ledger, placeOf(vaultId), null);
  const before: HistoryStep[] = [];
  for (let maker = await lists.makerOf(ledger, placeOf(vaultId)); maker !== null; ) {
    before.unshift(await stepOf(ledger, maker.list, maker.output));
    const source = lists.sourceOf(maker);
    maker = source === null ? null : await lists.makerOf(ledger, source);
  }
  const { spentBy } = decodeActivity(await ledger.store.get(keyOf.activity(vaultId)));
  if (spentBy === null) return { before, after: [] };
  const list = await lists.readTransferList(ledger, spentBy);
  const outputs = lists.outputsOf(list).filter(({ transfer }) => transfer.vaultId === vaultId);
  return {
    before,
    after: await Promise.all(outputs.map((output) => stepOf(ledger, list, output))),
  };
}

async function stepOf(
  ledger: Ledger,
  list: TransferListRecord,
  output: lists.ListOutput,
): Promise<HistoryStep> {
  const { transfer, position, isChange, holderIndex } = output;
  const { vaultId, to } = transfer;
  // A record of a hostile operator can spend an id that no batch has made.
  const source = placeOf(vaultId);
  const from = hasSlot(ledger, source, null)
    ? (await readVault(ledger, source)).owner
    : ZERO_ADDRESS;
  const place = lists.placeIn(list, position);
  const [amount = null] = await lists.amountsOf(ledger, [{ list, output }]);
  return {
    transferId: list.transferId,
    status: statusOfTransfer(ledger, list, output),
    vaultId,
    from,
    to: isChange ? from : to,
    isChange,
    newVaultId: place === null || holderIndex === null ? null : packVaultId(place),
    amount,
    createdAt: list.createdAt,
  };
}
