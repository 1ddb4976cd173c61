import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import type { LocalAccount } from "viem";
import type { z } from "zod";
import type { VoidedDuplicate } from "../../core/archive/index.ts";
import { repeat } from "../../core/backoff.ts";
import type { connectL1 } from "../../core/l1/index.ts";
import type * as mirrors from "../../core/mirror/index.ts";
import { Stack } from "../../core/stack.ts";
import type { BatchSigner, SignerServerOptions } from "../../server/process/batch-signers.ts";
import { type NodeSettings, nodeSecrets } from "../../server/process/settings/node-secrets.ts";
import * as processes from "../../server/process/settings/process-settings.ts";
import { stopSignalFromStart } from "../../server/process/shutdown.ts";
import { processAccount } from "../cli/arguments.ts";
import { command } from "../cli/command.ts";
import { messageOf } from "../cli/errors.ts";
import { chainOf, openLevel, sourcesOf } from "../cli/l1.ts";

const ROUNDS = { firstMs: 1_000, maxMs: 60_000 };

export const member = command({
  examples: [
    "member --member-store ./member --rpc https://rpc.example --contract 0x… < member.key",
  ],
  settings: processes.memberSettings,
  isProcess: true,
  work: ({ signal }, settings) =>
    runSigner("member", settings, signal, async (account, l1) => {
      const [{ CommitteeMember }, mirroring] = await Promise.all([
        import("../../core/committee/index.ts"),
        import("../../core/mirror/index.ts"),
      ]);
      const store = await openLevel(settings.MINTMARK_MEMBER_STORE);
      const member = await CommitteeMember.open({ account, store, l1 });
      const source = new mirroring.SourceHistory(l1, settings.MINTMARK_FROM_BLOCK);
      const attester = new mirroring.MirrorAttester(account, source);
      return {
        signer: member,
        build: ({ buildMemberServer }, options) =>
          buildMemberServer({ ...options, member, attester }),
        beside: (log) =>
          watchMirrors({
            archive: member.archive,
            source,
            account,
            settings,
            signal,
            onVoided: (chainId, voided) =>
              log.warn({ chainId, ...fieldsOf(voided) }, "duplicate voided on a mirror"),
            onError: (chainId, reason) =>
              log.error({ chainId, reason }, "watching a mirror failed; trying again"),
          }),
      };
    }),
});

export const issuer = command({
  examples: [
    "issuer --issuer-store ./issuer --rpc https://rpc.example --contract 0x… --policy policy.json < issuer.key",
    "issuer --config issuer.json   # with MINTMARK_ISSUER_KEY and MINTMARK_RECORD_SECRET in the environment",
  ],
  settings: processes.issuerSettings,
  isProcess: true,
  work: ({ signal }, settings) =>
    runSigner("issuer", settings, signal, async (account, l1) => {
      const {
        MINTMARK_ISSUER: address,
        MINTMARK_POLICY: policy,
        MINTMARK_RECORD_SECRET: secret,
      } = settings;
      const { Issuer, LocalMintRecord, MintPolicy } = await import("../../core/issuer/index.ts");
      const store = await openLevel(settings.MINTMARK_ISSUER_STORE);
      const local = new LocalMintRecord(store);
      const record = policy === undefined ? local : new MintPolicy(store, policy);
      const issuer = await Issuer.open({ account, store, l1, record, ...(address && { address }) });
      const records = secret === undefined ? {} : { records: { record: local, secret } };
      return {
        signer: issuer,
        secrets: secret === undefined ? [] : [secret],
        build: ({ buildIssuerServer }, options) =>
          buildIssuerServer({ ...options, issuer, ...records }),
        work: (stopped) => issuer.settle(stopped),
      };
    }),
});

