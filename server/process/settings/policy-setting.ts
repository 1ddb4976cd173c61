import { readFileSync } from "node:fs";
import { z } from "zod";
import { address } from "./member-setting.ts";

const amount = z
  .string()
  .regex(/^\d{1,78}$/, "Give a whole number of base units as text.")
  .transform(BigInt);

/** `7`, or `1-10000` with both ends. */
const ids = z
  .string()
  .regex(/^\d{1,78}(?:-\d{1,78})?$/, "Give an id, or two with a hyphen between.")
  .transform((text) => {
    const [first = "", last = first] = text.split("-");
    return { first: BigInt(first), last: BigInt(last) };
  });

const policy = z.strictObject({
  assets: z
    .array(
      z
        .strictObject({
          contractAddress: address("the token's contract"),
          ids: z.array(ids).optional(),
          cap: amount.optional(),
          capPerId: amount.optional(),
          perDay: amount.optional(),
        })
        .transform(({ contractAddress: token, ids, cap, capPerId, perDay }) => ({
          token,
          ...(ids && { ids }),
          ...(cap !== undefined && { cap }),
          ...(capPerId !== undefined && { capPerId }),
          ...(perDay !== undefined && { perDay }),
        })),
    )
    .min(1),
});

/** An issuer's policy, from the JSON file of this name. */
export const policyFile = z
  .string()
  .min(1)
  .transform((path, context) => {
    try {
      return JSON.parse(readFileSync(path, "utf8")) as unknown;
    } catch {
      context.addIssue({ code: "custom", message: "Give a JSON file that can be read." });
      return z.NEVER;
    }
  })
  .pipe(policy)
  .transform(({ assets }) => assets);
