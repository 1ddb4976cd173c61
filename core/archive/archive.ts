import { MintmarkError } from "../errors.ts";
import { type Hash, MODES, type Mode, type VaultId } from "../model.ts";
import type { L1Block, L1Event } from "../ports.ts";
import { BatchDataError } from "../protocol/batch-data.ts";
import { stateLeaf } from "../protocol/commitment.ts";
import { hexToBytes } from "../protocol/hex.ts";
import type { Database } from "../store/ports.ts";
import { ArchiveReads } from "./archive-reads.ts";
import { type DerivedBatch, deriveBatch, isBatch, vaultsOf } from "./derive.ts";
import {
  BYTES,
  batchKey,
  batchNumberOf,
  dataKey,
  duplicateKey,
  META,
  POSITION,
  readingKey,
  TEXT,
  withdrawnKey,
  within,
} from "./keys.ts";
import { type AssetReader, KnownAssets } from "./known-assets.ts";
import {
  type Commit,
  commitFromText,
  commitToText,
  type Position,
  positionFromText,
  positionToText,
} from "./records.ts";
import { type IndexEntries, type TakenAt, VaultIndex } from "./vault-index.ts";

/** What an archive is opened with. */
export interface ArchiveOptions {
  /** A store of its own, shared with nobody; closed with the archive. */
  readonly store: Database;
  readonly l1: AssetReader;
}

const FORMAT = "mintmark-archive";
const VERSION = 4;

/**
 * The public state of one settlement contract, without tenants: committed batches with their data, vaults by owner, what has been
 * withdrawn, and what proves each vault. It follows from L1's history alone, and for validium from the data that members serve; every
 * change is one atomic write, so it goes on where it was interrupted.
 *
 * @example
 * const archive = await Archive.open({ store: new Level("./archive"), l1 });
 * await follow({ archive, l1, fromBlock, sources: [new HttpBatchSource("https://member.example")] });
 */
export class Archive extends ArchiveReads {
  readonly assets: KnownAssets;
  readonly #index: VaultIndex;
  #position: Position | null = null;
  /** Of the newest commit here; null before the first. */
  #lastCommitBlock: bigint | null = null;
  /** The index of vaults is read and written as one step: changes take turns. */
  #lastTurn: Promise<unknown> = Promise.resolve();

  private constructor({ store, l1 }: ArchiveOptions) {
    super(store, l1.settlement);
    this.assets = new KnownAssets(l1);
    this.#index = new VaultIndex(store, this.assets);
  }

  /** Opens an archive, a new one in an empty store. Rejects with `store_mismatch` when the store holds something else. */
  static async open(options: ArchiveOptions): Promise<Archive> {
    const archive = new Archive(options);
    await archive.#open();
    return archive;
  }

  async close(): Promise<void> {
    await this.#lastTurn.catch(() => {});
    await this.store.close();
  }

