import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Level } from "level";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MODES, openEngine } from "../../core/index.ts";
import { writeFolderFormat } from "../../core/store/format.ts";
import { COMMITTEE } from "../../scripts/sandbox/accounts.ts";
import { settingsOf } from "../cli/cli.ts";
import { type MembersWorld, startMembersWorld } from "../e2e/member-world.ts";
import { at } from "../settlement/fixture.ts";

const MINTMARK = fileURLToPath(new URL("../../scripts/mintmark.js", import.meta.url));
const BYTES = { keyEncoding: "view", valueEncoding: "view" } as const;
const RUNS = Number(process.env.RUNS ?? 30);

let world: MembersWorld;
/** A store that holds another history than L1. */
let diverged: string;

const open = (store: string) =>
  openEngine({ store, settlement: world.l1.settlement, environment: "sandbox", divergenceMs: 0 });

beforeAll(async () => {
  world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
  const { settler } = world.settlerOver();
  const kept = await world.mint("erc20", "validium", "", 9);
  await settler.round();
  diverged = join(world.folder, "diverged");
  const copy = new Level<Uint8Array, Uint8Array>(diverged, BYTES);
  for await (const [key, value] of world.engineStore.iterator(BYTES))
    await copy.put(key, value, BYTES);
  await copy.close();
  await writeFolderFormat(diverged);

  for (const mode of MODES) {
    // Many owners, each of whom gets a user when the batch is adopted.
    for (let token = 0; token < 40; token++) {
      const userId = crypto.randomUUID();
      const ownerAddress = `0x${(1_000 + token).toString(16).padStart(40, "0")}` as const;
      await world.engine.users.create(world.principal.applicationId, { userId, ownerAddress });
      await { ...world, users: [{ ...at(world.users, 0), userId }] }.mint(
        "erc721",
        mode,
        `${mode} ${token}`,
      );
    }
  }
  await settler.round();

  const loser = await open(diverged);
  const lost = await { ...world, engine: loser }.mint("erc20", "validium", "", 5);
  await loser.operator.seal("validium");
  for (const vaultId of [kept, lost])
    await { ...world, engine: loser }.requestWithdrawal(vaultId, 2n);
  await expect(loser.operator.compareState(await world.l1.state())).rejects.toMatchObject({
    code: "history_diverged",
  });
  await loser.close();
});
afterAll(() => world.close());

/**
 * Runs the command over a store. Resolves with its exit code, null when it was killed, and how long
 * it had the store open.
 */
async function adopt(store: string, killAfterMs = Number.POSITIVE_INFINITY) {
  const peers = world.processes.map(({ url }) => url).join(",");
  const options = [
    "--from-block",
    `${world.settlement.deployedAtBlock}`,
    "--rpc",
    world.rpcUrl,
    "--peers",
    peers,
  ];
  const child = spawn(
    process.execPath,
    [MINTMARK, "batches", "adopt", "--confirmations", "0", ...options],
    {
      env: { PATH: process.env.PATH, ...settingsOf(store, world.l1.settlement) },
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  const exit = once(child, "exit");
  const before = await readdir(store);
  // LevelDB begins another log when it opens a store.
  while (child.exitCode === null && (await readdir(store)).join() === before.join())
    await setTimeout(1);
  const opened = performance.now();
  if (killAfterMs < Number.POSITIVE_INFINITY) {
    await Promise.race([setTimeout(killAfterMs), exit]);
    child.kill("SIGKILL");
  }
  const [code] = await exit;
  return { code, openMs: performance.now() - opened };
}

test(`${RUNS} kills of \`mintmark batches adopt\` leave a store that opens, is whole, and goes on adopting`, async () => {
  const whole = join(world.folder, "whole");
  await cp(diverged, whole, { recursive: true });
  const { code, openMs } = await adopt(whole);
  expect(code).toBe(0);
  const outcomes = { before: 0, midway: 0, done: 0 };
  for (let run = 0; run < RUNS; run++) {
    const store = join(world.folder, `killed-${run}`);
    await cp(diverged, store, { recursive: true });
    // It reads L1 first, and writes in the last part of its time.
    await adopt(store, openMs * (1 - 0.5 * Math.random() ** 2));
    const left = await open(store);
    expect((await left.operator.verify()).problems).toEqual([]);
    const isDone = left.operator.divergence() === null;
    const { length: applications } = (await left.applications.list()).data;
    outcomes[isDone ? "done" : applications > 1 ? "midway" : "before"]++;
    await left.close();
    if (!isDone) expect((await adopt(store)).code).toBe(0);
    const engine = await open(store);
    expect((await engine.operator.verify()).problems).toEqual([]);
    const { history: _, ...there } = await world.l1.state();
    expect(engine.batches.state()).toEqual(there);
    await engine.close();
  }
  console.log(`killed within ${Math.round(openMs)} ms`, outcomes);
  expect(outcomes.midway).toBeGreaterThan(0);
});
