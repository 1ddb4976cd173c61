import { type BatchColumns, NOT_PACKABLE } from "./batch-columns.ts";
import * as format from "./batch-data.ts";

/** Consecutive slots under one header. */
export interface Run {
  readonly start: number;
  readonly end: number;
  readonly ownerForm: number;
  /** One of {@link BlobKind}. */
  readonly blobKind: number;
  readonly amountForm: number;
}

export interface RunPlan {
  readonly runs: readonly Run[];
  readonly ownerClass: Uint8Array;
  /** 1 for each owner that a run refers to by index, so that it is in the dictionary. */
  readonly isUsed: Uint8Array;
  /** Most bytes of the batch's data; of a plan from {@link planRuns} exactly. */
  readonly bytes: number;
}

/** Forms of decimals that are not consecutive: two digits a byte, or text. */
type DecimalForm = "packed" | "raw";

/**
 * Cuts a batch into runs and chooses their forms, so that the encoding has the fewest bytes for the
 * given owner classes.
 *
 * Void slots and asset changes always end a run. Within such a segment, a search follows all
 * combinations of forms (owner × blob × amount width) that occur. Each state keeps the cheapest
 * encoding of the slots so far that ends in a run of its combination. At each slot, a state
 * continues its run, or starts a new one after the cheapest of all states. Linear in the slots.
 */
export function planRuns(columns: BatchColumns, decimals: DecimalForm): RunPlan {
  const ownerClass = classifyOwners(columns);
  const search = new RunSearch(columns, ownerClass, decimals);
  const runs: Run[] = [];
  const { asset, count } = columns;
  let bytes = format.BATCH_DATA_BASE_BYTES + columns.assets.length * format.ASSET_ENTRY_BYTES;
  for (let start = 0; start < count; ) {
    let end = start + 1;
    while (end < count && asset[end] === asset[start]) end++;
    if (asset[start] === format.VOID_RUN) {
      runs.push({ start, end, ownerForm: 0, blobKind: 0, amountForm: 0 });
      bytes += format.VOID_RUN_BYTES;
    } else bytes += search.appendRuns(start, end, runs);
    start = end;
  }
  const isUsed = usedOwners(columns, runs);
  // The search has counted the entries of owners that occur once.
  for (let id = 0; id < isUsed.length; id++)
    if (isUsed[id] === 1 && ownerClass[id] !== OwnerClass.once) bytes += format.OWNER_BYTES;
  return { runs, ownerClass, isUsed, bytes };
}

function usedOwners({ owner, owners, asset }: BatchColumns, runs: readonly Run[]): Uint8Array {
  const isUsed = new Uint8Array(owners.length);
  for (const { start, end, ownerForm } of runs) {
    if (asset[start] === format.VOID_RUN || ownerForm === format.OwnerForm.inline) continue;
    for (let slot = start; slot < end; slot++) isUsed[owner[slot] as number] = 1;
  }
  return isUsed;
}

/**
 * Owners that occur at least twice go to the dictionary; those with the most stretches get one-byte
 * indices.
 */
function classifyOwners({ owner, asset, owners, count }: BatchColumns): Uint8Array {
  const uses = new Uint32Array(owners.length);
  const stretches = new Uint32Array(owners.length);
  let previous = -1;
  for (let slot = 0; slot < count; slot++) {
    const id = owner[slot] as number;
    const isVoid = asset[slot] === format.VOID_RUN;
    if (!isVoid) uses[id] = (uses[id] as number) + 1;
    if (!isVoid && id !== previous) stretches[id] = (stretches[id] as number) + 1;
    previous = isVoid ? -1 : id;
  }
  const ids = Array.from(owners.keys());
  if (owners.length <= NEAR_OWNERS)
    return Uint8Array.from(ids, (id) => (uses[id] === 1 ? OwnerClass.once : OwnerClass.near));
  const repeated = ids.filter((id) => (uses[id] as number) > 1);
  repeated.sort((a, b) => (stretches[b] as number) - (stretches[a] as number) || a - b);
  const once = owners.length <= format.MAX_DICTIONARY ? OwnerClass.once : OwnerClass.inlineOnly;
  const classes = new Uint8Array(owners.length).fill(once);
  for (const [rank, id] of repeated.slice(0, format.MAX_DICTIONARY).entries()) {
    classes[id] = rank < NEAR_OWNERS ? OwnerClass.near : OwnerClass.far;
  }
  return classes;
}

