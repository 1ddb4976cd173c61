import { type ErrorCode, type Issue, MAX_ISSUES, MintmarkError } from "../errors.ts";
import { MAX_REFERENCE, MODES } from "../model.ts";
import { MAX_MINTING_BLOB_BYTES } from "../protocol/minting-blob.ts";
import { DECIMAL } from "../protocol/quantized.ts";
import { NOT_HIDDEN } from "../protocol/text.ts";

/**
 * A field of a request: what its reader takes, what it says about anything else, and what the API
 * documents.
 */
export interface FieldForm {
  /** The texts that it takes; absent when it takes none. */
  readonly text?: RegExp;
  /** The least number that it takes, of all integers up to 2^53 - 1; absent when it takes none. */
  readonly least?: 0 | 1;
  /** A form that other requests have too; then there is neither `text` nor `least`. */
  readonly kind?: "uuid" | "reference" | "metadata" | "mode";
  readonly fault: string;
  readonly about?: string;
}

/** The fields of a mint's entry. Only `assetId` is needed in each. */
export const MINT_FORM = {
  assetId: { kind: "uuid", fault: "must be a UUID" },
  tokenId: {
    text: /^(?:0|[1-9]\d{0,77})$/,
    least: 0,
    fault: "must be a whole number below 2^256, as an integer up to 2^53 - 1 or as decimal text",
    about:
      "ERC-721 and ERC-1155: the token's id, below 2^256, as a decimal string, or an integer up to 2^53 - 1. Absent for ERC-20.",
  },
  quantity: {
    least: 1,
    fault: "must be an integer from 1",
    about:
      "Only for an ERC-721 asset with `nextTokenId`, instead of `tokenId`: mints this many tokens with the next ids, each counted as an entry; default 1. The response has their ids.",
  },
  mintingBlob: {
    text: new RegExp(`^(?:0[xX])?(?:[0-9a-fA-F]{2}){0,${MAX_MINTING_BLOB_BYTES}}$`),
    fault: `must be hex of at most ${MAX_MINTING_BLOB_BYTES} whole bytes, empty for ERC-20`,
    about:
      'Names the token instead of `tokenId`: hex of the identifier text, with or without 0x, 1 to 255 bytes; `""` for ERC-20. Bytes that are not text need an asset with `rawMintingBlobs`.',
  },
  amount: {
    text: /^[1-9]\d{0,18}$/,
    least: 1,
    fault:
      "must be a whole number of units: an integer up to 2^53 - 1, or decimal text up to 2^63 - 1; give whole tokens as amountDecimal",
    about:
      "Units of `quantum` base units each, 1 to 2^63 - 1, as an integer or a decimal string. From 2^53 on it must be a string: a number that would be rounded is refused. Absent or 1 for ERC-721.",
  },
  amountDecimal: {
    text: DECIMAL,
    fault: 'must be positive decimal text such as "12.5"',
    about:
      'Instead of `amount`: whole tokens, such as "12.5". It is `amount * quantum / 10^decimals`, must be a whole number of units, and is never rounded.',
  },
  reference: {
    kind: "reference",
    fault: `must be text of 1 to ${MAX_REFERENCE} characters ${NOT_HIDDEN}`,
    about: "Your own name for the mint, such as an order number; need not be unique.",
  },
  metadata: { kind: "metadata", fault: "must be a JSON object" },
  dataAvailabilityMode: {
    kind: "mode",
    fault: `must be one of ${MODES.join(", ")}`,
    about: "Optional when the asset or the application has a default.",
  },
} as const satisfies Readonly<Record<string, FieldForm>>;

/** The fields of a user of a request: one of the first two, and the list of entries. */
export const USER_FORM = {
  userId: {
    kind: "uuid",
    fault: "must be a UUID; or give ownerAddress",
    about: "A user of the application.",
  },
  ownerAddress: {
    text: /^0x[0-9a-fA-F]{40}$/,
    fault: "must be an address: 0x and 40 hex digits",
    about:
      "Instead of `userId`: the L1 address to mint to. Mints for the address's first user, who is created with the mint if there is none; that needs the scope `users`.",
  },
} as const satisfies Readonly<Record<string, FieldForm>>;

const MINT_FIELDS: ReadonlySet<string> = new Set(Object.keys(MINT_FORM));

/** Whether an entry has a field that is not in {@link MINT_FORM}. */
export function hasOtherFields(mint: object): boolean {
  for (const field in mint) if (!MINT_FIELDS.has(field)) return true;
  return false;
}

/** Whether a value is a number, or a text, that a field takes. */
export function fits({ text, least }: FieldForm, value: unknown): value is string | number {
  if (typeof value === "string") return text?.test(value) ?? false;
  return least !== undefined && Number.isSafeInteger(value) && (value as number) >= least;
}

/** More tokens in one request are always refused. */
const MOST_TOKENS = 1 << 20;

/** The tokens that a well-formed request asks for; 1 for anything else. */
export function countMints(request: unknown): number {
  const users = (request as { users?: unknown } | null)?.users;
  if (!Array.isArray(users)) return 1;
  let count = 0;
  for (const user of users as readonly ({ mints?: unknown } | null)[]) {
    if (!Array.isArray(user?.mints)) continue;
    count += user.mints.length;
    for (const mint of user.mints as readonly ({ quantity?: unknown } | null)[]) {
      const quantity = mint?.quantity;
      if (typeof quantity === "number" && quantity > 1)
        count += Math.min(quantity, MOST_TOKENS) - 1;
    }
  }
  return count;
}

/** One issue and its place: -1 for the request or the whole user. */
interface Found {
  readonly user: number;
  readonly mint: number;
  readonly issue: Issue;
}

/** Reports a fault in a field of an entry, by the entry's position among those of all users. */
export type EntryReport = (entry: number, path: string, code: ErrorCode, detail: string) => void;

/**
 * Collects the first {@link MAX_ISSUES} issues of a request in any order, and reports them in
 * request order.
 */
export class Issues {
  readonly #found: Found[] = [];

  /** Whether issues were left out. Then later issues change nothing. */
  more = false;

  get empty(): boolean {
    return this.#found.length === 0;
  }

  ofRequest(path: string, code: ErrorCode, detail: string): void {
    this.#add({ user: -1, mint: -1, issue: { pointer: path, code, detail } });
  }

  ofUser(user: number, path: string, code: ErrorCode, detail: string): void {
    this.#add({ user, mint: -1, issue: { pointer: `/users/${user}${path}`, code, detail } });
  }

  ofMint(user: number, mint: number, path: string, code: ErrorCode, detail: string): void {
    this.#add({
      user,
      mint,
      issue: { pointer: `/users/${user}/mints/${mint}${path}`, code, detail },
    });
  }

  /** Whether the next issue would be left out. */
  get full(): boolean {
    return this.#found.length === MAX_ISSUES;
  }

  #add(found: Found): void {
    if (this.full) this.more = true;
    else this.#found.push(found);
  }

  /**
   * Throws all issues as one error, if there are any, with the code of the first in request order.
   */
  throwIfAny(): void {
    this.#found.sort((a, b) => a.user - b.user || a.mint - b.mint);
    const issues = this.#found.map(({ issue }) => issue);
    const first = issues[0];
    if (first === undefined) return;
    const count = this.more ? `the first ${issues.length}` : issues.length;
    const others = issues.length === 1 ? "" : ` (${count} bad entries)`;
    const detail = `${first.pointer || "The request"}: ${first.detail}${others}`;
    throw new MintmarkError(first.code, detail, { issues, moreIssues: this.more });
  }
}
