import type { Group } from "../store/group.ts";
import { emptyOf } from "../store/layout.ts";
import { type BatchRecord, batchRecord } from "../store/records.ts";

/** A making seems a final batch to those who ask for its status. Its record has the rest. */
const MADE: BatchRecord = { ...emptyOf(batchRecord), status: "finalized" };

/**
 * The makings of L1 that are final, in the views of a {@link Table}: one by one, because L1 numbers
 * them without gaps. Strangers can make many, so memory holds the number of their vaults, and
 * nothing for a making of one.
 */
export class Makings {
  readonly #several = new Map<number, number>();
  #latest = 0;
  #durable = 0;
  readonly #newest = this.#viewOf(() => this.#latest);
  /** The readers' view. */
  readonly durable = this.#viewOf(() => this.#durable);
  /** Vaults that are no user's, at least; counted so that nobody looks for them in vain. */
  unclaimed = 0;

  /** The number of makings. */
  count(group: Group | null): number {
    return group === null ? this.#durable : this.#latest;
  }

  view(group: Group | null) {
    return group === null ? this.durable : this.#newest;
  }

  ahead(making: number): BatchRecord | undefined {
    return this.#newest.get(making);
  }

  put(group: Group, making: number, vaultCount: number): void {
    if (vaultCount > 1) this.#several.set(making, vaultCount);
    this.#latest = Math.max(this.#latest, making);
    group.onDurable(() => {
      this.#durable = Math.max(this.#durable, making);
    });
  }

  /** Takes a making from disk. */
  load(making: number, vaultCount: number): void {
    if (vaultCount > 1) this.#several.set(making, vaultCount);
    this.#latest = Math.max(this.#latest, making);
    this.#durable = this.#latest;
  }

  #viewOf(countOf: () => number) {
    return {
      get: (making: number): BatchRecord | undefined =>
        making < 1 || making > countOf()
          ? undefined
          : { ...MADE, vaultCount: this.#several.get(making) ?? 1 },
    };
  }
}
