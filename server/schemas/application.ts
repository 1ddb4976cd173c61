import { z } from "zod";
import { askedMode, mode, outTime, outUuid, requestComponent, responseComponent } from "./common.ts";

const DEFAULT_MODE = {
  description: "Of mints that name no mode, of assets that have none of their own; null: they must name one.",
};

export const application = responseComponent(
  "Application",
  z.strictObject({
    applicationId: outUuid,
    name: z.string(),
    suspended: z.boolean(),
    dataAvailabilityMode: mode.nullable().meta(DEFAULT_MODE),
    createdAt: outTime,
  }),
);

export const applicationBody = requestComponent(
  "ApplicationDefaults",
  z.strictObject({ dataAvailabilityMode: askedMode.nullable().meta(DEFAULT_MODE) }),
);
