import type { Address, Uuid } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import type { UserIdRecord } from "../store/records.ts";
import type { Holder } from "./vault-columns.ts";

/** What a mint needs of a user. */
export interface CachedUser extends Holder {
  readonly userId: Uuid;
  readonly ownerAddress: Address;
}

/** Users held of each generation; about 400 bytes each. */
const GENERATION = 100_000;

/**
 * Users that minted lately, so that a mint need not read theirs. What is found is always true: users never change. Two generations
 * stand in for recency: a hit moves a user to the young one; when that is full the old one is forgotten.
 */
export class UserCache {
  #young = new Map<string, CachedUser>();
  #old = new Map<string, CachedUser>();

  get(applicationIndex: number, userId: Uuid): CachedUser | undefined {
    const key = `${applicationIndex}:${userId}`;
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.#add(key, old);
    return old;
  }

  set(applicationIndex: number, userId: Uuid, user: UserIdRecord): void {
    const { userIndex, ownerAddress } = user;
    const holder = { applicationIndex, userIndex, owner: hexToBytes(ownerAddress, 20) };
    this.#add(`${applicationIndex}:${userId}`, { ...holder, userId, ownerAddress });
  }

  #add(key: string, user: CachedUser): void {
    if (this.#young.size >= GENERATION) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, user);
  }
}
