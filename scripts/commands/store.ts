import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { acting, group, leaf } from "../cli/command.ts";
import { openStore, operateOn, storeOf } from "../cli/engine.ts";

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

function inconsistent(report: unknown): string | null {
  const { problems } = report as { problems: readonly string[] };
  return problems.length === 0 ? null : "the store is not what its journal says: restore it from a copy, or rebuild it";
}
