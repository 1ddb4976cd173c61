import type { Uuid } from "../../model.ts";
import type { SettlementPort } from "../../operator.ts";
import { unpackVaultId, type VaultPlace } from "../../protocol/vault.ts";
import type { PendingWithdrawal } from "../withdrawals/pending.ts";

/** Facts of the chain, read once for a whole pass. */
export interface Moment {
  /** Seconds that an ERC-721 vault waits after its batch's commit. */
  readonly maturity: bigint;
  /** Seconds of the newest block. */
  readonly time: bigint;
  /** Seconds of the newest final block. */
  readonly finalTime: bigint;
}

/** What decides when a withdrawal is read again. */
interface Wait {
  readonly deadline: bigint;
  /** The batch that the chain's contract did not know at the last read; null when it knew it. */
  readonly batch: string | null;
  /** Time of the commit's block of an ERC-721 vault, in seconds; else 0. */
  readonly committedAt: bigint;
}

/** Batches examined in a pass, and whether the contract knows them. */
type KnownBatches = Map<string, boolean>;

/**
 * The pending withdrawals of one chain. A pass lists only new ones, and reads only those that may be ready: the first
 * of those that wait for one batch, and no immature one. The memory is a shortcut: each withdrawal is read again before
 * it is sent.
 */
export class PendingQueue {
  readonly #engine: SettlementPort;
  readonly #chainId: bigint;
  /** Oldest first. */
  readonly #waits = new Map<Uuid, Wait>();
  /** The sequence of the newest listed one. */
  #newest = -1;
  /** Number of recorded reorganisations at the last pass. */
  #reorganisations = 0;

  constructor(engine: SettlementPort, chainId: bigint) {
    this.#engine = engine;
    this.#chainId = chainId;
  }

  /**
   * Withdrawals that can be sent now, and those whose authorization has expired for good, oldest first, without those
   * that `isHeld`.
   */
  async *ready(
    { maturity, time, finalTime }: Moment,
    isHeld: (withdrawalId: Uuid) => boolean,
  ): AsyncGenerator<PendingWithdrawal> {
    const known: KnownBatches = new Map();
    const canWait = (id: Uuid, { deadline, batch, committedAt }: Wait) => {
      const isKnown = batch === null || known.get(batch);
      if (finalTime > deadline || isKnown === undefined) return false;
      return !isKnown || (committedAt > 0n && committedAt + maturity > time) || isHeld(id);
    };
    for (const [id, wait] of await this.#listed()) {
      if (canWait(id, wait)) continue;
      const pending = await this.#read(id, known);
      if (pending !== null && !canWait(id, waitOf(pending))) yield pending;
    }
  }

  /** Batches that withdrawals wait for and the chain's contract does not know yet, each once. */
  async awaitedBatches(): Promise<readonly VaultPlace[]> {
    const known: KnownBatches = new Map();
    const places: VaultPlace[] = [];
    for (const [id, { batch }] of await this.#listed()) {
      if (batch === null || known.has(batch)) continue;
      const pending = await this.#read(id, known);
      if (pending?.header === null) places.push(unpackVaultId(pending.withdrawal.vaultId));
    }
    return places;
  }

  /** All of them, with the new ones. */
  async #listed(): Promise<ReadonlyMap<Uuid, Wait>> {
    const { operator } = this.#engine;
    // A reorganisation may have taken back batches, and payments of older withdrawals.
    const reorganisations = operator.reorganisations();
    if (reorganisations !== this.#reorganisations) {
      this.#waits.clear();
      this.#newest = -1;
      this.#reorganisations = reorganisations;
    }
    for await (const pending of operator.pendingWithdrawals(this.#chainId, { after: this.#newest })) {
      this.#waits.set(pending.withdrawal.withdrawalId, waitOf(pending));
      this.#newest = pending.sequence;
    }
    return this.#waits;
  }

  /** One as it is now; null when it has settled or failed, and is forgotten. */
  async #read(id: Uuid, known: KnownBatches): Promise<PendingWithdrawal | null> {
    const pending = await this.#engine.operator.pendingWithdrawal(id);
    if (pending === null) {
      this.#waits.delete(id);
      return null;
    }
    known.set(batchOf(pending.withdrawal.vaultId), pending.header !== null);
    this.#waits.set(id, waitOf(pending));
    return pending;
  }
}

function waitOf({ withdrawal: { deadline, vaultId }, standard, header }: PendingWithdrawal): Wait {
  if (header === null) return { deadline, batch: batchOf(vaultId), committedAt: 0n };
  return { deadline, batch: null, committedAt: standard === "erc721" ? header.committedAt : 0n };
}

function batchOf(vaultId: bigint): string {
  const { mode, batchNumber } = unpackVaultId(vaultId);
  return `${mode}-${batchNumber}`;
}
