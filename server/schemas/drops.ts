import { z } from "zod";
import { askedMode, flag, outTime, outUuid, responseComponent, uuid } from "./common.ts";

export const dropQuery = z.strictObject({
  assetId: uuid.optional().meta({ description: "Of rows that name none." }),
  dataAvailabilityMode: askedMode.optional().meta({ description: "Of rows that name none." }),
  dryRun: flag.optional().meta({ description: "`true` checks every row and mints nothing." }),
});

export const dropParams = z.strictObject({ dropId: uuid });

export const drop = responseComponent(
  "Drop",
  z.strictObject({
    dropId: outUuid,
    status: z.enum(["running", "done", "failed", "stopped"]),
    dryRun: z.boolean(),
    rows: z.int().meta({ description: "Rows of the drop." }),
    minted: z.int().meta({ description: "Rows that are minted; with `dryRun`, that can be." }),
    refused: z.int().meta({ description: "Rows that are not minted; the result says why." }),
    unknown: z.int().meta({ description: "Rows that an earlier upload of the same drop minted or refused." }),
    failure: z
      .strictObject({ code: z.string(), detail: z.string() })
      .nullable()
      .meta({ description: "Why it failed. Upload the same rows again to go on." }),
    createdAt: outTime,
    finishedAt: outTime.nullable(),
  }),
);

export const dropList = responseComponent("DropList", z.strictObject({ data: z.array(drop) }));
