import type { Command } from "commander";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import type { LocalAccount } from "viem";
import { repeat } from "../../core/backoff.ts";
import { Archive, type VoidedDuplicate, Watcher } from "../../core/guards/archive/index.ts";
import { CommitteeMember } from "../../core/guards/committee/index.ts";
import { Issuer, LocalMintRecord, MintPolicy } from "../../core/guards/issuer/index.ts";
import {
  advanceMirror,
  importBatches,
  MirrorAttester,
  RemoteAttester,
  SourceHistory,
  voidOnMirror,
} from "../../core/guards/mirror/index.ts";
import { connectL1, connectMirror, readL1 } from "../../core/l1/index.ts";
import { Stack } from "../../core/stack.ts";
import { serveMetrics } from "../../server/process/metrics.ts";
import { MirrorChain } from "../../server/process/mirror-chain.ts";
import {
  issuerSettings,
  memberSettings,
  relaySettings,
  type SignerSettings,
  watchSettings,
} from "../../server/process/settings/process-settings.ts";
import type { MirrorSetting } from "../../server/process/settings/settings.ts";
import { stopSignalFromStart } from "../../server/process/shutdown.ts";
import { SignerMetrics } from "../../server/process/signers/metrics.ts";
import type { Signer, SignerServerOptions } from "../../server/process/signers/signer.ts";
import { processAccount } from "../cli/arguments.ts";
import { configured } from "../cli/command.ts";
import { messageOf } from "../cli/errors.ts";
import { chainOf, openLevel, sourcesOf } from "../cli/l1.ts";

const say = (line: string) => process.stdout.write(`${line}\n`);

