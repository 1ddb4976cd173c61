import type { z } from "zod";
import type {
  Asset,
  Batch,
  Engine,
  EngineState,
  ListedWithdrawal,
  MintReceipt,
  MintResult,
  MintTransaction,
  Page,
  Vault,
} from "../../core/index.ts";
import { application } from "./application.ts";
import { asset } from "./assets.ts";
import { batch, portal, state } from "./batches.ts";
import { apiKey, auditEntry, invitation, openedSession, person, personSession } from "./console.ts";
import type { mintReply } from "./mint.ts";
import { transaction } from "./transactions.ts";
import { history, ownersTransferList, publicHistory, transferList } from "./transfers.ts";
import { usage } from "./usage.ts";
import { balance, user } from "./users.ts";
import { type vault, vaultProof } from "./vaults.ts";
import { ownersWithdrawal, withdrawal } from "./withdrawals.ts";
import { time, writerOf } from "./writer.ts";

// The core's objects as JSON, in the form of the response schemas. Vaults are written field by field for speed, since
// every mint returns some.

export const applicationToWire = writerOf(application);
export const apiKeyToWire = writerOf(apiKey);
export const auditEntryToWire = writerOf(auditEntry);
export const personToWire = writerOf(person);
export const personSessionToWire = writerOf(personSession);
export const openedSessionToWire = writerOf(openedSession);
export const invitationToWire = writerOf(invitation);
export const assetToWire = writerOf(asset);
export const balanceToWire = writerOf(balance);
export const portalToWire = writerOf(portal);
export const proofToWire = writerOf(vaultProof);
export const transactionToWire = writerOf(transaction);
export const transferListToWire = writerOf(transferList);
export const ownersTransferListToWire = writerOf(ownersTransferList);
export const historyToWire = writerOf(history);
export const publicHistoryToWire = writerOf(publicHistory);
export const usageToWire = writerOf(usage);
export const userToWire = writerOf(user);
export const withdrawalToWire = writerOf(withdrawal);
export const ownersWithdrawalToWire = writerOf(ownersWithdrawal);
const writeBatch = writerOf(batch);
const writeState = writerOf(state);

/** A whole number in decimal digits, without rounding. */
export function decimal(value: bigint): string {
  return value.toString();
}

function decimalOrNull(value: bigint | null): string | null {
  return value === null ? null : decimal(value);
}

export function pageToWire<T, W>(page: Page<T>, toWire: (entry: T) => W) {
  const { data, nextCursor, hasMore, limit } = page;
  return { data: data.map((entry) => toWire(entry)), pagination: { nextCursor, hasMore, limit } };
}

export function vaultToWire(from: Vault): z.output<typeof vault> {
  return {
    vaultId: decimal(from.vaultId),
    userId: from.userId,
    ownerAddress: from.ownerAddress,
    assetId: from.assetId,
    assetType: from.assetType,
    quantum: decimal(from.quantum),
    decimals: from.decimals,
    mintingBlob: from.mintingBlob,
    tokenId: decimalOrNull(from.tokenId),
    dataAvailabilityMode: from.dataAvailabilityMode,
    amount: decimal(from.amount),
    availableBalance: decimal(from.availableBalance),
    withdrawnBalance: decimal(from.withdrawnBalance),
    transferredBalance: decimal(from.transferredBalance),
    batchId: from.batchId,
    status: from.status,
    ...(from.refusal !== undefined && { refusal: from.refusal }),
    createdAt: time(from.createdAt),
    updatedAt: time(from.updatedAt),
  };
}

export async function mintToWire(from: MintResult): Promise<z.output<typeof mintReply>> {
  const receipt = await from.receipt();
  return {
    mintId: from.mintId,
    vaults: from.vaults.map(vaultToWire),
    transactions: from.transactions.map(mintedToWire),
    receipt: receipt === null ? null : receiptToWire(receipt),
  };
}

export function mintedToWire(from: MintTransaction) {
  const { transactionId, userIndex, mintIndex, vaultId, status } = from;
  return { transactionId, userIndex, mintIndex, vaultId: decimal(vaultId), status };
}

export function receiptToWire({ root, count, time, signer, signature, chainIds }: MintReceipt) {
  const chains = Object.entries(chainIds).map(([assetId, chainId]) => [assetId, decimal(chainId)] as const);
  return { root, count, time, signer, signature, chainIds: Object.fromEntries(chains) };
}

/** As shown to the operator, without the fields that depend on an application. */
export function assetToOperator(from: Asset) {
  const { enabled: _enabled, mintingAvailable: _available, unavailableReason: _reason, ...known } = assetToWire(from);
  return known;
}

export function batchToWire(from: Batch): z.output<typeof batch> {
  const leftOut = (from.leftOut ?? []).flatMap(({ asset, failure }) => {
    const named = from.assets[asset];
    return named === undefined ? [] : [{ ...named, failure }];
  });
  return writeBatch({ ...from, leftOut });
}

export function stateToWire(
  { settlement, operator }: Pick<Engine, "settlement" | "operator">,
  sealed: EngineState,
  committed: EngineState,
): z.output<typeof state> {
  return writeState({ ...settlement, portals: operator.portals(), sealed, committed });
}

export function listedWithdrawalToWire({ vaultId, withdrawal, error }: ListedWithdrawal) {
  return {
    vaultId: decimal(vaultId),
    withdrawal: withdrawal && withdrawalToWire(withdrawal),
    error: error && { code: error.code, detail: error.message },
  };
}