/** The forms that a segment's slots can take. A state of the search is one form of each list. */
class RunSearch {
  readonly #columns: BatchColumns;
  readonly #ownerClass: Uint8Array;
  /** Bytes of an owner by class and form. */
  readonly #ownerCosts: readonly Int32Array[];
  readonly #ownerForms: readonly number[];
  /** The cheapest state after each slot, and the start of its run. */
  readonly #choice: Uint8Array;
  readonly #runStart: Uint32Array;
  readonly #decimals: DecimalForm;
  /**
   * The cheapest cost of each state, and the start of its run. Reused, because segments can be one
   * slot long.
   */
  readonly #costs = new Int32Array(MAX_STATES);
  readonly #starts = new Uint32Array(MAX_STATES);

  constructor(columns: BatchColumns, ownerClass: Uint8Array, decimals: DecimalForm) {
    this.#columns = columns;
    this.#decimals = decimals;
    this.#ownerClass = ownerClass;
    const isSmall = columns.owners.length <= NEAR_OWNERS;
    this.#ownerCosts = ownerCosts(isSmall);
    const { inline, index8, index16, run } = format.OwnerForm;
    this.#ownerForms = isSmall ? [run, index8, inline] : [run, index8, index16, inline];
    this.#choice = new Uint8Array(columns.count);
    this.#runStart = new Uint32Array(columns.count);
  }

  /** Returns the bytes of the runs. */
  appendRuns(start: number, end: number, runs: Run[]): number {
    const blobKinds = this.#blobKindsOf(start, end);
    const widths = this.#widthsOf(start, end);
    const bytes = this.#search(start, end, blobKinds, widths);
    const found: Run[] = [];
    for (let last = end; last > start; ) {
      const state = this.#choice[last - 1] as number;
      const first = this.#runStart[last - 1] as number;
      found.push({
        start: first,
        end: last,
        ownerForm: this.#ownerForms[
          Math.floor(state / (blobKinds.length * widths.length))
        ] as number,
        blobKind: blobKinds[Math.floor(state / widths.length) % blobKinds.length] as number,
        amountForm: widths[state % widths.length] as number,
      });
      last = first;
    }
    for (const run of found.reverse()) runs.push(run);
    return bytes;
  }

  #search(
    start: number,
    end: number,
    blobKinds: readonly number[],
    widths: readonly number[],
  ): number {
    const { owner, digits, isDecimal, follows, blobBytes, amountWidth } = this.#columns;
    const ownerForms = this.#ownerForms;
    const states = ownerForms.length * blobKinds.length * widths.length;
    const costs = this.#costs.fill(IMPOSSIBLE, 0, states);
    const starts = this.#starts;
    let cheapest = 0;
    for (let slot = start; slot < end; slot++) {
      const isFirst = slot === start;
      const sameOwner = !isFirst && owner[slot] === owner[slot - 1];
      const sameLength = !isFirst && blobBytes[slot] === blobBytes[slot - 1];
      const following = !isFirst && follows[slot] === 1;
      const byForm = this.#ownerCosts[
        this.#ownerClass[owner[slot] as number] as number
      ] as Int32Array;
      const digitCount = digits[slot] as number;
      const bytes = blobBytes[slot] as number;
      const decimal = isDecimal[slot] === 1;
      const width = amountWidth[slot] as number;
      const before = cheapest;
      cheapest = IMPOSSIBLE;
      let choice = 0;
      let state = 0;
      for (let o = 0; o < ownerForms.length; o++) {
        const ownerForm = ownerForms[o] as number;
        const ownerCost = byForm[ownerForm] as number;
        const ownerHeader = ownerForm === format.OwnerForm.run ? 2 : 0;
        const ownerContinues = ownerForm !== format.OwnerForm.run || sameOwner;
        for (let b = 0; b < blobKinds.length; b++) {
          const blobKind = blobKinds[b] as number;
          const header = format.RUN_HEADER_BYTES + ownerHeader + blobHeader(blobKind, digitCount);
          const cost = ownerCost + blobCost(blobKind, digitCount, bytes, decimal);
          const continues = ownerContinues && blobContinues(blobKind, sameLength, following);
          for (let w = 0; w < widths.length; w++, state++) {
            const form = widths[w] as number;
            const fits = form === 0 ? width === 0 : width <= form;
            const record = fits && cost < IMPOSSIBLE ? cost + form : IMPOSSIBLE;
            const continued = continues ? (costs[state] as number) : IMPOSSIBLE;
            let total = before + header;
            if (continued <= total) total = continued;
            else starts[state] = slot;
            total = record === IMPOSSIBLE ? IMPOSSIBLE : total + record;
            costs[state] = total;
            if (total < cheapest) {
              cheapest = total;
              choice = state;
            }
          }
        }
      }
      this.#choice[slot] = choice;
      this.#runStart[slot] = starts[choice] as number;
    }
    return cheapest;
  }

  /**
   * Blob kinds worth trying: raw and empty where nothing else fits, packed where such blobs occur.
   */
  #blobKindsOf(start: number, end: number): readonly number[] {
    const { digits, follows, blobBytes } = this.#columns;
    let seen = 0;
    for (let slot = start; slot < end; slot++) {
      if (blobBytes[slot] === 0) seen |= Seen.empty;
      else seen |= digits[slot] === NOT_PACKABLE ? Seen.filled : Seen.filled | Seen.packable;
      if (follows[slot] === 1) seen |= Seen.consecutive;
    }
    return BLOB_KINDS[
      this.#decimals === "packed" ? seen : seen & ~Seen.packable
    ] as readonly number[];
  }

  #widthsOf(start: number, end: number): readonly number[] {
    const { amountWidth } = this.#columns;
    let seen = 0;
    for (let slot = start; slot < end; slot++) seen |= 1 << (amountWidth[slot] as number);
    return WIDTHS[seen] as readonly number[];
  }
}

