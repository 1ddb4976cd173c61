import { createHash } from "node:crypto";
import { MAX_ISSUES } from "../../errors.ts";
import type { RequestLimits } from "../reader.ts";
import { type DropFormat, type Row, type RowError, rowsOf, UnreadableRow } from "./rows.ts";
import { type DropDefaults, formErrors, windowsOf } from "./windows.ts";

/** Most rows of one drop. */
const MAX_ROWS = 1_000_000;

/** The result of a first reading of a drop, before any mint. */
export interface Survey {
  /** SHA-256 of the file, in hex. */
  readonly digest: string;
  readonly rows: number;
  /** The first errors of form, at most `MAX_ISSUES`. Without errors, the drop can be minted. */
  readonly errors: readonly RowError[];
  /** Whether `errors` is incomplete. */
  readonly moreErrors: boolean;
}

/**
 * Reads a whole drop and checks the form of its rows.
 *
 * @param keep - receives each piece of the file, and is awaited
 */
export async function surveyOf(
  source: AsyncIterable<Uint8Array>,
  format: DropFormat,
  defaults: DropDefaults,
  limits: RequestLimits,
  keep: (piece: Uint8Array) => Promise<void> = async () => {},
): Promise<Survey> {
  const hash = createHash("sha256");
  const errors: RowError[] = [];
  let rows = 0;
  let more = false;
  let kind: RecipientField | undefined;
  async function* tapped() {
    for await (const piece of source) {
      hash.update(piece);
      await keep(piece);
      yield piece;
    }
  }
  async function* counted(): AsyncGenerator<Row> {
    for await (const row of rowsOf(tapped(), format)) {
      if (++rows > MAX_ROWS) throw new UnreadableRow(row.row, `a drop has at most ${MAX_ROWS} rows; divide it`);
      const field = recipientField(row);
      kind ??= field;
      if (field !== kind && errors.length <= MAX_ISSUES)
        errors.push({ row: row.row, field, code: "validation_failed", detail: MIXED[kind] });
      yield row;
    }
  }
  try {
    for await (const window of windowsOf(counted())) {
      if (errors.length > MAX_ISSUES) continue;
      const found = formErrors(window, defaults, limits, format);
      errors.push(...found.errors);
      more ||= found.more;
    }
    if (rows === 0) errors.push({ row: 0, field: "", code: "validation_failed", detail: "The drop has no rows." });
  } catch (error) {
    if (!(error instanceof UnreadableRow)) throw error;
    errors.push({ row: error.row, field: "", code: "validation_failed", detail: error.message });
  }
  errors.sort((a, b) => a.row - b.row);
  return {
    digest: hash.digest("hex"),
    rows,
    errors: errors.slice(0, MAX_ISSUES),
    moreErrors: more || errors.length > MAX_ISSUES,
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
