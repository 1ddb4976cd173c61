import type { Holder } from "../columns/vault-columns.ts";
import type { Address, Uuid } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import type { UserIdRecord } from "../store/records.ts";
/** What a mint needs of a user. */
export interface CachedUser extends Holder {
  readonly userId: Uuid;
  readonly ownerAddress: Address;
}

/**
 * Users that minted lately, so that a mint need not read theirs. What is found is always true: users never change. Two generations
 * stand in for recency: a hit moves a user to the young one; when that is full the old one is forgotten.
 */
export class UserCache {
  #young = new Map<number, Map<Uuid, CachedUser>>();
  #old = new Map<number, Map<Uuid, CachedUser>>();
  #size = 0;

  get(applicationIndex: number, userId: Uuid): CachedUser | undefined {
    const young = this.#young.get(applicationIndex)?.get(userId);
    if (young !== undefined) return young;
    const old = this.#old.get(applicationIndex)?.get(userId);
    if (old !== undefined) this.#add(old);
    return old;
  }

  set(applicationIndex: number, userId: Uuid, user: UserIdRecord): void {
    const { userIndex, ownerAddress } = user;
    this.#add({ applicationIndex, userIndex, owner: hexToBytes(ownerAddress, 20), userId, ownerAddress });
  }

  #add(user: CachedUser): void {
    if (this.#size >= GENERATION) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#size = 0;
    }
    const { applicationIndex, userId } = user;
    const users = this.#young.get(applicationIndex);
    if (users === undefined) this.#young.set(applicationIndex, new Map([[userId, user]]));
    else users.set(userId, user);
    this.#size++;
  }
}

/** Users held of each generation; about 400 bytes each. */
const GENERATION = 100_000;
