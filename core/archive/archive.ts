import { Turns } from "../at-once.ts";
import { MintmarkError } from "../errors.ts";
import { type Hash, MODES, type Mode } from "../model.ts";
import type { CommitEvent, L1Block, L1Event, MadeEvent, ProposedBatch } from "../ports.ts";
import { BatchDataError } from "../protocol/batch-data.ts";
import { invariant } from "../protocol/bounds.ts";
import { stateLeaf } from "../protocol/commitment.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { makingRoot } from "../protocol/making.ts";
import { StateTree } from "../protocol/state-tree.ts";
import { packVaultId } from "../protocol/vault.ts";
import type { ArchiveOptions } from "./archive-reads.ts";
import {
  ArchiveTransfers,
  type Changes,
  type InvalidTransfer,
  type TransferChanges,
} from "./archive-transfers.ts";
import { checkedBatch } from "./committed-data.ts";
import { type DerivedBatch, deriveCommitted, vaultsOf } from "./derive.ts";
import type { Commit, Position } from "./keys.ts";
import * as keys from "./keys.ts";
import { type IndexEntries, indexEntries, indexRemovals, type TakenAt } from "./vault-index.ts";

type BatchData = Pick<ProposedBatch, "dataHash" | "data">;

const FORMAT = "mintmark-archive";
const VERSION = 7;

/**
 * The public state of one settlement contract, without tenants: committed batches with their data,
 * vaults by owner, withdrawals, and proofs of vaults. It follows from L1's history and, for
 * validium, from data of the members. Every change is one atomic write, so an interrupted archive
 * resumes.
 *
 * @example
 * const archive = await Archive.open({ store: new Level("./archive"), l1 }); await follow({
 * archive, l1, fromBlock, sources: [new HttpBatchSource("https://member.example")] });
 */
export class Archive extends ArchiveTransfers {
  #position: Position | null = null;
  // The block of the newest commit here; null before the first
  #lastCommitBlock: bigint | null = null;
  // A change reads and writes the vault index as one step, so changes run one at a time
  readonly #turns = new Turns();

  /**
   * Opens an archive; creates it in an empty store. Rejects with `store_mismatch` when the store
   * holds something else.
   */
  static async open(options: ArchiveOptions): Promise<Archive> {
    const archive = new Archive(options);
    await archive.#open();
    return archive;
  }

  async close(): Promise<void> {
    await this.#turns.run(async () => {});
    await this.ownKzg?.close();
    await this.signers.close();
    await this.store.close();
  }

  /** Runs a change of the store after all others. */
  inTurn<T>(change: () => Promise<T>): Promise<T> {
    return this.#turns.run(change);
  }

  /** null before the first event or block. */
  get position(): Position | null {
    return this.#position;
  }

  /**
   * Applies one event of L1, in order; repeats change nothing. `data` is the batch data of a
   * commit; null when missing. Returns the records that it judged and that move nothing. Rejects
   * with `l1_failed` when an earlier commit is missing; then reading restarts at the last commit
   * here.
   */
  apply(event: L1Event, data: Uint8Array | null = null): Promise<readonly InvalidTransfer[]> {
    return this.inTurn(async () => {
      const position = this.#behind(event);
      if (event.type === "batchCommitted") return this.#applyCommit(event, data, position);
      const changes = await this.#changesBy(event);
      if (changes.size > 0) await this.#moveTo(position, changes);
      return [];
    });
  }

  /** Records that every event up to this block is applied. */
  advance(block: L1Block): Promise<void> {
    return this.inTurn(() =>
      this.#moveTo({ block: block.number, logIndex: null, hash: block.hash }),
    );
  }

