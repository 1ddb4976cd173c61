import type { EntryKind, EntryOf } from "../store/entries.ts";
import { encodeEvent, type StoredEvent } from "../store/event-record.ts";
import { emptyOf, encodeRecord, type Field } from "../store/layout.ts";
import { keyOf, PREFIX } from "../store/store-keys.ts";

/** A record that the store must hold with exactly this value. */
export interface Expected {
  readonly key: Buffer;
  readonly value: Uint8Array;
  readonly name: string;
}

export type ReportFault = (problem: string) => void;

/** The entry under way, the records that are final by it, and the faults of the journal. */
export class Output {
  /** Sequence and time are those of the entry under way. */
  sequence = 0;
  time = 0;
  readonly report: ReportFault;
  readonly #counts = new Map<number, number>();
  readonly #events: number[] = []; // The number of events of each application
  #expected: Expected[] = [];

  constructor(report: ReportFault) {
    this.report = report;
  }

  put<T>(key: Buffer, field: Field<T>, value: T, name: string): void {
    this.bytes(key, encodeRecord(field, value), name);
  }

  bytes(key: Buffer, value: Uint8Array, name: string): void {
    this.#counts.set(key[0] ?? 0, this.countOf(key[0] ?? 0) + 1);
    this.#expected.push({ key, value, name });
  }

  /** A record that only has to be there. */
  mark(key: Buffer, name: string): void {
    this.bytes(key, Buffer.from([1]), name);
  }

  /** A record that names an entry of the journal. */
  index(key: Buffer, name: string, sequence = this.sequence): void {
    this.bytes(key, keyOf.journal(sequence).subarray(1), name);
  }

  /** An event of an application. */
  tell(applicationIndex: number, event: StoredEvent): void {
    const sequence = this.eventsOf(applicationIndex) + 1;
    this.#events[applicationIndex] = sequence;
    const key = keyOf.applicationEvent(applicationIndex, sequence);
    this.bytes(
      key,
      encodeEvent(this.time, event),
      `event ${sequence} of application ${applicationIndex}`,
    );
  }

  eventsOf(applicationIndex: number): number {
    return this.#events[applicationIndex] ?? 0;
  }

  get count(): number {
    return this.#counts.values().reduce((sum, count) => sum + count, 0);
  }

  countOf(prefix: number): number {
    return this.#counts.get(prefix) ?? 0;
  }

  /** The records since the last call. */
  take(): Expected[] {
    const taken = this.#expected;
    this.#expected = [];
    return taken;
  }
}

/** Records of one kind that later entries change, by number or name. */
class Kept<K, T> extends Map<K, T> {
  readonly #out: Output;
  readonly #kind: string;
  readonly #empty: T;

  constructor(out: Output, kind: string, field: Field<T>) {
    super();
    this.#out = out;
    this.#kind = kind;
    this.#empty = emptyOf(field);
  }

  /** Adds a record of now with these facts. */
  add(id: K, facts: Partial<T>): void {
    const { time } = this.#out;
    this.set(id, { ...this.#empty, createdAt: time, updatedAt: time, ...facts });
  }

  change(id: K, change: Partial<T>): void {
    const record = this.get(id);
    if (record !== undefined) this.set(id, { ...record, updatedAt: this.#out.time, ...change });
    else this.#out.report(`the journal changes ${this.#kind} ${id}, which it never created`);
  }
}

/** Records that have no other name are named by their keys. */
export const hexOfKey = (key: Buffer): string => key.toString("hex");
export const keyOfHex = (hex: string): Buffer => Buffer.from(hex, "hex");

/** A handler for each kind of entry. No two parts handle one kind. */
export type Handlers = { readonly [K in EntryKind]?: (entry: EntryOf<K>) => void | Promise<void> };

export abstract class ReferencePart<Others extends object = object> {
  protected readonly out: Output;
  /** The parts that it asks. */
  protected readonly parts: Others;
  readonly #kept: (() => void)[] = [];

  constructor(parts: Others & { readonly out: Output }) {
    this.out = parts.out;
    this.parts = parts;
  }

  /**
   * Records of one kind, which {@link finish} puts out. Reports changes of one that no entry has
   * created.
   */
  protected kept<K, T>(kind: string, keyOf: (id: K) => Buffer, field: Field<T>): Kept<K, T> {
    const kept = new Kept<K, T>(this.out, kind, field);
    this.#kept.push(() => {
      for (const [id, record] of kept) this.out.put(keyOf(id), field, record, `${kind} ${id}`);
    });
    return kept;
  }

  /** Puts out the records that could change until now. */
  finish(): void {
    for (const putOut of this.#kept) putOut();
  }
}

const FEW = [
  ...[
    "head",
    "divergence",
    "application",
    "key",
    "asset",
    "metadata",
    "collection",
    "claim",
    "webhook",
    "person",
  ],
  ...[
    "auditCount",
    "enablement",
    "batch",
    "voids",
    "activity",
    "withdrawal",
    "userWithdrawal",
    "pendingWithdrawal",
  ],
  ...[
    "cancellation",
    "withdrawalList",
    "transferList",
    "transferDigest",
    "waitingTransfers",
    "batchTransfers",
  ],
  ...["transferSession", "transferApproval", "l1Event", "vaultEvent", "portal", "checkpoint"],
  ...["orderTerms", "order", "orderDigest", "liveOrder", "applicationOrder", "makerOrder", "trade"],
] as const;
/**
 * Prefixes with few records, or with records that can still change. The end compares them whole.
 */
export const COMPARED_WHOLE: ReadonlySet<number> = new Set([
  PREFIX.import,
  ...FEW.map((name) => PREFIX[name]),
]);
