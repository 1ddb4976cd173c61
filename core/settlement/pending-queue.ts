import type { Uuid } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { PendingWithdrawal } from "../progress/pending-withdrawals.ts";
import { unpackVaultId, type VaultPlace } from "../protocol/vault.ts";

/** What a pass needs to know of the chain; read once for all withdrawals. */
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
  /** The batch that its chain's contract did not know when this was read; null when it did. */
  readonly batch: string | null;
  /** Seconds of the block in which an ERC-721 vault was committed; else 0. */
  readonly committedAt: bigint;
}

/** Batches that a pass has looked at, and whether the contract knows them. */
type KnownBatches = Map<string, boolean>;

/**
 * The pending withdrawals of one chain. A pass lists only what is new, and reads only those that may be ready: of withdrawals that wait for
 * one batch only the first, and none that is not mature. What is remembered is a shortcut: each is read again before it is sent.
 */
export class PendingQueue {
  readonly #engine: SettlementPort;
  readonly #chainId: bigint;
  /** Oldest first. */
  readonly #waits = new Map<Uuid, Wait>();
  /** The sequence of the newest that was listed. */
  #newest = -1;
  /** Recorded before that. */
  #reorganisations = 0;

  constructor(engine: SettlementPort, chainId: bigint) {
    this.#engine = engine;
    this.#chainId = chainId;
  }

  /** Those that can be sent now, and those whose authorization has expired for good, oldest first; not those that `isHeld`. */
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

  /** Batches that withdrawals wait for and their chain's contract does not know yet, each once. */
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

  /** All of them, with those that are new. */
  async #listed(): Promise<ReadonlyMap<Uuid, Wait>> {
    const { operator } = this.#engine;
    // It may have taken batches back, and payments of older withdrawals.
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

  /** One as it is now; null when it was settled or has failed, and is forgotten. */
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
