import { type ErrorCode, type Issue, MAX_ISSUES, MintmarkError } from "../errors.ts";
import {
  type Address,
  type BlobScheme,
  type Hex,
  type Limits,
  MAX_AMOUNT,
  MAX_REFERENCE,
  MODES,
  type Mode,
  type Standard,
  type Uuid,
} from "../model.ts";
import { MAX_BLOB_BYTES } from "../protocol/blob.ts";
import { MAX_UINT256 } from "../protocol/bounds.ts";
import { readMetadata } from "../protocol/metadata.ts";
import { isText, readSpelling, readUuid, requireAddress } from "../validate.ts";

/** A mint request after the check of its form; null values had an issue. The entries of all users are in order. */
export interface MintRequest {
  readonly users: readonly RequestedUser[];
  readonly mints: readonly RequestedMint[];
}

/** A recipient, by the field that names it, and its number of entries; null when neither field does. */
interface RequestedUser {
  readonly field: "userId" | "ownerAddress";
  /** The user's id, or its owner's address in lower case. */
  readonly recipient: Uuid | Address | null;
  readonly count: number;
}

interface RequestedMint {
  readonly assetId: Uuid | null;
  /** `default` when the entry has none. */
  readonly mode: Mode | "default" | null;
  readonly amount: NamedAmount | null;
  readonly token: NamedToken | null;
  readonly reference: string | null;
  /** As JSON. */
  readonly metadata: string | null;
}

/** An entry's amount, by the field that gives it; an ERC-721 entry needs none. */
export type NamedAmount =
  | { readonly field: "amount"; readonly units: bigint }
  | { readonly field: "amountDecimal"; readonly text: string }
  | { readonly field: null };

/** An entry's token, by the field that names it; an ERC-20 entry needs none. */
export type NamedToken =
  | {
      readonly field: "mintingBlob";
      /** Canonical: lower case with `0x`. */
      readonly blob: Hex;
    }
  | {
      readonly field: "tokenId";
      /** Canonical decimal, below 2^256. */
      readonly digits: string;
    }
  | {
      /** The engine gives the next ids. */
      readonly field: "quantity";
      readonly quantity: number;
    }
  | { readonly field: null };

/** The properties of assets that the form of a request depends on. */
export interface KnownAssets {
  indexOf(assetId: Uuid): number | undefined;
  at(assetIndex: number): AssetForm;
}

/** The mode of entries without one, if the asset has none of its own; null: every entry needs one. */
export type DefaultMode = Mode | null;

export interface AssetForm {
  readonly assetId: Uuid;
  readonly standard: Standard;
  readonly blobScheme: BlobScheme;
  readonly quantum: bigint;
  readonly decimals: number;
  readonly dataAvailabilityMode: DefaultMode;
  /** The id that the engine gives next; null where mints name their ids. */
  readonly nextTokenId: bigint | null;
}

/** How much one request may hold. */
export type RequestLimits = Pick<Limits, "usersPerRequest" | "mintsPerRequest">;

/** One issue and its place: -1 for the request or the whole user. */
interface Found {
  readonly user: number;
  readonly mint: number;
  readonly issue: Issue;
}

/** Collects the first {@link MAX_ISSUES} issues of a request in any order, and reports them in request order. */
export class Issues {
  readonly #found: Found[] = [];

