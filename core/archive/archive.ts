import type { Database } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import { type Hash, MODES, type Mode } from "../model.ts";
import type { L1Block, L1Event } from "../ports.ts";
import { BatchDataError } from "../protocol/batch-data.ts";
import { stateLeaf } from "../protocol/commitment.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { ArchiveReads } from "./archive-reads.ts";
import { type DerivedBatch, deriveBatch, isBatch, vaultsOf } from "./derive.ts";
import { BYTES, batchKey, batchNumberOf, dataKey, META, POSITION, TEXT, vaultKey, within } from "./keys.ts";
import { type AssetReader, KnownAssets } from "./known-assets.ts";
import {
  type Commit,
  commitFromText,
  commitToText,
  type Position,
  positionFromText,
  positionToText,
} from "./records.ts";
import { type IndexEntries, VaultIndex } from "./vault-index.ts";

export interface ArchiveOptions {
  /** A store of its own, shared with nobody; closed with the archive. */
  readonly store: Database;
  readonly l1: AssetReader;
}

const FORMAT = "mintmark-archive";
const VERSION = 1;

/**
 * The public state of one settlement contract, without tenants: committed batches with their data, vaults by owner, what has been
 * withdrawn, and what proves each vault. It follows from L1's history alone, and for validium from the data that members serve; every
 * change is one atomic write, so it goes on where it was interrupted.
 */
export class Archive extends ArchiveReads {
  readonly assets: KnownAssets;
  readonly #index: VaultIndex;
  #position: Position | null = null;
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

  /** Applies one event of L1, each once and in their order. `data` is the batch's own, for a commit; null when it cannot be had. */
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
    if (this.#isApplied(event)) return;
    const position = { block: event.blockNumber, logIndex: event.logIndex, hash: null };
    if (event.type === "batchCommitted") return this.#applyCommit(event, data, position);
    const puts = new Map<string, string>();
    if (event.type === "withdrawn") {
      puts.set(vaultKey("withdrawn", event.vaultId), event.withdrawnTotal.toString());
    } else if (event.type === "duplicateVoided") {
      // Only vaults of an ERC-721 are voided; their amount is 1.
      puts.set(vaultKey("withdrawn", event.laterVaultId), "1");
    }
    await this.#write(puts, position);
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

  /** What to write so that the batch's vaults are in the index, nothing when they are; and which of their tokens are taken. */
  async indexing(mode: Mode, batchNumber: number, batch: DerivedBatch): Promise<IndexEntries> {
    const key = batchKey("indexed", mode, batchNumber);
    const indexed = await this.store.get<string, string>(key, TEXT);
    if (indexed === batch.dataHash) return { puts: new Map(), repeats: [] };
    // A member has signed a batch that L1 did not take: its vaults do not exist.
    if (indexed !== undefined) await this.#unindex(mode, batchNumber, indexed as Hash);
    const { puts, repeats } = await this.#index.entries(vaultsOf(batch));
    const entries = new Map(puts).set(key, batch.dataHash);
    for (const { vault, asset, holder } of repeats) {
      if (asset.standard === "erc721") entries.set(vaultKey("duplicate", vault.vaultId), holder);
    }
    return { puts: entries, repeats };
  }

  async #unindex(mode: Mode, batchNumber: number, dataHash: Hash): Promise<void> {
    const data = await this.dataOf(dataHash);
    if (data === null) throw new MintmarkError("store_corrupt", `The data ${dataHash} is missing.`);
    const changes = await this.#index.removals(vaultsOf(deriveBatch(mode, batchNumber, data)));
    const write = this.store.batch();
    for (const [key, value] of changes) {
      if (value === null) write.del(key, TEXT);
      else write.put(key, value, TEXT);
    }
    write.del(batchKey("indexed", mode, batchNumber), TEXT);
    await write.write();
  }

  async #applyCommit(
    event: L1Event & { readonly type: "batchCommitted" },
    data: Uint8Array | null,
    position: Position,
  ): Promise<void> {
    const { mode, batchNumber, txHash, blockNumber, dataHash, batchRoot, vaultCount } = event;
    const tree = this.trees[mode];
    if (batchNumber !== tree.count) {
      throw new MintmarkError("l1_failed", `L1 told of batch ${mode}-${batchNumber} after ${tree.count} batches`);
    }
    const { committedAt, sequence } = event;
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
    return (await this.indexing(mode, batchNumber, batch)).puts;
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

  #isApplied({ blockNumber, logIndex }: L1Event): boolean {
    const at = this.#position;
    if (at === null || blockNumber > at.block) return false;
    return blockNumber < at.block || at.logIndex === null || logIndex <= at.logIndex;
  }

  #append({ mode, batchNumber, vaultCount, dataHash, batchRoot }: Commit): void {
    this.trees[mode].append(hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot })));
    this.vaultCounts[mode] += vaultCount;
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
