import { MintmarkError } from "../errors.ts";
import { type Role, SCOPES, type Scope } from "../model.ts";

/** What a person may do: the scopes of keys, and what no key can do. */
export const RIGHTS = [...SCOPES, "keys", "people", "operate"] as const;
/** One right of a person. */
export type Right = (typeof RIGHTS)[number];

const DEVELOPER = ["mint", "read", "users", "withdraw", "webhooks", "transfer"] as const;

/** The scopes of a person's own key. */
export const SCOPES_OF: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: ["read"],
  developer: SCOPES.filter((scope) => DEVELOPER.some((each) => each === scope)),
  admin: SCOPES,
  operator: ["read"],
};

const MORE: Readonly<Record<Role, readonly Right[]>> = {
  viewer: [],
  developer: ["keys"],
  admin: ["keys", "people"],
  operator: ["keys", "people", "operate"],
};

export function rightsOf(role: Role): readonly Right[] {
  return [...SCOPES_OF[role], ...MORE[role]];
}

/** Throws `role_missing`. */
export function requireRight(role: Role, right: Right): void {
  if (rightsOf(role).includes(right)) return;
  throw new MintmarkError("role_missing", `Your role, ${role}, lacks the right "${right}".`);
}
