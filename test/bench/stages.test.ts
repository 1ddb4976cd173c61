import { expect, it } from "vitest";
import { sharesOf } from "../../bench/http/stages.ts";

it("counts a sample of a profile for the innermost function that is of a stage, between the first body and the last", () => {
  const frame = (functionName: string, url = "") => ({ functionName, url });
  const nodes = [
    { id: 1, callFrame: frame("(root)"), children: [2, 3, 4, 7] },
    { id: 2, callFrame: frame("(idle)") },
    { id: 3, callFrame: frame("load", "file:///app/server/main.ts") },
    { id: 4, callFrame: frame("read", "file:///app/server/http/wire/body.ts"), children: [5, 6] },
    { id: 5, callFrame: frame("parse", "node:internal/json") },
    { id: 6, callFrame: frame("mint", "file:///app/core/mint/mint.ts"), children: [8] },
    { id: 7, callFrame: frame("(garbage collector)") },
    { id: 8, callFrame: frame("writeUtf8String") },
  ];
  // Starting counts for nothing, nor does waiting.
  const samples = [3, 4, 5, 2, 6, 7, 8, 4, 3];
  const timeDeltas = [900, 10, 10, 500, 40, 20, 10, 10, 900];
  const shares = sharesOf({ nodes, samples, timeDeltas });
  expect(shares).toMatchObject({
    "parse the body": 30,
    "check and place": 40,
    "collect garbage": 20,
    "write to the socket": 10,
    "routes and hooks": 0,
  });
  expect(Object.values(shares).reduce((sum, share) => sum + share)).toBeCloseTo(100);
});
