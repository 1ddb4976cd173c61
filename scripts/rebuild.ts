/** Rebuilds the public state from L1 and committee members: `npm run rebuild`. Run it again to go on, or to follow L1. */
import { z } from "zod";
import { messageOf, progressLine, runCommand } from "./command.ts";
import { addressVariable, integerVariable, readEnvironment, urlsVariable } from "./environment.ts";
import { jsonText } from "./json.ts";
import { rebuildStore } from "./rebuild/rebuild.ts";

const USAGE = `usage: npm run rebuild [-- --json]

  MINTMARK_STORE           folder to rebuild into: empty, or begun by an earlier run
  MINTMARK_RPC_URL         the settlement chain's RPC
  MINTMARK_CONTRACT        the settlement contract
  MINTMARK_FROM_BLOCK      block of its deployment; default 0
  MINTMARK_CONFIRMATIONS   blocks above one that make it final; default: the chain's own finality
  MINTMARK_PEERS           members and engines' servers, separated by commas: asked for the data of validium batches
`;

const environment = z.object({
  MINTMARK_STORE: z.string().min(1),
  MINTMARK_RPC_URL: z.url(),
  MINTMARK_CONTRACT: addressVariable,
  MINTMARK_FROM_BLOCK: integerVariable.default("0").transform(BigInt),
  MINTMARK_CONFIRMATIONS: integerVariable.transform(BigInt).optional(),
  MINTMARK_PEERS: urlsVariable.default([]),
});

await runCommand(async () => {
  if (process.argv.includes("--help")) return void process.stdout.write(USAGE);
  const env = readEnvironment(environment, USAGE);
  const progress = progressLine();
  const report = await rebuildStore({
    store: env.MINTMARK_STORE,
    rpcUrl: env.MINTMARK_RPC_URL,
    contract: env.MINTMARK_CONTRACT,
    fromBlock: env.MINTMARK_FROM_BLOCK,
    ...(env.MINTMARK_CONFIRMATIONS !== undefined && { confirmations: env.MINTMARK_CONFIRMATIONS }),
    peers: env.MINTMARK_PEERS,
    onProgress: ({ block, toBlock, batches }) => progress.show(`block ${block} of ${toBlock}, ${batches} batches`),
    onFault: ({ name }, batchId, error) => {
      process.stderr.write(`${name} did not give ${batchId}: ${messageOf(error)}\n`);
    },
  });
  progress.end();
  if (process.argv.includes("--json")) return void process.stdout.write(jsonText(report));
  const { block, batches, vaults, withdrawnVaults, missing, state } = report;
  const lines = [
    `up to block ${block}; every root is L1's own`,
    `  validium   ${batches.validium} batches, ${vaults.validium} vaults, root ${state.rootValidium}`,
    `  zk-rollup  ${batches["zk-rollup"]} batches, ${vaults["zk-rollup"]} vaults, root ${state.rootRollup}`,
    `  state commitment ${state.commitment}`,
    `  ${withdrawnVaults} vaults withdrawn from, in part or whole`,
    missing.length === 0
      ? "  the data of every batch is here"
      : `  ${missing.length} batches without data, name members by MINTMARK_PEERS: ${missing.slice(0, 10).join(", ")}`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
});
