import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { createPublicClient, http } from "viem";
import { inspectSettings } from "../../server/process/settings/process-settings.ts";
import { addressOf } from "../cli/arguments.ts";
import { configured } from "../cli/command.ts";
import { UsageError } from "../cli/errors.ts";
import { writeAdapter } from "../tokens/adapter.ts";
import { inspectToken } from "../tokens/inspect.ts";

/** `mintmark assets inspect`, beside the operations on assets. */
export function addInspect(program: Command): void {
  const assets = program.commands.find((command) => command.name() === "assets");
  if (assets === undefined) throw new Error("operations on assets come first");
  configured(
    assets,
    "inspect <token>",
    "look at a token contract: its standard, who may mint, which blob scheme fits, and a withdrawal on trial",
    [
      "assets inspect 0x… --rpc https://rpc.example --contract 0x…",
      "assets inspect 0x… --rpc https://rpc.example --adapter ./adapter",
    ],
    inspectSettings,
    async ({ MINTMARK_RPC_URL: rpc, MINTMARK_CONTRACT: contract, MINTMARK_ADAPTER: folder }, { args: [token] }) => {
      const client = createPublicClient({ transport: http(rpc) });
      const inspection = await inspectToken(client, addressOf(token, "token"), contract);
      if (folder === undefined) return inspection;
      if (inspection.standard === null) throw new UsageError(inspection.next);
      if (existsSync(join(folder, "MintAdapter.sol"))) throw new UsageError(`${folder} has an adapter already`);
      const files = await writeAdapter(folder, inspection.standard);
      return { ...inspection, files, next: "Deploy MintAdapter, let it mint, and register its address as the token." };
    },
  );
}
