import { MintmarkError } from "../errors.ts";
import {
  type Address,
  type Hash,
  type MintingBlobScheme,
  MODES,
  type Mode,
  type VaultId,
} from "../model.ts";
import type { CommitEvent, Settlement, VaultContent } from "../ports.ts";
import { stateCommitment, stateLeaf } from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import type { CountedMaking } from "../protocol/making.ts";
import type { EngineState } from "../protocol/proof.ts";
import { StateTree } from "../protocol/state-tree.ts";
import { unpackVaultId } from "../protocol/vault.ts";
import type { Database } from "../store/ports.ts";
import { type DerivedBatch, deriveCommitted, isBatch, vaultsAt } from "./derive.ts";
import type { Commit } from "./keys.ts";
import * as keys from "./keys.ts";

export type ArchiveReads = ReturnType<typeof archiveReads>;

/** Reads of an archive: committed batches and their data, owners, and withdrawals. */
export function archiveReads(store: Database, settlement: Settlement) {
  const trees: Record<Mode, StateTree> = {
    validium: new StateTree(),
    "zk-rollup": new StateTree(),
  };
  const vaultCounts: Record<Mode, number> = { validium: 0, "zk-rollup": 0 };
  /** The batch derived last: consecutive proofs often use one batch. */
  let derivedLast: { readonly key: string; readonly batch: DerivedBatch } | null = null;

  const reads = {
    /** The state of all committed batches that the archive has read. */
    state: (): EngineState => reads.stateAfter([]),

    /** The state once these commits have followed, in L1's order. */
    stateAfter(commits: readonly CommitEvent[]): EngineState {
      const leavesOf = (mode: Mode) =>
        commits.flatMap((commit) => (commit.mode === mode ? [stateLeaf(commit)] : []));
      const [validium, rollup] = [leavesOf("validium"), leavesOf("zk-rollup")];
      const roots = {
        countValidium: trees.validium.count + validium.length,
        countRollup: trees["zk-rollup"].count + rollup.length,
        rootValidium: reads.rootWith("validium", validium),
        rootRollup: reads.rootWith("zk-rollup", rollup),
      };
      return { ...roots, commitment: stateCommitment(settlement, roots) };
    },

    /** The root of a mode's state tree if these leaves followed its committed batches. */
    rootWith(mode: Mode, leaves: readonly Hash[]): Hash {
      const tree = trees[mode];
      const { count } = tree;
      try {
        for (const leaf of leaves) tree.append(hexToBytes(leaf));
        return bytesToHex(tree.root());
      } finally {
        tree.truncate(count);
      }
    },

    /** Slots of all committed batches of a mode. */
    vaultCount: (mode: Mode): number => vaultCounts[mode],

    /** Committed batches of a mode. */
    count: (mode: Mode): number => trees[mode].count,

    /** Number of commits of both modes, which is the sequence number of the next. */
    commits: (): bigint => BigInt(trees.validium.count + trees["zk-rollup"].count),

    /** The record under a key; undefined without one. */
    text(key: string): Promise<string | undefined> {
      return store.get<string, string>(key, keys.TEXT);
    },

    async commit(mode: Mode, batchNumber: number): Promise<Commit | null> {
      return keys.commitFromText(
        mode,
        batchNumber,
        await reads.text(keys.batchKey("commit", mode, batchNumber)),
      );
    },

    /** The data of a committed batch; null while no source has given it. */
    async data(mode: Mode, batchNumber: number): Promise<Uint8Array | null> {
      const commit = await reads.commit(mode, batchNumber);
      return commit === null ? null : reads.dataOf(commit.dataHash);
    },

    async dataOf(dataHash: Hash): Promise<Uint8Array | null> {
      return (await store.get<string, Uint8Array>(keys.dataKey(dataHash), keys.BYTES)) ?? null;
    },

    /** The data that another record names. Throws `store_corrupt` without it. */
    async storedData(dataHash: Hash): Promise<Uint8Array> {
      const data = await reads.dataOf(dataHash);
      if (data !== null) return data;
      throw new MintmarkError("store_corrupt", `The data ${dataHash} is missing.`);
    },

    /** Committed batches without data, in order. */
    async missing(): Promise<{ readonly mode: Mode; readonly batchNumber: number }[]> {
      const found = await Array.fromAsync(store.keys<string>(keys.within("missing/")));
      return found.map((key) => ({
        mode: key.split("/")[1] as Mode,
        batchNumber: keys.batchNumberOf(key),
      }));
    },

    /**
     * Batches of transfers with a record that waits for the data of the vault that it spends, in
     * order.
     */
    async unjudged(): Promise<number[]> {
      const found = await Array.fromAsync(store.keys<string>(keys.within("unjudged/zk-rollup/")));
      return found.map(keys.batchNumberOf);
    },

    /** Whether L1 has committed the batch and the archive has its data. */
    async holds(mode: Mode, batchNumber: number): Promise<boolean> {
      const isCommitted = batchNumber < reads.count(mode);
      return (
        isCommitted && !(await store.has(keys.batchKey("missing", mode, batchNumber), keys.TEXT))
      );
    },

    /** The making of a number; null while none is final. */
    async making(making: number): Promise<CountedMaking | null> {
      const { chainId } = settlement;
      const stored = keys.fromText<Pick<CountedMaking, "sequence" | "vaults">>(
        await reads.text(keys.makingKey(making)),
      );
      return stored && { ...stored, chainId, making };
    },

    /** Units of a vault that L1 has paid. */
    async paid(vaultId: VaultId): Promise<bigint> {
      return BigInt((await reads.text(keys.vaultKey("withdrawn", vaultId))) ?? "0");
    },

    /** Number of vaults that L1 has paid from, and of mints that it has voided. */
    async withdrawnVaults(): Promise<number> {
      let count = 0;
      for (const kind of ["withdrawn/", "voided/"])
        for await (const _ of store.keys<string>(keys.within(kind))) count++;
      return count;
    },

    /** The committed vaults of an owner, ordered by id, without those that it has transferred. */
    async *vaultsOf(owner: Address): AsyncGenerator<VaultId> {
      const prefix = keys.ownerKey(owner.toLowerCase() as Address, 0n).slice(0, -16);
      for await (const key of store.keys<string>(keys.within(prefix))) {
        const vaultId = keys.vaultIdOf(key);
        const { mode, batchNumber } = unpackVaultId(vaultId);
        if (mode === "made" || batchNumber < reads.count(mode)) yield vaultId;
      }
    },

    /**
     * Pairs of vaults of one ERC-721 token of a chain, by one way of reading minting blobs. L1's
     * sequence orders the two.
     */
    async *duplicates(chainId: bigint) {
      for await (const [key, holder] of store.iterator<string, string>(
        keys.within(`duplicate/${chainId}/`),
      )) {
        const [, , assetType, scheme] = key.split("/");
        const reading = { assetType: assetType as Hash, scheme: scheme as MintingBlobScheme };
        yield { ...reading, holder: BigInt(holder), vaultId: keys.vaultIdOf(key) };
      }
    },

    /**
     * Single vaults of a committed batch that the archive {@link holds}, without those that do not
     * exist.
     */
    async vaultsAt(commit: Commit, ids: readonly VaultId[]): Promise<VaultContent[]> {
      const data = await reads.storedData(commit.dataHash);
      const unpayable = ids.map((id) => keys.vaultKey("unpayable", id));
      const faults = await store.getMany<string, string>(unpayable, keys.TEXT);
      return vaultsAt(
        commit,
        data,
        ids.filter((_, i) => faults[i] === undefined),
      );
    },

    /** A committed batch from its data. Throws `proof_not_ready` when the data is missing. */
    async derived(commit: Commit): Promise<DerivedBatch> {
      const { mode, batchNumber } = commit;
      const key = `${mode}/${batchNumber}`;
      if (derivedLast?.key === key) return derivedLast.batch;
      const data = await reads.dataOf(commit.dataHash);
      const batch = data === null ? null : deriveCommitted(commit, data);
      // Another batch can have the same data while this batch's root does not match it.
      if (batch === null || !isBatch(batch, commit)) {
        const name = `${mode}-${batchNumber}`;
        throw new MintmarkError(
          "proof_not_ready",
          `The data of ${name} is missing; rebuild with a member that has it.`,
        );
      }
      derivedLast = { key, batch };
      return batch;
    },

    /** The record under a key, in its own shape; null without one. */
    async record<T>(key: string): Promise<T | null> {
      return keys.fromText(await reads.text(key));
    },

    has: (key: string): Promise<boolean> => store.has(key, keys.TEXT),

    append(commit: Commit): void {
      trees[commit.mode].append(hexToBytes(stateLeaf(commit)));
      vaultCounts[commit.mode] += commit.vaultCount;
    },

    forget(): void {
      derivedLast = null;
      for (const mode of MODES) {
        trees[mode].truncate(0);
        vaultCounts[mode] = 0;
      }
    },
  };
  return reads;
}
