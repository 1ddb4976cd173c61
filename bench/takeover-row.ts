import { setTimeout as pause } from "node:timers/promises";
import { PostgresJournal } from "../core/cluster/index.ts";
import { MintmarkError } from "../core/index.ts";
import { joined } from "./cluster.ts";
import { CALLERS, REQUEST, settle, Workload } from "./engine-workload.ts";
import { fromCallers } from "./harness.ts";

/**
 * The leader that the `takeover` section kills: `<folder> <url> <key> <mints>`. Fills the journal,
 * writes its world as JSON, and leads until it is killed.
 */
const [folder = "", url = "", key = "", mints = "0"] = process.argv.slice(2);
const journal = await PostgresJournal.open({
  url,
  shard: "takeover",
  keys: [Buffer.from(key, "hex")],
});
const node = await joined(folder, journal, { createIfMissing: true });
const { engine } = await node.next();
const world = await settle(engine);
const workload = new Workload(world);
function* requests() {
  for (let left = Number(mints) / REQUEST; left > 0; left--) {
    if (left % 100 === 0) process.stderr.write(`${left * REQUEST} mints to go\n`);
    yield workload.bulk();
  }
}
await fromCallers(CALLERS, requests(), async (request) => {
  for (;;) {
    try {
      return await engine.mint(world.principal, request);
    } catch (error) {
      // A machine under load may hold the journal up for longer than a lease.
      if (!(error instanceof MintmarkError) || error.code !== "journal_unavailable") throw error;
      await pause(100);
    }
  }
});
process.stdout.write(`${JSON.stringify(world)}\n`);
