import { MODES, type Mode } from "../../model.ts";
import { hexToBytes } from "../../protocol/hex.ts";
import type { VaultPlace } from "../../protocol/vault.ts";
import { type PlacedMint, vaultIdOf } from "../../store/mint-entry.ts";
import * as keys from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { batchExpected, chunksExpected, type Expected, expectedRecord } from "./reference-records.ts";
import type { ReferenceTenants } from "./reference-tenants.ts";
import type { ReferenceTokens } from "./reference-tokens.ts";

/** A batch before sealing: open, or closed. */
interface Growing {
  readonly vaults: StoredVault[];
  mintCount: number;
  /** Whether it is in blobs, as its first mint says. */
  readonly inBlobs: boolean;
  readonly transfers: boolean;
}

/** The part of the reference that puts mints into the vaults of unsealed batches. */
export class ReferenceVaults {
  vaults = 0;
  mints = 0;
  readonly #report: (problem: string) => void;
  readonly #tenants: ReferenceTenants;
  readonly #tokens: ReferenceTokens;
  readonly #growing: Record<Mode, Map<number, Growing>> = { validium: new Map(), "zk-rollup": new Map() };

  constructor(report: (problem: string) => void, tenants: ReferenceTenants, tokens: ReferenceTokens) {
    this.#report = report;
    this.#tenants = tenants;
    this.#tokens = tokens;
  }

  at({ mode, batchNumber, slot }: VaultPlace): StoredVault | undefined {
    return this.#growing[mode].get(batchNumber)?.vaults[slot];
  }

  /** Adds one mint to its vault by the rules of docs/protocol.md 3. */
  place(mint: PlacedMint, applicationIndex: number, userIndex: number, time: number): Expected[] {
    const { assetIndex, amount, blob, mode, batchNumber, inBlobs, slot } = mint;
    const asset = this.#tenants.asset(assetIndex);
    const user = this.#tenants.owner(userIndex);
    if (asset === undefined || user?.applicationIndex !== applicationIndex) {
      this.#report(`vault ${vaultIdOf(mint)} has no asset or no user`);
      return [];
    }
    this.mints++;
    this.#tenants.countSupply(assetIndex, amount);
    const batch = this.#batch(mode, batchNumber, inBlobs);
    if (batch.inBlobs !== inBlobs) this.#report(`vault ${vaultIdOf(mint)} is in a batch of another kind`);
    const vault = batch.vaults[slot];
    batch.mintCount++;
    if (mint.amountBefore === 0n) {
      if (slot !== batch.vaults.length) this.#report(`vault ${vaultIdOf(mint)} is out of order`);
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
      this.#report(`a mint was added to vault ${vaultIdOf(mint)}, which does not match it`);
    } else {
      vault.amount += amount;
      vault.updatedAt = time;
    }
    const tokenId = this.#tokens.idOf(mint);
    if (tokenId === null) return [];
    if (asset.standard === "erc721") {
      this.#tokens.add(mint, tokenId);
      this.#tenants.countId(assetIndex, tokenId);
      return [];
    }
    const key = keys.bindingKey(assetIndex, tokenId);
    return [expectedRecord(key, Buffer.from(hexToBytes(blob)), `token ${tokenId} of ${asset.assetId}`)];
  }

  /** Adds a batch of transfers, which takes no mints. */
  addTransfers(batchNumber: number, vaults: StoredVault[]): void {
    if (this.#growing["zk-rollup"].has(batchNumber))
      this.#report(`transfers are put into batch ${batchNumber} of mints`);
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

  finish(): Expected[] {
    return MODES.flatMap((mode) => [...this.#growing[mode]].flatMap(([number, batch]) => open(mode, number, batch)));
  }

  #batch(mode: Mode, batchNumber: number, inBlobs = false): Growing {
    const known = this.#growing[mode].get(batchNumber);
    if (known !== undefined) return known;
    const first = { vaults: [], mintCount: 0, inBlobs, transfers: false };
    this.#growing[mode].set(batchNumber, first);
    return first;
  }
}

function open(mode: Mode, batchNumber: number, { vaults, mintCount, inBlobs, transfers }: Growing): Expected[] {
  const none = {
    assets: null,
    content: null,
    batchRoot: null,
    dataHash: null,
    stateRoot: null,
    l1TxHash: null,
    l1BlockNumber: null,
  };
  const onL1 = { committedAt: null, l1Sequence: null };
  const notYet = { sealedAt: null, submittedAt: null, settledAt: null, finalizedAt: null, leftOut: null, given: false };
  const openedAt = vaults[0]?.createdAt ?? 0;
  const counts = { vaultCount: vaults.length, mintCount };
  const facts = { mode, batchNumber, status: "open" as const, ...counts, openedAt, inBlobs, transfers };
  return [batchExpected({ ...facts, ...none, ...onL1, ...notYet }), ...chunksExpected(mode, batchNumber, vaults)];
}