  /**
   * Adds the missing data of a committed batch; as {@link apply}. Rejects with `validation_failed`
   * for other data.
   */
  supply(mode: Mode, batchNumber: number, data: Uint8Array): Promise<readonly InvalidTransfer[]> {
    return this.inTurn(async () => {
      const commit = await this.commit(mode, batchNumber);
      if (commit === null) throw new MintmarkError("batch_not_found");
      const { changes, invalid } = await this.#dataEntries(commit, data);
      changes.set(keys.batchKey("missing", mode, batchNumber), null);
      await this.write(changes, { dataHash: commit.dataHash, data });
      return invalid;
    });
  }

  /** Judges the records whose vaults have their data by now; as {@link apply}. */
  judgeTransfers(): Promise<readonly InvalidTransfer[]> {
    return this.inTurn(async () => {
      const invalid: InvalidTransfer[] = [];
      for (const batchNumber of await this.unjudged()) {
        const commit = await this.commit("zk-rollup", batchNumber);
        const batch = commit && (await this.derived(commit));
        if (commit === null || batch?.transfers == null) continue;
        const judged = await this.transferChanges(batch.transfers, commit);
        await this.write(judged.changes);
        invalid.push(...judged.invalid);
      }
      return invalid;
    });
  }

  async #changesBy(event: L1Event): Promise<Changes> {
    if (event.type === "withdrawn") {
      const { vaultId, withdrawnTotal: total } = event;
      if ((await this.paid(vaultId)) >= total) return new Map();
      return new Map([[keys.vaultKey("withdrawn", vaultId), total.toString()]]);
    }
    if (event.type === "made") return this.#makingBy(event);
    if (event.type === "duplicateVoided") {
      const key = keys.vaultKey("voided", event.laterVaultId);
      const isKnown = (await this.text(key)) !== undefined;
      return new Map(isKnown ? [] : [[key, this.#commits.toString()]]);
    }
    return this.powerChanges(event);
  }

  /**
   * A making, and its vaults among those of their owners. Rejects with `l1_failed` when an earlier
   * one is missing; then reading restarts from the beginning.
   */
  async #makingBy(event: MadeEvent): Promise<Changes> {
    const { sequence, vaults, batchRoot } = event;
    const making = Number(event.making);
    if ((await this.making(making)) !== null) return new Map();
    const { chainId } = this.settlement;
    const isWhole = makingRoot({ chainId, making, vaults }) === batchRoot.toLowerCase();
    if (!isWhole || (making > 1 && (await this.making(making - 1)) === null)) {
      await this.store.del(keys.POSITION, keys.TEXT);
      this.#position = null;
      const detail = `the node leaves out what L1 made before or in making ${making}`;
      throw new MintmarkError("l1_failed", `${detail}; all logs will be read again`);
    }
    const changes: Changes = new Map();
    changes.set(keys.makingKey(making), keys.toText({ sequence, vaults }));
    for (const [slot, { owner }] of vaults.entries()) {
      const vaultId = packVaultId({ mode: "made", batchNumber: making, slot });
      changes.set(keys.ownerKey(owner, vaultId), "");
    }
    return changes;
  }

  /**
   * The writes that add a batch's vaults to the index, none if they are there; and the tokens
   * already taken.
   *
   * @param taken - when L1 took the batch; null before
   */
  async indexing(
    mode: Mode,
    batchNumber: number,
    batch: DerivedBatch,
    taken: TakenAt | null,
  ): Promise<IndexEntries> {
    const key = keys.batchKey("indexed", mode, batchNumber);
    const indexed = await this.text(key);
    const name = [batch.dataHash, batch.leftOut, batch.unnamed].join(" ");
    if (indexed === name) return { puts: new Map(), repeats: [] };
    // The member signed a batch that L1 did not take, or took without some assets: those vaults do
    // not exist.
    if (indexed !== undefined) {
      invariant(mode === "validium", "a rollup batch has other data than before");
      await this.unindex(batchNumber);
    }
    const { puts, repeats } = await indexEntries(this, vaultsOf(batch), taken);
    return { puts: puts.set(key, name), repeats };
  }

  /**
   * Removes a validium batch that L1 did not take from the index, with the member's record, in one
   * write.
   */
  async unindex(batchNumber: number, record?: string): Promise<void> {
    const key = keys.batchKey("indexed", "validium", batchNumber);
    const [dataHash, ...places] = (await this.text(key))?.split(" ") ?? [];
    const [leftOut = [], unnamed = []] = places.map((list) =>
      list.split(",").filter(Boolean).map(Number),
    );
    const place = { mode: "validium", batchNumber, leftOut, unnamed } as const;
    const vaults =
      dataHash === undefined
        ? []
        : vaultsOf(deriveCommitted(place, await this.storedData(dataHash as Hash)));
    const changes = (await indexRemovals(this, vaults)).set(key, null);
    await this.write(record === undefined ? changes : changes.set(record, null));
  }

  async #applyCommit(event: CommitEvent, data: Uint8Array | null, position: Position) {
    if (this.hasApplied(event)) return [];
    const { mode, batchNumber, txHash, blockNumber, dataHash, batchRoot, vaultCount } = event;
    const { committedAt, sequence, leftOut = [], blobs } = event;
    if (sequence !== this.#commits || batchNumber !== this.trees[mode].count) {
      await this.#rewind();
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
    const known = data ?? (await this.dataOf(dataHash));
    const found =
      known === null ? null : await this.#dataEntries(commit, known).catch(nullWhenWithheld(mode));
    const entries: Changes =
      found?.changes ?? new Map([[keys.batchKey("missing", mode, batchNumber), ""]]);
    const commitKey = keys.batchKey("commit", mode, batchNumber);
    if (!entries.has(commitKey)) entries.set(commitKey, keys.commitToText(commit));
    await this.#moveTo(
      position,
      entries,
      found !== null && data !== null ? { dataHash, data } : undefined,
    );
    this.#append(commit);
    return found?.invalid ?? [];
  }

