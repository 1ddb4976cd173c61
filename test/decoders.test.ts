import { expect, test } from "vitest";
import { fuzzAll } from "./decoders.ts";

test("every decoder refuses damage with a code, or reads it as its naive twin does", async () => {
  for (const [name, { runs, refused }] of Object.entries(await fuzzAll(2_000, 1))) {
    expect(refused, name).toBeGreaterThan(0);
    // No damage makes another key of a keystore; the others read some.
    if (name !== "a keystore") expect(refused, name).toBeLessThan(runs);
  }
});
