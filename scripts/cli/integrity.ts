import { mkdir, writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { Level } from "level";
import { Archive, HttpBatchSource, rebuild } from "../../core/archive/index.ts";
import { readL1 } from "../../core/l1/index.ts";
import { acting, group, leaf, type Options } from "./command.ts";
import { openStore, operateOn, storeOf } from "./engine.ts";
import { UsageError } from "./exit-codes.ts";
import { setting } from "./secret.ts";

const STORE = ["--store <folder>", "the store's folder (MINTMARK_STORE)"] as const;

export function addIntegrity(program: Command): void {
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
  leaf(
    program,
    "rebuild <folder>",
    "make the public state from L1, and from anyone with validium data, into an empty folder, and compare its roots with L1's",
    [
      "rebuild ./rebuilt --rpc https://rpc.example --contract 0x… --from-block 19000000 --source https://member.example",
    ],
  )
    .option("--rpc <url>", "the chain's RPC (MINTMARK_RPC_URL)")
    .option("--contract <address>", "the settlement contract (MINTMARK_CONTRACT)")
    .option("--from-block <number>", "block of the contract's deployment (MINTMARK_FROM_BLOCK)")
    .option("--confirmations <blocks>", "blocks that make one final, for chains without finality")
    .option("--source <urls...>", "committee members or servers that have validium data")
    .action(acting(rebuildFrom, { failed: incomplete }));
}

function inconsistent(report: unknown): string | null {
  const { problems } = report as { problems: readonly string[] };
  return problems.length === 0 ? null : "the store is not what its journal says: restore it from a copy, or rebuild it";
}

function incomplete(report: unknown): string | null {
  const { missing } = report as { missing: readonly string[] };
  return missing.length === 0 ? null : "data is missing: name who has it with --source, and rebuild again";
}

async function rebuildFrom(
  { rpc, contract, fromBlock, confirmations, source }: Options,
  [folder = ""]: readonly string[],
  { signal, progress }: { signal: AbortSignal; progress(where: string): void },
): Promise<unknown> {
  const address = setting(contract, "MINTMARK_CONTRACT", "the settlement contract: --contract");
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) throw new UsageError("--contract: give 0x and 40 hex digits");
  const first = setting(fromBlock, "MINTMARK_FROM_BLOCK", "the block of the contract's deployment: --from-block");
  const node = setting(rpc, "MINTMARK_RPC_URL", "the chain's RPC: --rpc");
  if (!/^https?:/.test(node) || !URL.canParse(node)) throw new UsageError("--rpc: give an http or https address");
  const l1 = await readL1({
    rpc: node,
    contract: address as `0x${string}`,
    ...(confirmations !== undefined && { finality: { confirmations: blockNumber(confirmations, "--confirmations") } }),
  });
  await mkdir(folder, { recursive: true });
  const store = new Level<Uint8Array, Uint8Array>(folder, { keyEncoding: "view", valueEncoding: "view" });
  const archive = await Archive.open({ store, l1 });
  try {
    const report = await rebuild({
      archive,
      l1,
      fromBlock: blockNumber(first, "--from-block"),
      sources: (Array.isArray(source) ? source : []).map((url) => new HttpBatchSource(url)),
      onProgress: ({ block, toBlock, batches }) => progress(`block ${block} of ${toBlock}, ${batches} batches`),
      signal,
    });
    return { ...report, block: report.block.toString() };
  } finally {
    await archive.close();
  }
}

function blockNumber(text: unknown, option: string): bigint {
  if (typeof text !== "string" || !/^\d{1,18}$/.test(text)) throw new UsageError(`${option}: give a whole number`);
  return BigInt(text);
}
