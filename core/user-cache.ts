import type { Uuid } from "./model.ts";
import type { UserIdRecord } from "./records.ts";

/** Users held of each generation; about 200 bytes each. */
const GENERATION = 100_000;

/**
 * Users that minted lately, so that a mint need not read theirs. What is found is always true: users never change. Two generations
 * stand in for recency: a hit moves a user to the young one; when that is full the old one is forgotten.
 */
export class UserCache {
  #young = new Map<string, UserIdRecord>();
  #old = new Map<string, UserIdRecord>();

  get(applicationIndex: number, userId: Uuid): UserIdRecord | undefined {
    const key = `${applicationIndex}:${userId}`;
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.#add(key, old);
    return old;
  }

  set(applicationIndex: number, userId: Uuid, user: UserIdRecord): void {
    this.#add(`${applicationIndex}:${userId}`, user);
  }

  #add(key: string, user: UserIdRecord): void {
    if (this.#young.size >= GENERATION) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, user);
  }
}
