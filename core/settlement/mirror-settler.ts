import { orAborted } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import {
  type AttesterCommittee,
  advanceMirror,
  importBatch,
  type MirrorContract,
  type SourceHistory,
  stepOf,
} from "../mirror/index.ts";
import type { SettlementPort } from "../operator.ts";
import type { L1Tokens, SealedBatch } from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { VoidSlots } from "../sealing/void-runs.ts";
import type { BatchLook } from "./commit.ts";
import { Exits, type FollowOptions, steadyClock } from "./exits.ts";
import { Preflight } from "./preflight.ts";
import { Attempts, Rounds, type RoundsOptions } from "./rounds.ts";

/** Milliseconds that looking at a batch may hold up its commit. */
const LOOK_MS = 5_000;

/** A mirror with its chain's tokens. */
export type SettledMirror = MirrorContract & L1Tokens;

/** An engine and the mirror that pays its withdrawals on another chain. */
export interface MirrorSettlerOptions extends RoundsOptions, FollowOptions {
  readonly engine: SettlementPort;
  /** Connects to the mirror. Asked again after a failure, so that a chain may be down when this begins. */
  readonly connect: () => Promise<SettledMirror>;
  /** The state's own chain, by its finality. */
  readonly source: SourceHistory;
  /** Vouches for the state at the mirror. */
  readonly committee: AttesterCommittee;
}

/** What one round has done. */
export interface MirrorRound {
  /** Batches that withdrawals were waiting for, and that the mirror knows now. */
  readonly imported: number;
  readonly withdrawn: number;
}

interface Joined {
  readonly mirror: SettledMirror;
  readonly exits: Exits;
  readonly preflight: Preflight;
}

/** What a mirror's settler does, each in a loop of its own. */
export type MirrorWork = "follow" | "assets" | "withdraw";

/**
 * Brings the withdrawals of another chain's tokens to the mirror there, and that chain's events to the engine. The mirror learns of each batch
 * that withdrawals wait for once its commit is final. The engine knows the mirror from when it was first reached. Works beside
 * {@link import("./settler.ts").Settler}, and never holds it up. One per engine and mirror.
 *
 * @example
 * await new MirrorSettler({ engine, source, committee, fromBlock, connect: () => connectMirror(far) }).run(signal);
 */
export class MirrorSettler extends Rounds<MirrorRound, MirrorWork> implements BatchLook {
  readonly #options: MirrorSettlerOptions;
  #joined: Joined | null = null;

  /** Only `follow` reaches for the mirror; until it has, there is nothing else to do. */
  protected readonly passes = {
    follow: async (signal?: AbortSignal) => {
      this.#joined ??= await this.#join();
      await this.#joined.exits.follow(signal);
    },
    assets: async (signal?: AbortSignal) => {
      const preflight = this.#joined?.preflight;
      return preflight ? (await preflight.lookAtAssets(signal)) + (await preflight.lookAtFinal(signal)) : 0;
    },
    withdraw: async (signal?: AbortSignal) => {
      const done = { imported: 0, withdrawn: 0 };
      if (this.#joined === null) return done;
      const { mirror, exits } = this.#joined;
      const attempts = new Attempts(signal);
      done.imported = await attempts.of(() => this.#importAwaited(mirror, exits, signal));
      if (done.imported > 0) await exits.follow(signal);
      done.withdrawn = await attempts.of(() => exits.send(signal));
      attempts.end();
      return done;
    },
  };

  constructor(options: MirrorSettlerOptions) {
    super(options);
    this.#options = options;
  }

  /** Follows, looks at the tokens there, brings the state there, withdraws, follows. Errors of a step are thrown at the end. */
  async round(signal?: AbortSignal): Promise<MirrorRound> {
    await this.passes.follow(signal);
    const attempts = new Attempts(signal);
    await attempts.of(() => this.passes.assets(signal));
    const done = await this.passes.withdraw(signal);
    attempts.end();
    return done;
  }

  /** Of this chain's tokens; nothing while the chain cannot be asked. Never rejects, and never takes long. */
  async lookAtBatch(batch: SealedBatch): Promise<readonly VoidSlots[]> {
    if (this.#joined === null || this.lastError !== null) return [];
    try {
      return await orAborted(this.#joined.preflight.lookAtBatch(batch), AbortSignal.timeout(LOOK_MS));
    } catch (error) {
      this.#options.onError?.(error);
      return [];
    }
  }

  async #join(): Promise<Joined> {
    const { engine, source, connect } = this.#options;
    const mirror = await connect();
    const { chainId, contract } = mirror.settlement;
    const { settlement } = source;
    if (mirror.source.chainId !== settlement.chainId || mirror.source.contract !== settlement.contract) {
      throw new MintmarkError("l1_failed", `${contract} on chain ${chainId} is no mirror of ${settlement.contract}`);
    }
    // Only now, since a store keeps it for ever.
    await engine.operator.addMirror(mirror.settlement);
    const preflight = new Preflight(engine, mirror, steadyClock(this.#options));
    return { mirror, exits: new Exits(engine, mirror, this.#options), preflight };
  }

  /** Makes the batches known that withdrawals wait for and whose commits are final. Returns how many. */
  async #importAwaited(mirror: SettledMirror, exits: Exits, signal?: AbortSignal): Promise<number> {
    const { source, committee } = this.#options;
    const awaited = await exits.awaitedBatches();
    if (awaited.length === 0) return 0;
    await source.follow();
    const final = awaited.filter(({ mode, batchNumber }) => batchNumber < countOf(mode, source.newest));
    const unaccepted: VaultPlace[] = [];
    for (const place of final) {
      if ((await stepOf(mirror, place.mode, place.batchNumber)) === null) unaccepted.push(place);
      else await importBatch({ source, mirror }, place.mode, place.batchNumber, signal);
    }
    // Each step costs gas and the committee's signatures: none is taken before somebody waits for it.
    if (unaccepted.length > 0) await advanceMirror({ source, mirror, committee, ...(signal && { signal }) });
    for (const { mode, batchNumber } of unaccepted) await importBatch({ source, mirror }, mode, batchNumber, signal);
    return final.length;
  }
}
