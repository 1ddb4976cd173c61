import { z } from "zod";
import { MAX_NEW_USERS } from "../../core/index.ts";
import * as s from "./common.ts";

export const user = s.responseComponent("User", {
  userId: s.outUuid,
  ownerAddress: s.outAddress,
  reference: z.string().nullable().describe("Your own name for the user."),
  createdAt: s.outTime,
});
export const userPage = s.responseComponent("UserPage", s.pageOf(user));
export const userQuery = z.strictObject({
  ownerAddress: s.address.optional(),
  reference: s.reference.optional(),
  ...s.orderedPage,
});

const newUser = z.strictObject({
  userId: s.uuid.optional().describe("Your own id for the user; default a new one."),
  ownerAddress: s.address.describe("The L1 address that owns the user's mints. It never changes."),
  reference: s.reference.optional().describe("Your own name for the user; need not be unique."),
});

export const userBody = s.requestComponent("NewUser", newUser);

export const usersBody = s.requestComponent("NewUsers", {
  users: z.array(newUser).min(1, "Give at least one user.").max(MAX_NEW_USERS, `Give at most ${MAX_NEW_USERS} users.`),
});
export const usersReply = s.responseComponent("CreatedUsers", { users: z.array(user).describe("In request order.") });

export const balance = s.responseComponent("Balance", {
  assetId: s.outUuid,
  ...s.outUnits,
  tokenId: s.outDecimal.nullable(),
  mintingBlob: s.outHex,
  amount: s.outDecimal,
  available: s.outDecimal,
  withdrawn: s.outDecimal,
});
export const balancePage = s.responseComponent("BalancePage", s.pageOf(balance));
