import { createHash } from "node:crypto";
import { type Address, type Hex, type Limits, MAX_REFERENCE, MODES, type Mode, type Uuid } from "../model.ts";
import { blobTextOf, MAX_BLOB_BYTES, tokenIdOf } from "../protocol/blob.ts";
import { hexValue } from "../protocol/hex.ts";
import { readMetadata } from "../protocol/metadata.ts";
import { decimalAmount, quantizedAmount } from "../protocol/quantized.ts";
import { isText, readSpelling, readUuid, requireAddress } from "../validate.ts";
import { amountOf, highWord, lowWord } from "./amount-words.ts";
import {
  type AssetForm,
  countTokens,
  type DefaultMode,
  isQuantity,
  type KnownAssets,
  type MintRequest,
  type NamedAmount,
  type NamedToken,
  readAmount,
  readTokenId,
} from "./request.ts";
import { hexOf } from "./vault-columns.ts";

/** Bytes of blobs reserved per entry of a request of unknown size. */
const USUAL_BLOB_BYTES = 24;
/** Upper bound of the bytes of blobs in one request. A request with more takes the plain path. */
const MAX_BLOBS = 2 ** 31;
/** The entry names its token by `tokenId`. */
const BY_TOKEN_ID = 1;
/** The entry gives its amount by `amountDecimal`. */
const BY_DECIMAL = 2;
/** The entry leaves its mode to the default. */
const BY_DEFAULT = 4;

/**
 * A mint request whose form is valid: one typed array a property, the entries of all users in order. `request.ts` reads
 * the same into objects; this class avoids an object per entry, which would dominate the cost of a mint.
 */
export class MintColumns {
  readonly count: number;
  /** Users by id, or by the address of their owner. */
  readonly recipients: (Uuid | Address)[] = [];
  /** Entries of each user. */
  readonly userCounts: number[] = [];
  readonly assetIndex: Uint32Array;
  /** Position in `MODES`. */
  readonly mode: Uint8Array;
  readonly amountHigh: Uint32Array;
  readonly amountLow: Uint32Array;
  /** The end of each blob in `blobs`. A blob begins at the end of the one before. */
  readonly blobEnd: Uint32Array;
  blobs: Uint8Array;
  /** {@link BY_TOKEN_ID}, {@link BY_DECIMAL} and {@link BY_DEFAULT} of each entry; null while all are 0. */
  #namings: Uint8Array | null = null;
  /** Tokens of each entry; null while every entry has one. */
  #quantities: Uint32Array | null = null;
  /** By entry; null while there is none. */
  #references: (string | null)[] | null = null;
  /** By entry, as JSON; null while there is none. */
  #metadata: (string | null)[] | null = null;
  /** Tokens of all entries. */
  minted: number;

  constructor(count: number) {
    this.count = count;
    this.minted = count;
    this.assetIndex = new Uint32Array(count);
    this.mode = new Uint8Array(count);
    this.amountHigh = new Uint32Array(count);
    this.amountLow = new Uint32Array(count);
    this.blobEnd = new Uint32Array(count);
    this.blobs = new Uint8Array(count * USUAL_BLOB_BYTES);
  }

  /** Records that an entry gives its token, its amount or its mode in another way than usual. */
  name(entry: number, naming: typeof BY_TOKEN_ID | typeof BY_DECIMAL | typeof BY_DEFAULT): void {
    this.#namings ??= new Uint8Array(this.count);
    this.#namings[entry] = (this.#namings[entry] as number) | naming;
  }

  /** Records that the engine gives an entry `quantity` ids. */
  setQuantity(entry: number, quantity: number): void {
    this.#quantities ??= new Uint32Array(this.count).fill(1);
    this.#quantities[entry] = quantity;
    this.minted += quantity - 1;
  }

  setReference(entry: number, reference: string): void {
    this.#references ??= Array<string | null>(this.count).fill(null);
    this.#references[entry] = reference;
  }

  referenceAt(entry: number): string | null {
    return this.#references === null ? null : (this.#references[entry] ?? null);
  }

  /** Each reference once. */
  referenceNames(): Iterable<string> {
    return this.#references === null ? [] : new Set(this.#references.filter((name) => name !== null));
  }

