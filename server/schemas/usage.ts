import { z } from "zod";
import { instant, outDecimal, outTime, responseComponent } from "./common.ts";

export const usage = responseComponent("Usage", {
  mints: outDecimal.describe("Entries that the application's keys have minted."),
  transactions: z
    .int()
    .describe("Mints, withdrawals and transfers. Each transferred vault counts, and so does the change of a split."),
  keys: z.array(
    z.strictObject({
      keyId: z.string(),
      mintsUsed: outDecimal,
      mintQuota: outDecimal.nullable().describe("Most entries that the key may ever mint; null: no limit."),
      revokedAt: outTime.nullable(),
    }),
  ),
  periods: z
    .array(z.strictObject({ since: outTime, until: outTime, transactions: z.int() }))
    .describe("Transactions accepted from `since` to before `until`, in order, without a gap."),
});

export const usageQuery = z.strictObject({
  since: instant.optional().describe("RFC 3339 with zone; default 30 intervals before `until`."),
  until: instant.optional().describe("RFC 3339 with zone; default now."),
  interval: z
    .enum(["hour", "day", "month"])
    .optional()
    .describe("The periods, in UTC; at most 100 of them. Default `day`."),
});
