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
  #waits = new Map<Uuid, Wait>();
  /** The sequence of the newest that was listed. */
  #newest = -1;

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
    const waits = await this.#listed();
    for (const [id, wait] of waits) {
      if (canWait(id, wait)) continue;
      const pending = await this.#read(id, waits, known);
      if (pending !== null && !canWait(id, waitOf(pending))) yield pending;
    }
  }

  /** Batches that withdrawals wait for and their chain's contract does not know yet, each once. */
  async awaitedBatches(): Promise<readonly VaultPlace[]> {
    const known: KnownBatches = new Map();
    const places: VaultPlace[] = [];
    const waits = await this.#listed();
    for (const [id, { batch }] of waits) {
      if (batch === null || known.has(batch)) continue;
      const pending = await this.#read(id, waits, known);
      if (pending?.header === null) places.push(unpackVaultId(pending.withdrawal.vaultId));
    }
    return places;
  }

  /** A reorganisation may have taken batches back, and withdrawals: everything is listed again. */
  forget(): void {
    this.#waits = new Map();
    this.#newest = -1;
  }

  async #listed(): Promise<Map<Uuid, Wait>> {
    const waits = this.#waits;
    for await (const pending of this.#engine.operator.pendingWithdrawals(this.#chainId, { after: this.#newest })) {
      // What was forgotten meanwhile stays so.
      if (this.#waits !== waits) return this.#listed();
      waits.set(pending.withdrawal.withdrawalId, waitOf(pending));
      this.#newest = pending.sequence;
    }
    return waits;
  }

  /** One as it is now; null when it was settled or has failed, and is forgotten. */
  async #read(id: Uuid, waits: Map<Uuid, Wait>, known: KnownBatches): Promise<PendingWithdrawal | null> {
    const pending = await this.#engine.operator.pendingWithdrawal(id);
    if (pending === null) {
      waits.delete(id);
      return null;
    }
    known.set(batchOf(pending.withdrawal.vaultId), pending.header !== null);
    waits.set(id, waitOf(pending));
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
