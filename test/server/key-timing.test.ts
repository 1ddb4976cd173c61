import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createWorld, refusal, type World } from "./fixture.ts";

// Clocks are too coarse and too noisy to show what a comparison leaks. What is done is counted instead: for every key, right or wrong and in
// whichever way, one hash of a secret and one comparison of 32 bytes by node:crypto's timingSafeEqual, whose time does not depend on them.

let world: World;
const comparisons: number[] = [];
const hashes: string[] = [];
beforeAll(async () => {
  world = await createWorld();
  const { timingSafeEqual, hash } = crypto;
  vi.spyOn(crypto, "timingSafeEqual").mockImplementation((a, b) => {
    comparisons.push(a.byteLength);
    return timingSafeEqual(a, b);
  });
  vi.spyOn(crypto, "hash").mockImplementation((algorithm, data, options) => {
    hashes.push(algorithm);
    return hash(algorithm, data, options as "buffer");
  });
  syncBuiltinESMExports();
});
afterAll(async () => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  await world[Symbol.asyncDispose]();
});

test("a key is checked in the same steps whether it is right, wrong at its first or last character, unknown or malformed", async () => {
  const { key, otherKey } = world;
  const [, , keyId = "", secret = ""] = key.split("_");
  const at = (position: number) =>
    key.slice(0, position) + (key[position] === "0" ? "1" : "0") + key.slice(position + 1);
  const first = key.length - secret.length;
  const wrong = [
    at(first),
    at(first + 63),
    at(key.length - 1),
    key.replace(keyId, "0".repeat(16)),
    key.replace("mm_test_", "mm_live_"),
    `mm_test_${keyId}_${otherKey.split("_")[3]}`,
    "x",
  ];
  for (const given of [key, ...wrong]) {
    comparisons.length = 0;
    hashes.length = 0;
    const answer = await world.send("GET", "/api/v1/limits", { key: given });
    expect([comparisons, hashes], given).toEqual([[32], ["sha256"]]);
    if (given === key) expect(answer.status).toBe(200);
    else expect(refusal(answer).code).toBe("credentials_invalid");
  }
});
