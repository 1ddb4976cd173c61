import { validate, version } from "uuid";
import { expect, it } from "vitest";
import { timeUuid } from "../../../core/store/binary.ts";

it("is a UUID of version 7 that begins with its time, and never the same twice", () => {
  const time = 0x0123_4567_89ab;
  const ids = Array.from({ length: 2_000 }, () => timeUuid(time));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) {
    expect(validate(id) && version(id) === 7).toBe(true);
    expect(id.startsWith("01234567-89ab-7")).toBe(true);
  }
});
