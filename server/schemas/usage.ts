import { z } from "zod";
import { instant, outDecimal, outTime, responseComponent } from "./common.ts";

export const usage = responseComponent(
  "Usage",
  z.strictObject({
    mints: outDecimal.meta({ description: "Entries that the application's keys have minted." }),
    transactions: z.int().meta({ description: "Mints and withdrawals of the application." }),
    keys: z.array(
      z.strictObject({
        keyId: z.string(),
        mintsUsed: outDecimal,
        mintQuota: outDecimal
          .nullable()
          .meta({ description: "Most entries that the key may ever mint; null: no bound." }),
        revokedAt: outTime.nullable(),
      }),
    ),
    periods: z
      .array(z.strictObject({ since: outTime, until: outTime, transactions: z.int() }))
      .meta({ description: "Transactions accepted from `since` to before `until`, in order and without a gap." }),
  }),
);

export const usageQuery = z.strictObject({
  since: instant.optional().meta({ description: "RFC 3339 with zone; 30 intervals before `until` when absent." }),
  until: instant.optional().meta({ description: "RFC 3339 with zone; now when absent." }),
  interval: z
    .enum(["hour", "day", "month"])
    .optional()
    .meta({ description: "Periods begin with each, in UTC; at most 100 of them. `day` when absent." }),
});
