import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import type { LocalAccount } from "viem";
import { repeat } from "../../core/backoff.ts";
import { type Archive, type VoidedDuplicate, Watcher } from "../../core/guards/archive/index.ts";
import { type SourceHistory, voidOnMirror } from "../../core/guards/mirror/index.ts";
import type { connectL1 } from "../../core/l1/index.ts";
import { serveMetrics } from "../../server/process/metrics.ts";
import { MirrorChain } from "../../server/process/mirror-chain.ts";
import type { SignerSettings } from "../../server/process/settings/process-settings.ts";
import type { MirrorSetting } from "../../server/process/settings/settings.ts";
import { stopSignal } from "../../server/process/shutdown.ts";
import { SignerMetrics } from "../../server/process/signers/metrics.ts";
import type { Signer, SignerServerOptions } from "../../server/process/signers/signer.ts";
import { messageOf } from "./errors.ts";
import { sourcesOf } from "./l1.ts";

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
}

/** Keeps a signer's archive up to date with L1 and serves it until SIGINT or SIGTERM; then closes it. */
export async function runSigner({ what, signer, l1, settings, secrets, build, work, beside }: SignerProcess) {
  await using stack = new AsyncDisposableStack();
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
  await stopSignal();
}

export function fieldsOf({ earlier, later, txHash }: VoidedDuplicate) {
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
export async function watchMirrors(options: MirrorWatchOptions, stopped: AbortSignal): Promise<void> {
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
