/** Keeps a mirror on another chain in step with the state: `npm run relay`, until SIGINT or SIGTERM. */
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { repeat } from "../core/backoff.ts";
import { connectMirror, readL1 } from "../core/l1/index.ts";
import { advanceMirror, importBatches, RemoteAttester, SourceHistory } from "../core/mirror/index.ts";
import { stopSignal } from "../server/stop-signal.ts";
import { messageOf, runCommand } from "./command.ts";
import { addressVariable, integerVariable, membersVariable, readEnvironment, readPrivateKey } from "./environment.ts";
import { finalityOf } from "./finality.ts";

const USAGE = `usage: npm run relay

  MINTMARK_RELAY_KEY       private key that pays on the mirror's chain; needs no role. Or give it on standard input
  MINTMARK_RPC_URL         the settlement chain's RPC
  MINTMARK_CONTRACT        the settlement contract
  MINTMARK_FROM_BLOCK      block of its deployment; default 0
  MINTMARK_CONFIRMATIONS   blocks above one that make it final; default: the chain's own finality
  MINTMARK_MIRROR_RPC_URL  the mirror's chain
  MINTMARK_MIRROR          the StateMirror there
  MINTMARK_MEMBERS         the mirror's committee: <address>=<url of its service>, separated by commas
  MINTMARK_THRESHOLD       how many must sign
  MINTMARK_POLL_MS         between looks at the chains; default 12000
`;

const environment = z.object({
  MINTMARK_RPC_URL: z.url(),
  MINTMARK_CONTRACT: addressVariable,
  MINTMARK_FROM_BLOCK: integerVariable.default("0").transform(BigInt),
  MINTMARK_CONFIRMATIONS: integerVariable.transform(BigInt).optional(),
  MINTMARK_MIRROR_RPC_URL: z.url(),
  MINTMARK_MIRROR: addressVariable,
  MINTMARK_MEMBERS: membersVariable,
  MINTMARK_THRESHOLD: integerVariable.transform(Number),
  MINTMARK_POLL_MS: integerVariable.default("12000").transform(Number),
});

await runCommand(async () => {
  if (process.argv.includes("--help")) return void process.stdout.write(USAGE);
  const env = readEnvironment(environment, USAGE);
  const account = privateKeyToAccount(await readPrivateKey("MINTMARK_RELAY_KEY"));
  const { MINTMARK_RPC_URL: rpc, MINTMARK_CONTRACT: contract } = env;
  const l1 = await readL1({ rpc, contract, ...finalityOf(env.MINTMARK_CONFIRMATIONS) });
  const source = new SourceHistory(l1, env.MINTMARK_FROM_BLOCK);
  const mirror = await connectMirror({ rpc: env.MINTMARK_MIRROR_RPC_URL, contract: env.MINTMARK_MIRROR, account });
  const committee = {
    members: env.MINTMARK_MEMBERS.map((member) => new RemoteAttester(member)),
    threshold: env.MINTMARK_THRESHOLD,
  };
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const progress = { steps: 0 };
  const stopping = new AbortController();
  const round = async (signal: AbortSignal) => {
    await advanceMirror({
      source,
      mirror,
      committee,
      signal,
      onStep: ({ mode, first, count }) => say(`${mode} batches ${first} to ${count - 1} are on the mirror`),
    });
    const imported = await importBatches({ source, mirror }, progress, signal);
    for (const batchId of imported) say(`owners can withdraw from ${batchId}`);
  };
  const onRound = (error: unknown) => {
    if (error !== null) say(`${messageOf(error)}; trying again`);
  };
  const options = { intervalMs: env.MINTMARK_POLL_MS, backoff: { firstMs: 1_000, maxMs: 60_000 }, onRound };
  const relaying = repeat(round, options, stopping.signal);
  say(`relaying ${contract} to ${env.MINTMARK_MIRROR} on chain ${mirror.settlement.chainId}; Ctrl-C stops`);
  await stopSignal();
  stopping.abort();
  await relaying;
});
