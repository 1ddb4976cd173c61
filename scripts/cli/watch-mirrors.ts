import type { LocalAccount } from "viem";
import { repeat } from "../../core/backoff.ts";
import type { Archive, VoidedDuplicate } from "../../core/guards/archive/index.ts";
import { type SourceHistory, voidOnMirror } from "../../core/guards/mirror/index.ts";
import { MirrorChain } from "../../server/process/mirror-chain.ts";
import type { MirrorSetting } from "../../server/process/settings/mirror-settings.ts";

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
