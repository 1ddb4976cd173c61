import type { Command } from "commander";
import { Archive } from "../../core/guards/archive/index.ts";
import { exportExitKit, proveFromL1 } from "../../core/guards/exit/index.ts";
import { proofOnMirror } from "../../core/guards/mirror/index.ts";
import type { BatchVaultProof } from "../../core/index.ts";
import { readL1, readMirror } from "../../core/l1/index.ts";
import { exitKitSettings } from "../../server/process/settings/process-settings.ts";
import { configured } from "../cli/command.ts";
import { UsageError } from "../cli/exit-codes.ts";
import { openLevel } from "../cli/l1.ts";
import { sourcesOf } from "../cli/sources.ts";
import { exitKitText, writeExitKit } from "../exit/kit-file.ts";

export function addExitKit(program: Command): void {
  configured(
    program,
    "exit-kit <vault>",
    "make a vault's exit kit: from a rebuilt store, or from L1 and a source of the data",
    ["exit-kit 9223372036854775808 --store ./rebuilt --out sword.json", "exit-kit 7 --peers https://member.example"],
    exitKitSettings,
    async (settings, { args: [id = ""], options: { store, out } }) => {
      if (!/^\d{1,20}$/.test(id)) throw new UsageError("name one vault by its id");
      const l1 = await readL1({ rpc: settings.MINTMARK_RPC_URL, contract: settings.MINTMARK_CONTRACT });
      const kit = await exportKit(await prove(BigInt(id)));
      if (typeof out !== "string") return void process.stdout.write(exitKitText(kit));
      await writeExitKit(out, kit);
      process.stderr.write(`${out}: the contract has verified this kit\n`);
      return undefined;

      async function exportKit(proof: BatchVaultProof) {
        const { MINTMARK_MIRROR_RPC_URL: rpc, MINTMARK_MIRROR: contract } = settings;
        if (rpc === undefined && contract === undefined) {
          return exportExitKit(proof, l1, { fromBlock: settings.MINTMARK_FROM_BLOCK });
        }
        if (rpc === undefined || contract === undefined)
          throw new UsageError("give both --mirror-rpc and --mirror, or neither");
        const mirror = await readMirror({ rpc, contract });
        return exportExitKit(await proofOnMirror(proof, mirror), mirror);
      }

      async function prove(vaultId: bigint) {
        if (typeof store !== "string") {
          return proveFromL1(vaultId, { l1, fromBlock: settings.MINTMARK_FROM_BLOCK, ...sourcesOf(settings) });
        }
        const archive = await Archive.open({ store: await openLevel(store), l1 });
        try {
          return await archive.vaultProof(vaultId);
        } finally {
          await archive.close();
        }
      }
    },
  )
    .option("--store <folder>", "a rebuilt store; without it the kit comes from L1 and --peers")
    .option("--out <file>", "the file to write; default standard output");
}
