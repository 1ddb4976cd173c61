/** Writes a vault's exit kit: `npm run exit-kit -- <vault id>`, from a rebuilt store, or straight from L1 and whoever has the data. */
import { parseArgs } from "node:util";
import { z } from "zod";
import { Archive, HttpBatchSource } from "../core/archive/index.ts";
import { exportExitKit, proveFromL1 } from "../core/exit/index.ts";
import type { BatchVaultProof } from "../core/index.ts";
import { readL1, readMirror } from "../core/l1/index.ts";
import { proofOnMirror } from "../core/mirror/index.ts";
import { runCommand } from "./command.ts";
import { addressVariable, integerVariable, readEnvironment, urlsVariable } from "./environment.ts";
import { exitKitText, writeExitKit } from "./exit/kit-file.ts";
import { openLevel } from "./store.ts";

const USAGE = `usage: npm run exit-kit -- <vault id> [--store <folder of a rebuilt store>] [--out <file>]

  MINTMARK_RPC_URL         the settlement chain's RPC
  MINTMARK_CONTRACT        the settlement contract
  MINTMARK_FROM_BLOCK      without --store: a block before the batch's commit; default 0
  MINTMARK_PEERS           without --store: members and engines' servers, asked for a validium batch's data
  MINTMARK_MIRROR_RPC_URL  for a token of another chain: that chain's RPC
  MINTMARK_MIRROR          and the StateMirror there
`;

const environment = z.object({
  MINTMARK_RPC_URL: z.url(),
  MINTMARK_CONTRACT: addressVariable,
  MINTMARK_FROM_BLOCK: integerVariable.default("0").transform(BigInt),
  MINTMARK_PEERS: urlsVariable.default([]),
  MINTMARK_MIRROR_RPC_URL: z.url().optional(),
  MINTMARK_MIRROR: addressVariable.optional(),
});

await runCommand(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { store: { type: "string" }, out: { type: "string" }, help: { type: "boolean", default: false } },
  });
  if (values.help) return void process.stdout.write(USAGE);
  const [id = ""] = positionals;
  if (!/^\d{1,20}$/.test(id) || positionals.length > 1) throw new Error(`name one vault by its id\n\n${USAGE}`);
  const env = readEnvironment(environment, USAGE);
  const l1 = await readL1({ rpc: env.MINTMARK_RPC_URL, contract: env.MINTMARK_CONTRACT });
  const kit = await exportKit(await prove(BigInt(id)));
  if (values.out === undefined) return void process.stdout.write(exitKitText(kit));
  await writeExitKit(values.out, kit);
  process.stderr.write(`${values.out}: the contract has verified this kit\n`);

  async function exportKit(proof: BatchVaultProof) {
    const { MINTMARK_MIRROR_RPC_URL: rpc, MINTMARK_MIRROR: contract } = env;
    if (rpc === undefined && contract === undefined) return exportExitKit(proof, l1);
    if (rpc === undefined || contract === undefined)
      throw new Error("set MINTMARK_MIRROR_RPC_URL and MINTMARK_MIRROR, or neither");
    const mirror = await readMirror({ rpc, contract });
    return exportExitKit(await proofOnMirror(proof, mirror), mirror);
  }

  async function prove(vaultId: bigint) {
    if (values.store === undefined) {
      const sources = env.MINTMARK_PEERS.map((url) => new HttpBatchSource(url));
      return proveFromL1(vaultId, { l1, fromBlock: env.MINTMARK_FROM_BLOCK, sources });
    }
    const archive = await Archive.open({ store: await openLevel(values.store), l1 });
    try {
      return await archive.vaultProof(vaultId);
    } finally {
      await archive.close();
    }
  }
});
