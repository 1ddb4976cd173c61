import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { firstWhere, type OrderedPage, type PageOptions } from "../ledger/list.ts";
import { findUser } from "../ledger/user-records.ts";
import type { Address, Mode, Series, Status, Transaction, Uuid, VaultId } from "../model.ts";
import { batchIdOf, MODES } from "../model.ts";
import { type Journaled, readMint, readTime, sequenceIn } from "../store/journal.ts";
import { decodeRecord } from "../store/layout.ts";
import type { MintJournalEntry } from "../store/mint-entry.ts";
import { type BatchRecord, ownerRecord, WITHDRAWAL_STATUSES } from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { orNull, requireAddress, requireUuid } from "../validate.ts";
import { makerOf, slotCount } from "./transfer-lists.ts";
import { placeOf, readVault, statusOfBatch } from "./vaults.ts";

const MOST_USERS = 1_000; // Most users of one owner that a list covers: the first ones

/** Transactions from one sequence to another, exclusive. */
export interface Sequences {
  readonly from: number;
  readonly to: number;
}

/**
 * Transactions within a range: of some users, one reference, marked blocks, some indexes, or all.
 */
export interface TransactionRange {
  readonly users?: ReadonlySet<number> | undefined;
  readonly reference?: string | undefined;
  readonly marks?: readonly Buffer[] | undefined;
  readonly indexes?: readonly Buffer[] | undefined;
  readonly within: Sequences;
}

/**
 * Turns a filter into ranges that hold all it can match; null when nothing can. Bisects times,
 * which never go back.
 */
export async function narrow(
  ledger: Ledger,
  applicationId: Uuid,
  filter: TransactionFilter,
): Promise<readonly TransactionRange[] | null> {
  const { applicationIndex, nextSequence } = ledger.tenants.application(applicationId, null);
  const users = await usersOf(ledger, applicationId, filter);
  const { vaultId, mintId, reference, assetId, type, createdAfter, createdBefore } = filter;
  const vault =
    vaultId === undefined
      ? undefined
      : await orNull("vault_not_found", () => readVault(ledger, placeOf(vaultId)));
  const mint =
    mintId === undefined
      ? undefined
      : await orNull("mint_not_found", () => findMint(ledger, applicationId, mintId));
  if (users?.size === 0 || vault === null || mint === null) return null;
  if (vault !== undefined && vault.applicationIndex !== applicationIndex) return null;
  if (reference !== undefined && type !== undefined && type !== "mint") return null;
  if (type === "withdrawal" && filter.status === "batched") return null;
  if (vault !== undefined && users?.has(vault.userIndex) === false) return null;
  const after = createdAfter === undefined ? 0 : Math.floor(createdAfter) + 1;
  const since = Math.max(after, vault?.createdAt ?? 0);
  const { firstSequence: first = 0 } = mint?.entry ?? {};
  const within = {
    from: first,
    to: mint === undefined ? nextSequence : first + mint.entry.mints.length,
  };
  const find = (time: number) => sequenceAt(ledger, applicationIndex, nextSequence, time);
  const from = since === 0 ? within.from : Math.max(within.from, await find(since));
  const to =
    createdBefore === undefined ? within.to : Math.min(within.to, await find(createdBefore));
  const asset =
    assetId === undefined ? undefined : ledger.tenants.assets.named(assetId, null)?.assetIndex;
  if (assetId !== undefined && asset === undefined) return null;
  // They have other times than the batches of their vaults.
  const later = { ...indexesOf(applicationIndex, filter, users, asset), mint: undefined };
  const indexes = type === undefined ? later.all : later[type];
  if (vault === undefined || reference !== undefined) {
    const spans =
      type !== undefined && type !== "mint"
        ? [{ from, to, modes: MODES }]
        : await spansOf(ledger, filter, find, { from, to });
    return spans.flatMap(({ modes, ...span }): TransactionRange[] => {
      if (modes.length === 0) return type === undefined ? [{ users, indexes, within: span }] : [];
      const marks = asset === undefined ? [] : [prefixOf.assetMark(applicationIndex, asset)];
      if (modes.length === 1) marks.push(prefixOf.modeMark(applicationIndex, modes[0]!));
      return [{ users, reference, marks, ...(type !== undefined && { indexes }), within: span }];
    });
  }
  const owner = new Set([vault.userIndex]);
  // A vault's mints lie between its first and last one. Its withdrawals and transfers come after
  // the last.
  const lastMint = Math.max(from, Math.min(to, await find(vault.updatedAt + 1)));
  // The user's index has both, because a withdrawal can have the same millisecond as the last mint.
  const mints: TransactionRange = { users: owner, within: { from, to: lastMint } };
  // A deposit makes its vault, as the only entry of it.
  if (type === "mint" || type === "deposit") return [mints];
  // A transfer that made the vault was asked for before it.
  const made = await madeWithin(ledger, filter.vaultId as VaultId, {
    from: after === 0 ? 0 : await find(after),
    to,
  });
  if (type !== undefined)
    return [...(type === "transfer" ? made : []), { indexes, within: { from, to } }];
  return [...made, mints, { indexes, within: { from: lastMint, to } }];
}

