import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import {
  type List,
  listOf,
  type PageOptions,
  type PageStart,
  type SortOrder,
} from "../ledger/list.ts";
import { readOwnUsers } from "../ledger/user-records.ts";
import { batchIdOf, type Transaction, type Uuid, type Withdrawal } from "../model.ts";
import { packVaultId, type VaultPlace } from "../protocol/vault.ts";
import { leftOutFailure } from "../sealing/void-runs.ts";
import { vaultIdOf } from "../store/mint-entry.ts";
import type { BatchRecord, TransferListRecord } from "../store/records.ts";
import { orNull } from "../validate.ts";
import { withdrawalView } from "./activity.ts";
import { findMint, narrow, type TransactionFilter } from "./transaction-range.ts";
import {
  collect,
  type Found,
  findDeposit,
  findTransfer,
  findWithdrawal,
  mintTransactions,
  type ScanOptions,
  ScanProgress,
} from "./transaction-scan.ts";
import { amountsOf, failureOfFault, type ListOutput, placeIn } from "./transfer-lists.ts";
import { type Usage, type UsageOptions, usageOf } from "./usage.ts";
import {
  amountIn,
  batchOfRecord,
  failureOf,
  lostAt,
  present,
  statusOf,
  tokenIn,
  voidAt,
} from "./vaults.ts";

/** A transfer's own batch, once it has one. */
function batchIdOfFound({ place, made }: Found): string {
  const { mode, batchNumber } = made ?? place;
  return batchIdOf(mode, batchNumber);
}

/** A page of the transactions that the filter matches, and that are wanted. */
export async function findPage(
  ledger: Ledger,
  applicationId: Uuid,
  filter: TransactionFilter,
  order: SortOrder,
  { after, limit }: PageStart,
  options: ScanOptions,
  wanted = (_: Found) => true,
) {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const parts = await narrow(ledger, applicationId, filter);
  if (parts === null) return { found: [], next: null };
  const scan = { applicationIndex, parts, order, after };
  const isFound = (one: Found) => matches(ledger, one, filter) && wanted(one);
  const work = new ScanProgress(options);
  const page = await collect(ledger, scan, limit, isFound, work);
  await work.tell();
  return page;
}

/** The filter's user, mint, vault, batch and times say where to look. This decides the rest. */
function matches(ledger: Ledger, found: Found, filter: TransactionFilter): boolean {
  const { source, place, made, assetIndex } = found;
  const isVault = (at: VaultPlace | null) => at !== null && packVaultId(at) === filter.vaultId;
  return (
    (filter.type === undefined || filter.type === source.type) &&
    (filter.assetId === undefined ||
      assetIndex === ledger.tenants.assets.named(filter.assetId, null)?.assetIndex) &&
    (filter.vaultId === undefined || isVault(place) || isVault(made)) &&
    (filter.batchId === undefined || filter.batchId === batchIdOfFound(found)) &&
    (filter.dataAvailabilityMode === undefined || filter.dataAvailabilityMode === place.mode) &&
    (filter.status === undefined || filter.status === statusOfFound(ledger, found))
  );
}

function statusOfFound(ledger: Ledger, found: Found): Transaction["status"] {
  const { source } = found;
  if (source.type === "withdrawal") return source.record.status;
  if (source.type === "transfer") return statusOfTransfer(ledger, source.list, source.output);
  if (source.type === "deposit") return "finalized";
  const { mint, journalSequence } = source;
  return failureOf(ledger, mint, journalSequence) === null ? statusOf(ledger, mint) : "failed";
}

/** The status of a list, or of one of its places: that of its batch, once it has one. */
export function statusOfList(
  ledger: Ledger,
  list: TransferListRecord,
  position = 0,
): Transaction["status"] {
  const place = placeIn(list, position);
  if (place !== null) return statusOf(ledger, place);
  return list.status === "failed" ? "failed" : "accepted";
}

export function statusOfTransfer(
  ledger: Ledger,
  list: TransferListRecord,
  { position, transfer }: ListOutput,
) {
  return transfer.fault === null ? statusOfList(ledger, list, position) : "failed";
}

