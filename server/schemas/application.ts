import { z } from "zod";
import { mode, outTime, outUuid, requestComponent, responseComponent } from "./common.ts";

const defaultMode = mode.nullable().meta({
  description: "Of mints that name no mode, of assets that have none of their own; null: they must name one.",
});

export const application = responseComponent(
  "Application",
  z.strictObject({
    applicationId: outUuid,
    name: z.string(),
    suspended: z.boolean(),
    dataAvailabilityMode: defaultMode,
    createdAt: outTime,
  }),
);

export const applicationBody = requestComponent(
  "ApplicationDefaults",
  z.strictObject({ dataAvailabilityMode: defaultMode }),
);
