import { type Cursors, pageLimit, scopeOf } from "../ledger/cursor.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { PageOptions } from "../ledger/list.ts";
import type { Page, Uuid } from "../model.ts";
import { narrow, type Part, type TransactionFilter } from "./transaction-range.ts";
import { type Found, type Scan, scanTransactions } from "./transaction-scan.ts";

/** Most transactions that one page looks at. A withdrawal takes two reads of its own, so it counts as many. */
const SCAN_BOUND = 10_000;
const WITHDRAWAL_WEIGHT = 20;

/** What is wanted of the transactions that a list is made from, and in what order. */
interface Wanted extends Pick<Scan, "order">, Pick<Part, "type"> {
  /** The list's name, to which its cursors are bound. */
  readonly list: string;
  readonly wanted: (found: Found) => boolean;
}

/** A page of a list that is made from an application's transactions: those found, and what the page says besides. */
export interface FoundPage {
  readonly found: readonly Found[];
  readonly rest: Omit<Page<never>, "data">;
}

/**
 * Finds a page. A filter's user, mint, vault, batch and times say where to look; `wanted` decides the rest.
 * Throws `application_not_found`, `cursor_invalid`, `validation_failed`.
 */
export async function findPage(
  ledger: Ledger,
  cursors: Cursors,
  applicationId: Uuid,
  filter: TransactionFilter | PageOptions,
  { list, wanted, order, type }: Wanted,
): Promise<FoundPage> {
  const { applicationIndex } = ledger.application(applicationId);
  const limit = pageLimit(filter.limit);
  const scope = scopeOf(list, applicationId, filter);
  const after = cursors.read(filter.cursor, scope);
  const parts = await narrow(ledger, applicationId, filter, type);
  if (parts === null) return { found: [], rest: { nextCursor: null, hasMore: false, limit } };
  const { found, next } = await collect(ledger, { applicationIndex, parts, order, after }, limit, wanted);
  const nextCursor = next === null ? null : cursors.issue(next, scope);
  return { found, rest: { nextCursor, hasMore: nextCursor !== null, limit } };
}

/** As many matches as fit a page, and where the next one starts; null when nothing is left. */
export async function collect(ledger: Ledger, scan: Scan, limit: number, wanted: (found: Found) => boolean) {
  const found: Found[] = [];
  let scanned = 0;
  let last = 0;
  for await (const one of scanTransactions(ledger, scan)) {
    if (found.length === limit || scanned >= SCAN_BOUND) return { found, next: last };
    if (wanted(one)) found.push(one);
    last = one.sequence;
    scanned += one.source.type === "withdrawal" ? WITHDRAWAL_WEIGHT : 1;
  }
  return { found, next: null };
}
