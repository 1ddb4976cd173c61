import type { Hex } from "../model.ts";
import { Recent } from "../recent.ts";

/** Sums held of each generation; about 200 bytes each. A user without any counts as one. */
const GENERATION = 50_000;

/** Adds a user's later transactions to its sums. */
export type AddTransactions = (sums: TokenSums) => Promise<void>;

/** Sums that are being made, and whether what they are made of has changed since. */
interface Summing {
  readonly sums: Promise<TokenSums>;
  stale: boolean;
}

/**
 * Sums of users who were asked for lately, so that only what was minted since is added. Whoever changes the withdrawn or reserved
 * amount of a vault, or makes it void, has its user forgotten.
 */
export class TokenSumsCache {
  readonly #known = new Recent<"user", number, TokenSums>(GENERATION, ({ size }) => 1 + size);
  /** By user; those who ask meanwhile wait for the same. */
  readonly #summing = new Map<number, Summing>();

  /** A user's sums over the application's transactions before `to`, and perhaps later ones; `add` brings them up to `to`. */
  async of({ userIndex }: Holding, to: number, add: AddTransactions): Promise<TokenSums> {
    for (;;) {
      const running = this.#summing.get(userIndex);
      // What has changed since they were begun may be missing in them: good enough for who asked before, not for who asks now.
      const outdated = running?.stale === true;
      const sums = await (running?.sums ?? this.#begin(userIndex, to, add));
      if (sums.upTo >= to && !outdated) return sums;
    }
  }

  /** Everything may have changed. */
  forgetAll(): void {
    this.#known.clear();
    for (const running of this.#summing.values()) running.stale = true;
  }

  /** Something of the user's vaults has changed, and readers see it from now on. */
  forget(userIndex: number): void {
    this.#known.take("user", userIndex);
    const running = this.#summing.get(userIndex);
    if (running !== undefined) running.stale = true;
  }

  #begin(userIndex: number, to: number, add: AddTransactions): Promise<TokenSums> {
    // Out of the cache while they are added to: half of an addition must never be found there.
    const known = this.#known.take("user", userIndex);
    if (known !== undefined && known.upTo >= to) return Promise.resolve(this.#put(userIndex, known));
    const running: Summing = { sums: this.#add(userIndex, known ?? new TokenSums(), add), stale: false };
    this.#summing.set(userIndex, running);
    return running.sums;
  }

  async #add(userIndex: number, sums: TokenSums, add: AddTransactions): Promise<TokenSums> {
    try {
      await add(sums);
      if (this.#summing.get(userIndex)?.stale === false) this.#put(userIndex, sums);
      return sums;
    } finally {
      this.#summing.delete(userIndex);
    }
  }

  #put(userIndex: number, sums: TokenSums): TokenSums {
    this.#known.set("user", userIndex, sums);
    return sums;
  }
}

/** What a user holds of one ERC-20 token or ERC-1155 id over all vaults. */
export interface TokenSum {
  readonly assetIndex: number;
  readonly blob: Hex;
  /** The transaction that brought the first of it that still counts. */
  readonly first: number;
  amount: bigint;
  /** Withdrawn or reserved, of `amount`. */
  heldBack: bigint;
  withdrawn: bigint;
}

/** A user's sums over the vaults that are not void, of everything but ERC-721 tokens, each of which is one vault. */
export class TokenSums {
  /** The application's transactions before this one are in the sums. */
  upTo = 0;
  readonly #byToken = new Map<string, TokenSum>();

  get size(): number {
    return this.#byToken.size;
  }

  of(assetIndex: number, blob: Hex): TokenSum | undefined {
    return this.#byToken.get(`${assetIndex}:${blob}`);
  }

  /** The sum of a token; a new one when this transaction brings the first of it. */
  ofMint(assetIndex: number, blob: Hex, sequence: number): TokenSum {
    const token = `${assetIndex}:${blob}`;
    const known = this.#byToken.get(token);
    if (known !== undefined) return known;
    const sum = { assetIndex, blob, first: sequence, amount: 0n, heldBack: 0n, withdrawn: 0n };
    this.#byToken.set(token, sum);
    return sum;
  }
}

export interface Holding {
  readonly applicationIndex: number;
  readonly userIndex: number;
}
