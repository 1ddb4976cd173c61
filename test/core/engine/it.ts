import { it as plain } from "vitest";
import { type Fixture, fixture } from "./fixture.ts";

/**
 * A test that asks for a part of a fixture, or for the whole as `made`, has one of its own, closed
 * behind it; `make` makes one with options.
 */
export const it = plain
  .extend(
    "make",
    ({ task: _ }, { onCleanup }) =>
      async (options?: Parameters<typeof fixture>[0]): Promise<Fixture> => {
        const made = await fixture(options);
        onCleanup(() => made.engine.close());
        return made;
      },
  )
  .extend("made", ({ make }) => make())
  .extend("engine", ({ made }) => made.engine)
  .extend("database", ({ made }) => made.database)
  .extend("clock", ({ made }) => made.clock)
  .extend("tenant", ({ made }) => made.tenant)
  .extend("assets", ({ made }) => made.assets);
