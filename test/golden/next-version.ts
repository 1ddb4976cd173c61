/**
 * A build of a made-up next version, which opens a folder as engine and ends: `node next-version.ts <folder> <moment>
 * <application> <backup>`.
 * Its step from today's format writes a record for each user. At a moment it ends as if the power failed: `step`, before
 * anything is written; `file`, when only the folder's file is; `record`, when everything is. At `end` it shows what
 * readers see; `restore` makes the store from a backup first, `append` adds an entry to both. With a backup it works
 * beside the store.
 */
import { registerHooks } from "node:module";
import { Level } from "level";
import type { Uuid } from "../../core/index.ts";

const STEP = `const STEPS = {
  8: async (store) => {
    globalThis.mintmarkStep();
    const made = [];
    for await (const [key, value] of store.entries({ gte: Buffer.from([0x14]), lt: Buffer.from([0x15]) }))
      made.push({ type: "put", key: Buffer.concat([Buffer.from([0xee]), key]), value });
    return made;
  },
};`;
const CHANGES = [
  ["FORMAT_VERSION = 8;", "FORMAT_VERSION = 9;"],
  [/\$\{packageJson.version\}/, "1.1.0"],
  [/^const STEPS.*$/m, STEP],
] as const;

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith("/core/store/format.ts")) return loaded;
    let source = String(loaded.source);
    for (const [from, to] of CHANGES) {
      const changed = source.replace(from, () => to);
      if (changed === source) throw new Error(`format.ts lacks ${from}`);
      source = changed;
    }
    return { ...loaded, source };
  },
});

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
await using engine = await openTest(folder, { createIfMissing: false, ...(journal && { journal }) });
process.stdout.write(textOf(await seen(engine, applicationId as Uuid)));
if (moment === "append") await engine.applications.create({ name: "The next version's" });