async function views(
  ledger: Ledger,
  applicationIndex: number,
  found: readonly Found[],
): Promise<Transaction[]> {
  const indices = [...new Set(found.map(({ userIndex }) => userIndex))];
  const users = await readOwnUsers(ledger, applicationIndex, indices);
  const userIds = new Map(indices.map((index, i) => [index, users[i]?.userId ?? ""]));
  const transfers = found.flatMap(({ source }) => (source.type === "transfer" ? [source] : []));
  const amounts = await amountsOf(ledger, transfers);
  const moved = new Map(transfers.map((source, i) => [source, amounts[i] ?? 0n]));
  return found.map((one) => view(ledger, one, userIds.get(one.userIndex) ?? "", moved));
}

function view(
  ledger: Ledger,
  found: Found,
  userId: Uuid,
  moved: ReadonlyMap<Found["source"], bigint>,
): Transaction {
  const { source, sequence, place, made, assetIndex, mintingBlob } = found;
  const asset = ledger.tenants.assetAt(assetIndex);
  const common = {
    mintingBlob,
    tokenId: tokenIn(asset, mintingBlob),
    sequence,
    userId,
    status: statusOfFound(ledger, found),
    assetId: asset.assetId,
    dataAvailabilityMode: place.mode,
    batchId: batchIdOfFound(found),
    mintId: null,
    reference: null,
  };
  if (source.type === "mint") {
    const { mint, mintId, journalSequence, reference, time: accepted } = source;
    const lost = lostAt(ledger, mint, journalSequence);
    // The batch of a lost mint is gone. Another batch may have its number.
    const batch = lost === null ? batchOfRecord(ledger, mint) : null;
    const voided = lost ?? voidAt(ledger, mint);
    const isVoid = voided !== null;
    return {
      ...common,
      type: "mint",
      reference,
      transactionId: `${mintId}.${source.position}`,
      mintId,
      vaultId: vaultIdOf(mint),
      ...amountIn(asset, mint.amount),
      ...placeOnL1(isVoid ? null : batch),
      // Until L1's history is final the mint has not failed, although the reason is known.
      failure:
        voided?.failure ??
        (batch && leftOutFailure(batch, ledger.tenants.assetAt(mint.assetIndex))),
      timestamps: isVoid
        ? present({ accepted, batched: batch?.sealedAt ?? null, failed: voided.voidedAt })
        : present({ accepted, ...timesOf(batch) }),
    };
  }
  if (source.type === "transfer") {
    const { list, output } = source;
    const batch = made === null ? null : batchOfRecord(ledger, made);
    const { fault, vaultId } = output.transfer;
    const failed = list.status === "failed" || fault !== null ? list.updatedAt : null;
    return {
      ...common,
      type: "transfer",
      transactionId: `${list.transferId}.${output.position}`,
      vaultId,
      ...placeOnL1(batch),
      failure: fault === null ? list.failure : failureOfFault(output.transfer),
      timestamps: present({ accepted: list.createdAt, ...timesOf(batch), failed }),
      ...amountIn(asset, moved.get(source) ?? 0n),
    };
  }
  if (source.type === "deposit") {
    const { time, vault } = source;
    const vaultId = packVaultId(place);
    return {
      ...common,
      type: "deposit",
      transactionId: `${vaultId}`,
      vaultId,
      ...placeOnL1(null),
      failure: null,
      timestamps: { finalized: time },
      ...amountIn(asset, vault.amount),
    };
  }
  const {
    withdrawalId,
    vaultId,
    quantity,
    failure,
    createdAt: accepted,
    failedAt: failed,
    ...record
  } = source.record;
  return {
    ...common,
    type: "withdrawal",
    transactionId: withdrawalId,
    vaultId,
    ...amountIn(asset, quantity),
    ...placeOnL1(record),
    failure,
    timestamps: present({ accepted, ...timesOf({ ...record, sealedAt: null }), failed }),
  };
}

function placeOnL1(sent: Pick<BatchRecord, "l1TxHash" | "l1BlockNumber"> | null) {
  return { l1TxHash: sent?.l1TxHash ?? null, l1BlockNumber: sent?.l1BlockNumber ?? null };
}

