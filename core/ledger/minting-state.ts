import { Recent } from "../recent.ts";
import { TokenHasher } from "../store/token-id.ts";
import { TokenIndex } from "../store/token-index.ts";

/** Indexes that checks of mints look up, in the writer's view. */
export class MintingState {
  readonly hasher: TokenHasher;
  /** Every ERC-721 token. */
  tokens = new TokenIndex();
  /** Mints in progress that have an idempotency key, by application and key. */
  readonly keyedMints = new Set<string>();
  /**
   * ERC-1155 ids of up to 15 digits, by asset, bound to their own decimal: minting them needs no
   * read.
   */
  readonly bindings = new Recent<number, number, true>(200_000);
  /** The newest block with a recent mark, by application and by asset or (below zero) mode. */
  readonly marks = new Recent<number, number, number>(100_000);

  constructor(seed: Uint8Array) {
    this.hasher = new TokenHasher(seed);
  }
}
