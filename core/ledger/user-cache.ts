import type { Address, Uuid } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { Recent } from "../recent.ts";
import type { Holder } from "../store/vault-columns.ts";

export interface CachedUser extends Holder {
  readonly userId: Uuid;
  readonly ownerAddress: Address;
}

const GENERATION = 100_000; // Users in each generation, about 400 bytes each

/**
 * Users that minted lately, by application, then by id or owner, as mints name them. A user never
 * changes.
 */
export class UserCache extends Recent<number, Uuid | Address, CachedUser> {
  constructor() {
    super(GENERATION);
  }

  /** @param recipient - the user's id, or its owner's address if it is the owner's first user */
  remember(
    applicationIndex: number,
    recipient: Uuid | Address,
    { userIndex, userId, ownerAddress }: Pick<CachedUser, "userIndex" | "userId" | "ownerAddress">,
  ): CachedUser {
    const owner = hexToBytes(ownerAddress, 20);
    const user = { applicationIndex, userIndex, owner, userId, ownerAddress };
    this.set(applicationIndex, recipient, user);
    return user;
  }
}
