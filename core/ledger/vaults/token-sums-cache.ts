import type { Ledger } from "../ledger.ts";
import { addTransactions, type Holding, TokenSums } from "./token-sums.ts";

/** Sums held of each generation; about 200 bytes each. A user without any counts as one. */
const GENERATION = 50_000;

/** Sums that are being made, and whether what they are made of has changed since. */
interface Summing {
  readonly sums: Promise<TokenSums>;
  stale: boolean;
}

/**
 * Sums of users who were asked for lately, so that only what was minted since is added. Whoever changes what has been withdrawn or
 * reserved of a vault, or makes it void, has its user forgotten. Two generations stand in for recency: a hit moves a user to the young
 * one; when that is full the old one is forgotten.
 */
export class TokenSumsCache {
  readonly #ledger: Ledger;
  #young = new Map<number, TokenSums>();
  #old = new Map<number, TokenSums>();
  #size = 0;
  /** By user; those who ask meanwhile wait for the same. */
  readonly #summing = new Map<number, Summing>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** A user's sums over the application's transactions before `to`, and perhaps later ones. */
  async of(holding: Holding, to: number): Promise<TokenSums> {
    for (;;) {
      const { userIndex } = holding;
      const running = this.#summing.get(userIndex);
      // What has changed since they were begun may be missing in them: good enough for who asked before, not for who asks now.
      const outdated = running?.stale === true;
      const sums = await (running?.sums ?? this.#begin(holding, to));
      if (sums.upTo >= to && !outdated) return sums;
    }
  }

  /** Something of the user's vaults has changed, and readers see it from now on. */
  forget(userIndex: number): void {
    this.#young.delete(userIndex);
    this.#old.delete(userIndex);
    const running = this.#summing.get(userIndex);
    if (running !== undefined) running.stale = true;
  }

  #begin(holding: Holding, to: number): Promise<TokenSums> {
    const { userIndex } = holding;
    const known = this.#young.get(userIndex) ?? this.#old.get(userIndex);
    if (known !== undefined && known.upTo >= to) return Promise.resolve(this.#put(userIndex, known));
    // Out of the cache while they are added to: half of an addition must never be found there.
    this.#young.delete(userIndex);
    this.#old.delete(userIndex);
    const running: Summing = { sums: this.#add(holding, known ?? new TokenSums(), to), stale: false };
    this.#summing.set(userIndex, running);
    return running.sums;
  }

  async #add(holding: Holding, sums: TokenSums, to: number): Promise<TokenSums> {
    const { userIndex } = holding;
    try {
      await addTransactions(this.#ledger, holding, sums, to);
      if (this.#summing.get(userIndex)?.stale === false) this.#put(userIndex, sums);
      return sums;
    } finally {
      this.#summing.delete(userIndex);
    }
  }

  #put(userIndex: number, sums: TokenSums): TokenSums {
    if (this.#young.has(userIndex)) return sums;
    if (this.#size >= GENERATION) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#size = 0;
    }
    this.#young.set(userIndex, sums);
    this.#size += 1 + sums.size;
    return sums;
  }
}
