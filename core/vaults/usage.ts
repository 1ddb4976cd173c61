import { argumentError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { listOf, type PageOptions, tablePage } from "../ledger/list.ts";
import type { ApiKey, Page, Uuid } from "../model.ts";
import type { KeyRecord } from "../store/records.ts";
import { oneOf } from "../validate.ts";
import { sequenceAt } from "./transaction-range.ts";

const INTERVALS = ["hour", "day", "month"] as const;
const MOST_PERIODS = 100;

/** An application's usage, in all and over a time. */
export interface Usage extends Omit<Page<KeyUsage>, "data"> {
  /** Entries that its keys have minted. */
  readonly mints: bigint;
  /**
   * Mints, withdrawals and transfers. Each transferred vault counts, and so does the change of a
   * split.
   */
  readonly transactions: number;
  /** Keys of programs and people that are not revoked. */
  readonly keysInUse: number;
  /** One page of all keys, oldest first. */
  readonly keys: readonly KeyUsage[];
  /** The periods in order, without a gap; the last ends when the time asked for does. */
  readonly periods: readonly UsagePeriod[];
}

/** Entries that one API key has minted, of the most that it may. */
export interface KeyUsage extends Pick<ApiKey, "keyId" | "mintsUsed" | "mintQuota" | "revokedAt"> {}

/** Transactions that were accepted from `since` to before `until`, ms since 1970. */
export interface UsagePeriod {
  readonly since: number;
  readonly until: number;
  readonly transactions: number;
}

/** The time that usage is asked of, how it is divided, and the page of keys. */
export interface UsageOptions extends PageOptions {
  /** Milliseconds since 1970; default: 30 intervals before `until`. */
  readonly since?: number | undefined;
  /** Default: now. */
  readonly until?: number | undefined;
  /** Periods begin with the hour, day or month in UTC; default `day`. */
  readonly interval?: (typeof INTERVALS)[number] | undefined;
}

/** Counts by the index of transactions: a few reads a period, however many transactions it has. */
export async function usageOf(
  context: EngineContext,
  applicationId: Uuid,
  { limit, cursor, ...options }: UsageOptions,
): Promise<Usage> {
  const { ledger } = context;
  const { applicationIndex, nextSequence } = ledger.tenants.application(applicationId, null);
  const bounds = boundsOf(options, ledger.services.clock());
  const sequences = await sequencesAt(ledger, applicationIndex, bounds, 0, nextSequence);
  const periods = bounds.slice(1).map((until, i): UsagePeriod => {
    const transactions = sequences[i + 1]! - sequences[i]!;
    return { since: bounds[i]!, until, transactions };
  });
  const numbers = ledger.tenants.keysOf.numbers(applicationIndex);
  const { data: keys, ...pagination } = await listOf(
    context,
    "usage",
    applicationId,
    { limit, cursor },
    (start) => tablePage(ledger.tenants.keys.durable, start, keyUsage, "asc", numbers),
  );
  const counted = ledger.tenants.keysCounted.records(applicationIndex, null);
  const mints = counted.reduce((sum, { mintsUsed }) => sum + mintsUsed, 0n);
  const keysInUse = counted.filter(({ revokedAt }) => revokedAt === null).length;
  return { mints, transactions: nextSequence, keysInUse, keys, periods, ...pagination };
}

function keyUsage({ keyId, mintsUsed, mintQuota, revokedAt }: KeyRecord): KeyUsage {
  return { keyId, mintsUsed, mintQuota, revokedAt };
}

/**
 * The first transaction of each time or later. Looks for the middle time first, so empty periods
 * cost no reads.
 */
async function sequencesAt(
  ledger: Ledger,
  applicationIndex: number,
  times: readonly number[],
  from: number,
  to: number,
): Promise<number[]> {
  if (from === to || times.length === 0) return times.map(() => from);
  const middle = times.length >> 1;
  const found = await sequenceAt(ledger, applicationIndex, to, times[middle]!, from);
  const before = await sequencesAt(ledger, applicationIndex, times.slice(0, middle), from, found);
  const behind = await sequencesAt(ledger, applicationIndex, times.slice(middle + 1), found, to);
  return [...before, found, ...behind];
}

function boundsOf({ since, until, interval = "day" }: UsageOptions, now: number): number[] {
  oneOf(INTERVALS)("interval", interval);
  const end = until ?? now;
  const start = since ?? beginning(end, interval, -29);
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end) || start < 0 || start >= end)
    throw argumentError("since", "must be a time before until");
  const bounds = [start];
  for (let next = beginning(start, interval, 1); next < end; next = beginning(next, interval, 1)) {
    bounds.push(next);
    if (bounds.length > MOST_PERIODS) {
      const rule = `must be at most ${MOST_PERIODS} periods before until; ask for a longer interval or a shorter time`;
      throw argumentError("since", rule);
    }
  }
  return [...bounds, end];
}

/** The beginning of the interval that a time is in, or of one so many later. */
function beginning(time: number, interval: (typeof INTERVALS)[number], later: number): number {
  const at = new Date(time);
  const [year, month, day, hour] = [
    at.getUTCFullYear(),
    at.getUTCMonth(),
    at.getUTCDate(),
    at.getUTCHours(),
  ];
  if (interval === "month") return Date.UTC(year, month + later, 1);
  return interval === "day"
    ? Date.UTC(year, month, day + later)
    : Date.UTC(year, month, day, hour + later);
}
