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

/** Whether a withdrawal need not be read now. `isKnown` tells of its batch; undefined when this pass does not know yet. */
type CanWait = (withdrawalId: Uuid, wait: Wait, isKnown: boolean | undefined) => boolean;

/**
 * The pending withdrawals of one chain. A pass lists their ids, and reads only those that may be ready: of withdrawals that wait for one
 * batch only the first, and none that is not mature. What is remembered is a shortcut: each is read again before it is sent.
 */
export class PendingQueue {
  readonly #engine: SettlementPort;
  readonly #chainId: bigint;
  #waits = new Map<Uuid, Wait>();

  constructor(engine: SettlementPort, chainId: bigint) {
    this.#engine = engine;
    this.#chainId = chainId;
  }

  /** Those that can be sent now, and those whose authorization has expired for good, oldest first; not those that `isHeld`. */
  async *ready(
    { maturity, time, finalTime }: Moment,
    isHeld: (withdrawalId: Uuid) => boolean,
  ): AsyncGenerator<PendingWithdrawal> {
    const canWait: CanWait = (id, { deadline, committedAt }, isKnown) => {
      if (finalTime > deadline || isKnown === undefined) return false;
      return !isKnown || (committedAt > 0n && committedAt + maturity > time) || isHeld(id);
    };
    for await (const pending of this.#read(canWait)) {
      if (!canWait(pending.withdrawal.withdrawalId, waitOf(pending), pending.header !== null)) yield pending;
    }
  }

  /** Batches that withdrawals wait for and their chain's contract does not know yet, each once. */
  async awaitedBatches(): Promise<readonly VaultPlace[]> {
    const places = new Map<string, VaultPlace>();
    for await (const { withdrawal, header } of this.#read((_, __, isKnown) => isKnown !== undefined)) {
      if (header === null) places.set(batchOf(withdrawal.vaultId), unpackVaultId(withdrawal.vaultId));
    }
    return [...places.values()];
  }

  /** A reorganisation may have taken batches back: everything is read again. */
  forget(): void {
    this.#waits = new Map();
  }

  async *#read(canWait: CanWait): AsyncGenerator<PendingWithdrawal> {
    const waits = this.#waits;
    const listed = new Map<Uuid, Wait>();
    /** Whether the contract knows a batch, by the first withdrawal from it that this pass has read. */
    const known = new Map<string, boolean>();
    const except = (withdrawalId: Uuid) => {
      const wait = waits.get(withdrawalId);
      if (wait === undefined) return false;
      listed.set(withdrawalId, wait);
      return canWait(withdrawalId, wait, wait.batch === null || known.get(wait.batch));
    };
    for await (const pending of this.#engine.operator.pendingWithdrawals(this.#chainId, { except })) {
      const { withdrawalId, vaultId } = pending.withdrawal;
      const wait = waitOf(pending);
      known.set(batchOf(vaultId), pending.header !== null);
      listed.set(withdrawalId, wait);
      waits.set(withdrawalId, wait);
      yield pending;
    }
    // What was not listed is settled or has failed. What was forgotten meanwhile stays so.
    if (this.#waits === waits) this.#waits = listed;
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
