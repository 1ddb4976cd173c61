import type { Ledger } from "../ledger/ledger.ts";
import type { PageOptions, PageStart } from "../ledger/list.ts";
import type { Transaction, Uuid } from "../model.ts";
import { narrow, type TransactionFilter } from "./transaction-range.ts";
import { type Found, type Scan, scanTransactions } from "./transaction-scan.ts";

/** Most transactions that one page examines. A withdrawal or a transfer counts for as many as its two reads cost. */
const SCAN_BOUND = 10_000;
const WITHDRAWAL_WEIGHT = 20;
/** Of each vault of a list of transfers: the whole list is read for any one of them. */
const SLOT_WEIGHT = 2;

interface Wanted extends Pick<Scan, "order"> {
  readonly type: Transaction["type"] | undefined;
  readonly wanted: (found: Found) => boolean;
}

/** The list's view of a transaction, and the sequence after which the next page begins. */
interface FoundPage {
  readonly found: readonly Found[];
  readonly next: number | null;
}

/** The filter's user, mint, vault, batch and times say where to look; `wanted` decides the rest. */
export async function findPage(
  ledger: Ledger,
  applicationId: Uuid,
  filter: TransactionFilter | PageOptions,
  { after, limit }: PageStart,
  { wanted, order, type }: Wanted,
): Promise<FoundPage> {
  const { applicationIndex } = ledger.application(applicationId);
  const parts = await narrow(ledger, applicationId, filter, type);
  if (parts === null) return { found: [], next: null };
  return collect(ledger, { applicationIndex, parts, order, after }, limit, wanted);
}

/** As many matches as fit a page, and the start of the next one; null at the end. */
export async function collect(ledger: Ledger, scan: Scan, limit: number, wanted: (found: Found) => boolean) {
  const found: Found[] = [];
  let scanned = 0;
  let last = 0;
  const onTransfers = (slots: number) => {
    scanned += slots * SLOT_WEIGHT;
  };
  for await (const one of scanTransactions(ledger, { ...scan, onTransfers })) {
    if (found.length === limit || scanned >= SCAN_BOUND) return { found, next: last };
    if (wanted(one)) found.push(one);
    last = one.sequence;
    scanned += one.source.type === "mint" ? 1 : WITHDRAWAL_WEIGHT;
  }
  return { found, next: null };
}
