import { orAborted } from "../abort.ts";
import type { AttesterCommittee, MirrorContract, SourceHistory } from "../mirror/index.ts";
import { advanceMirror, importBatch, requireMirrorOf, stepOf } from "../mirror/relay.ts";
import type { SettlementPort } from "../operator.ts";
import type { L1Tokens, SealedBatch } from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import type { BatchVaultPlace } from "../protocol/vault.ts";
import type { VoidSlots } from "../sealing/void-runs.ts";
import type { BatchCheck } from "./commit.ts";
import { type FollowerOptions, followerOf, SECOND_LOOK_MS } from "./follower.ts";
import { Preflight } from "./preflight.ts";
import { Attempts, Rounds, type RoundsOptions } from "./rounds.ts";
import { WithdrawalSender } from "./withdrawal-sender.ts";

/** Most milliseconds that an examination delays a commit, besides the wait for a second look. */
const CHECK_MS = 5_000;

/** A mirror with its chain's tokens. */
export type SettledMirror = MirrorContract & L1Tokens;

/** An engine and the mirror that pays its withdrawals on another chain. */
export interface MirrorSettlerOptions extends RoundsOptions, FollowerOptions {
  readonly engine: SettlementPort;
  /**
   * Connects to the mirror. Called again after a failure, so the chain may be down at the start.
   */
  readonly connect: () => Promise<SettledMirror>;
  /** The state's own chain, with its finality. */
  readonly source: SourceHistory;
  /** Signs the state for the mirror. */
  readonly committee: AttesterCommittee;
}

/** Results of one round. */
export interface MirrorRound {
  /** Batches that withdrawals waited for and that the mirror knows now. */
  readonly imported: number;
  readonly withdrawn: number;
}

/** Kinds of work of a mirror's settler, each in its own loop. */
export type MirrorWork = "follow" | "assets" | "withdraw";

/**
 * Brings withdrawals of another chain's tokens to the mirror there, and that chain's events to the
 * engine. The mirror learns of a batch when a withdrawal waits for it and its commit is final. The
 * engine knows the mirror once it was reached. Runs beside {@link import("./settler.ts").Settler}
 * and never delays it. One per engine and mirror.
 *
 * @example
 * await new MirrorSettler({ engine, source, committee, fromBlock, connect: () => connectMirror(far)
 * }).run(signal);
 */
export class MirrorSettler
  extends Rounds<MirrorRound, MirrorWork, MirrorSettlerOptions>
  implements BatchCheck
{
  #joined: Awaited<ReturnType<typeof joined>> | null = null;

  /** Only `follow` connects to the mirror. Until then there is nothing else to do. */
  protected readonly passes = {
    follow: async (signal?: AbortSignal) => {
      this.#joined ??= await joined(this.options);
      await this.#joined.follower.follow(signal);
    },
    assets: async (signal?: AbortSignal) => (await this.#joined?.preflight.check(signal)) ?? 0,
    withdraw: async (signal?: AbortSignal) => {
      const done = { imported: 0, withdrawn: 0 };
      if (this.#joined === null) return done;
      const { mirror, follower, sender } = this.#joined;
      const attempts = new Attempts(signal);
      done.imported = await attempts.of(async () => {
        const imported = await this.#import(await sender.queue.awaitedBatches(), mirror, signal);
        if (imported === 0) return 0;
        await follower.follow(signal);
        const awaited = await sender.queue.awaitedBatches();
        const known = awaited.map((place) => mirror.isImported(place.mode, place.batchNumber));
        // The mirror has a batch of which its logs did not tell.
        if ((await Promise.all(known)).includes(true))
          await follower.readAgain(this.options.fromBlock, signal);
        return imported;
      });
      done.withdrawn = await attempts.of(() => sender.send(signal));
      attempts.end();
      return done;
    },
  };

  protected override readonly words = {
    follow: async () => `${(await this.#joined?.mirror.block("latest"))?.hash}`,
    // A batch must be final on the state's own chain before the mirror can know it.
    withdraw: async () => {
      const { operator, settlement } = this.options.engine;
      const { finalized } = operator.portal(settlement.chainId);
      return `${finalized} ${await this.#joined?.sender.queue.word()}`;
    },
  };

  /**
   * Follows, examines the tokens there, brings the state there, withdraws, follows. Throws the
   * errors of steps at the end.
   */
  async round(signal?: AbortSignal): Promise<MirrorRound> {
    await this.passes.follow(signal);
    const attempts = new Attempts(signal);
    await attempts.of(() => this.passes.assets(signal));
    const done = await this.passes.withdraw(signal);
    attempts.end();
    return done;
  }

  /** Does nothing while the chain cannot be asked. Never rejects, never takes long. */
  async checkBatch(batch: SealedBatch, signal?: AbortSignal): Promise<readonly VoidSlots[]> {
    if (this.#joined === null || this.lastError !== null) return [];
    const late = AbortSignal.timeout(CHECK_MS + (this.options.secondLookMs ?? SECOND_LOOK_MS));
    const until = AbortSignal.any([late, ...(signal ? [signal] : [])]);
    try {
      return await orAborted(this.#joined.preflight.checkBatch(batch, until), until);
    } catch (error) {
      signal?.throwIfAborted();
      this.options.onError?.(error);
      return [];
    }
  }

  /** Returns the number of batches whose commits are final, and that the mirror knows now. */
  async #import(
    awaited: readonly BatchVaultPlace[],
    mirror: SettledMirror,
    signal?: AbortSignal,
  ): Promise<number> {
    const { source, committee } = this.options;
    if (awaited.length === 0) return 0;
    await source.follow();
    const final = awaited.filter(
      ({ mode, batchNumber }) => batchNumber < countOf(mode, source.newest),
    );
    const unaccepted: BatchVaultPlace[] = [];
    for (const place of final) {
      if ((await stepOf(mirror, place.mode, place.batchNumber)) === null) unaccepted.push(place);
      else await importBatch({ source, mirror }, place.mode, place.batchNumber, signal);
    }
    // Each step costs gas and the committee's signatures, so it waits for a withdrawal.
    if (unaccepted.length > 0) await advanceMirror({ source, mirror, committee, signal });
    for (const { mode, batchNumber } of unaccepted)
      await importBatch({ source, mirror }, mode, batchNumber, signal);
    return final.length;
  }
}

/** Connects to the mirror, and makes what works on it. */
async function joined(options: MirrorSettlerOptions) {
  const { engine, source, connect, clock = () => performance.now() } = options;
  const mirror = await connect();
  requireMirrorOf(mirror, source);
  // A store keeps its mirror for ever, so the check comes first.
  await engine.operator.addMirror(mirror.settlement);
  engine.operator.placeInBlobs(mirror.settlement.chainId, await mirror.opensBlobs());
  const follower = followerOf(engine, mirror, options);
  const { fromBlock, secondLookMs } = options;
  const sender = new WithdrawalSender({
    engine,
    portal: mirror,
    follower,
    clock,
    fromBlock,
    secondLookMs,
  });
  return {
    mirror,
    follower,
    sender,
    preflight: new Preflight(engine, mirror, clock, secondLookMs),
  };
}
