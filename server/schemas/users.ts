import { z } from "zod";
import {
  address,
  outAddress,
  outDecimal,
  outHex,
  outTime,
  outUnits,
  outUuid,
  page,
  pageOf,
  requestComponent,
  responseComponent,
  uuid,
} from "./common.ts";

export const user = responseComponent(
  "User",
  z.strictObject({ userId: outUuid, ownerAddress: outAddress, createdAt: outTime }),
);

export const userPage = responseComponent("UserPage", pageOf(user));
export const userQuery = z.strictObject({ ...page });
export const userParams = z.strictObject({ userId: uuid });

export const userBody = requestComponent(
  "NewUser",
  z.strictObject({
    userId: uuid.optional().meta({ description: "Your own id for the user; a new one when absent." }),
    ownerAddress: address.meta({
      description: "The L1 address that owns what is minted for the user. It never changes.",
    }),
  }),
);

export const balance = responseComponent(
  "Balance",
  z.strictObject({
    assetId: outUuid,
    ...outUnits,
    tokenId: outDecimal.nullable(),
    mintingBlob: outHex,
    amount: outDecimal,
    available: outDecimal,
    withdrawn: outDecimal,
  }),
);

export const balancePage = responseComponent("BalancePage", pageOf(balance));
