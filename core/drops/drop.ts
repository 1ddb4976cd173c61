import { createHash } from "node:crypto";
import { backoffDelay, pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import { countMints } from "../mint/form.ts";
import type { MintResult } from "../mint/mint-results.ts";
import type { MintOptions, Mints } from "../mint/mints.ts";
import type { RequestLimits } from "../mint/reader.ts";
import type { Principal } from "../model.ts";
import { type Counts, DropFiles, type Intent, type LeftOut } from "./progress.ts";
import { columnOf, type DropFormat, rowsOf, sentenceOf, type Turn } from "./rows.ts";
import {
  type DropDefaults,
  type RowsRequest,
  requestWithout,
  type Window,
  windowsOf,
} from "./windows.ts";

/**
 * Servers keep an idempotency key for at least 24 hours. One hour is left for clock differences and
 * waiting requests.
 */
const KEPT_MS = 23 * 3_600_000;

/** The parts of a mint's response about its entries. */
interface MintedRows {
  readonly mintId: string;
  readonly transactions: readonly {
    readonly transactionId: string;
    readonly vaultId: bigint | string;
  }[];
  readonly vaults: readonly {
    readonly vaultId: bigint | string;
    readonly tokenId: bigint | string | null;
  }[];
}

/** Sends a drop's requests. It retries temporary failures itself, such as `backpressure`. */
export interface Minting {
  /** Mints all or nothing; null for a check only. Rejects with `RequestRefused`. */
  mint(body: RowsRequest["body"], idempotencyKey: string): Promise<MintedRows | null>;
}

/** A refused request, with its bad entries by pointer. */
export class RequestRefused extends Error {
  override readonly name = "RequestRefused";
  readonly code: string;
  readonly issues: readonly {
    readonly pointer: string;
    readonly code: string;
    readonly detail: string;
  }[];

  constructor({
    code,
    detail,
    issues,
  }: Pick<RequestRefused, "code" | "issues"> & { readonly detail: string }) {
    super(detail);
    this.code = code;
    this.issues = issues;
  }
}

/**
 * The last request of an earlier run is too old: its idempotency key no longer shows whether it was
 * minted.
 */
export class UnsureOutcome extends Error {
  override readonly name = "UnsureOutcome";

  constructor(window: Window, { at }: Intent) {
    const [first, last] = [window[0]?.row, window.at(-1)?.row];
    super(
      `Rows ${first} to ${last} were sent at ${new Date(at).toISOString()}, and no answer came. The server may have ` +
        "forgotten their idempotency key since. Find out whether they were minted.",
    );
  }
}

export interface DropTask {
  /** The drop's identity, from `dropId`. */
  readonly id: string;
  readonly source: AsyncIterable<Uint8Array>;
  readonly format: DropFormat;
  readonly defaults: DropDefaults;
  readonly minting: Minting;
  /** Awaited after every few hundred rows. Default: no wait. */
  readonly turn?: Turn;
  /** Paths of the two files. */
  readonly result: string;
  readonly progress: string;
  /**
   * The outcome of rows that nobody can determine; without it such a drop stops with
   * `UnsureOutcome`.
   */
  readonly unsure?: "minted" | "lost" | undefined;
  /** Stops between two requests. */
  readonly signal: AbortSignal;
  onProgress(counts: Counts): void;
}

/**
 * The identity of a drop: the same rows with the same options are the same drop, minted once,
 * unless it has another name.
 *
 * @param digest - of the file
 */
export function dropId(
  digest: string,
  { assetId = "", dataAvailabilityMode = "" }: DropDefaults,
  name: string,
): string {
  return createHash("sha256")
    .update(JSON.stringify([digest, assetId.toLowerCase(), dataAvailabilityMode, name]))
    .digest("hex");
}

/**
 * Mints the rows of a drop, window by window, and writes each outcome. A killed run resumes where
 * it stopped: each window has one idempotency key, so it is minted at most once. Rejects with the
 * error of a whole request.
 */
export async function runDrop(task: DropTask): Promise<Counts> {
  await using files = await DropFiles.open(task.result, task.progress, task.id);
  const { done: before } = files.counts;
  task.onProgress(files.counts);
  let index = 0;
  for await (const window of windowsOf(rowsOf(task.source, task.format, task.turn))) {
    if (index++ < before) continue;
    task.signal.throwIfAborted();
    const { lines, counts } = await mintWindow(task, files, window, index - 1);
    await files.finish(lines, counts);
    task.onProgress(files.counts);
  }
  return files.counts;
}

interface Outcome {
  readonly lines: readonly object[];
  readonly counts: Omit<Counts, "bytes">;
}

/** Mints all rows of a window that are not refused. */
async function mintWindow(
  task: DropTask,
  files: DropFiles,
  window: Window,
  index: number,
): Promise<Outcome> {
  const { intent } = files;
  const left = new Map(intent?.left);
  const isUnsure = intent !== null && Date.now() - intent.at > KEPT_MS;
  if (isUnsure && task.unsure === undefined) throw new UnsureOutcome(window, intent);
  const key = createHash("sha256").update(`${task.id} ${index}`).digest("hex");
  for (;;) {
    const request = requestWithout(left, window, task.defaults);
    if (request === null) return outcomeOf(window, left, new Map());
    if (isUnsure && task.unsure === "minted")
      return outcomeOf(window, left, statusOf(request, { status: "minted" }));
    await files.intend({ left, at: Date.now() });
    try {
      const minted = await task.minting.mint(request.body, `drop-${key}`);
      const found =
        minted === null ? statusOf(request, { status: "mintable" }) : mintedLines(request, minted);
      return outcomeOf(window, left, found);
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      // The key belongs to other rows of the window: an earlier run, whose progress is lost, left
      // others out.
      if (error.code === "idempotency_key_reused")
        return outcomeOf(window, left, statusOf(request, UNKNOWN));
      leaveOut(left, request, error, task.format);
    }
  }
}

interface RowLine {
  readonly status: "minted" | "mintable" | "unknown";
}

const UNKNOWN = {
  status: "unknown",
  code: "idempotency_key_reused",
  detail: "An earlier run minted this window without some of its rows. Its result says which.",
} as const;

/** Adds refused rows to those left out. Throws the refusal when it is not about rows. */
function leaveOut(
  left: Map<number, { code: string; detail: string }>,
  request: RowsRequest,
  refusal: RequestRefused,
  format: DropFormat,
) {
  const { size } = left;
  for (const { pointer, code, detail } of refusal.issues) {
    const { rows, field: asked } = request.place(pointer);
    const field = columnOf(format, asked);
    if (rows.length === 0) throw refusal;
    for (const row of rows)
      if (!left.has(row)) left.set(row, { code, detail: sentenceOf({ field, detail }) });
  }
  if (left.size === size) throw refusal;
}

function outcomeOf(window: Window, left: LeftOut, lines: ReadonlyMap<number, RowLine>): Outcome {
  const counts = { minted: 0, mintable: 0, refused: 0, unknown: 0 };
  const each = window.map(({ row }) => {
    const refused = left.get(row);
    if (refused !== undefined) {
      counts.refused++;
      return { row, status: "refused", ...refused };
    }
    const line = lines.get(row);
    if (line === undefined) throw new Error(`row ${row} has no outcome`);
    counts[line.status]++;
    return { row, ...line };
  });
  return { lines: each, counts };
}

function statusOf({ order }: RowsRequest, line: RowLine): Map<number, RowLine> {
  return new Map(order.map(([row]) => [row, line]));
}

/** Each row's transactions, vaults and tokens. The entries of a response are in request order. */
function mintedLines(
  { order }: RowsRequest,
  { mintId, transactions, vaults }: MintedRows,
): Map<number, RowLine> {
  const tokenOf = new Map(
    vaults.map(({ vaultId, tokenId }) => [String(vaultId), tokenId?.toString()]),
  );
  let at = 0;
  return new Map(
    order.map(([row, tokens]) => {
      const own = transactions.slice(at, at + tokens);
      at += tokens;
      if (own.length < tokens) throw new Error(`the answer to row ${row} has too few transactions`);
      const transactionIds = own.map(({ transactionId }) => transactionId);
      const vaultIds = own.map(({ vaultId }) => String(vaultId));
      const tokenIds = vaultIds.flatMap((vaultId) => tokenOf.get(vaultId) ?? []);
      return [row, { status: "minted", mintId, transactionIds, vaultIds, tokenIds }];
    }),
  );
}

/** Codes of temporary failures while the engine runs. */
const PASSING: ReadonlySet<string> = new Set([
  "backpressure",
  "l1_not_compared",
  "idempotency_in_progress",
  "journal_unavailable",
]);
/** Codes of failures that end with the next start, which resumes the drop. */
const ENDING: ReadonlySet<string> = new Set(["engine_closed", "store_failed", "not_leader"]);
const BACKOFF = { firstMs: 250, maxMs: 10_000 };

/** Whether the engine has ended, or ends with this error. */
export function hasEnded(error: unknown): boolean {
  return error instanceof MintmarkError && ENDING.has(error.code);
}

/** The parts of an engine that mint a drop. */
export interface DropEngine {
  mint(principal: Principal, request: unknown, options?: MintOptions): Promise<MintResult>;
  readonly mints: Pick<Mints, "check">;
  readonly limits: RequestLimits;
}

/**
 * Waits before each request of a drop. `tokens` is the number of its tokens; 0 for a request that
 * is sent again, and before the next few hundred rows are read. Rejects with the signal's reason.
 */
export type Pace = (principal: Principal, tokens: number, signal: AbortSignal) => Promise<void>;

/**
 * Mints in an engine of this process, with the key that uploaded the drop. A revoked key ends its
 * drops. Rejects with the engine's own error when the engine ends.
 */
export function engineMinting(
  engine: DropEngine,
  pace: Pace,
  principal: Principal,
  dryRun: boolean,
  signal: AbortSignal,
): Minting {
  return {
    async mint(body: unknown, idempotencyKey) {
      const tokens = Math.min(countMints(body), engine.limits.mintsPerRequest);
      for (let attempt = 1; ; attempt++) {
        await pace(principal, attempt === 1 ? tokens : 0, signal);
        try {
          if (!dryRun) return await engine.mint(principal, body, { idempotencyKey });
          await engine.mints.check(principal, body);
          return null;
        } catch (error) {
          if (!(error instanceof MintmarkError) || hasEnded(error)) throw error;
          const { code, message: detail, issues } = error;
          if (!PASSING.has(code)) throw new RequestRefused({ code, detail, issues });
        }
        await pause(backoffDelay(BACKOFF, attempt), signal);
      }
    },
  };
}
