import { createHmac, timingSafeEqual } from "node:crypto";
import { MintmarkError } from "../errors.ts";
import type { Page } from "../model.ts";
import type { Table } from "../store/table.ts";
import type { PageOptions } from "./list.ts";

const TAG_BYTES = 16;
const POSITION_BYTES = 8;
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100;

/**
 * Makes and reads the cursors of pages: where the next page starts, opaque, and good only for the list, application and filters that
 * it was given for. Base64url of:
 *
 * ```
 * cursor = position(8) ‖ HMAC-SHA-256(secret, position ‖ scope) cut to 16 bytes
 * ```
 */
export class Cursors {
  readonly #secret: Buffer;

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  /** @param scope - whatever the cursor is bound to */
  issue(position: number, scope: string): string {
    const bytes = Buffer.alloc(POSITION_BYTES);
    bytes.writeBigUInt64BE(BigInt(position));
    return Buffer.concat([bytes, this.#tag(bytes, scope)]).toString("base64url");
  }

  /** The position, or null without a cursor. Throws `cursor_invalid`. */
  read(cursor: string | undefined, scope: string): number | null {
    if (cursor === undefined) return null;
    const bytes = Buffer.from(String(cursor), "base64url");
    const canonical = bytes.toString("base64url") === cursor && bytes.length === POSITION_BYTES + TAG_BYTES;
    if (!canonical) throw new MintmarkError("cursor_invalid");
    const position = bytes.subarray(0, POSITION_BYTES);
    if (!timingSafeEqual(bytes.subarray(POSITION_BYTES), this.#tag(position, scope))) {
      throw new MintmarkError("cursor_invalid");
    }
    return Number(position.readBigUInt64BE());
  }

  #tag(position: Buffer, scope: string): Buffer {
    return createHmac("sha256", this.#secret).update(position).update(scope).digest().subarray(0, TAG_BYTES);
  }
}

/** The limit of a page, 50 when none is given. Throws `validation_failed` outside of 1 to 100. */
export function pageLimit(limit: number | undefined): number {
  const asked = limit ?? DEFAULT_LIMIT;
  if (!Number.isInteger(asked) || asked < 1 || asked > MAX_LIMIT) {
    throw new MintmarkError("validation_failed", `limit must be a whole number from 1 to ${MAX_LIMIT}`);
  }
  return asked;
}

/** What a list's cursors are bound to: the list, its owner, and every filter but the page itself. */
export function scopeOf(list: string, owner: string, filter: object): string {
  const bound = Object.entries(filter)
    .filter(([name, value]) => name !== "limit" && name !== "cursor" && value !== undefined)
    .map(([name, value]) => [name, typeof value === "bigint" ? value.toString() : value])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  return JSON.stringify([list, owner, bound]);
}

/**
 * A page of a table whose records are numbered from 0, in that order. Throws `cursor_invalid`, `validation_failed`.
 *
 * @param view - the entry of a record, null when the list leaves the record out
 * @param scope - what the list's cursors are bound to, {@link scopeOf}
 */
export function tablePage<V, T>(
  table: Table<number, V>,
  view: (record: V) => T | null,
  page: PageOptions,
  cursors: Cursors,
  scope: string,
): Page<T> {
  const limit = pageLimit(page.limit);
  const data: T[] = [];
  let last = cursors.read(page.cursor, scope) ?? -1;
  for (let at = last + 1; at < table.count; at++) {
    const record = table.get(at);
    const entry = record === undefined ? null : view(record);
    if (entry === null) continue;
    if (data.length === limit) return { data, nextCursor: cursors.issue(last, scope), hasMore: true, limit };
    data.push(entry);
    last = at;
  }
  return { data, nextCursor: null, hasMore: false, limit };
}
