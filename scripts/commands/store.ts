import { existsSync } from "node:fs";
import type { Command } from "commander";
import { LevelJournal, restoreStore } from "../../core/index.ts";
import { acting, leaf, type Running } from "../cli/command.ts";
import { beginCluster, openStore, restoreFromCluster, storeOf } from "../cli/engine.ts";
import { UsageError } from "../cli/errors.ts";

const STORE = ["--store <folder>", "the store's folder (MINTMARK_STORE)"] as const;

export function addStore(program: Command): void {
  leaf(program, "init", "create an empty store with the server's settings, or a cluster's journal from a store", [
    "init --store ./data",
    "init --from ./restored",
  ])
    .option(...STORE)
    .option("--from <folder>", "begin the cluster's empty journal (MINTMARK_JOURNAL) with this store")
    .action(
      acting(async (options) => {
        if (options.from !== undefined) {
          const from = options.from as string;
          return { from, entries: await beginCluster(from) };
        }
        const store = storeOf(options.store as string | undefined);
        await using engine = await openStore(store, { createIfMissing: true });
        const { settlement, environment } = engine;
        return { store, environment, chainId: settlement.chainId.toString(), contract: settlement.contract };
      }),
    );
  leaf(program, "restore [folder]", "make a store from a backup, or from the cluster's journal (MINTMARK_JOURNAL)", [
    "restore /backups/mintmark --store ./restored",
    "restore --store ./restored",
  ])
    .option(...STORE)
    .action(
      acting((options, [folder], running) => restore(storeOf(options.store as string | undefined), folder, running)),
    );
}

async function restore(store: string, folder: string | undefined, { signal, progress }: Running): Promise<unknown> {
  const onProgress = (entries: number) => progress(`${entries} journal entries`);
  if (folder === undefined) return { store, entries: await restoreFromCluster(store, { signal, onProgress }) };
  if (!existsSync(folder)) throw new UsageError(`there is no backup in ${folder}`);
  await using journal = await LevelJournal.open(folder);
  return { store, entries: await restoreStore(journal, store, { signal, onProgress }) };
}