  /** The references and their entries, in order. */
  references(): (readonly [entry: number, reference: string])[] {
    if (this.#references === null) return [];
    return this.#references.flatMap((reference, entry) => (reference === null ? [] : [[entry, reference] as const]));
  }

  setMetadata(entry: number, metadata: string): void {
    this.#metadata ??= Array<string | null>(this.count).fill(null);
    this.#metadata[entry] = metadata;
  }

  metadataAt(entry: number): string | null {
    return this.#metadata === null ? null : (this.#metadata[entry] ?? null);
  }

  /** The entries with metadata, in order. */
  entriesWithMetadata(): number[] {
    return this.#metadata === null ? [] : this.#metadata.flatMap((json, entry) => (json === null ? [] : [entry]));
  }

  quantityAt(entry: number): number {
    return this.#quantities === null ? 1 : (this.#quantities[entry] as number);
  }

  #isNamed(entry: number, naming: number): boolean {
    return this.#namings !== null && ((this.#namings[entry] as number) & naming) !== 0;
  }

  /** A digest of the request, to compare requests with the same idempotency key. */
  digest(): Hex {
    const digest = createHash("sha256");
    digest.update(`${this.recipients.join()} ${this.userCounts.join()}`);
    for (const column of [this.assetIndex, this.#modesGiven(), this.amountHigh, this.amountLow, this.blobEnd])
      digest.update(column);
    digest.update(this.blobs.subarray(0, this.blobStart(this.count)));
    if (this.#quantities !== null) digest.update(this.#quantities);
    if (this.#references !== null) digest.update(JSON.stringify(this.#references));
    if (this.#metadata !== null) digest.update(`metadata ${JSON.stringify(this.#metadata)}`);
    return `0x${digest.digest("hex")}`;
  }

  /** The modes as given in the request: the default may change before a repetition. */
  #modesGiven(): Uint8Array {
    if (this.#namings === null) return this.mode;
    return this.mode.map((mode, entry) => (this.#isNamed(entry, BY_DEFAULT) ? MODES.length : mode));
  }

  /** The same request as objects. */
  toRequest(assets: KnownAssets): MintRequest {
    const users = this.recipients.map((recipient, i) => {
      const field = recipient.startsWith("0x") ? ("ownerAddress" as const) : ("userId" as const);
      return { field, recipient, count: this.userCounts[i] ?? 0 };
    });
    const mints = Array.from({ length: this.count }, (_, entry) => {
      const asset = assets.at(this.assetIndex[entry] as number);
      return {
        assetId: asset.assetId,
        mode: MODES[this.mode[entry] as number] ?? null,
        amount: this.#amountAt(asset, entry),
        token: this.#tokenAt(asset, entry),
        reference: this.referenceAt(entry),
        metadata: this.metadataAt(entry),
      };
    });
    return { users, mints };
  }

  #amountAt(asset: AssetForm, entry: number): NamedAmount {
    const units = amountOf(this.amountHigh[entry] as number, this.amountLow[entry] as number);
    if (!this.#isNamed(entry, BY_DECIMAL)) return { field: "amount", units };
    return { field: "amountDecimal", text: decimalAmount(units, asset) };
  }

  #tokenAt({ standard, blobScheme, nextTokenId }: AssetForm, entry: number): NamedToken {
    const blob = this.blobAt(entry);
    if (nextTokenId !== null && blob === "0x") return { field: "quantity", quantity: this.quantityAt(entry) };
    if (!this.#isNamed(entry, BY_TOKEN_ID)) return { field: "mintingBlob", blob };
    return { field: "tokenId", digits: String(tokenIdOf(standard, blobScheme, blob)) };
  }

  blobAt(entry: number): Hex {
    return hexOf(this.blobs, this.blobStart(entry), this.blobEnd[entry] as number);
  }

  blobStart(entry: number): number {
    return entry === 0 ? 0 : (this.blobEnd[entry - 1] as number);
  }
}

/** Reads an untrusted, parsed mint request. Null when the plain reader must look: a fault, or an unknown asset. */
export function readMintColumns(
  request: unknown,
  limits: Limits,
  assets: KnownAssets,
  defaultMode: DefaultMode,
): MintColumns | null {
  if (!isObject(request) || !Array.isArray(request.users)) return null;
  for (const field in request) if (field !== "users") return null;
  const users: unknown[] = request.users;
  if (users.length === 0 || users.length > limits.usersPerRequest) return null;
  let count = 0;
  let tokens = 0;
  for (const user of users) {
    if (!isObject(user) || !Array.isArray(user.mints) || user.mints.length === 0) return null;
    count += user.mints.length;
    tokens += countTokens(user.mints);
  }
  if (tokens > limits.mintsPerRequest) return null;
  const reader = new Reader(new MintColumns(count), assets, defaultMode);
  for (const user of users) if (!reader.readUser(user as Readonly<Record<string, unknown>>)) return null;
  return reader.columns;
}

class Reader {
  readonly columns: MintColumns;
  readonly #assets: KnownAssets;
  readonly #defaultMode: DefaultMode;
  readonly #seen = new Set<Uuid | Address>();
  #next = 0;
  #blobEnd = 0;
  #assetId = "";
  #assetIndex = 0;
  /** Of this asset; null until needed. */
  #assetForm: AssetForm | null = null;

  constructor(columns: MintColumns, assets: KnownAssets, defaultMode: DefaultMode) {
    this.columns = columns;
    this.#assets = assets;
    this.#defaultMode = defaultMode;
  }

  readUser(user: Readonly<Record<string, unknown>>): boolean {
    for (const field in user) if (field !== "userId" && field !== "ownerAddress" && field !== "mints") return false;
    const { recipients, userCounts } = this.columns;
    const recipient = user.ownerAddress === undefined ? readUuid(user.userId) : readOwner(user);
    if (recipient === null || this.#seen.has(recipient)) return false;
    const mints = user.mints as unknown[];
    this.#seen.add(recipient);
    recipients.push(recipient);
    userCounts.push(mints.length);
    for (let i = 0; i < mints.length; i++) if (!this.#readMint(mints[i])) return false;
    return true;
  }

  #readMint(mint: unknown): boolean {
    if (!isObject(mint) || hasOtherFields(mint)) return false;
    const entry = this.#next++;
    return (
      this.#readAsset(mint.assetId, entry) &&
      this.#readAmount(mint, entry) &&
      this.#readMode(mint.dataAvailabilityMode, entry) &&
      this.#readToken(mint, entry) &&
      this.#readReference(mint.reference, entry) &&
      this.#readMetadata(mint.metadata, entry)
    );
  }

  #readMetadata(metadata: unknown, entry: number): boolean {
    if (metadata === undefined) return true;
    const read = readMetadata(metadata);
    if (typeof read === "string") this.columns.setMetadata(entry, read);
    return typeof read === "string";
  }

  #readReference(reference: unknown, entry: number): boolean {
    if (reference === undefined) return true;
    if (!isText(reference, MAX_REFERENCE)) return false;
    this.columns.setReference(entry, reference);
    return true;
  }

  #readAsset(assetId: unknown, entry: number): boolean {
    if (assetId !== this.#assetId) {
      if (typeof assetId !== "string") return false;
      const index = this.#assets.indexOf(assetId) ?? this.#assets.indexOf(assetId.toLowerCase());
      if (index === undefined) return false;
      this.#assetId = assetId;
      this.#assetIndex = index;
      this.#assetForm = null;
    }
    this.columns.assetIndex[entry] = this.#assetIndex;
    return true;
  }

  #readAmount({ amount: given, amountDecimal }: Readonly<Record<string, unknown>>, entry: number): boolean {
    const { amountHigh, amountLow } = this.columns;
    if (typeof given === "number" && amountDecimal === undefined) {
      if (!Number.isSafeInteger(given) || given < 1) return false;
      amountHigh[entry] = given / 2 ** 32;
      amountLow[entry] = given;
      return true;
    }
    const amount =
      amountDecimal === undefined ? readAmount(given ?? this.#usualAmount) : this.#units(amountDecimal, given);
    if (typeof amount !== "bigint") return false;
    if (amountDecimal !== undefined) this.columns.name(entry, BY_DECIMAL);
    amountHigh[entry] = highWord(amount);
    amountLow[entry] = lowWord(amount);
    return true;
  }

  /** The amount of an entry without one; undefined when it needs one. */
  get #usualAmount(): number | undefined {
    return this.#asset.standard === "erc721" ? 1 : undefined;
  }

  #units(text: unknown, amount: unknown): bigint | null {
    if (typeof text !== "string" || amount !== undefined || this.#asset.standard !== "erc20") return null;
    try {
      return quantizedAmount(text, this.#asset);
    } catch {
      return null;
    }
  }

  #readMode(value: unknown, entry: number): boolean {
    const given = value === undefined ? (this.#asset.dataAvailabilityMode ?? this.#defaultMode) : value;
    if (value === undefined) this.columns.name(entry, BY_DEFAULT);
    let mode = MODES.indexOf(given as Mode);
    if (mode < 0) mode = MODES.indexOf(readSpelling(MODES, given) as Mode);
    if (mode < 0) return false;
    this.columns.mode[entry] = mode;
    return true;
  }

  get #asset(): AssetForm {
    this.#assetForm ??= this.#assets.at(this.#assetIndex);
    return this.#assetForm;
  }

  #readToken({ mintingBlob, tokenId, quantity }: Readonly<Record<string, unknown>>, entry: number): boolean {
    if (mintingBlob !== undefined)
      return tokenId === undefined && quantity === undefined && this.#readBlob(mintingBlob, entry);
    const { standard, blobScheme, nextTokenId } = this.#asset;
    // An entry without a token is one of ERC-20, or of an asset that the engine numbers.
    if ((tokenId === undefined) !== (standard === "erc20" || nextTokenId !== null)) return false;
    if (tokenId === undefined) return this.#readQuantity(quantity, nextTokenId !== null, entry);
    if (quantity !== undefined) return false;
    const digits = readTokenId(tokenId);
    if (digits === null) return false;
    const text = blobTextOf(blobScheme, digits);
    const start = this.#takeBlob(text.length, entry);
    if (start === null) return false;
    const { columns } = this;
    for (let i = 0; i < text.length; i++) columns.blobs[start + i] = text.charCodeAt(i);
    columns.name(entry, BY_TOKEN_ID);
    return true;
  }

  #readQuantity(quantity: unknown, isNumbered: boolean, entry: number): boolean {
    if (quantity !== undefined) {
      if (!isNumbered || !isQuantity(quantity)) return false;
      this.columns.setQuantity(entry, quantity);
    }
    return this.#takeBlob(0, entry) !== null;
  }

  /** The start of an entry's blob of `bytes` bytes; null when that is too many. */
  #takeBlob(bytes: number, entry: number): number | null {
    const start = this.#blobEnd;
    const end = start + bytes;
    if (bytes > MAX_BLOB_BYTES || end > MAX_BLOBS) return null;
    if (end > this.columns.blobs.length) this.#makeRoom(end);
    this.columns.blobEnd[entry] = end;
    this.#blobEnd = end;
    return start;
  }

  #readBlob(value: unknown, entry: number): boolean {
    if (typeof value !== "string" || value.length % 2 === 1) return false;
    const prefixed = value.charCodeAt(0) === 0x30 && (value.charCodeAt(1) | 0x20) === 0x78;
    const start = this.#takeBlob(value.length / 2 - (prefixed ? 1 : 0), entry);
    if (start === null) return false;
    const end = this.#blobEnd;
    const { blobs } = this.columns;
    for (let at = start, i = prefixed ? 2 : 0; at < end; at++, i += 2) {
      const byte = (hexValue(value.charCodeAt(i)) << 4) | hexValue(value.charCodeAt(i + 1));
      if (byte < 0) return false;
      blobs[at] = byte;
    }
    return true;
  }

