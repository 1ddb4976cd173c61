/**
 * A build of the made-up next version of hooks.ts, which opens a folder as engine and ends: `node
 * next-version.ts <folder> <moment> <application> <backup>`. At a moment it ends as if the power
 * failed: `step`, before anything is written; `file`, when only the folder's file is; `record`,
 * when everything is. At `end` it shows what readers see; `restore` makes the store from a backup
 * first, `append` adds an entry to both. With a backup it works beside the store.
 */
import "./hooks.ts";
import { Level } from "level";
import type { Uuid } from "../../core/index.ts";

const [folder = "", moment = "", applicationId = "", backup = ""] = process.argv.slice(2);
const die = (when: string) => when === moment && process.kill(process.pid, "SIGKILL");
Object.assign(globalThis, { mintmarkStep: () => die("step") });
const { batch } = Level.prototype as unknown as {
  batch: (...given: unknown[]) => { write: (...given: unknown[]) => Promise<void> };
};
Object.assign(Level.prototype, {
  batch(...given: unknown[]) {
    const made = batch.apply(this as never, given);
    const write = made.write.bind(made);
    return Object.assign(made, {
      write: async (...options: unknown[]) => {
        die("file");
        await write(...options);
        die("record");
      },
    });
  },
});

const { textOf } = await import("./golden.ts");
const { openTest } = await import("../core/engine/fixture.ts");
const { seen } = await import("../core/engine/seen.ts");
const { LevelJournal, restoreStore } = await import("../../core/index.ts");
await using journal = backup === "" ? null : await LevelJournal.open(backup);
if (moment === "restore" && journal !== null) await restoreStore(journal, folder);
await using engine = await openTest(folder, {
  createIfMissing: false,
  ...(journal && { journal }),
});
process.stdout.write(textOf(await seen(engine, applicationId as Uuid)));
if (moment === "append") await engine.applications.create({ name: "The next version's" });