/** The list of transfers that made a vault, if it lies within a range. */
async function madeWithin(
  ledger: Ledger,
  vaultId: VaultId,
  { from, to }: Sequences,
): Promise<TransactionRange[]> {
  const maker = await makerOf(ledger, placeOf(vaultId));
  if (maker === null) return [];
  const { firstSequence, transfers } = maker.list;
  const within = {
    from: Math.max(from, firstSequence),
    to: Math.min(to, firstSequence + slotCount(transfers)),
  };
  return within.from < within.to ? [{ within }] : [];
}

/**
 * The most selective indexes of withdrawals, of transfers, of deposits, and of all of them. A
 * user's are in one index, beside its mints.
 */
function indexesOf(
  application: number,
  { vaultId, status, type }: TransactionFilter,
  users: ReadonlySet<number> | undefined,
  asset: number | undefined,
): Record<"withdrawal" | "transfer" | "deposit" | "all", Buffer[]> {
  if (vaultId !== undefined) {
    const withdrawal = [prefixOf.vaultWithdrawal(application, vaultId)];
    const transfer = [prefixOf.vaultTransfer(application, vaultId)];
    return { withdrawal, transfer, deposit: [], all: [...withdrawal, ...transfer] };
  }
  if (users !== undefined) {
    const withdrawal = [...users].map((user) => prefixOf.userWithdrawal(application, user));
    const beside = indexesOfUsers(application, users);
    return { withdrawal, transfer: beside, deposit: beside, all: beside };
  }
  const transfer = [prefixOf.applicationTransfer(application)];
  const deposit = [prefixOf.applicationDeposit(application)];
  const withAll = (withdrawal: Buffer[]) => ({
    withdrawal,
    transfer,
    deposit,
    all: [...withdrawal, ...transfer, ...deposit],
  });
  const number = (WITHDRAWAL_STATUSES as readonly (Status | undefined)[]).indexOf(status);
  // Without `type`, `status` matches mints and withdrawals.
  if (type === "withdrawal" && number >= 0)
    return withAll([prefixOf.statusWithdrawal(application, number)]);
  if (asset !== undefined) return withAll([prefixOf.assetWithdrawal(application, asset)]);
  return withAll([prefixOf.applicationWithdrawal(application)]);
}

/** The indexes with all transactions of these users. */
export function indexesOfUsers(application: number, users: ReadonlySet<number>): Buffer[] {
  return [...users].map((user) => prefixOf.userTransaction(application, user));
}

/** A range of transactions, and the modes of its mints that can match. */
interface Span extends Sequences {
  readonly modes: readonly Mode[];
}