export const watch = command({
  examples: [
    "watch --store ./watcher --rpc https://rpc.example --contract 0x… --peers https://member.example < key.txt",
  ],
  settings: processes.watchSettings,
  isProcess: true,
  async work({ signal }, settings) {
    const untilStopped = stopSignalFromStart();
    const { account, secrets } = await processAccount("WATCHER");
    const say = await sayWithout([...secrets, ...nodeSecrets(settings)]);
    const [{ Archive, Watcher }, { connectL1 }, mirroring] = await Promise.all([
      import("../../core/archive/index.ts"),
      import("../../core/l1/index.ts"),
      import("../../core/mirror/index.ts"),
    ]);
    const { MINTMARK_FROM_BLOCK: fromBlock, MINTMARK_POLL_MS: intervalMs } = settings;
    const l1 = await connectL1({ ...chainOf(settings), account });
    const archive = await Archive.open({ store: await openLevel(settings.MINTMARK_STORE), l1 });
    const sources = { archive, l1, fromBlock, ...sourcesOf(settings) };
    const watcher = new Watcher({
      ...sources,
      intervalMs,
      onVoided: (voided) => say(sentenceOf(voided)),
      onInvalidTransfer: ({ vaultId, outId, fault }) =>
        say(
          `slot ${outId} transfers vault ${vaultId} without effect (${fault}): the committee should not have signed it`,
        ),
      onFault: ({ name }, batchId, error) =>
        say(`${name} did not give ${batchId}: ${messageOf(error)}`),
      onError: (error) => say(`${messageOf(error)}; trying again`),
    });
    const source = new mirroring.SourceHistory(l1, fromBlock);
    const mirrors = watchMirrors({
      archive,
      source,
      account,
      settings,
      signal,
      onVoided: (chainId, voided) => say(`chain ${chainId}: ${sentenceOf(voided)}`),
      onError: (chainId, reason) => say(`chain ${chainId}: ${reason}; trying again`),
    });
    const watching = Promise.all([watcher.run(signal), mirrors]);
    const watched = [l1.settlement, ...settings.MINTMARK_MIRRORS].map(({ contract }) => contract);
    say(`watching ${watched.join(", ")}; Ctrl-C stops`);
    await untilStopped();
    await watching;
    await archive.close();
  },
});

export const relay = command({
  examples: [
    "relay --mirror-rpc https://rpc.other.example --mirror 0x… --threshold 2 --members 0x…=https://a.example < key.txt",
  ],
  settings: processes.relaySettings,
  isProcess: true,
  async work({ signal }, settings) {
    const untilStopped = stopSignalFromStart();
    const { account, secrets } = await processAccount("RELAY");
    const say = await sayWithout([...secrets, ...nodeSecrets(settings)]);
    const [{ connectMirror, readL1 }, mirroring] = await Promise.all([
      import("../../core/l1/index.ts"),
      import("../../core/mirror/index.ts"),
    ]);
    const {
      MINTMARK_MIRROR: contract,
      MINTMARK_MIRROR_RPC_URL: rpc,
      MINTMARK_THRESHOLD: threshold,
    } = settings;
    const l1 = await readL1(chainOf(settings));
    const source = new mirroring.SourceHistory(l1, settings.MINTMARK_FROM_BLOCK);
    const mirror = await connectMirror({ rpc, contract, account });
    const members = settings.MINTMARK_MEMBERS.map((each) => new mirroring.RemoteAttester(each));
    const progress = { steps: 0 };
    const round = async (stopped: AbortSignal) => {
      await mirroring.advanceMirror({
        source,
        mirror,
        committee: { members, threshold },
        signal: stopped,
        onStep: ({ mode, first, count }) =>
          say(`${mode} batches ${first} to ${count - 1} are on the mirror`),
      });
      for (const batchId of await mirroring.importBatches({ source, mirror }, progress, stopped))
        say(`owners can withdraw from ${batchId}`);
    };
    const onRound = (error: unknown) => error === null || say(`${messageOf(error)}; trying again`);
    const relaying = repeat(
      round,
      { intervalMs: settings.MINTMARK_POLL_MS, backoff: ROUNDS, onRound },
      signal,
    );
    say(
      `relaying ${l1.settlement.contract} to ${contract} on chain ${mirror.settlement.chainId}; Ctrl-C stops`,
    );
    await untilStopped();
    await relaying;
  },
});

/** Prints lines without these secrets: nodes choose the words of their refusals. */
async function sayWithout(secrets: readonly string[]): Promise<(line: string) => void> {
  const { swept } = await import("../../server/http/log.ts");
  return (line) => void process.stdout.write(`${swept(line, secrets)}\n`);
}

function sentenceOf({ earlier, later, txHash }: VoidedDuplicate): string {
  return `voided vault ${later}, a duplicate of ${earlier}, by ${txHash}`;
}

interface SignerParts {
  readonly signer: BatchSigner & { close(): Promise<void> };
  /** Secrets that the log must never contain, besides the account's and the nodes'. */
  readonly secrets?: readonly string[];
  build(
    servers: typeof import("../../server/process/batch-signers.ts"),
    options: SignerServerOptions,
  ): FastifyInstance;
  /** The work after each round with L1; default: voids duplicates. */
  readonly work?: (signal?: AbortSignal) => Promise<number>;
  /** Runs in parallel until the signal aborts. */
  readonly beside?: (log: FastifyBaseLogger) => Promise<void>;
}

/**
 * Opens a signer, keeps its archive up to date with L1, and serves it until SIGINT or SIGTERM; then
 * closes it.
 */