/** The processes of parties other than the operator, each with its own key. */
export function addMembers(program: Command): void {
  configured(
    program,
    "member",
    "a committee member, until SIGINT or SIGTERM; its key pays for voiding (MINTMARK_MEMBER_KEY, or standard input)",
    ["member --member-store ./member --rpc https://rpc.example --contract 0x… < member.key"],
    memberSettings,
    async (settings) => {
      const untilStopped = stopSignalFromStart();
      const { account, secrets } = await processAccount("MEMBER");
      const l1 = await connectL1({ ...chainOf(settings), account });
      const store = await openLevel(settings.MINTMARK_MEMBER_STORE);
      const member = await CommitteeMember.open({ account, store, l1 });
      const source = new SourceHistory(l1, settings.MINTMARK_FROM_BLOCK);
      const attester = new MirrorAttester(account, source);
      const { buildMemberServer } = await import("../../server/process/signers/member.ts");
      await runSigner({
        what: "member",
        signer: member,
        l1,
        settings,
        untilStopped,
        secrets,
        build: (options) => buildMemberServer({ ...options, member, attester }),
        beside: (log, stopped) => {
          const mirrors = {
            archive: member.archive,
            source,
            account,
            mirrors: settings.MINTMARK_MIRRORS,
            intervalMs: settings.MINTMARK_POLL_MS,
            onVoided: (chainId: bigint, voided: VoidedDuplicate) =>
              log.warn({ chainId: `${chainId}`, ...fieldsOf(voided) }, "duplicate voided on a mirror"),
            onError: (chainId: bigint, error: unknown) =>
              log.error({ chainId: `${chainId}`, reason: messageOf(error) }, "watching a mirror failed; trying again"),
          };
          return watchMirrors(mirrors, stopped);
        },
      });
    },
  );
  configured(
    program,
    "issuer",
    "consent to batches with your tokens, until SIGINT or SIGTERM (MINTMARK_ISSUER_KEY, or standard input)",
    [
      "issuer --issuer-store ./issuer --rpc https://rpc.example --contract 0x… --policy policy.json < issuer.key",
      "issuer --config issuer.json   # with MINTMARK_ISSUER_KEY and MINTMARK_RECORD_SECRET in the environment",
    ],
    issuerSettings,
    async (settings) => {
      const untilStopped = stopSignalFromStart();
      const { account, secrets } = await processAccount("ISSUER");
      const { MINTMARK_ISSUER: address, MINTMARK_POLICY: policy, MINTMARK_RECORD_SECRET: secret } = settings;
      const l1 = await connectL1({ ...chainOf(settings), account });
      const store = await openLevel(settings.MINTMARK_ISSUER_STORE);
      const local = new LocalMintRecord(store);
      const record = policy === undefined ? local : new MintPolicy(store, policy);
      const issuer = await Issuer.open({ account, store, l1, record, ...(address && { address }) });
      const records = secret === undefined ? {} : { records: { record: local, secret } };
      const { buildIssuerServer } = await import("../../server/process/signers/issuer.ts");
      await runSigner({
        what: "issuer",
        signer: issuer,
        l1,
        settings,
        untilStopped,
        secrets: [...secrets, ...(secret === undefined ? [] : [secret])],
        build: (options) => buildIssuerServer({ ...options, issuer, ...records }),
        work: (signal) => issuer.settle(signal),
      });
    },
  );
  configured(
    program,
    "watch",
    "void ERC-721 vaults that were minted twice, on L1 and on mirrors, until SIGINT or SIGTERM; the key pays and needs no role (MINTMARK_WATCHER_KEY, or standard input)",
    ["watch --store ./watcher --rpc https://rpc.example --contract 0x… --peers https://member.example < key.txt"],
    watchSettings,
    async (settings) => {
      const untilStopped = stopSignalFromStart();
      const { account } = await processAccount("WATCHER");
      const { MINTMARK_FROM_BLOCK: fromBlock, MINTMARK_POLL_MS: intervalMs } = settings;
      const l1 = await connectL1({ ...chainOf(settings), account });
      const archive = await Archive.open({ store: await openLevel(settings.MINTMARK_STORE), l1 });
      const watcher = new Watcher({
        archive,
        l1,
        fromBlock,
        ...sourcesOf(settings),
        intervalMs,
        onVoided: (voided) => say(sentenceOf(voided)),
        onInvalidTransfer: ({ vaultId, outId, fault }) =>
          say(
            `slot ${outId} transfers vault ${vaultId} without effect (${fault}): the committee should not have signed it`,
          ),
        onFault: ({ name }, batchId, error) => say(`${name} did not give ${batchId}: ${messageOf(error)}`),
        onError: (error) => say(`${messageOf(error)}; trying again`),
      });
      const mirrors = {
        archive,
        account,
        source: new SourceHistory(l1, fromBlock),
        mirrors: settings.MINTMARK_MIRRORS,
        intervalMs,
        onVoided: (chainId: bigint, voided: VoidedDuplicate) => say(`chain ${chainId}: ${sentenceOf(voided)}`),
        onError: (chainId: bigint, error: unknown) => say(`chain ${chainId}: ${messageOf(error)}; trying again`),
      };
      const stopping = new AbortController();
      const watching = Promise.all([watcher.run(stopping.signal), watchMirrors(mirrors, stopping.signal)]);
      const watched = [l1.settlement, ...settings.MINTMARK_MIRRORS].map(({ contract }) => contract);
      say(`watching ${watched.join(", ")}; Ctrl-C stops`);
      await untilStopped();
      stopping.abort();
      await watching;
      await archive.close();
    },
  );
  configured(
    program,
    "relay",
    "keep a mirror on another chain up to date, until SIGINT or SIGTERM; the key pays there and needs no role (MINTMARK_RELAY_KEY, or standard input)",
    [
      "relay --mirror-rpc https://rpc.other.example --mirror 0x… --threshold 2 --members 0x…=https://a.example < key.txt",
    ],
    relaySettings,
    async (settings) => {
      const untilStopped = stopSignalFromStart();
      const { account } = await processAccount("RELAY");
      const { MINTMARK_MIRROR: at } = settings;
      const l1 = await readL1(chainOf(settings));
      const source = new SourceHistory(l1, settings.MINTMARK_FROM_BLOCK);
      const mirror = await connectMirror({ rpc: settings.MINTMARK_MIRROR_RPC_URL, contract: at, account });
      const committee = {
        members: settings.MINTMARK_MEMBERS.map((member) => new RemoteAttester(member)),
        threshold: settings.MINTMARK_THRESHOLD,
      };
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
      const options = { intervalMs: settings.MINTMARK_POLL_MS, backoff: { firstMs: 1_000, maxMs: 60_000 }, onRound };
      const relaying = repeat(round, options, stopping.signal);
      say(`relaying ${l1.settlement.contract} to ${at} on chain ${mirror.settlement.chainId}; Ctrl-C stops`);
      await untilStopped();
      stopping.abort();
      await relaying;
    },
  );
}

function sentenceOf({ earlier, later, txHash }: VoidedDuplicate): string {
  return `voided vault ${later}, a duplicate of ${earlier}, by ${txHash}`;
}

