/** Watches L1, and mirrors, for ERC-721 tokens that were minted twice and voids the later vault: `npm run watch`, until SIGINT or SIGTERM. */
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { Archive, HttpBatchSource, type VoidedDuplicate, Watcher } from "../core/archive/index.ts";
import { connectL1 } from "../core/l1/index.ts";
import { SourceHistory } from "../core/mirror/index.ts";
import { stopSignal } from "../server/stop-signal.ts";
import { messageOf, runCommand } from "./command.ts";
import { addressVariable, integerVariable, readEnvironment, readPrivateKey, urlsVariable } from "./environment.ts";
import { finalityOf } from "./finality.ts";
import { MIRRORS_USAGE, mirrorsVariable, watchMirrors } from "./mirror-watch.ts";
import { openLevel } from "./store.ts";

const USAGE = `usage: npm run watch

  MINTMARK_WATCHER_KEY     private key that pays for voiding; needs no role. Or give it on standard input
  MINTMARK_STORE           folder of the watcher's own store
  MINTMARK_RPC_URL         the settlement chain's RPC
  MINTMARK_CONTRACT        the settlement contract
  MINTMARK_FROM_BLOCK      block of its deployment; default 0
  MINTMARK_CONFIRMATIONS   blocks above one that make it final; default: the chain's own finality
  MINTMARK_PEERS           members and engines' servers, separated by commas: asked for the data of validium batches
  MINTMARK_POLL_MS         between looks at L1; default 12000${MIRRORS_USAGE}
`;

const environment = z.object({
  MINTMARK_STORE: z.string().min(1),
  MINTMARK_RPC_URL: z.url(),
  MINTMARK_CONTRACT: addressVariable,
  MINTMARK_FROM_BLOCK: integerVariable.default("0").transform(BigInt),
  MINTMARK_CONFIRMATIONS: integerVariable.transform(BigInt).optional(),
  MINTMARK_PEERS: urlsVariable.default([]),
  MINTMARK_POLL_MS: integerVariable.default("12000").transform(Number),
  MINTMARK_MIRRORS: mirrorsVariable,
});

await runCommand(async () => {
  if (process.argv.includes("--help")) return void process.stdout.write(USAGE);
  const env = readEnvironment(environment, USAGE);
  const account = privateKeyToAccount(await readPrivateKey("MINTMARK_WATCHER_KEY"));
  const { MINTMARK_RPC_URL: rpc, MINTMARK_CONTRACT: contract, MINTMARK_FROM_BLOCK: fromBlock } = env;
  const l1 = await connectL1({ rpc, contract, account, ...finalityOf(env.MINTMARK_CONFIRMATIONS) });
  const archive = await Archive.open({ store: await openLevel(env.MINTMARK_STORE), l1 });
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const watcher = new Watcher({
    archive,
    l1,
    fromBlock,
    sources: env.MINTMARK_PEERS.map((url) => new HttpBatchSource(url)),
    intervalMs: env.MINTMARK_POLL_MS,
    onVoided: (voided) => say(sentenceOf(voided)),
    onFault: ({ name }, batchId, error) => say(`${name} did not give ${batchId}: ${messageOf(error)}`),
    onError: (error) => say(`${messageOf(error)}; trying again`),
  });
  const stopping = new AbortController();
  const mirrors = {
    archive,
    account,
    source: new SourceHistory(l1, fromBlock),
    mirrors: env.MINTMARK_MIRRORS,
    intervalMs: env.MINTMARK_POLL_MS,
    onVoided: (chainId: bigint, voided: VoidedDuplicate) => say(`chain ${chainId}: ${sentenceOf(voided)}`),
    onError: (chainId: bigint, error: unknown) => say(`chain ${chainId}: ${messageOf(error)}; trying again`),
  };
  const watching = Promise.all([watcher.run(stopping.signal), watchMirrors(mirrors, stopping.signal)]);
  say(`watching ${[contract, ...env.MINTMARK_MIRRORS.map((mirror) => mirror.contract)].join(", ")}; Ctrl-C stops`);
  await stopSignal();
  stopping.abort();
  await watching;
  await archive.close();
});

function sentenceOf({ earlier, later, txHash }: VoidedDuplicate): string {
  return `voided vault ${later}, a duplicate of ${earlier}, by ${txHash}`;
}
