import { MODES, type Mode } from "../../model.ts";
import type { VaultPlace } from "../../protocol/vault.ts";
import { type PlacedMint, vaultIdOf } from "../../store/mint-entry.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { NOT_SEALED, putBatch, putChunks } from "./reference-batches.ts";
import { Part } from "./reference-records.ts";
import type { ReferenceTenants } from "./reference-tenants.ts";
import type { ReferenceTokens } from "./reference-tokens.ts";

/** A batch before sealing: open, or closed. */
interface Growing {
  readonly vaults: StoredVault[];
  mintCount: number;
  readonly inBlobs: boolean; // Whether it is in blobs, as its first mint says
  readonly transfers: boolean;
}

/** The part of the reference that puts mints into the vaults of unsealed batches. */
export class ReferenceVaults extends Part<{ readonly tenants: ReferenceTenants; readonly tokens: ReferenceTokens }> {
  vaults = 0;
  mints = 0;
  readonly #growing: Record<Mode, Map<number, Growing>> = { validium: new Map(), "zk-rollup": new Map() };

  at({ mode, batchNumber, slot }: VaultPlace): StoredVault | undefined {
    return this.#growing[mode].get(batchNumber)?.vaults[slot];
  }

  /** Adds one mint to its vault by the rules of docs/protocol.md 3. */
  place(mint: PlacedMint, applicationIndex: number, userIndex: number, isBindingKept: boolean): void {
    const { assetIndex, amount, blob, mode, batchNumber, inBlobs, slot } = mint;
    const { report, time } = this.out;
    const asset = this.parts.tenants.asset(assetIndex);
    const user = this.parts.tenants.owner(userIndex);
    if (asset === undefined || user?.applicationIndex !== applicationIndex) {
      report(`vault ${vaultIdOf(mint)} has no asset or no user`);
      return;
    }
    this.mints++;
    const batch = this.#batch(mode, batchNumber, inBlobs);
    if (batch.inBlobs !== inBlobs) report(`vault ${vaultIdOf(mint)} is in a batch of another kind`);
    const vault = batch.vaults[slot];
    batch.mintCount++;
    if (mint.amountBefore === 0n) {
      if (slot !== batch.vaults.length) report(`vault ${vaultIdOf(mint)} is out of order`);
      const holder = { applicationIndex, userIndex, owner: user.owner };
      batch.vaults.push({ ...holder, assetIndex, amount, blob, createdAt: time, updatedAt: time });
      this.vaults++;
    } else if (
      vault?.userIndex !== userIndex ||
      vault.assetIndex !== assetIndex ||
      vault.blob !== blob ||
      vault.amount !== mint.amountBefore ||
      vault.createdAt !== time - mint.age ||
      asset.standard === "erc721"
    ) {
      report(`a mint was added to vault ${vaultIdOf(mint)}, which does not match it`);
    } else {
      vault.amount += amount;
      vault.updatedAt = time;
    }
    this.parts.tokens.count(mint, mint, 1n);
    this.parts.tokens.bind(mint, mint, isBindingKept);
  }

  /** Adds a batch of transfers, which takes no mints. */
  addTransfers(batchNumber: number, vaults: StoredVault[]): void {
    if (this.#growing["zk-rollup"].has(batchNumber))
      this.out.report(`transfers are put into batch ${batchNumber} of mints`);
    this.#growing["zk-rollup"].set(batchNumber, { vaults, mintCount: 0, inBlobs: false, transfers: true });
    this.vaults += vaults.length;
  }

  /** Removes a sealed batch and returns its content. */
  take(mode: Mode, batchNumber: number): Readonly<Growing> {
    const batch = this.#batch(mode, batchNumber);
    this.#growing[mode].delete(batchNumber);
    return batch;
  }

  /** Drops a mode's batches from `first` on, which L1's history replaces. Returns their vaults. */
  drop(mode: Mode, first: number) {
    const dropped = [...this.#growing[mode]].filter(([number]) => number >= first);
    for (const [number] of dropped) this.#growing[mode].delete(number);
    return dropped.map(([batchNumber, { vaults, transfers }]) => ({
      mode,
      batchNumber,
      transfers,
      all: vaults,
      vaults,
    }));
  }

  override finish(): void {
    for (const mode of MODES) {
      for (const [batchNumber, { vaults, ...facts }] of this.#growing[mode]) {
        const place = { mode, batchNumber, openedAt: vaults[0]?.createdAt ?? 0, vaultCount: vaults.length };
        putBatch(this.out, { ...NOT_SEALED, ...facts, ...place });
        putChunks(this.out, place, vaults);
      }
    }
  }

  #batch(mode: Mode, batchNumber: number, inBlobs = false): Growing {
    const known = this.#growing[mode].get(batchNumber);
    if (known !== undefined) return known;
    const first = { vaults: [], mintCount: 0, inBlobs, transfers: false };
    this.#growing[mode].set(batchNumber, first);
    return first;
  }
}
