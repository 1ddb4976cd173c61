import { ASSET_ENTRY_BYTES, BATCH_DATA_BASE_BYTES, vaultBytesBound } from "./batch-data.ts";
import type { Limits } from "./engine-types.ts";
import type { Group } from "./group.ts";
import { MAX_AMOUNT, type Mode, type Standard } from "./model.ts";
import { chunkKey } from "./store-keys.ts";
import { CHUNK_VAULTS, encodeChunk, type StoredVault } from "./vault-chunk.ts";

/**
 * Worst-case gas of a rollup commit, kept on the safe side of what `npm run gas` measures: the transaction and its storage, hashing
 * and folding one vault, its blob's bytes, and calldata by EIP-7623's floor of 40 a byte or 16 a byte beside the execution.
 */
const GAS = { base: 200_000, vault: 1_100, blobByte: 12, floorByte: 40, byte: 16 } as const;

/** What makes two mints one vault. */
export type Holding = Pick<StoredVault, "applicationIndex" | "userIndex" | "owner" | "assetIndex" | "blob">;

/** The batch of a mode that takes mints: its vaults in memory, as the writer has them. */
export class OpenBatch {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly openedAt: number;
  readonly vaults: StoredVault[] = [];
  mintCount = 0;
  readonly #limits: Limits;
  /** Newest slot of each holding that can grow. */
  readonly #growing = new Map<string, number>();
  readonly #assets = new Set<number>();
  readonly #dirtyChunks = new Set<number>();
  /** Upper bound of the encoded data. */
  #bytes = BATCH_DATA_BASE_BYTES;
  #blobBytes = 0;

  constructor(mode: Mode, batchNumber: number, openedAt: number, limits: Limits) {
    this.mode = mode;
    this.batchNumber = batchNumber;
    this.openedAt = openedAt;
    this.#limits = limits;
  }

  /** The slot that this mint adds to, or undefined when it needs a new one. ERC-721 never adds up. */
  growing(holding: Holding, standard: Standard, amount: bigint): number | undefined {
    if (standard === "erc721") return undefined;
    const slot = this.#growing.get(growingKey(holding));
    const vault = slot === undefined ? undefined : this.vaults[slot];
    return vault !== undefined && vault.amount + amount <= MAX_AMOUNT ? slot : undefined;
  }

  /** Whether one more vault keeps the batch within what one commit can carry. The first one always fits. */
  fits(holding: Holding, amount: bigint): boolean {
    if (this.vaults.length === 0) return true;
    if (this.vaults.length >= this.#limits.batchVaults[this.mode]) return false;
    if (this.mode === "validium") return true;
    const blobBytes = (holding.blob.length - 2) / 2;
    const bytes = this.#bytes + this.#bytesOf(holding, amount);
    return (
      bytes <= this.#limits.rollupBytes &&
      rollupGas(this.vaults.length + 1, bytes, this.#blobBytes + blobBytes) <= this.#limits.rollupGas
    );
  }

  /** Puts a new vault into the next slot, and returns the slot. */
  add(holding: Holding, standard: Standard, amount: bigint, now: number): number {
    const slot = this.vaults.length;
    this.load({ ...holding, amount, createdAt: now, updatedAt: now }, standard);
    this.mintCount++;
    this.#dirtyChunks.add(Math.floor(slot / CHUNK_VAULTS));
    return slot;
  }

  /** Adds to a vault that {@link growing} named. */
  grow(slot: number, vault: StoredVault, amount: bigint, now: number): void {
    // An amount may outgrow the width it was counted with.
    this.#bytes += vaultBytesBound(vault.amount + amount, 0) - vaultBytesBound(vault.amount, 0);
    vault.amount += amount;
    vault.updatedAt = now;
    this.mintCount++;
    this.#dirtyChunks.add(Math.floor(slot / CHUNK_VAULTS));
  }

  /** Takes in the next vault as the store has it. */
  load(vault: StoredVault, standard: Standard): void {
    this.#bytes += this.#bytesOf(vault, vault.amount);
    this.#blobBytes += (vault.blob.length - 2) / 2;
    this.#assets.add(vault.assetIndex);
    const slot = this.vaults.push(vault) - 1;
    if (standard !== "erc721") this.#growing.set(growingKey(vault), slot);
  }

  get dirty(): boolean {
    return this.#dirtyChunks.size > 0;
  }

  /** Writes the chunks that changed since the last time. */
  flush(group: Group): void {
    for (const chunk of this.#dirtyChunks) {
      const first = chunk * CHUNK_VAULTS;
      const vaults = this.vaults.slice(first, first + CHUNK_VAULTS);
      group.put(chunkKey(this.mode, this.batchNumber, chunk), encodeChunk(vaults));
    }
    this.#dirtyChunks.clear();
  }

  #bytesOf(holding: Holding, amount: bigint): number {
    const asset = this.#assets.has(holding.assetIndex) ? 0 : ASSET_ENTRY_BYTES;
    return asset + vaultBytesBound(amount, (holding.blob.length - 2) / 2);
  }
}

/** Upper bound of the gas of committing a rollup batch. */
export function rollupGas(vaults: number, bytes: number, blobBytes: number): number {
  const execution = vaults * GAS.vault + blobBytes * GAS.blobByte;
  return GAS.base + Math.max(GAS.floorByte * bytes, GAS.byte * bytes + execution);
}

function growingKey(holding: Holding): string {
  return `${holding.userIndex}:${holding.assetIndex}:${holding.blob}`;
}