  #makeRoom(bytes: number): void {
    const larger = new Uint8Array(Math.max(bytes, 2 * this.columns.blobs.length));
    larger.set(this.columns.blobs);
    this.columns.blobs = larger;
  }
}

/** Converts the plain reader's request to columns; null for an unknown asset. */
export function columnsOf(request: MintRequest, assets: KnownAssets, defaultMode: DefaultMode): MintColumns | null {
  let next = 0;
  const users = request.users.map(({ field, recipient, count }) => {
    const mints = request.mints
      .slice(next, next + count)
      .map(({ assetId, mode, amount, token, reference, metadata }) => ({
        assetId,
        ...(amount?.field === "amount" && { amount: String(amount.units) }),
        ...(amount?.field === "amountDecimal" && { amountDecimal: amount.text }),
        ...(mode !== "default" && { dataAvailabilityMode: mode }),
        ...(token?.field === "mintingBlob" && { mintingBlob: token.blob }),
        ...(token?.field === "tokenId" && { tokenId: token.digits }),
        ...(token?.field === "quantity" && { quantity: token.quantity }),
        ...(reference !== null && { reference }),
        ...(metadata !== null && { metadata: JSON.parse(metadata) as unknown }),
      }));
    next += count;
    return { [field]: recipient, mints };
  });
  const limits = { usersPerRequest: Number.POSITIVE_INFINITY, mintsPerRequest: Number.POSITIVE_INFINITY } as Limits;
  return readMintColumns({ users }, limits, assets, defaultMode);
}

function readOwner({ userId, ownerAddress }: Readonly<Record<string, unknown>>): Address | null {
  try {
    return userId === undefined ? requireAddress("ownerAddress", ownerAddress) : null;
  } catch {
    return null;
  }
}

function hasOtherFields(mint: object): boolean {
  for (const field in mint) {
    // Compared one by one: a set look-up per field would slow a bulk mint by a few percent.
    const isKnown =
      field === "tokenId" ||
      field === "mintingBlob" ||
      field === "assetId" ||
      field === "amount" ||
      field === "amountDecimal" ||
      field === "quantity" ||
      field === "dataAvailabilityMode" ||
      field === "reference" ||
      field === "metadata";
    if (!isKnown) return true;
  }
  return false;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
