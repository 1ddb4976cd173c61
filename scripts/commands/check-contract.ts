import type { Command } from "commander";
import { createPublicClient, http } from "viem";
import { requireOwnCreation } from "../../core/l1/creation.ts";
import { readL1 } from "../../core/l1/index.ts";
import { rebuildSettings } from "../../server/process/settings/process-settings.ts";
import { configured } from "../cli/command.ts";

/** For owners, who have no deployment record. */
export function addCheckContract(program: Command): void {
  configured(
    program,
    "check-contract",
    "compare all code of a settlement contract, and the transaction that created it, with this version's",
    ["check-contract --rpc https://rpc.example --contract 0x… --from-block 19000000"],
    rebuildSettings.pick({ MINTMARK_RPC_URL: true, MINTMARK_CONTRACT: true, MINTMARK_FROM_BLOCK: true }),
    async ({ MINTMARK_RPC_URL: rpc, MINTMARK_CONTRACT: contract, MINTMARK_FROM_BLOCK: createdAt }) => {
      const { settlement } = await readL1({ rpc, contract });
      const created = await requireOwnCreation(createPublicClient({ transport: http(rpc) }), settlement, createdAt);
      return { code: "this version's", contract: settlement.contract, chainId: settlement.chainId, created };
    },
  );
}
