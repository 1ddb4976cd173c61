import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { EventLoopTurns } from "../../server/http/turns.ts";

test.each([1, 16])(
  "a pass of the event loop gives %i turns, and callers take turns",
  async (most) => {
    const turns = new EventLoopTurns(most);
    const given: string[] = [];
    const wait = async (caller: string) => {
      await turns.turn(caller);
      given.push(caller);
    };
    for (let i = 0; i < 40; i++) void wait("many");
    void wait("one");
    for (let passes = 1; passes <= 2; passes++) {
      await setImmediate();
      expect(given).toHaveLength(passes * most);
    }
    expect(given.indexOf("one")).toBe(1);
  },
);
