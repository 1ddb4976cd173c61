import { Turns } from "../at-once.ts";
import { MintmarkError } from "../errors.ts";
import { MODES, type Mode } from "../model.ts";
import type { CommitEvent, L1Block, L1Event, MadeEvent } from "../ports.ts";
import { BatchDataError } from "../protocol/batch-data.ts";
import { makingRoot } from "../protocol/making.ts";
import { packVaultId } from "../protocol/vault.ts";
import type { ArchiveReads } from "./archive-reads.ts";
import type {
  ArchiveChanges,
  ArchiveTransfers,
  InvalidTransfer,
  TransferChanges,
} from "./archive-transfers.ts";
import { checkedBatch } from "./committed-data.ts";
import type { Commit, Position } from "./keys.ts";
import * as keys from "./keys.ts";
import type { ArchiveGround, ArchiveIndex, AssetReader, BatchData } from "./vault-index.ts";

/** A node can deny the block that an archive has reached, or the commits before it. */
type Contradiction = "block" | "commits";

/** L1's events in an archive, one after another, as far as they are applied. */
export function archiveHistory(
  { store, settlement, kzg, deriving }: ArchiveGround,
  l1: AssetReader,
  reads: ArchiveReads,
  transfers: ArchiveTransfers,
  index: ArchiveIndex,
) {
  // A change reads and writes the vault index as one step, so changes run one at a time
  const turns = new Turns();
  /** The position that L1's events have reached; null before the first event or block. */
  let reached: Position | null = null;
  /** The block of the newest commit here; null before the first. */
  let lastCommitBlock: bigint | null = null;
  /** Since when L1 contradicts each kind of what it told; nothing while it does not. */
  const doubts = new Map<Contradiction, number>();

  const history = {
    /** Runs a change of the store after all others. */
    inTurn<T>(change: () => Promise<T>): Promise<T> {
      return turns.run(change);
    },

    /** null before the first event or block. */
    get position(): Position | null {
      return reached;
    },

    /**
     * Applies one event of L1, in order; repeats change nothing. `data` is the batch data of a
     * commit; null when missing. Returns the records that it judged and that move nothing. Rejects
     * with `l1_failed` when an earlier commit is missing; then reading restarts at the last commit
     * here.
     */
    apply(event: L1Event, data: Uint8Array | null = null): Promise<readonly InvalidTransfer[]> {
      return history.inTurn(async () => {
        const position = placeBehind(event);
        if (event.type === "batchCommitted") return applyCommit(event, data, position);
        const changes = await changesBy(event);
        if (changes.size > 0) await moveTo(position, changes);
        return [];
      });
    },

    /** Records that every event up to this block is applied. */
    advance(block: L1Block): Promise<void> {
      return history.inTurn(() =>
        moveTo({ block: block.number, logIndex: null, hash: block.hash }),
      );
    },

    /**
     * Adds the missing data of a committed batch; as {@link apply}. Rejects with
     * `validation_failed` for other data.
     */
    supply(mode: Mode, batchNumber: number, data: Uint8Array): Promise<readonly InvalidTransfer[]> {
      return history.inTurn(async () => {
        const commit = await reads.commit(mode, batchNumber);
        if (commit === null) throw new MintmarkError("batch_not_found");
        const { changes, invalid } = await dataEntries(commit, data);
        changes.set(keys.batchKey("missing", mode, batchNumber), null);
        await index.write(changes, { dataHash: commit.dataHash, data });
        return invalid;
      });
    },

    /** Judges the records whose vaults have their data by now; as {@link apply}. */
    judgeTransfers(): Promise<readonly InvalidTransfer[]> {
      return history.inTurn(async () => {
        const invalid: InvalidTransfer[] = [];
        for (const batchNumber of await reads.unjudged()) {
          const commit = await reads.commit("zk-rollup", batchNumber);
          const batch = commit && (await reads.derived(commit));
          if (commit === null || batch?.transfers == null) continue;
          const judged = await transfers.transferChanges(batch.transfers, commit);
          await index.write(judged.changes);
          invalid.push(...judged.invalid);
        }
        return invalid;
      });
    },

    /** Whether this commit is already applied. */
    hasApplied(event: L1Event): boolean {
      return event.type === "batchCommitted" && event.sequence < reads.commits();
    },

    /** Returns to the last commit, because L1's events after it were incomplete. */
    reread(): Promise<void> {
      return history.inTurn(rewind);
    },

    /** The first block that was read only once since the opening; null when there is none. */
    readOnce: null as bigint | null,

    /** L1 does not contradict the archive now. */
    trust(): void {
      doubts.clear();
    },

    /** L1 has the block that the archive has reached. */
    trustBlock(): void {
      doubts.delete("block");
    },

    /**
     * L1 contradicts what it told: a node can speak for another chain for a while. If it still does
     * at a second look, the archive forgets what L1 told, and reads it again from the first block
     * on.
     */
    doubt(secondLookMs: number): Promise<void> {
      return lookTwice("commits", secondLookMs);
    },

    /** L1 has another block where the archive has reached one; else as {@link doubt}. */
    doubtBlock(secondLookMs: number): Promise<void> {
      return lookTwice("block", secondLookMs);
    },
  };
  return { history, restore };

  /** Forgets what L1 told if it was contradicted in the same thing so long ago. */
  async function lookTwice(what: Contradiction, secondLookMs: number): Promise<void> {
    const since = doubts.get(what) ?? performance.now();
    doubts.set(what, since);
    if (performance.now() - since < secondLookMs) return;
    await history.inTurn(forget);
    doubts.clear();
  }

  async function changesBy(event: L1Event): Promise<ArchiveChanges> {
    if (event.type === "withdrawn") {
      const { vaultId, withdrawnTotal: total } = event;
      if ((await reads.paid(vaultId)) >= total) return new Map();
      return new Map([[keys.vaultKey("withdrawn", vaultId), total.toString()]]);
    }
    if (event.type === "made") return makingBy(event);
    if (event.type === "duplicateVoided") {
      const key = keys.vaultKey("voided", event.laterVaultId);
      const isKnown = (await reads.text(key)) !== undefined;
      return new Map(isKnown ? [] : [[key, reads.commits().toString()]]);
    }
    return transfers.powerChanges(event);
  }

  /**
   * A making, and its vaults among those of their owners. Rejects with `l1_failed` when an earlier
   * one is missing; then reading restarts from the beginning.
   */
  async function makingBy(event: MadeEvent): Promise<ArchiveChanges> {
    const { sequence, vaults, batchRoot } = event;
    const making = Number(event.making);
    if ((await reads.making(making)) !== null) return new Map();
    const { chainId } = settlement;
    const isWhole = makingRoot({ chainId, making, vaults }) === batchRoot.toLowerCase();
    if (!isWhole || (making > 1 && (await reads.making(making - 1)) === null)) {
      await store.del(keys.POSITION, keys.TEXT);
      reached = null;
      const detail = `the node leaves out what L1 made before or in making ${making}`;
      throw new MintmarkError("l1_failed", `${detail}; all logs will be read again`);
    }
    const changes: ArchiveChanges = new Map();
    changes.set(keys.makingKey(making), keys.toText({ sequence, vaults }));
    for (const [slot, { owner }] of vaults.entries()) {
      const vaultId = packVaultId({ mode: "made", batchNumber: making, slot });
      changes.set(keys.ownerKey(owner, vaultId), "");
    }
    return changes;
  }

  async function applyCommit(event: CommitEvent, data: Uint8Array | null, position: Position) {
    if (history.hasApplied(event)) return [];
    const { mode, batchNumber, txHash, blockNumber, dataHash, batchRoot, vaultCount } = event;
    const { committedAt, sequence, leftOut = [], blobs } = event;
    if (sequence !== reads.commits() || batchNumber !== reads.count(mode)) {
      await rewind();
      const detail = `the node left out commits before ${mode}-${batchNumber}; they will be read again`;
      throw new MintmarkError("l1_failed", detail);
    }
    const header = { batchRoot, vaultCount, committedAt, sequence };
    const commit = {
      mode,
      batchNumber,
      dataHash,
      ...header,
      txHash,
      blockNumber,
      leftOut,
      ...(blobs && { blobs }),
    };
    // A committee member already has the data of batches that it signed.
    const known = data ?? (await reads.dataOf(dataHash));
    const found =
      known === null ? null : await dataEntries(commit, known).catch(nullWhenWithheld(mode));
    const entries: ArchiveChanges =
      found?.changes ?? new Map([[keys.batchKey("missing", mode, batchNumber), ""]]);
    const commitKey = keys.batchKey("commit", mode, batchNumber);
    if (!entries.has(commitKey)) entries.set(commitKey, keys.commitToText(commit));
    await moveTo(
      position,
      entries,
      found !== null && data !== null ? { dataHash, data } : undefined,
    );
    append(commit);
    return found?.invalid ?? [];
  }

  /** The writes for a batch's data, after checking it. */
  async function dataEntries(commit: Commit, data: Uint8Array): Promise<TransferChanges> {
    const { mode, batchNumber } = commit;
    const batch = await checkedBatch(commit, data, kzg, l1, (place, from) =>
      deriving.deriveCommitted(place, from),
    );
    const { puts } = await index.indexing(mode, batchNumber, batch, commit);
    const { unnamed } = batch;
    if (unnamed.length > 0)
      puts.set(
        keys.batchKey("commit", mode, batchNumber),
        keys.commitToText({ ...commit, unnamed }),
      );
    if (batch.transfers === null) return { changes: puts, invalid: [] };
    const { changes, invalid } = await transfers.transferChanges(batch.transfers, commit);
    return { invalid, changes: new Map([...puts, ...changes]) };
  }

  /** Writes changes by events of L1, and the position that these events reach. */
  async function moveTo(
    position: Position,
    changes: ArchiveChanges = new Map(),
    batch?: BatchData,
  ): Promise<void> {
    await index.write(changes.set(keys.POSITION, keys.toText(position)), batch);
    reached = position;
  }

  /** The position after this event. */
  function placeBehind({ blockNumber: block, logIndex }: L1Event): Position {
    const at = reached;
    const isFurther =
      at !== null &&
      (at.block > block || (at.block === block && (at.logIndex ?? logIndex) >= logIndex));
    return isFurther ? at : { block, logIndex, hash: null };
  }

  async function rewind(): Promise<void> {
    const block = lastCommitBlock;
    if (block !== null) return moveTo({ block, logIndex: -1, hash: null });
    await store.del(keys.POSITION, keys.TEXT);
    reached = null;
  }

  async function forget(): Promise<void> {
    await store.put<string, string>(keys.FORGETTING, "", keys.TEXT);
    for (const kind of keys.TOLD_BY_L1) await store.clear<string>(keys.within(`${kind}/`));
    await index.write(
      new Map([
        [keys.POSITION, null],
        [keys.FORGETTING, null],
      ]),
    );
    reads.forget();
    reached = null;
    lastCommitBlock = null;
    history.readOnce = null;
  }

  function append(commit: Commit): void {
    reads.append(commit);
    const { blockNumber } = commit;
    const last = lastCommitBlock;
    lastCommitBlock = last !== null && last > blockNumber ? last : blockNumber;
  }
  async function restore(): Promise<void> {
    if ((await reads.text(keys.FORGETTING)) !== undefined) await forget();
    reached = keys.fromText<Position>(await reads.text(keys.POSITION));
    for (const mode of MODES) {
      for await (const [key, text] of store.iterator<string, string>(
        keys.within(`commit/${mode}/`),
      ))
        append(keys.commitFromText(mode, keys.batchNumberOf(key), text) as Commit);
    }
  }
}

/**
 * A committee majority can commit a validium batch whose root does not match its data; then nothing
 * is provable. L1 derives the root of a rollup batch itself, so a difference there is our defect.
 */
function nullWhenWithheld(mode: Mode): (error: unknown) => null {
  return (error) => {
    const isOtherData =
      error instanceof BatchDataError ||
      (error instanceof MintmarkError && error.code === "validation_failed");
    if (mode === "validium" && isOtherData) return null;
    throw error;
  };
}
