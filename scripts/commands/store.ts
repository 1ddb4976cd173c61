import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { LevelJournal, restoreStore } from "../../core/index.ts";
import { acting, group, leaf, type Running } from "../cli/command.ts";
import { openStore, operateOn, restoreFromCluster, storeOf } from "../cli/engine.ts";
import { UsageError } from "../cli/exit-codes.ts";

const STORE = ["--store <folder>", "the store's folder (MINTMARK_STORE)"] as const;

export function addStore(program: Command): void {
  leaf(program, "init", "create an empty store with the server's settings", ["init --store ./data"])
    .option(...STORE)
    .action(
      acting(async (options) => {
        const store = storeOf(options.store as string | undefined);
        await using engine = await openStore(store, { createIfMissing: true });
        const { settlement, environment } = engine;
        return { store, environment, chainId: settlement.chainId.toString(), contract: settlement.contract };
      }),
    );
  leaf(program, "verify", "derive everything again from the journal and compare every record", [
    "verify",
    "verify --json",
  ])
    .option(...STORE)
    .action(
      acting((options, _, running) => operateOn(storeOf(options.store as string | undefined), "verify", {}, running), {
        failed: inconsistent,
      }),
    );
  leaf(
    program,
    "backup <folder>",
    "copy what a backup lacks of the journal, beside a running server too; then compare",
    ["backup /backups/mintmark --store ./data"],
  )
    .option(...STORE)
    .action(
      acting((options, [folder = ""], running) =>
        operateOn(storeOf(options.store as string | undefined), "backup", { folder: resolve(folder) }, running),
      ),
    );
  leaf(program, "restore [folder]", "make a store of a backup, or of the cluster's journal (MINTMARK_JOURNAL)", [
    "restore /backups/mintmark --store ./restored",
    "restore --store ./restored",
  ])
    .option(...STORE)
    .action(
      acting((options, [folder], running) => restore(storeOf(options.store as string | undefined), folder, running)),
    );
  const exports = group(program, "export", "what others need to check, or to leave");
  leaf(exports, "batch <batch>", "write a sealed batch's encoded data to a file", [
    "export batch zk-rollup-3 --output zk-rollup-3.bin",
  ])
    .option(...STORE)
    .requiredOption("--output <file>", "the file to write")
    .action(
      acting(async (options, [batchId], running) => {
        const store = storeOf(options.store as string | undefined);
        const answer = await operateOn(store, "batches.data", { batchId }, running);
        const { data, ...batch } = answer as Record<string, unknown> & { data: string };
        await writeFile(String(options.output), Buffer.from(data, "hex"));
        return { ...batch, bytes: data.length / 2, file: options.output };
      }),
    );
}

async function restore(store: string, folder: string | undefined, { signal, progress }: Running): Promise<unknown> {
  const onProgress = (entries: number) => progress(`${entries} journal entries`);
  if (folder === undefined) return { store, entries: await restoreFromCluster(store, { signal, onProgress }) };
  if (!existsSync(folder)) throw new UsageError(`there is no backup in ${folder}`);
  await using journal = await LevelJournal.open(folder);
  return { store, entries: await restoreStore(journal, store, { signal, onProgress }) };
}

function inconsistent(report: unknown): string | null {
  const { problems } = report as { problems: readonly string[] };
  return problems.length === 0 ? null : "the store is not what its journal says: restore it from a copy, or rebuild it";
}
