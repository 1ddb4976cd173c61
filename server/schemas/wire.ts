import type { Asset, Batch, ListedWithdrawal, MintResult, Page } from "../../core/index.ts";
import { asset } from "./assets.ts";
import { batch } from "./batches.ts";
import { apiKey, invitation, person } from "./console.ts";
import { mintReply } from "./mint.ts";
import { application } from "./service.ts";
import { transaction } from "./transactions.ts";
import { balance, user } from "./users.ts";
import { vault, vaultProof } from "./vaults.ts";
import { withdrawal } from "./withdrawals.ts";
import { writerOf } from "./writer.ts";

// The core's objects as JSON, in the form of the response schemas, for commands.

export const applicationToWire = writerOf(application);
export const apiKeyToWire = writerOf(apiKey);
export const personToWire = writerOf(person);
export const invitationToWire = writerOf(invitation);
export const assetToWire = writerOf(asset);
export const balanceToWire = writerOf(balance);
export const proofToWire = writerOf(vaultProof);
export const transactionToWire = writerOf(transaction);
export const userToWire = writerOf(user);
export const vaultToWire = writerOf(vault);
export const withdrawalToWire = writerOf(withdrawal);
const writeBatch = writerOf(batch);
const writeMint = writerOf(mintReply);

/** A whole number in decimal digits, without rounding. */
export function decimal(value: bigint): string {
  return value.toString();
}

export function pageToWire<T, W>(page: Page<T>, toWire: (entry: T) => W) {
  const { data, nextCursor, hasMore, limit } = page;
  return { data: data.map((entry) => toWire(entry)), pagination: { nextCursor, hasMore, limit } };
}

export async function mintToWire(from: MintResult) {
  const { mintId, vaults, transactions } = from;
  return writeMint({ mintId, vaults, transactions, receipt: await from.receipt() });
}

/** As shown to the operator, without the fields that depend on an application. */
export function assetToOperator(from: Asset) {
  const { enabled: _enabled, mintingAvailable: _available, unavailableReason: _reason, ...known } = assetToWire(from);
  return known;
}

/** A batch with the assets that L1 leaves out by their names. */
export function batchView(from: Batch) {
  const leftOut = (from.leftOut ?? []).flatMap(({ asset, failure }) => {
    const named = from.assets[asset];
    return named === undefined ? [] : [{ ...named, failure }];
  });
  return { ...from, leftOut };
}

export function batchToWire(from: Batch) {
  return writeBatch(batchView(from));
}

/** The result for a vault of a list. */
export function listedView({ vaultId, withdrawal, error }: ListedWithdrawal) {
  return { vaultId, withdrawal, error: error && { code: error.code, detail: error.message } };
}
