import { createHash } from "node:crypto";
import { MAX_ISSUES, MintmarkError } from "../errors.ts";
import { type RequestLimits, requireForm } from "../mint/reader.ts";
import { checksumHolds } from "../validate.ts";
import {
  columnOf,
  type DropFormat,
  type Row,
  type RowError,
  rowsOf,
  UnreadableRow,
} from "./rows.ts";

/**
 * Limits of one mint request of a drop. They are fixed, because a window's place determines its
 * idempotency key: the same drop has the same windows on every server. A row with a larger
 * `quantity` is its own window.
 */
const WINDOW = { tokens: 1_000, users: 100, bytes: 1 << 20 } as const;

/** Values for rows without their own. */
export interface DropDefaults {
  readonly assetId?: string | undefined;
  readonly dataAvailabilityMode?: string | undefined;
}

/** A mint request for some rows of a window, with the place of each row in it. */
export interface RowsRequest {
  readonly body: { readonly users: readonly RequestUser[] };
  /** The rows in the order of the request's entries, with the number of tokens of each. */
  readonly order: readonly (readonly [row: number, tokens: number])[];
  /**
   * The rows and the field of a pointer into the request; no rows when it is about the whole
   * request.
   */
  place(pointer: string): { readonly rows: readonly number[]; readonly field: string };
}

interface RequestUser {
  readonly userId?: unknown;
  readonly ownerAddress?: unknown;
  readonly mints: readonly Readonly<Record<string, unknown>>[];
}

/** Consecutive rows of a drop in one request. */
export type Window = readonly Row[];

export async function* windowsOf(rows: AsyncIterable<Row>): AsyncGenerator<Window> {
  let window: Row[] = [];
  let bytes = 0;
  let tokens = 0;
  const recipients = new Set<string>();
  for await (const row of rows) {
    const users = recipients.size + (recipients.has(recipientOf(row)) ? 0 : 1);
    const fits =
      tokens + tokensOf(row) <= WINDOW.tokens &&
      bytes + row.bytes <= WINDOW.bytes &&
      users <= WINDOW.users;
    if (!fits && window.length > 0) {
      yield window;
      [window, bytes, tokens] = [[], 0, 0];
      recipients.clear();
    }
    window.push(row);
    bytes += row.bytes;
    tokens += tokensOf(row);
    recipients.add(recipientOf(row));
  }
  if (window.length > 0) yield window;
}

/** The request for all rows of a window except `left`; null when none remains. */
export function requestWithout(
  left: ReadonlyMap<number, unknown>,
  window: Window,
  { assetId, dataAvailabilityMode }: DropDefaults,
): RowsRequest | null {
  const defaults = { assetId, dataAvailabilityMode };
  const remaining = window.filter(({ row }) => !left.has(row));
  const groups = [...Map.groupBy(remaining, recipientOf).values()];
  if (groups.length === 0) return null;
  return {
    body: { users: groups.map((rows) => requestUser(rows, defaults)) },
    order: groups.flatMap((rows) => rows.map((row) => [row.row, tokensOf(row)] as const)),
    place(pointer) {
      const [, user, mint, field = ""] =
        /^\/users\/(\d+)(?:\/mints\/(\d+))?(?:\/(.*))?$/.exec(pointer) ?? [];
      const rows = user === undefined ? [] : (groups[Number(user)] ?? []);
      const named = mint === undefined ? rows : rows.slice(Number(mint), Number(mint) + 1);
      return { rows: named.map(({ row }) => row), field };
    },
  };
}

function requestUser(rows: Window, defaults: DropDefaults): RequestUser {
  const { userId, ownerAddress } = rows[0]?.fields ?? {};
  return {
    userId,
    ownerAddress,
    mints: rows.map(({ fields: { ownerAddress: _owner, userId: _user, ...entry } }) => ({
      ...defaults,
      ...entry,
    })),
  };
}

