import { z } from "zod";
import { askedMode, flag, outTime, outUuid, responseComponent, uuid } from "./common.ts";

export const dropQuery = z.strictObject({
  assetId: uuid.optional().describe("Of rows that name none."),
  dataAvailabilityMode: askedMode.optional().describe("Of rows that name none."),
  dryRun: flag.optional().describe("`true` checks every row and mints nothing."),
  unsure: z
    .enum(["minted", "lost"])
    .optional()
    .describe("The answer to `drop_unsure`: what became of the rows that its `detail` names."),
});

export const drop = responseComponent("Drop", {
  dropId: outUuid,
  status: z.enum(["queued", "running", "done", "failed", "stopped"]),
  dryRun: z.boolean(),
  rows: z.int().describe("Rows of the drop."),
  minted: z.int().describe("Rows that are minted; 0 with `dryRun`."),
  mintable: z.int().describe("Rows that `dryRun` found good; 0 without it."),
  refused: z.int().describe("Rows that are not minted; the result says why."),
  unknown: z.int().describe("Rows that an earlier upload of the same drop minted or refused."),
  failure: z
    .strictObject({ code: z.string(), detail: z.string() })
    .nullable()
    .describe("Why it failed: a code of the table of errors, or `drop_unsure`. Upload the same rows again to go on."),
  createdAt: outTime,
  finishedAt: outTime.nullable(),
});
export const dropList = responseComponent("DropList", { data: z.array(drop) });
