import { z } from "zod";
import { askedMode, mode, outTime, outUuid, requestComponent, responseComponent } from "./common.ts";

const DEFAULT_MODE = {
  description: "The mode of mints without one, of assets without a default of their own; null: they need one.",
};

export const application = responseComponent("Application", {
  applicationId: outUuid,
  name: z.string(),
  suspended: z.boolean(),
  dataAvailabilityMode: mode.nullable().meta(DEFAULT_MODE),
  createdAt: outTime,
});

export const applicationBody = requestComponent("ApplicationDefaults", {
  dataAvailabilityMode: askedMode.nullable().meta(DEFAULT_MODE),
});
