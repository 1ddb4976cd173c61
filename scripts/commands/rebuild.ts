import type { Command } from "commander";
import { Archive, rebuild } from "../../core/guards/archive/index.ts";
import { readL1 } from "../../core/l1/index.ts";
import { rebuildSettings } from "../../server/process/settings/process-settings.ts";
import { configured } from "../cli/command.ts";
import { finalityOf, openLevel } from "../cli/l1.ts";
import { messageOf } from "../cli/message.ts";
import { sourcesOf } from "../cli/sources.ts";

export function addRebuild(program: Command): void {
  configured(
    program,
    "rebuild [folder]",
    "make the public state from L1, and from sources of validium data, in a folder, and compare its roots with L1's",
    ["rebuild ./rebuilt --rpc https://rpc.example --contract 0x… --from-block 19000000 --peers https://member.example"],
    rebuildSettings.partial({ MINTMARK_STORE: true }),
    async (settings, { args: [folder], progress, signal }) => {
      const store = folder ?? rebuildSettings.shape.MINTMARK_STORE.parse(settings.MINTMARK_STORE);
      const { MINTMARK_RPC_URL: rpc, MINTMARK_CONTRACT: contract } = settings;
      const l1 = await readL1({ rpc, contract, ...finalityOf(settings.MINTMARK_CONFIRMATIONS) });
      const archive = await Archive.open({ store: await openLevel(store), l1 });
      try {
        return await rebuild({
          archive,
          l1,
          fromBlock: settings.MINTMARK_FROM_BLOCK,
          ...sourcesOf(settings),
          onProgress: ({ block, toBlock, batches }) => progress(`block ${block} of ${toBlock}, ${batches} batches`),
          onFault: ({ name }, batchId, error) => {
            process.stderr.write(`${name} did not give ${batchId}: ${messageOf(error)}\n`);
          },
          signal,
        });
      } finally {
        await archive.close();
      }
    },
    {
      failed: (report) => {
        const { missing } = report as { missing: readonly string[] };
        return missing.length === 0 ? null : "data is missing: name a source with --peers, and rebuild again";
      },
    },
  );
}
