import type { Database } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import { type Address, type Hash, MODES, type Mode, type VaultId } from "../model.ts";
import type { BatchHeader, L1Block, L1Event, Settlement, VaultContent } from "../ports.ts";
import type { EngineState, VaultProof } from "../proof-types.ts";
import { BatchDataError } from "../protocol/batch-data.ts";
import { stateCommitment, stateLeaf } from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { StateTree } from "../protocol/state-tree.ts";
import { unpackVaultId } from "../protocol/vault.ts";
import { committedProof, type DerivedBatch, deriveBatch, isBatch, vaultIn, vaultsOf } from "./derive.ts";
import {
  BYTES,
  batchKey,
  batchNumberOf,
  dataKey,
  META,
  ownerKey,
  POSITION,
  TEXT,
  vaultIdOf,
  vaultKey,
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
export class Archive {
  readonly store: Database;
  readonly settlement: Settlement;
  readonly assets: KnownAssets;
  readonly #index: VaultIndex;
  readonly #trees: Readonly<Record<Mode, StateTree>> = { validium: new StateTree(), "zk-rollup": new StateTree() };
  readonly #vaultCounts: Record<Mode, number> = { validium: 0, "zk-rollup": 0 };
  #position: Position | null = null;
  /** The index of vaults is read and written as one step: changes take turns. */
  #lastTurn: Promise<unknown> = Promise.resolve();
  /** The batch that was last derived: proofs are often asked for one after the other. */
  #derived: { readonly key: string; readonly batch: DerivedBatch } | null = null;

  private constructor({ store, l1 }: ArchiveOptions) {
    this.store = store;
    this.settlement = l1.settlement;
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

  /** Over the batches that L1 has committed as far as it was read. */
  state(): EngineState {
    const { validium, "zk-rollup": rollup } = this.#trees;
    const roots = {
      countValidium: validium.count,
      countRollup: rollup.count,
      rootValidium: bytesToHex(validium.root),
      rootRollup: bytesToHex(rollup.root),
    };
    return { ...roots, commitment: stateCommitment(this.settlement, roots) };
  }

  /** Slots of all committed batches of a mode. */
  vaultCount(mode: Mode): number {
    return this.#vaultCounts[mode];
  }

  async commit(mode: Mode, batchNumber: number): Promise<Commit | null> {
    const stored = await this.store.get<string, string>(batchKey("commit", mode, batchNumber), TEXT);
    return stored === undefined ? null : commitFromText(mode, batchNumber, stored);
  }

  /** The data of a batch that L1 has committed; null while nobody has given it. */
  async data(mode: Mode, batchNumber: number): Promise<Uint8Array | null> {
    const commit = await this.commit(mode, batchNumber);
    return commit === null ? null : this.dataOf(commit.dataHash);
  }

  async dataOf(dataHash: Hash): Promise<Uint8Array | null> {
    return (await this.store.get<string, Uint8Array>(dataKey(dataHash), BYTES)) ?? null;
  }

  /** Committed batches whose data nobody has given yet, in order. */
  async missing(): Promise<{ readonly mode: Mode; readonly batchNumber: number }[]> {
    const found: { mode: Mode; batchNumber: number }[] = [];
    for (const mode of MODES) {
      for await (const key of this.store.keys<string>(within(`missing/${mode}/`))) {
        found.push({ mode, batchNumber: batchNumberOf(key) });
      }
    }
    return found;
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

  /** Throws `vault_not_found`; `proof_not_ready` when the batch's data is missing. */
  async vaultContent(vaultId: VaultId): Promise<VaultContent> {
    return vaultIn(await this.#derivedBatch(await this.#commitOf(vaultId)), vaultId);
  }

  /** Whether L1 has committed the batch and its data is here. */
  async holds(mode: Mode, batchNumber: number): Promise<boolean> {
    const isCommitted = batchNumber < this.#trees[mode].count;
    return isCommitted && !(await this.store.has(batchKey("missing", mode, batchNumber), TEXT));
  }

  /** Verified before it is returned. Throws as {@link Archive.vaultContent}. */
  async vaultProof(vaultId: VaultId): Promise<VaultProof & { readonly header: BatchHeader }> {
    const commit = await this.#commitOf(vaultId);
    return committedProof(await this.#derivedBatch(commit), vaultId, commit);
  }

  /** Units that L1 has let out of a vault, or voided. */
  async withdrawn(vaultId: VaultId): Promise<bigint> {
    return BigInt((await this.store.get<string, string>(vaultKey("withdrawn", vaultId), TEXT)) ?? "0");
  }

  /** Vaults of which something was withdrawn or voided. */
  async withdrawnVaults(): Promise<number> {
    let count = 0;
    for await (const _ of this.store.keys<string>(within("withdrawn/"))) count++;
    return count;
  }

  /** The committed vaults of an owner, by their ids. */
  async *vaultsOf(owner: Address): AsyncGenerator<VaultId> {
    const prefix = ownerKey(owner.toLowerCase() as Address, 0n).slice(0, -16);
    for await (const key of this.store.keys<string>(within(prefix))) {
      const vaultId = vaultIdOf(key);
      const { mode, batchNumber } = unpackVaultId(vaultId);
      if (batchNumber < this.#trees[mode].count) yield vaultId;
    }
  }

  /** Vaults of ERC-721 tokens that another vault held when they came; which of the two is the earlier one, L1's sequence tells. */
  async *duplicates(): AsyncGenerator<readonly [VaultId, VaultId]> {
    for await (const [key, holder] of this.store.iterator<string, string>(within("duplicate/"))) {
      yield [BigInt(holder), vaultIdOf(key)];
    }
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
    const tree = this.#trees[mode];
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
    this.#trees[mode].append(hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot })));
    this.#vaultCounts[mode] += vaultCount;
  }

  async #commitOf(vaultId: VaultId): Promise<Commit> {
    const { mode, batchNumber } = unpackVaultId(vaultId);
    const commit = await this.commit(mode, batchNumber);
    if (commit === null) throw new MintmarkError("vault_not_found", `L1 has no batch ${mode}-${batchNumber} yet.`);
    return commit;
  }

  async #derivedBatch({ mode, batchNumber, dataHash }: Commit): Promise<DerivedBatch> {
    const key = `${mode}/${batchNumber}`;
    if (this.#derived?.key === key) return this.#derived.batch;
    const data = await this.dataOf(dataHash);
    if (data === null) {
      const batch = `${mode}-${batchNumber}`;
      throw new MintmarkError("proof_not_ready", `The data of ${batch} is missing; rebuild with a member that has it.`);
    }
    const batch = deriveBatch(mode, batchNumber, data);
    this.#derived = { key, batch };
    return batch;
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
