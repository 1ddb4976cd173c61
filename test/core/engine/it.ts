import { it as plain } from "vitest";
import { type Fixture, fixture } from "./fixture.ts";

/** A test that asks for a part of a fixture, or for the whole as `made`, has one of its own, closed behind it. */
export const it = plain
  .extend("made", async ({ task: _ }, { onCleanup }): Promise<Fixture> => {
    const made = await fixture();
    onCleanup(() => made.engine.close());
    return made;
  })
  .extend("engine", ({ made }) => made.engine)
  .extend("database", ({ made }) => made.database)
  .extend("clock", ({ made }) => made.clock)
  .extend("tenant", ({ made }) => made.tenant)
  .extend("assets", ({ made }) => made.assets);
