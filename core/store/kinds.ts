import { type Field, type Fields, layout, type ValueOf } from "./layout.ts";

/** Kinds of a record by their names: each has a number, which stands for it on disk, and fields of its own. */
export type KindFields = Readonly<Record<string, readonly [number, Fields]>>;

/** The content of a record of one kind. */
export type ContentOf<K extends KindFields, N extends keyof K> = {
  readonly [F in keyof K[N][1]]: ValueOf<K[N][1][F]>;
};

export interface Kind<N> {
  readonly kind: N;
  readonly number: number;
  readonly field: Field<Record<string, unknown>>;
}

/** Finds how a kind's content lies in a record, by the kind's name when it is written and by its number when it is read. */
export class Kinds<K extends KindFields> {
  readonly #byName = new Map<keyof K, Kind<keyof K>>();
  readonly #byNumber = new Map<number, Kind<keyof K>>();

  constructor(kinds: K) {
    for (const [kind, [number, fields]] of Object.entries(kinds)) {
      const found = { kind, number, field: layout(fields) as Field<Record<string, unknown>> };
      this.#byName.set(kind, found);
      this.#byNumber.set(number, found);
    }
  }

  named(kind: keyof K): Kind<keyof K> {
    const found = this.#byName.get(kind);
    if (found === undefined) throw new Error(`no kind ${String(kind)}`);
    return found;
  }

  /** undefined for a number of no kind. */
  numbered(number: number): Kind<keyof K> | undefined {
    return this.#byNumber.get(number);
  }
}
