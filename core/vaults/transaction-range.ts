import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { PageOptions } from "../ledger/list.ts";
import { findUser } from "../ledger/users.ts";
import type { Mode, Status, Transaction, VaultId } from "../model.ts";
import { batchIdOf, MODES, type Uuid } from "../model.ts";
import type { Journaled } from "../store/journal.ts";
import { readMint, readTime, sequenceIn } from "../store/journal.ts";
import type { MintEntry } from "../store/mint-entry.ts";
import { activityKey, mintKey, transactionKey } from "../store/store-keys.ts";
import { requireUuid } from "../validate.ts";
import { placeOf, readVault } from "./vaults.ts";

/** Transactions from one sequence to before another. */
export interface Sequences {
  readonly from: number;
  readonly to: number;
}

/** Transactions of one user, of one type, of one reference, or all, within a range. */
export interface Part {
  readonly userIndex: number | undefined;
  readonly type: "mint" | "withdrawal" | undefined;
  /** Of the mints alone that have it. */
  readonly reference?: string | undefined;
  readonly within: Sequences;
}

/** Where all transactions are that a filter can match, in parts that follow one another. */
export type Narrowed = readonly Part[];

/**
 * What a filter's user, mint, vault, batch and times say about where to look, so that a page need not look at everything an application
 * has. The times of transactions never go back, so a time is found by bisection. Null when nothing can match.
 */
export async function narrow(
  ledger: Ledger,
  applicationId: Uuid,
  filter: Omit<TransactionFilter, "order">,
  type: Part["type"],
): Promise<Narrowed | null> {
  const { applicationIndex, nextSequence } = ledger.application(applicationId);
  const user = await orNull("user_not_found", () => userOf(ledger, applicationId, filter.userId));
  const vault = await orNull("vault_not_found", () => vaultOf(ledger, applicationIndex, filter.vaultId));
  const mint = await orNull("mint_not_found", () => mintOf(ledger, applicationId, filter.mintId));
  const batch = batchOf(ledger, filter.batchId);
  if (user === null || vault === null || mint === null || batch === null) return null;
  const userIndex = user ?? vault?.userIndex;
  if (vault !== undefined && vault.userIndex !== userIndex) return null;
  const since = Math.max(
    filter.createdAfter === undefined ? 0 : Math.floor(filter.createdAfter) + 1,
    vault?.createdAt ?? 0,
    batch?.openedAt ?? 0,
  );
  const before = filter.createdBefore === undefined ? Number.POSITIVE_INFINITY : filter.createdBefore;
  const within = mint ?? { from: 0, to: nextSequence };
  const find = (time: number) => bisect(ledger, applicationIndex, nextSequence, time);
  const from = since === 0 ? within.from : Math.max(within.from, await find(since));
  const to = before === Number.POSITIVE_INFINITY ? within.to : Math.min(within.to, await find(before));
  const { reference } = filter;
  if (reference !== undefined && type === "withdrawal") return null;
  if (vault === undefined || reference !== undefined) return [{ userIndex, type, reference, within: { from, to } }];
  // A vault is minted into from its first mint to its last one, and withdrawn from only after that.
  const lastMint = Math.max(from, Math.min(to, await find(vault.updatedAt + 1)));
  // A withdrawal of the same millisecond as the last mint is among the mints: the user's index has both.
  const mints: Part = { userIndex, type: "mint", within: { from, to: lastMint } };
  const withdrawals: Part = { userIndex: undefined, type: "withdrawal", within: { from: lastMint, to } };
  const [activity] = filter.vaultId === undefined ? [] : await ledger.store.getMany([activityKey(filter.vaultId)]);
  if (type === "mint" || activity === undefined) return type === "withdrawal" ? [] : [mints];
  return type === "withdrawal" ? [{ ...withdrawals, within: { from, to } }] : [mints, withdrawals];
}

/** The first transaction that was accepted at `time` or later; `end` when none of those before it was. */
async function bisect(ledger: Ledger, applicationIndex: number, end: number, time: number): Promise<number> {
  let low = 0;
  let high = end;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const request = await requestAt(ledger, applicationIndex, middle);
    if (request.time >= time) high = request.firstSequence;
    else low = middle + 1;
  }
  return low;
}

/** The request that a transaction belongs to. */
async function requestAt(ledger: Ledger, applicationIndex: number, sequence: number) {
  const range = { gte: transactionKey(applicationIndex, 0), lte: transactionKey(applicationIndex, sequence) };
  for await (const [key, reference] of ledger.store.entries({ ...range, reverse: true, limit: 1 })) {
    const firstSequence = Number(key.readBigUInt64BE(key.length - 8));
    return { firstSequence, time: await readTime(ledger.store, sequenceIn(reference)) };
  }
  throw new MintmarkError("store_corrupt", `The index of transaction ${sequence} is missing.`);
}

async function userOf(ledger: Ledger, applicationId: Uuid, userId: Uuid | undefined) {
  return userId === undefined ? undefined : (await findUser(ledger, applicationId, userId)).userIndex;
}

async function vaultOf(ledger: Ledger, applicationIndex: number, vaultId: bigint | undefined) {
  if (vaultId === undefined) return undefined;
  const vault = await readVault(ledger, placeOf(vaultId));
  return vault.applicationIndex === applicationIndex ? vault : null;
}

async function mintOf(ledger: Ledger, applicationId: Uuid, mintId: Uuid | undefined): Promise<Sequences | undefined> {
  if (mintId === undefined) return undefined;
  const { entry } = await findMint(ledger, applicationId, mintId);
  return { from: entry.firstSequence, to: entry.firstSequence + entry.mints.length };
}

function batchOf(ledger: Ledger, batchId: string | undefined) {
  if (batchId === undefined) return undefined;
  for (const mode of MODES) {
    const batchNumber = Number(batchId.slice(mode.length + 1));
    if (batchId === batchIdOf(mode, batchNumber)) return ledger.batches[mode].get(batchNumber) ?? null;
  }
  return null;
}

/** What was found; null when it is refused with this code. */
async function orNull<T>(code: MintmarkError["code"], find: () => Promise<T>): Promise<T | null> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof MintmarkError && error.code === code) return null;
    throw error;
  }
}

/** The journal entry of an application's mint. Throws `mint_not_found`. */
export async function findMint(ledger: Ledger, applicationId: Uuid, mintId: Uuid): Promise<Journaled<MintEntry>> {
  const { applicationIndex } = ledger.application(applicationId);
  const reference = await ledger.store.get(mintKey(requireUuid("mintId", mintId)));
  const found = reference === undefined ? null : await readMint(ledger.store, sequenceIn(reference));
  if (found === null || found.entry.applicationIndex !== applicationIndex) throw new MintmarkError("mint_not_found");
  return found;
}

/** Which transactions a list shows, and in what order. */
export interface TransactionFilter extends PageOptions {
  readonly status?: Status | undefined;
  readonly type?: Transaction["type"] | undefined;
  readonly userId?: Uuid | undefined;
  readonly assetId?: Uuid | undefined;
  readonly vaultId?: VaultId | undefined;
  /** `validium-12`, `zk-rollup-3`. */
  readonly batchId?: string | undefined;
  readonly mintId?: Uuid | undefined;
  /** What the caller called its mints. */
  readonly reference?: string | undefined;
  readonly dataAvailabilityMode?: Mode | undefined;
  /** Milliseconds since 1970, exclusive. */
  readonly createdAfter?: number | undefined;
  readonly createdBefore?: number | undefined;
  /** By sequence; default `desc`, newest first. */
  readonly order?: "asc" | "desc" | undefined;
}