/** The faults in the form of a window's rows, independent of the engine's state. */
function formErrors(
  window: Window,
  defaults: DropDefaults,
  limits: RequestLimits,
  format: DropFormat,
): { errors: readonly RowError[]; more: boolean } {
  const request = requestWithout(new Map(), window, defaults) as RowsRequest;
  try {
    requireForm(limits, request.body);
    return { errors: [], more: false };
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
    const [first] = window;
    const errors = error.issues.flatMap(({ pointer, code, detail }) => {
      const { rows, field: asked } = request.place(pointer);
      const field = columnOf(format, asked);
      return (rows.length > 0 ? rows : [first?.row ?? 0]).map((row) => ({
        row,
        field,
        code,
        detail,
      }));
    });
    return { errors, more: error.moreIssues };
  }
}

/**
 * Addresses in different case are one owner. A wrong checksum is likely a typing error, which the
 * engine refuses.
 */
function recipientOf({ fields: { ownerAddress, userId } }: Row): string {
  if (ownerAddress === undefined) return `user ${String(userId).toLowerCase()}`;
  const text = String(ownerAddress);
  return `owner ${checksumHolds(text) ? text.toLowerCase() : text} ${userId === undefined ? "" : String(userId)}`;
}

function tokensOf({ fields: { quantity } }: Row): number {
  return typeof quantity === "number" && quantity > 1 ? quantity : 1;
}

/** Most rows of one drop. */
const MAX_ROWS = 1_000_000;

/** The result of a first reading of a drop, before any mint. It ends early at too many faults. */
export interface Survey {
  /** SHA-256 of what was read, in hex. */
  readonly digest: string;
  /** Rows that were read. */
  readonly rows: number;
  /** The first errors of form, at most `MAX_ISSUES`. Without errors, the drop can be minted. */
  readonly errors: readonly RowError[];
  /** Whether `errors` is incomplete. */
  readonly moreErrors: boolean;
}

/**
 * Reads a drop and checks the form of its rows, up to {@link MAX_ISSUES} faults.
 *
 * @param turn - awaited with the number of rows read so far, after every few hundred and at the end
 */
export async function surveyOf(
  source: AsyncIterable<Uint8Array>,
  format: DropFormat,
  defaults: DropDefaults,
  limits: RequestLimits,
  turn: (rows: number) => Promise<void> = async () => {},
): Promise<Survey> {
  const hash = createHash("sha256");
  const errors: RowError[] = [];
  let rows = 0;
  let more = false;
  let kind: RecipientField | undefined;
  async function* tapped() {
    for await (const piece of source) {
      hash.update(piece);
      yield piece;
    }
  }
  async function* counted(): AsyncGenerator<Row> {
    for await (const row of rowsOf(tapped(), format, () => turn(rows))) {
      if (++rows > MAX_ROWS)
        throw new UnreadableRow(row.row, `a drop has at most ${MAX_ROWS} rows; divide it`);
      const field = recipientField(row);
      kind ??= field;
      if (field !== kind)
        errors.push({ row: row.row, field, code: "validation_failed", detail: MIXED[kind] });
      yield row;
    }
  }
  try {
    for await (const window of windowsOf(counted())) {
      const found = formErrors(window, defaults, limits, format);
      errors.push(...found.errors);
      more = found.more || errors.length > MAX_ISSUES;
      if (more) break;
    }
    if (rows === 0)
      errors.push({
        row: 0,
        field: "",
        code: "validation_failed",
        detail: "The drop has no rows.",
      });
  } catch (error) {
    if (!(error instanceof UnreadableRow)) throw error;
    errors.push({ row: error.row, field: "", code: "validation_failed", detail: error.message });
  }
  await turn(rows);
  errors.sort((a, b) => a.row - b.row);
  return {
    digest: hash.digest("hex"),
    rows,
    errors: errors.slice(0, MAX_ISSUES),
    moreErrors: more,
  };
}

type RecipientField = "ownerAddress" | "userId";

function recipientField({ fields }: Row): RecipientField {
  return fields.ownerAddress === undefined ? "userId" : "ownerAddress";
}

/** A user could otherwise occur twice in one request, by its id and by its owner. */
const MIXED: Readonly<Record<RecipientField, string>> = {
  ownerAddress: "rows before it name an ownerAddress; all rows of a drop do, or all name a userId",
  userId: "rows before it name a userId; all rows of a drop do, or all name an ownerAddress",
};