/** Splits a range by a filter's batch, mode and status, in order and without gaps. */
async function spansOf(
  ledger: Ledger,
  { batchId, status, dataAvailabilityMode }: TransactionFilter,
  find: (time: number) => Promise<number>,
  { from, to }: Sequences,
): Promise<Span[]> {
  if (from >= to) return [];
  const modes = MODES.filter(
    (mode) => dataAvailabilityMode === undefined || dataAvailabilityMode === mode,
  );
  if (batchId === undefined && status === undefined) return [{ from, to, modes }];
  const found: Span[] = [];
  for (const mode of modes) {
    for (const { since, until } of windowsOf(ledger, mode, batchId, status)) {
      const start = Math.max(from, since === 0 ? 0 : await find(since));
      const end = until === null ? to : Math.min(to, await find(until + 1));
      if (start < end) found.push({ from: start, to: end, modes: [mode] });
    }
  }
  const cuts = [...new Set([from, to, ...found.flatMap((span) => [span.from, span.to])])].sort(
    (a, b) => a - b,
  );
  return cuts.slice(1).map((end, i) => {
    const start = cuts[i]!;
    const here = found.filter((span) => span.from < end && span.to > start);
    return {
      from: start,
      to: end,
      modes: MODES.filter((mode) => here.some((span) => span.modes.includes(mode))),
    };
  });
}

/** Times of mints. `until` null: now. */
interface TimeSpan {
  readonly since: number;
  readonly until: number | null;
}

/** The times of the mints in a batch, or in any batch of a status. */
function windowsOf(
  ledger: Ledger,
  mode: Mode,
  batchId: string | undefined,
  status: Status | undefined,
): TimeSpan[] {
  if (batchId !== undefined) {
    const batchNumber = Number(batchId.slice(mode.length + 1));
    const batch =
      batchId === batchIdOf(mode, batchNumber)
        ? ledger.batches.records[mode].durable.get(batchNumber)
        : undefined;
    return batch === undefined ? [] : [windowOf(ledger, batch, batch)];
  }
  const { durable: batches } = ledger.batches.records[mode];
  if (status === "failed") {
    const voided = [...ledger.batches.voids[mode].durable.keys()].flatMap(
      (number) => batches.get(number) ?? [],
    );
    const lost = [...ledger.l1.lost[mode].durable.values()].flat();
    const replaced = lost.map(({ since }) => ({ since: 0, until: since }));
    return [...voided.map((batch) => windowOf(ledger, batch, batch)), ...replaced];
  }
  // The batches of a mode reach each status in order.
  const rank = RANKS.indexOf(status ?? "accepted");
  const first = firstWhere(batches.size, (number) => rankOf(batches.get(number)) <= rank);
  const end = firstWhere(batches.size, (number) => rankOf(batches.get(number)) < rank);
  const [oldest, newest] = [batches.get(first), batches.get(end - 1)];
  return first < end && oldest !== undefined && newest !== undefined
    ? [windowOf(ledger, oldest, newest)]
    : [];
}

const RANKS: readonly Status[] = ["accepted", "batched", "submitted", "settled", "finalized"];

function rankOf(batch: BatchRecord | undefined): number {
  return RANKS.indexOf(batch === undefined ? "accepted" : statusOfBatch(batch));
}

function windowOf(ledger: Ledger, oldest: BatchRecord, newest: BatchRecord): TimeSpan {
  // Mints of an adopted batch can be older than its first vault, because that can be L1's.
  const { durable: lost } = ledger.l1.lost[oldest.mode];
  const isAdopted = [...lost.values()].flat().some(({ since }) => since === oldest.sealedAt);
  return { since: isAdopted ? 0 : oldest.openedAt, until: newest.sealedAt };
}

/** The first transaction from `start` on at `time` or later; `end` when there is none before it. */
export async function sequenceAt(
  ledger: Ledger,
  applicationIndex: number,
  end: number,
  time: number,
  start = 0,
) {
  let low = start;
  let high = end;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const request = await requestAt(ledger, applicationIndex, middle);
    if (request.time >= time) high = request.firstSequence;
    else low = middle + 1;
  }
  return low;
}

