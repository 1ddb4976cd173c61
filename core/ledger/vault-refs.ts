import { MintmarkError } from "../errors.ts";
import { MODES, type Mode } from "../model.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { byMode, type OpenBatch } from "./open-batch.ts";

// Refs from here on belong to a request that is being checked, not to vaults
export const FIRST_PENDING = 0xfff0_0000;
/** Refs from here on to pending ones are the first vaults of makings, by their numbers. */
const FIRST_MADE = 0xe000_0000;
/**
 * Most vaults of a mode that mints may make. The index has 1,879,048,190 places: transfers and
 * adopted batches, which nobody refuses, take the rest.
 */
export const MAX_PLACES = 1_800_000_000;

/** Mints are refused long before, so only a damaged record leads there. */
function beyondEnd(): MintmarkError {
  return new MintmarkError("store_corrupt", "A record names a vault beyond the last place.");
}

/**
 * A vault in the token index takes 4 bytes instead of an id: its position among all vaults of its
 * mode, and the mode. From 1 to below {@link FIRST_PENDING}; those of made vaults come last.
 */
export class VaultRefs {
  /** The ordinal of each batch's first vault, which is the number of vaults before it. */
  readonly #firstOrdinals = byMode((): number[] => []);

  firstOrdinalOf(mode: Mode, batchNumber: number): number {
    return this.#firstOrdinals[mode][batchNumber] ?? 0;
  }

  set(mode: Mode, batchNumber: number, firstOrdinal: number): void {
    this.#firstOrdinals[mode][batchNumber] = firstOrdinal;
  }

  /** Drops the batches of a mode from this one on. */
  truncate(mode: Mode, batchNumber: number): void {
    const list = this.#firstOrdinals[mode];
    list.length = Math.min(list.length, batchNumber);
  }

  refOf({ mode, firstOrdinal }: Pick<OpenBatch, "mode" | "firstOrdinal">, slot: number): number {
    const ref = 1 + 2 * (firstOrdinal + slot) + MODES.indexOf(mode);
    if (ref >= FIRST_MADE) throw beyondEnd();
    return ref;
  }

  /** The ref of the one vault that an entry makes. */
  refOfMade(making: number): number {
    const ref = FIRST_MADE + making;
    if (ref >= FIRST_PENDING) throw beyondEnd();
    return ref;
  }

  isMade(ref: number): boolean {
    return ref >= FIRST_MADE && ref < FIRST_PENDING;
  }

  /** The inverse of {@link refOf}. */
  placeOf(ref: number): VaultPlace {
    if (ref >= FIRST_MADE) return { mode: "made", batchNumber: ref - FIRST_MADE, slot: 0 };
    const mode = MODES[(ref - 1) & 1] ?? "validium";
    const ordinal = (ref - 1) >>> 1;
    const firsts = this.#firstOrdinals[mode];
    let low = 0;
    for (let high = firsts.length; high - low > 1; ) {
      const middle = (low + high) >>> 1;
      if (firsts[middle]! <= ordinal) low = middle;
      else high = middle;
    }
    return { mode, batchNumber: low, slot: ordinal - (firsts[low] ?? 0) };
  }
}