/** The parts of a member's or an issuer's process. */
interface SignerProcess {
  /** For the line printed once it listens. */
  readonly what: "member" | "issuer";
  readonly signer: Signer & { close(): Promise<void> };
  readonly l1: Awaited<ReturnType<typeof connectL1>>;
  readonly settings: SignerSettings & { readonly MINTMARK_PORT: number };
  /** Secrets that the log must never contain. */
  readonly secrets: readonly string[];
  build(options: SignerServerOptions): FastifyInstance;
  /** The work after each round with L1; default: voids duplicates. */
  readonly work?: (signal?: AbortSignal) => Promise<number>;
  /** Runs in parallel until the signal aborts. */
  readonly beside?: (log: FastifyBaseLogger, stopped: AbortSignal) => Promise<void>;
  /** Taken before everything else. */
  readonly untilStopped: () => Promise<NodeJS.Signals>;
}

/** Keeps a signer's archive up to date with L1 and serves it until SIGINT or SIGTERM; then closes it. */
async function runSigner(parts: SignerProcess) {
  const { what, signer, l1, settings, secrets, build, work, beside, untilStopped } = parts;
  await using stack = new Stack();
  stack.defer(() => signer.close());
  const watcher = new Watcher({
    archive: signer.archive,
    l1,
    fromBlock: settings.MINTMARK_FROM_BLOCK,
    ...sourcesOf(settings),
    intervalMs: settings.MINTMARK_POLL_MS,
    ...(work && { work }),
    onFault: ({ name }, batchId, error) => app.log.warn({ peer: name, batchId, reason: messageOf(error) }, "no data"),
    onVoided: (voided) => app.log.warn(fieldsOf(voided), "duplicate voided on L1"),
    onInvalidTransfer: ({ vaultId, outId, fault }) =>
      app.log.warn({ vaultId: `${vaultId}`, outId: `${outId}`, fault }, "a committed transfer has no effect"),
    onError: (error) => app.log.error({ reason: messageOf(error) }, "watching L1 failed; trying again"),
  });
  const { MINTMARK_METRICS_PORT: metricsPort } = settings;
  const metrics = metricsPort === undefined ? null : new SignerMetrics(signer.archive);
  const log = { level: settings.MINTMARK_LOG_LEVEL, secrets };
  const hosts = [...settings.MINTMARK_HOSTS, settings.MINTMARK_HOST];
  const app = build({ l1, watcher, log, hosts, ...(metrics && { metrics }) });
  if (metrics !== null) {
    stack.use(await serveMetrics(metrics, settings.MINTMARK_METRICS_HOST, metricsPort ?? 0, settings.MINTMARK_HOSTS));
  }
  const url = await app.listen({ host: settings.MINTMARK_HOST, port: settings.MINTMARK_PORT });
  stack.defer(() => app.close());
  const stopping = new AbortController();
  const working = Promise.all([watcher.run(stopping.signal), beside?.(app.log, stopping.signal)]);
  stack.defer(async () => {
    stopping.abort();
    await working;
  });
  process.stdout.write(`${what} ${signer.address} listens on ${url}\n`);
  await untilStopped();
}

function fieldsOf({ earlier, later, txHash }: VoidedDuplicate) {
  return { earlier: `${earlier}`, later: `${later}`, txHash };
}

interface MirrorWatchOptions {
  /** The caller keeps it up to date with the settlement chain. */
  readonly archive: Archive;
  readonly source: SourceHistory;
  readonly mirrors: readonly MirrorSetting[];
  /** Pays there; needs no role. */
  readonly account: LocalAccount;
  readonly intervalMs: number;
  readonly onVoided: (chainId: bigint, voided: VoidedDuplicate) => void;
  readonly onError: (chainId: bigint, error: unknown) => void;
}

/** Voids duplicates on mirrors until the signal aborts. Each has its own rounds, so no chain waits for another. */
async function watchMirrors(options: MirrorWatchOptions, stopped: AbortSignal): Promise<void> {
  const { archive, source, mirrors, account, intervalMs } = options;
  const watching = mirrors.map((setting) => {
    const { chainId } = setting;
    const chain = new MirrorChain(setting, account, {});
    const onVoided = (voided: VoidedDuplicate) => options.onVoided(chainId, voided);
    const onRound = (error: unknown) => {
      if (error !== null) options.onError(chainId, error);
    };
    return repeat(
      async (signal) => voidOnMirror({ archive, source, mirror: await chain.connect(), onVoided, signal }),
      { intervalMs, backoff: { firstMs: 1_000, maxMs: 60_000 }, onRound },
      stopped,
    );
  });
  await Promise.all(watching);
}
