import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createWorld, type World } from "../server/fixture.ts";
import { cleanEnvironment, mintmark } from "./cli.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const ROWS = 3_000;
const owner = (index: number) => `0x${(0x1000 + index).toString(16).padStart(40, "0")}`;

let world: World;
let folder: string;
let settings: Record<string, string>;
let file: string;
beforeAll(async () => {
  world = await createWorld();
  const url = await world.app.listen({ host: "127.0.0.1", port: 0 });
  folder = mkdtempSync(join(tmpdir(), "mintmark-drop-command-"));
  settings = { MINTMARK_URL: url, MINTMARK_API_KEY: world.key };
  file = join(folder, "points.csv");
  const rows = Array.from({ length: ROWS }, (_, i) => `${owner(i)},${1 + (i % 50)}`);
  writeFileSync(file, `ownerAddress,amount\n${rows.join("\n")}\n`);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: string[]) => mintmark(["drop", ...args, "--json"], settings);
const points = () => [file, "--asset", world.erc20.assetId, "--mode", "validium"];

/** Every owner's points, and nothing besides. */
async function held(): Promise<Map<string, bigint>> {
  const found = new Map<string, bigint>();
  for await (const { ownerAddress, amount } of world.engine.vaults.list(world.applicationId)) {
    found.set(ownerAddress, (found.get(ownerAddress) ?? 0n) + amount);
  }
  return found;
}

test("a drop that is killed twice and run again mints each row once, and a repeat mints nothing", async () => {
  for (const windows of [3, 11]) {
    const child = spawn(process.execPath, ["scripts/mintmark.js", "drop", ...points()], {
      cwd: ROOT,
      env: cleanEnvironment(settings),
      stdio: "ignore",
    });
    const ended = once(child, "exit");
    const done = () => {
      try {
        return readFileSync(`${file}.result.ndjson.progress`, "utf8").split('"done"').length - 1;
      } catch {
        return 0;
      }
    };
    while (done() < windows) await sleep(1);
    child.kill("SIGKILL");
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(done()).toBeLessThan(ROWS / 100);
  }
  const expected = new Map(
    Array.from({ length: ROWS }, (_, i) => [owner(i), BigInt(1 + (i % 50))]),
  );
  for (const _ of ["the rest", "nothing"]) {
    const { code, json } = await run(...points());
    expect([code, json()]).toEqual([
      0,
      expect.objectContaining({ rows: ROWS, minted: ROWS, refused: 0, unknown: 0 }),
    ]);
    expect(await held()).toEqual(expected);
  }
  const lines = readFileSync(`${file}.result.ndjson`, "utf8").trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).row)).toEqual(
    Array.from({ length: ROWS }, (_, i) => i + 2),
  );
});
