import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { test } from "vitest";
import { startWorld, type World } from "../../scripts/cluster/world.ts";
import { campaign, type Strike } from "./cluster/campaign.ts";
import { serverStrikes } from "./cluster/strikes.ts";

const FAULTS = Number(process.env.MINTMARK_TEST_FAULTS ?? 50);

/** Strikes at a primary and a standby that nobody manages. */
function databaseStrikes({ primary, standby }: World): Record<string, Strike> {
  return {
    "SIGKILL of the database's standby": async (ms) => {
      await standby.kill();
      await pause(ms);
      await standby.start();
    },
    "SIGSTOP of the database's standby, and cancelled waits": async (ms) => {
      standby.freeze(true);
      for (let i = 0; i < 3; i++) {
        await pause(ms / 3);
        await primary.query(
          "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'",
        );
      }
      standby.freeze(false);
    },
    "SIGKILL of the database's primary": async (ms) => {
      await primary.kill();
      await pause(ms);
      await primary.start();
    },
    "SIGSTOP of the database's primary": async (ms) => {
      primary.freeze(true);
      await pause(2 * ms);
      primary.freeze(false);
    },
    "cut connections": async () => {
      await primary.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'mintmark %'",
      );
    },
  };
}

test(`a cluster loses and doubles nothing over ${FAULTS} faults`, async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-faults-"));
  try {
    await using world = await startWorld(folder, () => {});
    await campaign({
      world,
      folder,
      faults: FAULTS,
      strikes: { ...serverStrikes(world, folder), ...databaseStrikes(world) },
      url: async () => world.primary.url,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
