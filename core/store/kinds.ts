import { type Field, type Fields, layout, type RecordOf } from "./layout.ts";

/** Kinds of a record by name: each has a number on disk, and its fields. */
export type KindFields = Readonly<Record<string, readonly [number, Fields]>>;

/** The content of a record of one kind. */
export type ContentOf<K extends KindFields, N extends keyof K> = RecordOf<K[N][1]>;

export interface Kind<N> {
  readonly kind: N;
  readonly number: number;
  readonly field: Field<Record<string, unknown>>;
}

/** Finds the layout of a kind's content: by name for writing, by number for reading. */
export class Kinds<K extends KindFields> {
  readonly #byName = new Map<keyof K, Kind<keyof K>>();
  readonly #byNumber = new Map<number, Kind<keyof K>>();

  constructor(kinds: K) {
    for (const [kind, [number, fields]] of Object.entries(kinds)) {
      const field = layout(fields) as Field<Record<string, unknown>>;
      const found = { kind, number, field };
      this.#byName.set(kind, found);
      this.#byNumber.set(number, found);
    }
  }

  named(kind: keyof K): Kind<keyof K> {
    const found = this.#byName.get(kind);
    if (found === undefined) throw new Error(`no kind ${String(kind)}`);
    return found;
  }

  /** undefined for an unknown number. */
  numbered(number: number): Kind<keyof K> | undefined {
    return this.#byNumber.get(number);
  }
}