async function requestAt(ledger: Ledger, applicationIndex: number, sequence: number) {
  const range = {
    gte: keyOf.transaction(applicationIndex, 0),
    lte: keyOf.transaction(applicationIndex, sequence),
  };
  for await (const [key, reference] of ledger.store.entries({
    ...range,
    reverse: true,
    limit: 1,
  })) {
    const firstSequence = Number(key.readBigUInt64BE(key.length - 8));
    return { firstSequence, time: await readTime(ledger.store, sequenceIn(reference)) };
  }
  throw new MintmarkError("store_corrupt", `The index of transaction ${sequence} is missing.`);
}

/**
 * The users that a filter names, by id or as the first ones of an owner; undefined when it names
 * none.
 */
async function usersOf(
  ledger: Ledger,
  applicationId: Uuid,
  { userId, ownerAddress }: TransactionFilter,
) {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const owned = new Set<number>();
  if (ownerAddress !== undefined) {
    const prefix = keyOf.owner(requireAddress("ownerAddress", ownerAddress), applicationIndex);
    for await (const [, record] of ledger.store.entries({
      gte: prefix,
      lt: endOf(prefix),
      limit: MOST_USERS,
    }))
      owned.add(decodeRecord(ownerRecord, record, "An owner").userIndex);
  }
  if (userId === undefined) return ownerAddress === undefined ? undefined : owned;
  const user = await orNull("user_not_found", () => findUser(ledger, applicationId, userId));
  return user === null || (ownerAddress !== undefined && !owned.has(user.userIndex))
    ? new Set<number>()
    : new Set([user.userIndex]);
}

/** The journal entry of an application's mint. Throws `mint_not_found`. */
export async function findMint(
  ledger: Ledger,
  applicationId: Uuid,
  mintId: Uuid,
): Promise<Journaled<MintJournalEntry>> {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const reference = await ledger.store.get(keyOf.mint(requireUuid("mintId", mintId)));
  const found =
    reference === undefined ? null : await readMint(ledger.store, sequenceIn(reference));
  if (found === null || found.entry.applicationIndex !== applicationIndex)
    throw new MintmarkError("mint_not_found");
  return found;
}

/** Filter and order of a list of transactions. */
export interface TransactionFilter extends PageOptions {
  readonly status?: Status | undefined;
  readonly type?: Transaction["type"] | undefined;
  readonly userId?: Uuid | undefined;
  /** All users of this owner. */
  readonly ownerAddress?: Address | undefined;
  readonly assetId?: Uuid | undefined;
  readonly vaultId?: VaultId | undefined;
  /** `validium-12`, `zk-rollup-3`, `made-5`. */
  readonly batchId?: string | undefined;
  readonly mintId?: Uuid | undefined;
  /** The caller's own name for its mints. */
  readonly reference?: string | undefined;
  readonly dataAvailabilityMode?: Series | undefined;
  /** Milliseconds since 1970, exclusive. */
  readonly createdAfter?: number | undefined;
  readonly createdBefore?: number | undefined;
  /** The order of sequences; default `desc`, newest first. */
  readonly order?: "asc" | "desc" | undefined;
}

/** Filter of a list of vaults. A list by `tokenId` has an order of its own. */
export interface VaultFilter
  extends OrderedPage,
    Pick<
      TransactionFilter,
      "userId" | "ownerAddress" | "assetId" | "batchId" | "dataAvailabilityMode" | "status"
    >,
    Pick<TransactionFilter, "createdAfter" | "createdBefore"> {
  /** Finds ERC-721 and ERC-1155 vaults. Covers every visible asset unless `assetId` is given. */
  readonly tokenId?: bigint | undefined;
  /** Vaults with a mint under this reference. */
  readonly reference?: string | undefined;
}