  #more = false;

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
    this.#add({ user, mint, issue: { pointer: `/users/${user}/mints/${mint}${path}`, code, detail } });
  }

  /** Whether the next issue would be left out. */
  get full(): boolean {
    return this.#found.length === MAX_ISSUES;
  }

  /** Whether issues were left out. Then later issues change nothing. */
  get more(): boolean {
    return this.#more;
  }

  #add(found: Found): void {
    if (this.full) this.#more = true;
    else this.#found.push(found);
  }

  /** Throws all issues as one error, if there are any, with the code of the first in request order. */
  throwIfAny(): void {
    this.#found.sort((a, b) => a.user - b.user || a.mint - b.mint);
    const issues = this.#found.map(({ issue }) => issue);
    const first = issues[0];
    if (first === undefined) return;
    const count = this.#more ? `the first ${issues.length}` : issues.length;
    const others = issues.length === 1 ? "" : ` (${count} bad entries)`;
    const detail = `${first.pointer || "The request"}: ${first.detail}${others}`;
    throw new MintmarkError(first.code, detail, { issues, moreIssues: this.#more });
  }
}

const HEX_PAIRS = /^(?:[0-9a-f]{2})*$/;
const DECIMAL = /^(?:0|[1-9][0-9]{0,77})$/;
/** Of 2^256 - 1. */
const MAX_DIGITS = 78;
const ONE = 1n;

/**
 * Reads an untrusted, parsed mint request. Checks its form only, nothing that depends on the engine's state. An invalid
 * value adds to `issues` and is null in the result, so the rest can still be checked.
 *
 * @throws MintmarkError only when the whole request is unusable: no list of users, or above the limits
 */
export function readMintRequest(request: unknown, limits: RequestLimits, issues: Issues): MintRequest {
  const users = isObject(request) && Array.isArray(request.users) ? (request.users as unknown[]) : null;
  if (users === null || !isObject(request)) {
    issues.ofRequest(isObject(request) ? "/users" : "", "validation_failed", "must be an object with a list of users");
    issues.throwIfAny();
    return { users: [], mints: [] };
  }
  requireSizes(users, limits, issues);
  unknownFields(request, REQUEST_FIELDS, issues, (field) =>
    issues.ofRequest(pointer(field), "validation_failed", UNKNOWN),
  );
  const read = { users: [] as RequestedUser[], mints: [] as RequestedMint[] };
  const seen = new Set<Uuid | Address>();
  for (const [i, user] of users.entries()) readUser(user, i, read, seen, issues);
  return read;
}

/** Refuses an empty or too large request before any other check. */
function requireSizes(users: readonly unknown[], limits: RequestLimits, issues: Issues): void {
  const { usersPerRequest, mintsPerRequest } = limits;
  if (users.length === 0) issues.ofRequest("/users", "validation_failed", "must hold at least one user");
  if (users.length > usersPerRequest) issues.ofRequest("/users", "batch_too_large", `at most ${usersPerRequest} users`);
  let mints = 0;
  for (const user of users) if (isObject(user) && Array.isArray(user.mints)) mints += countTokens(user.mints);
  if (mints > mintsPerRequest) issues.ofRequest("/users", "batch_too_large", `at most ${mintsPerRequest} mints`);
  issues.throwIfAny();
}

function readUser(
  user: unknown,
  at: number,
  into: { users: RequestedUser[]; mints: RequestedMint[] },
  seen: Set<Uuid | Address>,
  issues: Issues,
): void {
  if (!isObject(user)) {
    issues.ofUser(at, "", "validation_failed", "must be an object");
    into.users.push({ field: "userId", recipient: null, count: 0 });
    return;
  }
  unknownFields(user, USER_FIELDS, issues, (field) => issues.ofUser(at, pointer(field), "validation_failed", UNKNOWN));
  const report = (of: string, code: ErrorCode, detail: string) => issues.ofUser(at, `/${of}`, code, detail);
  const { field, recipient: named } = readRecipient(user, report);
  const isRepeated = named !== null && seen.has(named);
  if (isRepeated) report(field, "duplicate_user", "occurs more than once in this request");
  if (named !== null) seen.add(named);
  const recipient = isRepeated ? null : named;
  const mints: unknown = user.mints;
  if (!Array.isArray(mints) || mints.length === 0) {
    issues.ofUser(at, "/mints", "validation_failed", "must be a list of at least one mint");
    into.users.push({ field, recipient, count: 0 });
    return;
  }
  into.users.push({ field, recipient, count: mints.length });
  for (let j = 0; j < mints.length; j++) into.mints.push(issues.more ? UNREAD : readMint(mints[j], at, j, issues));
}

function readRecipient(
  { userId, ownerAddress }: Readonly<Record<string, unknown>>,
  report: Report,
): Pick<RequestedUser, "field" | "recipient"> {
  if (ownerAddress === undefined) {
    const recipient = readUuid(userId);
    if (recipient === null) report("userId", "validation_failed", "must be a UUID; or give ownerAddress");
    return { field: "userId", recipient };
  }
  const field = "ownerAddress";
  if (userId !== undefined) {
    report(field, "validation_failed", "give userId or ownerAddress, not both");
    return { field, recipient: null };
  }
  try {
    return { field, recipient: requireAddress(field, ownerAddress) };
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
    report(field, error.code, error.message);
    return { field, recipient: null };
  }
}

const UNREAD: RequestedMint = { assetId: null, mode: null, amount: null, token: null, reference: null, metadata: null };

function readMint(mint: unknown, user: number, at: number, issues: Issues): RequestedMint {
  if (!isObject(mint)) {
    issues.ofMint(user, at, "", "validation_failed", "must be an object");
    return UNREAD;
  }
  unknownFields(mint, MINT_FIELDS, issues, (field) =>
    issues.ofMint(user, at, pointer(field), "validation_failed", UNKNOWN),
  );
  const report: Report = (field, code, detail) => issues.ofMint(user, at, `/${field}`, code, detail);
  const mode = mint.dataAvailabilityMode;
  const read = {
    assetId: readUuid(mint.assetId),
    mode: mode === undefined ? ("default" as const) : readSpelling(MODES, mode),
    amount: readNamedAmount(mint, report),
    token: readToken(mint, report),
    reference: isText(mint.reference, MAX_REFERENCE) ? mint.reference : null,
    metadata: mint.metadata === undefined ? null : readJson(mint.metadata, report),
  };
  if (mint.reference !== undefined && read.reference === null)
    report(
      "reference",
      "validation_failed",
      `must be text of 1 to ${MAX_REFERENCE} characters, none a control character`,
    );
  if (read.assetId === null) {
    issues.ofMint(user, at, "/assetId", "validation_failed", "must be a UUID");
    if (read.amount?.field === null) report("amount", "validation_failed", "give the amount; only ERC-721 needs none");
  }
  if (read.mode === null) {
    issues.ofMint(user, at, "/dataAvailabilityMode", "validation_failed", `must be one of ${MODES.join(", ")}`);
  }
  return read;
}

function readJson(metadata: unknown, report: Report): string | null {
  const read = readMetadata(metadata);
  if (typeof read === "string") return read;
  report(`metadata${read.pointer}`, "validation_failed", read.detail);
  return null;
}

type Report = (field: string, code: ErrorCode, detail: string) => void;

function readNamedAmount(
  { amount, amountDecimal }: Readonly<Record<string, unknown>>,
  report: Report,
): NamedAmount | null {
  if (amountDecimal !== undefined) {
    if (amount !== undefined) report("amountDecimal", "validation_failed", "give amount or amountDecimal, not both");
    else if (typeof amountDecimal === "string") return { field: "amountDecimal", text: amountDecimal };
    else report("amountDecimal", "validation_failed", 'must be decimal text such as "12.5"');
    return null;
  }
  if (amount === undefined) return { field: null };
  const units = readAmount(amount);
  if (typeof units === "bigint") return { field: "amount", units };
  const detail =
    units === "amount_out_of_range"
      ? "must be a whole number from 1 to 2^63 - 1"
      : "must be a JSON integer within 2^53 - 1, or a decimal string";
  report("amount", units, detail);
  return null;
}

/** The amount, or the code of its fault. A number above 2^53 may have been rounded before, so it is refused. */
export function readAmount(value: unknown): bigint | "validation_failed" | "amount_out_of_range" {
  if (value === 1) return ONE;
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) return "validation_failed";
    return value > 0 ? BigInt(value) : "amount_out_of_range";
  }
  if (typeof value !== "string" || !DECIMAL.test(value)) return "validation_failed";
  const amount = BigInt(value);
  return amount >= 1n && amount <= MAX_AMOUNT ? amount : "amount_out_of_range";
}

