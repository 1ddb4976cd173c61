import { setTimeout as pause } from "node:timers/promises";
import { MintmarkError } from "../core/index.ts";
import { ClusterNode, PostgresJournal } from "../core/lifecycle/cluster/index.ts";
import { CALLERS, REQUEST, SETTLEMENT, settle, Workload } from "./engine-workload.ts";

/**
 * The leader that the `takeover` section kills: `<folder> <url> <key> <mints>`. Fills the journal, writes its world as
 * JSON, and leads until it is killed.
 */
const [folder = "", url = "", key = "", mints = "0"] = process.argv.slice(2);
const node = await ClusterNode.join({
  store: folder,
  journal: await PostgresJournal.open({ url, shard: "takeover", keys: [Buffer.from(key, "hex")] }),
  server: { name: "killed", url: "http://127.0.0.1:1" },
  settlement: SETTLEMENT,
  environment: "sandbox",
  createIfMissing: true,
});
const { engine } = await node.next();
const world = await settle(engine);
const workload = new Workload(world);
const minted = (request: unknown) =>
  engine.mint(world.principal, request).then(
    () => true,
    (error: unknown) => {
      if (error instanceof MintmarkError && error.code === "journal_unavailable") return false;
      throw error;
    },
  );
let left = Number(mints) / REQUEST;
const caller = async () => {
  while (left-- > 0) {
    const request = workload.bulk();
    // A machine under load may hold the journal up for longer than a lease.
    while (!(await minted(request))) await pause(100);
    if (left % 100 === 0) process.stderr.write(`${left * REQUEST} mints to go\n`);
  }
};
await Promise.all(Array.from({ length: CALLERS }, caller));
process.stdout.write(`${JSON.stringify(world)}\n`);
