import type { Command } from "commander";
import { createPublicClient, http } from "viem";
import { Archive, rebuild } from "../../core/guards/archive/index.ts";
import { exportExitKit, proveFromL1 } from "../../core/guards/exit/index.ts";
import { proofOnMirror } from "../../core/guards/mirror/index.ts";
import type { BatchVaultProof } from "../../core/index.ts";
import { requireOwnCreation, roleHolders } from "../../core/l1/creation.ts";
import { readL1, readMirror } from "../../core/l1/index.ts";
import { exitKitSettings, rebuildSettings } from "../../server/process/settings/process-settings.ts";
import { configured } from "../cli/command.ts";
import { messageOf, UsageError } from "../cli/errors.ts";
import { chainOf, openLevel, sourcesOf } from "../cli/l1.ts";
import { exitKitText, writeExitKit } from "../exit/exit.ts";

/** What anybody makes of L1's state, without the server. */
export function addPublicState(program: Command): void {
  configured(
    program,
    "rebuild [folder]",
    "make the public state from L1, and from sources of validium data, in a folder, and compare its roots with L1's",
    ["rebuild ./rebuilt --rpc https://rpc.example --contract 0x… --from-block 19000000 --peers https://member.example"],
    rebuildSettings.partial({ MINTMARK_STORE: true }),
    async (settings, { args: [folder], progress, signal }) => {
      const store = folder ?? rebuildSettings.shape.MINTMARK_STORE.parse(settings.MINTMARK_STORE);
      const l1 = await readL1(chainOf(settings));
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
  configured(
    program,
    "check-contract",
    "compare all code of a settlement contract, and its creation, with this version's; print who holds its roles",
    ["check-contract --rpc https://rpc.example --contract 0x… --from-block 19000000"],
    rebuildSettings.pick({ MINTMARK_RPC_URL: true, MINTMARK_CONTRACT: true, MINTMARK_FROM_BLOCK: true }),
    async (settings) => {
      const { settlement } = await readL1(chainOf(settings));
      const client = createPublicClient({ transport: http(settings.MINTMARK_RPC_URL) });
      const { contract, chainId } = settlement;
      const created = await requireOwnCreation(client, settlement, settings.MINTMARK_FROM_BLOCK);
      const holders = await roleHolders(client, contract, settings.MINTMARK_FROM_BLOCK);
      return { code: "this version's", contract, chainId, created, holders };
    },
  );
  configured(
    program,
    "exit-kit <vault>",
    "make a vault's exit kit: from a rebuilt store, or from L1 and a source of the data",
    ["exit-kit 9223372036854775808 --store ./rebuilt --out sword.json", "exit-kit 7 --peers https://member.example"],
    exitKitSettings,
    async (settings, { args: [id = ""], options: { store, out } }) => {
      if (!/^\d{1,20}$/.test(id)) throw new UsageError("name one vault by its id");
      const l1 = await readL1(chainOf(settings));
      const { MINTMARK_FROM_BLOCK: fromBlock } = settings;
      const kit = await exportKit(await prove(BigInt(id)));
      if (typeof out !== "string") return void process.stdout.write(exitKitText(kit));
      await writeExitKit(out, kit);
      process.stderr.write(`${out}: the contract has verified this kit\n`);
      return undefined;

      async function exportKit(proof: BatchVaultProof) {
        const { MINTMARK_MIRROR_RPC_URL: rpc, MINTMARK_MIRROR: contract } = settings;
        if (rpc === undefined && contract === undefined) {
          return exportExitKit(proof, l1, { fromBlock: fromBlock });
        }
        if (rpc === undefined || contract === undefined)
          throw new UsageError("give both --mirror-rpc and --mirror, or neither");
        const mirror = await readMirror({ rpc, contract });
        return exportExitKit(await proofOnMirror(proof, mirror), mirror);
      }

      async function prove(vaultId: bigint) {
        if (typeof store !== "string") {
          return proveFromL1(vaultId, { l1, fromBlock: fromBlock, ...sourcesOf(settings) });
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
