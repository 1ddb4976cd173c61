import type { Holder } from "../columns/vault-columns.ts";
import type { Address, Uuid } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { Recent } from "../recent.ts";
import type { UserIdRecord } from "../store/records.ts";

/** What a mint needs of a user. */
export interface CachedUser extends Holder {
  readonly userId: Uuid;
  readonly ownerAddress: Address;
}

/** Users held of each generation; about 400 bytes each. */
const GENERATION = 100_000;

/** Users that minted lately, so that a mint need not read theirs. A user never changes, so what is found is always true. */
export class UserCache {
  readonly #users = new Recent<number, Uuid, CachedUser>(GENERATION);

  get(applicationIndex: number, userId: Uuid): CachedUser | undefined {
    return this.#users.get(applicationIndex, userId);
  }

  set(applicationIndex: number, userId: Uuid, { userIndex, ownerAddress }: UserIdRecord): void {
    const owner = hexToBytes(ownerAddress, 20);
    this.#users.set(applicationIndex, userId, { applicationIndex, userIndex, owner, userId, ownerAddress });
  }
}
