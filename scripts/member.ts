/** A committee member, as a process until SIGINT or SIGTERM: `npm run member`. Everything by environment, see ENVIRONMENT. */
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { HttpBatchSource, type VoidedDuplicate, Watcher } from "../core/archive/index.ts";
import { CommitteeMember } from "../core/committee/index.ts";
import { connectL1 } from "../core/l1/index.ts";
import { MirrorAttester, SourceHistory } from "../core/mirror/index.ts";
import { buildMemberServer } from "../server/member/app.ts";
import { stopSignal } from "../server/stop-signal.ts";
import { messageOf, runCommand } from "./command.ts";
import { addressVariable, integerVariable, readEnvironment, readPrivateKey, urlsVariable } from "./environment.ts";
import { finalityOf } from "./finality.ts";
import { MIRRORS_USAGE, mirrorsVariable, watchMirrors } from "./mirror-watch.ts";
import { openLevel } from "./store.ts";

const ENVIRONMENT = `
  MINTMARK_MEMBER_KEY      the member's private key; or give it on standard input. Pays for voiding duplicates
  MINTMARK_MEMBER_STORE    folder of the member's own store
  MINTMARK_RPC_URL         the settlement chain's RPC
  MINTMARK_CONTRACT        the settlement contract
  MINTMARK_FROM_BLOCK      block of its deployment; default 0
  MINTMARK_CONFIRMATIONS   blocks above one that make it final; default: the chain's own finality
  MINTMARK_PEERS           other members and the engine's server, separated by commas: asked for batches that were missed
  MINTMARK_HOST            default 127.0.0.1
  MINTMARK_PORT            default 3100
  MINTMARK_POLL_MS         between looks at L1; default 12000
  MINTMARK_LOG_LEVEL       default info${MIRRORS_USAGE}`;

const environment = z.object({
  MINTMARK_MEMBER_STORE: z.string().min(1),
  MINTMARK_RPC_URL: z.url(),
  MINTMARK_CONTRACT: addressVariable,
  MINTMARK_FROM_BLOCK: integerVariable.default("0").transform(BigInt),
  MINTMARK_CONFIRMATIONS: integerVariable.transform(BigInt).optional(),
  MINTMARK_PEERS: urlsVariable.default([]),
  MINTMARK_HOST: z.string().min(1).default("127.0.0.1"),
  MINTMARK_PORT: integerVariable.default("3100").transform(Number),
  MINTMARK_POLL_MS: integerVariable.default("12000").transform(Number),
  MINTMARK_MIRRORS: mirrorsVariable,
  MINTMARK_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
});

async function serve(): Promise<void> {
  const env = readEnvironment(environment, ENVIRONMENT);
  const account = privateKeyToAccount(await readPrivateKey("MINTMARK_MEMBER_KEY"));
  const l1 = await connectL1({
    rpc: env.MINTMARK_RPC_URL,
    contract: env.MINTMARK_CONTRACT,
    account,
    ...finalityOf(env.MINTMARK_CONFIRMATIONS),
  });
  await using stack = new AsyncDisposableStack();
  const member = await CommitteeMember.open({ account, store: await openLevel(env.MINTMARK_MEMBER_STORE), l1 });
  stack.defer(() => member.close());
  const watcher = new Watcher({
    archive: member.archive,
    l1,
    fromBlock: env.MINTMARK_FROM_BLOCK,
    sources: env.MINTMARK_PEERS.map((url) => new HttpBatchSource(url)),
    intervalMs: env.MINTMARK_POLL_MS,
    onFault: ({ name }, batchId, error) => app.log.warn({ peer: name, batchId, reason: messageOf(error) }, "no data"),
    onVoided: ({ earlier, later, txHash }) =>
      app.log.warn({ earlier: `${earlier}`, later: `${later}`, txHash }, "duplicate voided on L1"),
    onError: (error) => app.log.error({ reason: messageOf(error) }, "watching L1 failed; trying again"),
  });
  const source = new SourceHistory(l1, env.MINTMARK_FROM_BLOCK);
  const attester = new MirrorAttester(account, source);
  const app = buildMemberServer({ member, l1, watcher, attester, log: { level: env.MINTMARK_LOG_LEVEL } });
  const mirrors = {
    archive: member.archive,
    source,
    account,
    mirrors: env.MINTMARK_MIRRORS,
    intervalMs: env.MINTMARK_POLL_MS,
    onVoided: (chainId: bigint, { earlier, later, txHash }: VoidedDuplicate) =>
      app.log.warn(
        { chainId: `${chainId}`, earlier: `${earlier}`, later: `${later}`, txHash },
        "duplicate voided on a mirror",
      ),
    onError: (chainId: bigint, error: unknown) =>
      app.log.error({ chainId: `${chainId}`, reason: messageOf(error) }, "watching a mirror failed; trying again"),
  };
  const url = await app.listen({ host: env.MINTMARK_HOST, port: env.MINTMARK_PORT });
  stack.defer(() => app.close());
  const stopping = new AbortController();
  const watching = Promise.all([watcher.run(stopping.signal), watchMirrors(mirrors, stopping.signal)]);
  stack.defer(async () => {
    stopping.abort();
    await watching;
  });
  process.stdout.write(`member ${member.address} listens on ${url}\n`);
  await stopSignal();
}

await runCommand(async () => {
  if (process.argv.includes("--help")) return void process.stdout.write(`usage: npm run member\n${ENVIRONMENT}\n`);
  await serve();
});