  /** The writes for a batch's data, after checking it. */
  async #dataEntries(commit: Commit, data: Uint8Array): Promise<TransferChanges> {
    const { mode, batchNumber } = commit;
    const batch = await checkedBatch(commit, data, this.kzg, this.l1);
    const { puts } = await this.indexing(mode, batchNumber, batch, commit);
    const { unnamed } = batch;
    if (unnamed.length > 0)
      puts.set(
        keys.batchKey("commit", mode, batchNumber),
        keys.commitToText({ ...commit, unnamed }),
      );
    if (batch.transfers === null) return { changes: puts, invalid: [] };
    const { changes, invalid } = await this.transferChanges(batch.transfers, commit);
    return { invalid, changes: new Map([...puts, ...changes]) };
  }

  /** Writes changes at once, with a batch's data. */
  async write(
    changes: ReadonlyMap<string, string | null>,
    batch?: BatchData,
    options: object = {},
  ): Promise<void> {
    const write = this.store.batch();
    for (const [key, value] of changes) {
      if (value === null) write.del(key, keys.TEXT);
      else write.put(key, value, keys.TEXT);
    }
    if (batch !== undefined) write.put(keys.dataKey(batch.dataHash), batch.data, keys.BYTES);
    await write.write(options);
  }

  /** Writes changes by events of L1, and the position that these events reach. */
  async #moveTo(
    position: Position,
    changes: Changes = new Map(),
    batch?: BatchData,
  ): Promise<void> {
    await this.write(changes.set(keys.POSITION, keys.toText(position)), batch);
    this.#position = position;
  }

  /** Whether this commit is already applied. */
  hasApplied(event: L1Event): boolean {
    return event.type === "batchCommitted" && event.sequence < this.#commits;
  }

  /** Number of commits of both modes, which is the sequence number of the next. */
  get #commits(): bigint {
    return BigInt(this.trees.validium.count + this.trees["zk-rollup"].count);
  }

  /** The position after this event. */
  #behind({ blockNumber: block, logIndex }: L1Event): Position {
    const at = this.#position;
    const isFurther =
      at !== null &&
      (at.block > block || (at.block === block && (at.logIndex ?? logIndex) >= logIndex));
    return isFurther ? at : { block, logIndex, hash: null };
  }

  /** Returns to the last commit, because L1's events after it were incomplete. */
  reread(): Promise<void> {
    return this.inTurn(() => this.#rewind());
  }

  /** The first block that was read only once since the opening; null when there is none. */
  readOnce: bigint | null = null;

  async #rewind(): Promise<void> {
    const block = this.#lastCommitBlock;
    if (block !== null) return this.#moveTo({ block, logIndex: -1, hash: null });
    await this.store.del(keys.POSITION, keys.TEXT);
    this.#position = null;
  }

  /** Since when L1 contradicts what it told; null while it does not. */
  #doubtedAt: number | null = null;

  /** L1 does not contradict the archive now. */
  trust(): void {
    this.#doubtedAt = null;
  }

  /**
   * L1 contradicts what it told: a node can speak for another chain for a while. If it still does
   * at a second look, the archive forgets what L1 told, and reads it again from the first block on.
   */
  async doubt(secondLookMs: number): Promise<void> {
    this.#doubtedAt ??= performance.now();
    if (performance.now() - this.#doubtedAt < secondLookMs) return;
    await this.inTurn(() => this.#forget());
    this.#doubtedAt = null;
  }

  async #forget(): Promise<void> {
    await this.store.put<string, string>(keys.FORGETTING, "", keys.TEXT);
    for (const kind of keys.TOLD_BY_L1) await this.store.clear<string>(keys.within(`${kind}/`));
    await this.write(
      new Map([
        [keys.POSITION, null],
        [keys.FORGETTING, null],
      ]),
    );
    for (const mode of MODES) {
      this.trees[mode] = new StateTree();
      this.vaultCounts[mode] = 0;
    }
    this.derivedLast = null;
    this.#position = null;
    this.#lastCommitBlock = null;
    this.readOnce = null;
  }

  #append({ mode, batchNumber, vaultCount, dataHash, batchRoot, blockNumber }: Commit): void {
    this.trees[mode].append(
      hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot })),
    );
    this.vaultCounts[mode] += vaultCount;
    const last = this.#lastCommitBlock;
    this.#lastCommitBlock = last !== null && last > blockNumber ? last : blockNumber;
  }

  async #open(): Promise<void> {
    const { chainId, contract } = this.settlement;
    const meta = JSON.stringify({
      format: FORMAT,
      version: VERSION,
      chainId: chainId.toString(),
      contract,
    });
    const found = await this.text(keys.META);
    if (found === undefined) {
      for await (const _ of this.store.keys({ limit: 1 }))
        throw new MintmarkError(
          "store_mismatch",
          "The folder holds another kind of store. Give an empty folder.",
        );
      await this.store.put<string, string>(keys.META, meta, keys.TEXT);
    } else if (!found.includes(`"version":${VERSION},`)) {
      const [, version = "of an unknown format"] = /"version":(\d+)/.exec(found) ?? [];
      const detail = `The archive has version ${version}, and this version of Mintmark reads version ${VERSION}.`;
      const advice =
        "Use the version that wrote it, or an empty folder, which L1 and the other members fill.";
      throw new MintmarkError("store_mismatch", `${detail} Nothing was changed. ${advice}`);
    } else if (found !== meta) {
      throw new MintmarkError("store_mismatch", `The store is ${found}, not ${meta}.`);
    }
    if ((await this.text(keys.FORGETTING)) !== undefined) await this.#forget();
    this.#position = keys.fromText<Position>(await this.text(keys.POSITION));
    for (const mode of MODES) {
      for await (const [key, text] of this.store.iterator<string, string>(
        keys.within(`commit/${mode}/`),
      ))
        this.#append(keys.commitFromText(mode, keys.batchNumberOf(key), text) as Commit);
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