  /** Runs a change of the store while no other one runs. */
  inTurn<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.catch(() => {}).then(change);
    this.#lastTurn = turn;
    return turn;
  }

  /** null before the first event or block. */
  get position(): Position | null {
    return this.#position;
  }

  /**
   * Applies one event of L1, in their order; one that is applied may come again. `data` is the batch's own, for a commit; null when it cannot be
   * had. Rejects with `l1_failed` when a commit before this one was left out; what comes after the last one here is then read again.
   */
  apply(event: L1Event, data: Uint8Array | null = null): Promise<void> {
    return this.inTurn(() => this.#apply(event, data));
  }

  /** Notes that every event up to this block is applied. */
  advance(block: L1Block): Promise<void> {
    return this.inTurn(() => this.#write(new Map(), { block: block.number, logIndex: null, hash: block.hash }));
  }

  /** Takes the data of a committed batch that was missing. Rejects with `validation_failed` when it is not that batch's. */
  supply(mode: Mode, batchNumber: number, data: Uint8Array): Promise<void> {
    return this.inTurn(() => this.#supply(mode, batchNumber, data));
  }

  async #apply(event: L1Event, data: Uint8Array | null): Promise<void> {
    const position = this.#behind(event);
    if (event.type === "batchCommitted") return this.#applyCommit(event, data, position);
    // Only vaults of an ERC-721 are voided; their amount is 1.
    if (event.type === "withdrawn") await this.#withdraw(event.vaultId, event.withdrawnTotal, position);
    else if (event.type === "duplicateVoided") await this.#withdraw(event.laterVaultId, 1n, position);
  }

  async #withdraw(vaultId: VaultId, total: bigint, position: Position): Promise<void> {
    if ((await this.withdrawn(vaultId)) >= total) return;
    await this.#write(new Map([[withdrawnKey(vaultId), total.toString()]]), position);
  }

  async #supply(mode: Mode, batchNumber: number, data: Uint8Array): Promise<void> {
    const commit = await this.commit(mode, batchNumber);
    if (commit === null) throw new MintmarkError("batch_not_found");
    const puts = await this.#dataEntries(commit, data);
    const write = this.store.batch();
    for (const [key, value] of puts) write.put(key, value, TEXT);
    write.put(dataKey(commit.dataHash), data, BYTES);
    write.del(batchKey("missing", mode, batchNumber), TEXT);
    await write.write();
  }

  /**
   * What to write so that the batch's vaults are in the index, nothing when they are; and which of their tokens are taken.
   *
   * @param taken - when L1 took the batch; null while it has not
   */
  async indexing(mode: Mode, batchNumber: number, batch: DerivedBatch, taken: TakenAt | null): Promise<IndexEntries> {
    const key = batchKey("indexed", mode, batchNumber);
    const indexed = await this.store.get<string, string>(key, TEXT);
    if (indexed === batch.dataHash) return { puts: new Map(), repeats: [] };
    // A member has signed a batch that L1 did not take: its vaults do not exist.
    if (indexed !== undefined) await this.#unindex(mode, batchNumber, indexed as Hash);
    const { puts, repeats } = await this.#index.entries(vaultsOf(batch), taken);
    const entries = new Map(puts).set(key, batch.dataHash);
    for (const { vault, asset, scheme, holder } of repeats) {
      if (asset.standard !== "erc721") continue;
      entries.set(duplicateKey(readingKey(vault.chainId, vault.assetType, scheme), vault.vaultId), holder);
    }
    return { puts: entries, repeats };
  }

  /** Takes a validium batch that L1 did not take out of the index, and deletes the member's record of it in the same write. */
  async unindex(batchNumber: number, record: string): Promise<void> {
    const indexed = await this.store.get<string, string>(batchKey("indexed", "validium", batchNumber), TEXT);
    if (indexed === undefined) return this.store.del(record, TEXT);
    await this.#unindex("validium", batchNumber, indexed as Hash, record);
  }

  async #unindex(mode: Mode, batchNumber: number, dataHash: Hash, record?: string): Promise<void> {
    const data = await this.dataOf(dataHash);
    if (data === null) throw new MintmarkError("store_corrupt", `The data ${dataHash} is missing.`);
    const changes = await this.#index.removals(vaultsOf(deriveBatch(mode, batchNumber, data)));
    const write = this.store.batch();
    for (const [key, value] of changes) {
      if (value === null) write.del(key, TEXT);
      else write.put(key, value, TEXT);
    }
    write.del(batchKey("indexed", mode, batchNumber), TEXT);
    if (record !== undefined) write.del(record, TEXT);
    await write.write();
  }

  async #applyCommit(
    event: L1Event & { readonly type: "batchCommitted" },
    data: Uint8Array | null,
    position: Position,
  ): Promise<void> {
    if (this.hasApplied(event)) return;
    const { mode, batchNumber, txHash, blockNumber, dataHash, batchRoot, vaultCount } = event;
    const { committedAt, sequence } = event;
    if (sequence !== this.#commits || batchNumber !== this.trees[mode].count) {
      await this.#rewind();
      throw new MintmarkError(
        "l1_failed",
        `the node left out commits before ${mode}-${batchNumber}; they are read again`,
      );
    }
    const commit = { mode, batchNumber, dataHash, batchRoot, vaultCount, committedAt, sequence, txHash, blockNumber };
    // A committee member has the data already, of what it has signed.
    const known = data ?? (await this.dataOf(dataHash));
    const puts = known === null ? null : await this.#dataEntries(commit, known).catch(nullWhenWithheld(mode));
    const entries = new Map(puts ?? [[batchKey("missing", mode, batchNumber), ""]]);
    entries.set(batchKey("commit", mode, batchNumber), commitToText(commit));
    await this.#write(entries, position, puts !== null && data !== null ? { dataHash, data } : undefined);
    this.#append(commit);
  }

  /** What the data adds, after it was checked to be the batch's own. */
  async #dataEntries(commit: Commit, data: Uint8Array): Promise<ReadonlyMap<string, string>> {
    const { mode, batchNumber } = commit;
    const batch = deriveBatch(mode, batchNumber, data);
    if (!isBatch(batch, commit)) {
      throw new MintmarkError("validation_failed", `the data is not that of batch ${mode}-${batchNumber} on L1`);
    }
    return (await this.indexing(mode, batchNumber, batch, commit)).puts;
  }

  async #write(
    puts: ReadonlyMap<string, string>,
    position: Position,
    data?: { readonly dataHash: Hash; readonly data: Uint8Array },
  ): Promise<void> {
    const write = this.store.batch();
    for (const [key, value] of puts) write.put(key, value, TEXT);
    if (data !== undefined) write.put(dataKey(data.dataHash), data.data, BYTES);
    write.put(POSITION, positionToText(position), TEXT);
    await write.write();
    this.#position = position;
  }

  /** Whether the event is a commit that is here. */
  hasApplied(event: L1Event): boolean {
    return event.type === "batchCommitted" && event.sequence < this.#commits;
  }

  /** Commits of both modes: the sequence number of the next. */
  get #commits(): bigint {
    return BigInt(this.trees.validium.count + this.trees["zk-rollup"].count);
  }

  /** Where the archive stands once this event is applied too. */
  #behind({ blockNumber: block, logIndex }: L1Event): Position {
    const at = this.#position;
    const isFurther =
      at !== null && (at.block > block || (at.block === block && (at.logIndex ?? logIndex) >= logIndex));
    return isFurther ? at : { block, logIndex, hash: null };
  }

  /** Goes back to the last commit: what L1 told behind it was not all. */
  async #rewind(): Promise<void> {
    const block = this.#lastCommitBlock;
    if (block !== null) return this.#write(new Map(), { block, logIndex: -1, hash: null });
    await this.store.del(POSITION, TEXT);
    this.#position = null;
  }

  #append({ mode, batchNumber, vaultCount, dataHash, batchRoot, blockNumber }: Commit): void {
    this.trees[mode].append(hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot })));
    this.vaultCounts[mode] += vaultCount;
    const last = this.#lastCommitBlock;
    this.#lastCommitBlock = last !== null && last > blockNumber ? last : blockNumber;
  }

  async #open(): Promise<void> {
    const { chainId, contract } = this.settlement;
    const meta = JSON.stringify({ format: FORMAT, version: VERSION, chainId: chainId.toString(), contract });
    const found = await this.store.get<string, string>(META, TEXT);
    if (found === undefined) {
      for await (const _ of this.store.keys({ limit: 1 })) {
        throw new MintmarkError("store_mismatch", "The folder holds a store of another kind. Give an empty one.");
      }
      await this.store.put<string, string>(META, meta, TEXT);
    } else if (found !== meta) {
      throw new MintmarkError("store_mismatch", `The store is ${found}, not ${meta}.`);
    }
    const position = await this.store.get<string, string>(POSITION, TEXT);
    if (position !== undefined) this.#position = positionFromText(position);
    for (const mode of MODES) {
      for await (const [key, text] of this.store.iterator<string, string>(within(`commit/${mode}/`))) {
        this.#append(commitFromText(mode, batchNumberOf(key), text));
      }
    }
  }
}

/**
 * A committee majority can have a validium batch committed whose root is not what its data makes: then there is nothing to prove. In a
 * rollup batch L1 has derived the root itself, so a difference is a fault of ours.
 */
function nullWhenWithheld(mode: Mode): (error: unknown) => null {
  return (error) => {
    const isOtherData =
      error instanceof BatchDataError || (error instanceof MintmarkError && error.code === "validation_failed");
    if (mode === "validium" && isOtherData) return null;
    throw error;
  };
}