/** The blob forms. Raw blobs have two: one length for the run, or a length for each blob. */
export const BlobKind = { ...format.BlobForm, rawOfOneLength: 4 } as const;

/** The dictionary class of an owner, in the order of `BatchColumns.owners`. */
export const OwnerClass = {
  /** Among the first 256 of the dictionary. */
  near: 0,
  /** Later in the dictionary. */
  far: 1,
  /**
   * Occurs once. A dictionary entry costs as much as the owner itself, but can still be cheaper
   * than a new run.
   */
  once: 2,
  inlineOnly: 3,
} as const;

export const NEAR_OWNERS = 256;
/** More than the cost of any batch. Adding a record to it does not overflow a 32-bit integer. */
export const IMPOSSIBLE = 1 << 29;

/** The kinds of blobs in a segment, a bit each. */
export const Seen = { consecutive: 1, packable: 2, filled: 4, empty: 8 } as const;

/** The blob kinds worth trying, by the sum of {@link Seen}. */
export const BLOB_KINDS: readonly (readonly number[])[] = Array.from({ length: 16 }, (_, seen) => [
  ...(seen & Seen.consecutive ? [BlobKind.consecutive] : []),
  ...(seen & Seen.packable ? [BlobKind.packed] : []),
  ...(seen & Seen.filled ? [BlobKind.rawOfOneLength, BlobKind.raw] : []),
  ...(seen & Seen.empty ? [BlobKind.empty] : []),
]);

/** Amount widths in ascending order, by the bits of the widths seen. */
export const WIDTHS: readonly (readonly number[])[] = Array.from(
  { length: 1 << (format.MAX_AMOUNT_FORM + 1) },
  (_, seen) =>
    Array.from({ length: format.MAX_AMOUNT_FORM + 1 }, (__, width) => width).filter(
      (width) => seen & (1 << width),
    ),
);

/** Most combinations of forms in a segment. */
export const MAX_STATES =
  Object.keys(format.OwnerForm).length *
  Object.keys(BlobKind).length *
  (format.MAX_AMOUNT_FORM + 1);

/** An owner that occurs once pays for its dictionary entry at its only use. */
export function ownerCosts(isSmall: boolean): readonly Int32Array[] {
  const inline = format.OWNER_BYTES;
  const costs: readonly (readonly number[])[] = [
    [inline, 1, 2, 0],
    [inline, IMPOSSIBLE, 2, 0],
    [inline, isSmall ? format.OWNER_BYTES + 1 : IMPOSSIBLE, format.OWNER_BYTES + 2, IMPOSSIBLE],
    [inline, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE],
  ];
  return costs.map((byForm) => Int32Array.from(byForm));
}

/** Bytes that the blob kind adds to a run's header. */
export function blobHeader(kind: number, digits: number): number {
  if (kind === BlobKind.empty) return 0;
  return kind === BlobKind.consecutive ? 1 + ((digits + 1) >> 1) : 1;
}

export function blobCost(kind: number, digits: number, bytes: number, isDecimal: boolean): number {
  if (kind === BlobKind.empty) return bytes === 0 ? 0 : IMPOSSIBLE;
  if (bytes === 0) return IMPOSSIBLE;
  if (kind === BlobKind.raw) return 1 + bytes;
  if (kind === BlobKind.rawOfOneLength) return bytes;
  if (kind === BlobKind.consecutive) return isDecimal ? 0 : IMPOSSIBLE;
  return digits === NOT_PACKABLE ? IMPOSSIBLE : (digits + 1) >> 1;
}

/** Whether a slot can continue a run of the kind. */
export function blobContinues(kind: number, sameLength: boolean, following: boolean): boolean {
  if (kind === BlobKind.consecutive) return following;
  return sameLength || kind === BlobKind.raw || kind === BlobKind.empty;
}
