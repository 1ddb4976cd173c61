import type { z } from "zod";
import type { ApplicationEvent } from "../../core/index.ts";
import { event } from "./events.ts";
import { writerOf } from "./writer.ts";

const WRITERS = new Map(event.options.map((each) => [each.shape.type.value, writerOf(each as z.ZodType)]));

/** An event as JSON, for streams, pages and webhooks. */
export function eventToWire(from: ApplicationEvent): z.output<typeof event> {
  const write = WRITERS.get(from.type);
  if (write === undefined) throw new Error(`no schema of ${from.type}`);
  return write(from) as z.output<typeof event>;
}