/** Tokens that entries ask for: one each, or their quantity. */
export function countTokens(mints: readonly unknown[]): number {
  let tokens = 0;
  for (const mint of mints) {
    const quantity = (mint as { readonly quantity?: unknown } | null)?.quantity;
    tokens += typeof quantity === "number" && quantity > 1 ? quantity : 1;
  }
  return tokens;
}

function readToken(mint: Readonly<Record<string, unknown>>, report: Report): NamedToken | null {
  const { mintingBlob, tokenId, quantity } = mint;
  if (quantity !== undefined) {
    const isNamed = tokenId !== undefined || mintingBlob !== undefined;
    if (!isNamed && isQuantity(quantity)) return { field: "quantity", quantity };
    report(
      "quantity",
      "validation_failed",
      isNamed ? "give a token or a quantity, not both" : "must be an integer from 1",
    );
    return null;
  }
  if (tokenId !== undefined && mintingBlob !== undefined) {
    report("tokenId", "validation_failed", "give tokenId or mintingBlob, not both");
    return null;
  }
  if (tokenId !== undefined) {
    const digits = readTokenId(tokenId);
    if (digits !== null) return { field: "tokenId", digits };
    report("tokenId", "validation_failed", "must be a decimal string below 2^256 without leading zeros");
    return null;
  }
  if (mintingBlob === undefined) return { field: null };
  const blob = readBlob(mintingBlob);
  if (blob !== null) return { field: "mintingBlob", blob };
  const code = typeof mintingBlob === "string" ? "blob_invalid" : "validation_failed";
  report("mintingBlob", code, "must be hex of at most 255 whole bytes, empty for ERC-20");
  return null;
}

export function isQuantity(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

/**
 * The canonical decimal of a token id, null if invalid. A number above 2^53 may have been rounded, so it is refused.
 */
export function readTokenId(value: unknown): string | null {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? String(value) : null;
  if (typeof value !== "string" || !DECIMAL.test(value)) return null;
  return value.length < MAX_DIGITS || BigInt(value) <= MAX_UINT256 ? value : null;
}

function readBlob(value: unknown): Hex | null {
  if (typeof value !== "string") return null;
  const lower = value.toLowerCase();
  const digits = lower.startsWith("0x") ? lower.slice(2) : lower;
  return digits.length <= 2 * MAX_BLOB_BYTES && HEX_PAIRS.test(digits) ? `0x${digits}` : null;
}

const REQUEST_FIELDS: ReadonlySet<string> = new Set(["users"]);
const USER_FIELDS: ReadonlySet<string> = new Set(["userId", "ownerAddress", "mints"]);
const MINT_FIELDS: ReadonlySet<string> = new Set([
  "tokenId",
  "mintingBlob",
  "quantity",
  "assetId",
  "amount",
  "amountDecimal",
  "dataAvailabilityMode",
  "reference",
  "metadata",
]);
const UNKNOWN = "is not a field of this request";

/** Stops when the list of issues is full, because an object can have any number of fields. */
function unknownFields(
  value: object,
  known: ReadonlySet<string>,
  issues: Issues,
  report: (field: string) => void,
): void {
  for (const field in value) {
    if (known.has(field)) continue;
    const full = issues.full;
    report(field);
    if (full) return;
  }
}

/** RFC 6901. */
function pointer(field: string): string {
  return `/${field.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