async function runSigner(
  what: "member" | "issuer",
  settings: processes.SignerSettings & NodeSettings & { readonly MINTMARK_PORT: number },
  signal: AbortSignal,
  open: (account: LocalAccount, l1: Awaited<ReturnType<typeof connectL1>>) => Promise<SignerParts>,
): Promise<void> {
  const untilStopped = stopSignalFromStart();
  const { account, secrets } = await processAccount(what.toUpperCase());
  const [{ Watcher }, { connectL1 }, { SignerMetrics, serveMetrics }] = await Promise.all([
    import("../../core/archive/index.ts"),
    import("../../core/l1/index.ts"),
    import("../../server/process/metrics.ts"),
  ]);
  const l1 = await connectL1({ ...chainOf(settings), account });
  const { signer, ...parts } = await open(account, l1);
  await using stack = new Stack();
  stack.defer(() => signer.close());
  const watcher = new Watcher({
    archive: signer.archive,
    l1,
    fromBlock: settings.MINTMARK_FROM_BLOCK,
    ...sourcesOf(settings),
    intervalMs: settings.MINTMARK_POLL_MS,
    ...(parts.work && { work: parts.work }),
    onFault: ({ name }, batchId, error) =>
      app.log.warn({ peer: name, batchId, reason: messageOf(error) }, "no data"),
    onVoided: (voided) => app.log.warn(fieldsOf(voided), "duplicate voided on L1"),
    onInvalidTransfer: ({ vaultId, outId, fault }) =>
      app.log.warn(
        { vaultId: `${vaultId}`, outId: `${outId}`, fault },
        "a committed transfer has no effect",
      ),
    onError: (error) =>
      app.log.error({ reason: messageOf(error) }, "watching L1 failed; trying again"),
  });
  const {
    MINTMARK_METRICS_PORT: metricsPort,
    MINTMARK_METRICS_HOST: metricsHost,
    MINTMARK_HOSTS: hosts,
  } = settings;
  const metrics = metricsPort === undefined ? null : new SignerMetrics(signer.archive);
  const log = {
    level: settings.MINTMARK_LOG_LEVEL,
    secrets: [...secrets, ...nodeSecrets(settings), ...(parts.secrets ?? [])],
  };
  const { MINTMARK_HOST: host, MINTMARK_PORT: port } = settings;
  const options = { l1, watcher, log, hosts: [...hosts, host], ...(metrics && { metrics }) };
  const app = parts.build(await import("../../server/process/batch-signers.ts"), options);
  if (metrics !== null)
    stack.use(await serveMetrics(metrics, metricsHost, metricsPort ?? 0, hosts));
  const { BACKLOG } = await import("../../server/http/connections.ts");
  const url = await app.listen({ host, port, backlog: BACKLOG });
  stack.defer(() => app.close());
  const working = Promise.all([watcher.run(signal), parts.beside?.(app.log)]);
  process.stdout.write(`${what} ${signer.address} listens on ${url}\n`);
  await untilStopped();
  await working;
}

function fieldsOf({ earlier, later, txHash }: VoidedDuplicate) {
  return { earlier: `${earlier}`, later: `${later}`, txHash };
}

type MirrorWatch = Pick<Parameters<typeof mirrors.voidOnMirror>[0], "archive" | "source"> & {
  readonly settings: Pick<
    z.output<typeof processes.watchSettings>,
    "MINTMARK_MIRRORS" | "MINTMARK_POLL_MS"
  >;
  /** Pays there; needs no role. */
  readonly account: LocalAccount;
  readonly signal: AbortSignal;
  onVoided(chainId: string, voided: VoidedDuplicate): void;
  onError(chainId: string, reason: string): void;
};

/**
 * Voids duplicates on mirrors until the signal aborts. Each has its own rounds, so no chain waits
 * for another.
 */
async function watchMirrors({
  archive,
  source,
  settings,
  account,
  ...watch
}: MirrorWatch): Promise<void> {
  const { MINTMARK_MIRRORS: chains, MINTMARK_POLL_MS: intervalMs } = settings;
  const [{ voidOnMirror }, { mirrorChainOf }] = await Promise.all([
    import("../../core/mirror/index.ts"),
    import("../../server/process/settling.ts"),
  ]);
  const watching = chains.map((setting) => {
    const chainId = `${setting.chainId}`;
    const chain = mirrorChainOf(setting, account, {});
    const onVoided = (voided: VoidedDuplicate) => watch.onVoided(chainId, voided);
    const onRound = (error: unknown) => error === null || watch.onError(chainId, messageOf(error));
    const round = async (signal: AbortSignal) =>
      voidOnMirror({ archive, source, mirror: await chain.connect(), onVoided, signal });
    return repeat(round, { intervalMs, backoff: ROUNDS, onRound }, watch.signal);
  });
  await Promise.all(watching);
}
