import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forget, keep, originHere, resume } from "../../bench/scale-kept.ts";

const STEPS = { fill: { disk: 60 } };
let folder: string;
let said: string[];
const say = (line: string) => void said.push(line);
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-scale-"));
  said = [];
  await mkdir(join(folder, "store"));
  await writeFile(join(folder, "world.json"), "{}");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("an interrupted run goes on where it ended", async () => {
  await keep(folder, originHere(), STEPS);
  expect(await resume(folder, originHere(), say)).toEqual(STEPS);
  expect(await readdir(folder)).toEqual(["figures.json", "store", "world.json"]);
  expect(said).toEqual([]);
});

test.each(["commit", "node", "cpu"])("figures of another %s are discarded", async (name) => {
  await keep(folder, { ...originHere(), [name]: "another" }, STEPS);
  expect(await resume(folder, originHere(), say)).toEqual({});
  expect(said).toEqual([expect.stringContaining("of another commit, Node or processor")]);
  expect(await readdir(folder)).toEqual(["figures.json"]);
});

test("figures without an origin are discarded", async () => {
  await writeFile(join(folder, "figures.json"), JSON.stringify(STEPS));
  expect(await resume(folder, originHere(), say)).toEqual({});
  expect(said).toHaveLength(1);
});

test("nothing of a complete run is left for the next one", async () => {
  await keep(folder, originHere(), STEPS);
  await forget(folder);
  expect(await readdir(folder)).toEqual([]);
});
