import { test } from "vitest";
import { fuzzAll } from "../decoders.ts";

test("every decoder refuses a million damaged inputs with a code, or reads them as its naive twin does", async () => {
  const seed = Date.now();
  console.log({
    seed,
    ...(await fuzzAll(Number(process.env.MINTMARK_TEST_MUTATIONS ?? 1_000_000), seed)),
  });
});
