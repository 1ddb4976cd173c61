import type { Hex, VaultId } from "../model.ts";
import { Recent } from "../recent.ts";

// Sums in each generation, about 200 bytes each. A user without sums counts as one.
const GENERATION = 50_000;

/** Vaults whose holders one reader looks up. With more changes, all sums are made anew. */
const MOST_CHANGED = 256;

/** Adds a user's later transactions to its sums. */
type AddTransactions = (sums: TokenSums) => Promise<void>;

/** The users who hold these vaults. */
type HoldersOf = (vaultIds: readonly VaultId[]) => Promise<readonly number[]>;

/** Sums under construction, and whether their inputs have changed since. */
interface Summing {
  readonly sums: Promise<TokenSums>;
  stale: boolean;
}

/**
 * Sums of recent users, so that only newer mints are added. Withdrawals, transfers and void slots
 * drop a user's.
 */
export class TokenSumsCache {
  readonly #known = new Recent<"user", number, TokenSums>(GENERATION, ({ size }) => 1 + size);
  // Sums under way, by user. Concurrent callers share one computation.
  readonly #summing = new Map<number, Summing>();
  /** Vaults that have changed, and whose holders nobody has looked up since. */
  readonly #changed = new Set<VaultId>();
  #lookUp: Promise<void> | null = null;

  /**
   * A user's sums over the transactions before `to`, and possibly later ones. `add` brings them up
   * to `to`. It may stop for its own caller, who cannot pay for more or is gone; then another one
   * who waits for the sums begins anew.
   */
  async of(
    { userIndex }: Holding,
    to: number,
    add: AddTransactions,
    holdersOf: HoldersOf,
  ): Promise<TokenSums> {
    // The changes before this call are in the present look-up or in the next one. Later ones may
    // never end.
    await this.#lookUp;
    if (this.#changed.size > 0 || this.#lookUp !== null) await this.#forgetChanged(holdersOf);
    for (;;) {
      const running = this.#summing.get(userIndex);
      // They may lack changes since they were begun. That is fine for earlier callers, not for this
      // one.
      const outdated = running?.stale === true;
      const sums = await (running?.sums.catch(() => null) ?? this.#begin(userIndex, to, add));
      if (sums !== null && sums.upTo >= to && !outdated) return sums;
    }
  }

  forgetAll(): void {
    this.#changed.clear();
    this.#known.clear();
    for (const running of this.#summing.values()) running.stale = true;
  }

  /** Drops a user's sums after a change that readers now see. */
  forget(userIndex: number): void {
    this.#known.take("user", userIndex);
    const running = this.#summing.get(userIndex);
    if (running !== undefined) running.stale = true;
  }

  /**
   * Drops the sums of a vault's holder, whom the change does not name. The next reader looks it up.
   */
  forgetHolderOf(vaultId: VaultId): void {
    this.#changed.add(vaultId);
    if (this.#changed.size > MOST_CHANGED) this.forgetAll();
  }

  #forgetChanged(holdersOf: HoldersOf): Promise<void> {
    if (this.#lookUp !== null) return this.#lookUp;
    const vaultIds = [...this.#changed];
    this.#changed.clear();
    this.#lookUp = holdersOf(vaultIds)
      .then(
        (users) => {
          for (const userIndex of users) this.forget(userIndex);
        },
        () => this.forgetAll(),
      )
      .finally(() => {
        this.#lookUp = null;
      });
    return this.#lookUp;
  }

  #begin(userIndex: number, to: number, add: AddTransactions): Promise<TokenSums> {
    // Out of the cache during the addition, so that nobody finds half of it.
    const known = this.#known.take("user", userIndex);
    if (known !== undefined && known.upTo >= to)
      return Promise.resolve(this.#put(userIndex, known));
    const running: Summing = {
      sums: this.#add(userIndex, known ?? new TokenSums(), add),
      stale: false,
    };
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

/** A user's holding of one ERC-20 token or ERC-1155 id, over all vaults. */
export interface TokenSum {
  readonly assetIndex: number;
  readonly mintingBlob: Hex;
  readonly first: number; // The first transaction of it that still counts
  amount: bigint;
  heldBack: bigint; // Part of `amount` that is withdrawn or reserved
  withdrawn: bigint;
}

/**
 * A user's sums over the vaults that are not void. ERC-721 tokens are left out: each is one vault.
 */
export class TokenSums {
  upTo = 0; // The sums cover the application's transactions before this one
  readonly #byToken = new Map<string, TokenSum>();

  get size(): number {
    return this.#byToken.size;
  }

  of(assetIndex: number, mintingBlob: Hex): TokenSum | undefined {
    return this.#byToken.get(`${assetIndex}:${mintingBlob}`);
  }

  /** The sum of a token, new when this is its first transaction. */
  ofMint(assetIndex: number, mintingBlob: Hex, sequence: number): TokenSum {
    const token = `${assetIndex}:${mintingBlob}`;
    const known = this.#byToken.get(token);
    if (known !== undefined) return known;
    const sum = {
      assetIndex,
      mintingBlob,
      first: sequence,
      amount: 0n,
      heldBack: 0n,
      withdrawn: 0n,
    };
    this.#byToken.set(token, sum);
    return sum;
  }
}

export interface Holding {
  readonly applicationIndex: number;
  readonly userIndex: number;
}