function timesOf(
  sent: Pick<BatchRecord, "sealedAt" | "submittedAt" | "settledAt" | "finalizedAt"> | null,
) {
  if (sent === null) return {};
  const {
    sealedAt: batched,
    submittedAt: submitted,
    settledAt: settled,
    finalizedAt: finalized,
  } = sent;
  return { batched, submitted, settled, finalized };
}

/** Filter of a list of withdrawals. */
export interface WithdrawalFilter
  extends PageOptions,
    Pick<
      TransactionFilter,
      "userId" | "ownerAddress" | "assetId" | "vaultId" | "createdAfter" | "createdBefore"
    > {
  readonly status?: Withdrawal["status"] | undefined;
}

export function transactionsOf(context: EngineContext): Transactions {
  return {
    async get(applicationId, transactionId) {
      const { ledger } = context;
      const { applicationIndex } = ledger.tenants.application(applicationId, null);
      const [, id, position] =
        /^([0-9a-f-]{36})(?:\.(0|[1-9][0-9]{0,6}))?$/i.exec(transactionId) ?? [];
      if (id === undefined) {
        const ofDeposit = /^[0-9]{1,20}$/.test(transactionId)
          ? await findDeposit(ledger, applicationIndex, BigInt.asUintN(64, BigInt(transactionId)))
          : undefined;
        if (ofDeposit === undefined) throw new MintmarkError("transaction_not_found");
        return (await views(ledger, applicationIndex, [ofDeposit]))[0] as Transaction;
      }
      const ofMint = async (at: number) => {
        const mint = await orNull("mint_not_found", () => findMint(ledger, applicationId, id));
        return mint === null ? undefined : mintTransactions(mint)[at];
      };
      const found =
        position === undefined
          ? await findWithdrawal(ledger, applicationIndex, id.toLowerCase())
          : ((await ofMint(Number(position))) ??
            (await findTransfer(ledger, applicationIndex, id.toLowerCase(), Number(position))));
      if (found === undefined) throw new MintmarkError("transaction_not_found");
      return (await views(ledger, applicationIndex, [found]))[0] as Transaction;
    },
    list: (applicationId, filter = {}, options = {}) =>
      listOf(context, "transactions", applicationId, filter, async (start) => {
        const { ledger } = context;
        const { found, next } = await findPage(
          ledger,
          applicationId,
          filter,
          filter.order ?? "desc",
          start,
          options,
        );
        return {
          data: await views(
            ledger,
            ledger.tenants.application(applicationId, null).applicationIndex,
            found,
          ),
          next,
        };
      }),
    usage: async (applicationId, options = {}) => usageOf(context, applicationId, options),
  };
}

/** An application's withdrawals, newest first. */
export function listWithdrawals(
  context: EngineContext,
  applicationId: Uuid,
  filter: WithdrawalFilter,
  options: ScanOptions = {},
) {
  return listOf(context, "withdrawals", applicationId, filter, async (start) => {
    const { ledger } = context;
    const { found, next } = await findPage(
      ledger,
      applicationId,
      { ...filter, type: "withdrawal" },
      "desc",
      start,
      options,
    );
    const records = found.flatMap(({ source }) =>
      source.type === "withdrawal" ? [source.record] : [],
    );
    return {
      data: await Promise.all(records.map((record) => withdrawalView(ledger, record))),
      next,
    };
  });
}

/**
 * Mints, withdrawals, transfers and deposits of an application, one by one, with their statuses.
 *
 * @example
 * const { data } = await engine.transactions.list(applicationId, { status: "failed", limit: 20 });
 */
export interface Transactions {
  /** Rejects with `transaction_not_found`. */
  get(applicationId: Uuid, transactionId: string): Promise<Transaction>;
  /**
   * A page can be shorter than `limit` although more follow, because the work of one page is
   * bounded.
   */
  list(applicationId: Uuid, filter?: TransactionFilter, options?: ScanOptions): List<Transaction>;
  /** The application's usage, in all and by hour, day or month: at most 100 periods. */
  usage(applicationId: Uuid, options?: UsageOptions): Promise<Usage>;
}
