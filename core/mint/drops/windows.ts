import { MintmarkError } from "../../errors.ts";
import { checksumHolds } from "../../validate.ts";
import { type RequestLimits, requireForm } from "../reader.ts";
import { columnOf, type DropFormat, type Row, type RowError } from "./rows.ts";

/**
 * Limits of one mint request of a drop. They are fixed, because a window's place determines its idempotency key: the
 * same drop has the same windows on every server. A row with a larger `quantity` is its own window.
 */
export const WINDOW = { tokens: 1_000, users: 100, bytes: 1 << 20 } as const;

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
  /** The rows and the field of a pointer into the request; no rows when it is about the whole request. */
  place(pointer: string): { readonly rows: readonly number[]; readonly field: string };
}

interface RequestUser {
  readonly userId?: unknown;
  readonly ownerAddress?: unknown;
  readonly mints: readonly Readonly<Record<string, unknown>>[];
}

/** Consecutive rows of a drop in one request. */
export class Window {
  readonly rows: Row[] = [];
  readonly #defaults: DropDefaults;
  readonly #recipients = new Set<string>();
  #tokens = 0;
  #bytes = 0;

  constructor(defaults: DropDefaults) {
    this.#defaults = defaults;
  }

  /** Adds a row; returns false when the window is full. */
  take(row: Row): boolean {
    const recipient = recipientOf(row);
    const isNew = !this.#recipients.has(recipient);
    const tokens = this.#tokens + tokensOf(row);
    const bytes = this.#bytes + row.bytes;
    const users = this.#recipients.size + (isNew ? 1 : 0);
    const isFull = tokens > WINDOW.tokens || bytes > WINDOW.bytes || users > WINDOW.users;
    if (isFull && this.rows.length > 0) return false;
    this.rows.push(row);
    this.#recipients.add(recipient);
    this.#tokens = tokens;
    this.#bytes = bytes;
    return true;
  }

  /** The request for all rows except `left`; null when none remains. */
  requestWithout(left: ReadonlyMap<number, unknown>): RowsRequest | null {
    const users = new Map<string, { user: RequestUser; mints: Record<string, unknown>[]; rows: Row[] }>();
    for (const row of this.rows) {
      if (left.has(row.row)) continue;
      const { ownerAddress, userId, ...entry } = row.fields;
      const recipient = recipientOf(row);
      let found = users.get(recipient);
      if (found === undefined) {
        const mints: Record<string, unknown>[] = [];
        const named = { ...(userId !== undefined && { userId }), ...(ownerAddress !== undefined && { ownerAddress }) };
        found = { user: { ...named, mints }, mints, rows: [] };
        users.set(recipient, found);
      }
      found.mints.push({ ...defined(this.#defaults), ...entry });
      found.rows.push(row);
    }
    if (users.size === 0) return null;
    const groups = [...users.values()];
    return {
      body: { users: groups.map(({ user }) => user) },
      order: groups.flatMap(({ rows }) => rows.map((row) => [row.row, tokensOf(row)] as const)),
      place(pointer) {
        const [, user, mint, field = ""] = /^\/users\/(\d+)(?:\/mints\/(\d+))?(?:\/(.*))?$/.exec(pointer) ?? [];
        const rows = user === undefined ? [] : (groups[Number(user)]?.rows ?? []);
        const named = mint === undefined ? rows : rows.slice(Number(mint), Number(mint) + 1);
        return { rows: named.map(({ row }) => row), field };
      },
    };
  }
}

/** The windows of rows, in order. */
export async function* windowsOf(rows: AsyncIterable<Row>, defaults: DropDefaults): AsyncGenerator<Window> {
  let window = new Window(defaults);
  for await (const row of rows) {
    if (window.take(row)) continue;
    yield window;
    window = new Window(defaults);
    window.take(row);
  }
  if (window.rows.length > 0) yield window;
}

/** The faults in the form of a window's rows, independent of the engine's state. */
export function formErrors(
  window: Window,
  limits: RequestLimits,
  format: DropFormat,
): { errors: readonly RowError[]; more: boolean } {
  const request = window.requestWithout(new Map());
  if (request === null) return { errors: [], more: false };
  try {
    requireForm(limits, request.body);
    return { errors: [], more: false };
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
    const [first] = window.rows;
    const errors = error.issues.flatMap(({ pointer, code, detail }) => {
      const { rows, field: asked } = request.place(pointer);
      const field = columnOf(format, asked);
      return (rows.length > 0 ? rows : [first?.row ?? 0]).map((row) => ({ row, field, code, detail }));
    });
    return { errors, more: error.moreIssues };
  }
}

/** Addresses in different case are one owner. A wrong checksum is likely a typing error, which the engine refuses. */
function recipientOf({ fields: { ownerAddress, userId } }: Row): string {
  if (ownerAddress === undefined) return `user ${String(userId).toLowerCase()}`;
  const text = String(ownerAddress);
  return `owner ${checksumHolds(text) ? text.toLowerCase() : text} ${userId === undefined ? "" : String(userId)}`;
}

function tokensOf({ fields: { quantity } }: Row): number {
  return typeof quantity === "number" && quantity > 1 ? quantity : 1;
}

function defined({ assetId, dataAvailabilityMode }: DropDefaults): Record<string, unknown> {
  return {
    ...(assetId !== undefined && { assetId }),
    ...(dataAvailabilityMode !== undefined && { dataAvailabilityMode }),
  };
}
