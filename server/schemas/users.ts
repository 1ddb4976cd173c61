import { z } from "zod";
import { MAX_NEW_USERS } from "../../core/index.ts";
import {
  address,
  orderedPage,
  outAddress,
  outDecimal,
  outHex,
  outTime,
  outUnits,
  outUuid,
  pageOf,
  reference,
  requestComponent,
  responseComponent,
  uuid,
} from "./common.ts";

export const user = responseComponent("User", {
  userId: outUuid,
  ownerAddress: outAddress,
  reference: z.string().nullable().describe("Your own name for the user."),
  createdAt: outTime,
});

export const userPage = responseComponent("UserPage", pageOf(user));
export const userQuery = z.strictObject({
  ownerAddress: address.optional(),
  reference: reference.optional(),
  ...orderedPage,
});

const newUser = z.strictObject({
  userId: uuid.optional().describe("Your own id for the user; default a new one."),
  ownerAddress: address.describe("The L1 address that owns the user's mints. It never changes."),
  reference: reference.optional().describe("Your own name for the user; need not be unique."),
});

export const userBody = requestComponent("NewUser", newUser);

export const usersBody = requestComponent("NewUsers", {
  users: z.array(newUser).min(1, "Give at least one user.").max(MAX_NEW_USERS, `Give at most ${MAX_NEW_USERS} users.`),
});

export const usersReply = responseComponent("CreatedUsers", { users: z.array(user).describe("In request order.") });

export const balance = responseComponent("Balance", {
  assetId: outUuid,
  ...outUnits,
  tokenId: outDecimal.nullable(),
  mintingBlob: outHex,
  amount: outDecimal,
  available: outDecimal,
  withdrawn: outDecimal,
});

export const balancePage = responseComponent("BalancePage", pageOf(balance));
