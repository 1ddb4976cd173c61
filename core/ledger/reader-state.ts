import { Followers } from "./followers.ts";
import { TokenSumsCache } from "./token-sums-cache.ts";

/** Readers keep this for one another. */
export class ReaderState {
  readonly tokenSums = new TokenSumsCache();
  readonly followers = new Followers();
}
