import { MODES, type Mode, type Standard } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import type { BatchPlace, BatchVaultPlace, VaultPlace } from "../protocol/vault.ts";
import { emptyOf } from "../store/layout.ts";
import { type PlacedMint, vaultIdOf } from "../store/mint-entry.ts";
import { type BatchRecord, batchRecord, itemSlotsRecord } from "../store/records.ts";
import { keyOf, keyString } from "../store/store-keys.ts";
import { TokenHasher } from "../store/token-id.ts";
import { encodeBatchTokens } from "../store/token-index.ts";
import { CHUNK_VAULTS, encodeChunk, type StoredVault } from "../store/vault-columns.ts";
import { type Expected, type Output, ReferencePart } from "./reference-records.ts";
import type { ReferenceTenants } from "./reference-tenants.ts";
import { TokenTable } from "./token-table.ts";

export function batchName({ mode, batchNumber }: BatchPlace): string {
  return `batch ${batchNumber} of ${mode}`;
}

export function putBatch(out: Output, record: BatchRecord): void {
  out.put(keyOf.batch(record.mode, record.batchNumber), batchRecord, record, batchName(record));
}

export function putChunks(
  out: Output,
  { mode, batchNumber }: BatchPlace,
  vaults: readonly StoredVault[],
): void {
  for (let first = 0; first < vaults.length; first += CHUNK_VAULTS) {
    const name = `vaults ${first} to ${first + CHUNK_VAULTS - 1} of batch ${batchNumber} of ${mode}`;
    const key = keyOf.chunk(mode, batchNumber, first / CHUNK_VAULTS);
    out.bytes(key, encodeChunk(vaults.slice(first, first + CHUNK_VAULTS)), name);
  }
}

export function tokenName(assetIndex: number, tokenId: bigint): string {
  return `${tokenId} of asset ${assetIndex}`;
}

type Content = Pick<StoredVault, "assetIndex" | "mintingBlob">;

/** The binding of an ERC-1155 id, and the first batch of each mode that holds it. */
interface Binding {
  readonly record: Expected;
  readonly firsts: Readonly<Partial<Record<Mode, number>>>;
}

/** An ERC-721 token whose vault became void, or was replaced. */
export interface RemovedToken {
  readonly hash: number;
  readonly token: string; // Its {@link tokenName}
  readonly removedAt: number;
}

/**
 * The tokens of the journal. Those of vaults that a later entry can take away are in memory, by
 * hash. All others stay, and the records of their batches hold the hashes: the end compares these.
 */
export class ReferenceTokens extends ReferencePart<{
  readonly tenants: ReferenceTenants;
  readonly seed: Uint8Array;
  /** Whether a later entry makes slots of the batch void, or replaces it. */
  readonly changesLater: (place: BatchPlace) => boolean;
}> {
  readonly #hasher = new TokenHasher(this.parts.seed);
  readonly #table = new TokenTable();
  /** Number of ERC-721 tokens. */
  size = 0;
  /** Tokens whose hash equals an earlier token's, by {@link tokenName}. */
  readonly #suspects: { readonly earlier: BatchVaultPlace; readonly token: string }[] = [];
  readonly removed: RemovedToken[] = [];
  readonly #bindings = new Map<string, Binding>(); // Bindings that a later adoption can change

  /** The token id of a minting blob; null for none. */
  idOf({ assetIndex, mintingBlob }: Content): bigint | null {
    const asset = this.parts.tenants.asset(assetIndex);
    return asset === undefined
      ? null
      : tokenIdOf(asset.standard, asset.mintingBlobScheme, mintingBlob);
  }

  /** The record of a batch's tokens; null for a void slot. */
  recordOf(vaults: readonly (StoredVault | null)[]): Buffer {
    const found = vaults.flatMap((vault, slot) => {
      const tokenId = vault && this.#idOf("erc721", vault);
      return vault === null || tokenId === null
        ? []
        : [{ slot, hash: this.#hasher.ofId(vault.assetIndex, tokenId) }];
    });
    const hashes = Uint32Array.from(found, ({ hash }) => hash);
    return encodeBatchTokens({ hashes, slots: Uint32Array.from(found, ({ slot }) => slot) });
  }

  /** Adds vaults to the supplies and the tokens, or removes them; null for a void slot. */
  countAll(
    place: BatchPlace,
    vaults: readonly (StoredVault | null)[],
    sign: 1n | -1n,
    firstSlot = 0,
  ): void {
    for (const [i, vault] of vaults.entries())
      if (vault !== null) this.count({ ...place, slot: firstSlot + i }, vault, sign);
  }

  /** Adds minted units to the supply, and an ERC-721 token to the tokens; or removes both. */
  count(
    place: BatchVaultPlace,
    vault: Content & { readonly amount: bigint },
    sign: 1n | -1n,
  ): void {
    const { assetIndex, amount } = vault;
    this.parts.tenants.countSupply(assetIndex, sign * amount);
    const tokenId = this.#idOf("erc721", vault);
    if (tokenId === null) return;
    if (sign < 0n) this.remove(place, assetIndex, tokenId);
    else {
      this.add(place, assetIndex, tokenId);
      this.parts.tenants.countId(assetIndex, tokenId);
    }
  }

  /** The binding of an ERC-1155 vault's id; to be kept while a later adoption can change it. */
  bind(place: BatchPlace, vault: Content, isKept: boolean): void {
    const tokenId = this.#idOf("erc1155", vault);
    if (tokenId === null) return;
    const { assetIndex, mintingBlob } = vault;
    const record = {
      key: keyOf.binding(assetIndex, tokenId),
      value: hexToBytes(mintingBlob),
      name: `token ${tokenId}`,
    };
    const name = keyString(record.key);
    const { firsts = {} } = this.#bindings.get(name) ?? {};
    if (isKept)
      this.#bindings.set(name, { record, firsts: { [place.mode]: place.batchNumber, ...firsts } });
    else this.out.bytes(record.key, record.value, record.name);
  }

  /** Deletes bindings that no batch holds once the batches from these on are gone. */
  unbind(dropped: readonly BatchPlace[]): void {
    for (const [name, { record, firsts }] of this.#bindings) {
      const left = Object.entries(firsts).filter(([mode, first]) =>
        dropped.every((from) => from.mode !== mode || first < from.batchNumber),
      );
      if (left.length === 0) this.#bindings.delete(name);
      else this.#bindings.set(name, { record, firsts: Object.fromEntries(left) });
    }
  }

  /** Puts out the bindings, which nothing changes any more. */
  override finish(): void {
    for (const { record } of this.#bindings.values())
      this.out.bytes(record.key, record.value, record.name);
    this.#bindings.clear();
  }

  /** The slots of a sealed batch by ERC-1155 id; null for a void slot. */
  putItems({ mode, batchNumber }: BatchPlace, vaults: readonly (StoredVault | null)[]): void {
    const slots = new Map<string, { readonly key: Buffer; readonly slots: number[] }>();
    for (const [slot, vault] of vaults.entries()) {
      const tokenId = vault && this.#idOf("erc1155", vault);
      if (vault === null || tokenId === null) continue;
      const key = keyOf.item(vault.assetIndex, tokenId, mode, batchNumber);
      const known = slots.get(keyString(key));
      if (known === undefined) slots.set(keyString(key), { key, slots: [slot] });
      else known.slots.push(slot);
    }
    for (const { key, slots: held } of slots.values())
      this.out.put(key, itemSlotsRecord, held, `the vaults of a token in ${mode}-${batchNumber}`);
  }

  add(place: BatchVaultPlace, assetIndex: number, tokenId: bigint): void {
    const hash = this.#hasher.ofId(assetIndex, tokenId);
    for (const earlier of this.#table.find(hash))
      this.#suspects.push({ earlier, token: tokenName(assetIndex, tokenId) });
    if (this.parts.changesLater(place)) this.#table.add(hash, place);
    this.size++;
  }

  /** A vault became void, so its token is free. */
  remove(place: BatchVaultPlace, assetIndex: number, tokenId: bigint): void {
    const hash = this.#hasher.ofId(assetIndex, tokenId);
    this.size--;
    this.#table.remove(hash, place);
    const token = tokenName(assetIndex, tokenId);
    this.removed.push({ hash, token, removedAt: this.out.time });
  }

  /** The suspects since the last call. */
  suspects() {
    return this.#suspects.splice(0);
  }

  /** The token id of a vault of this standard; null for any other. */
  #idOf(standard: Standard, vault: Content): bigint | null {
    return this.parts.tenants.asset(vault.assetIndex)?.standard === standard
      ? this.idOf(vault)
      : null;
  }
}

/** A batch before sealing: open, or closed. */
interface Growing {
  readonly vaults: StoredVault[];
  mintCount: number;
  readonly transfers: boolean;
}

/** The part of the reference that puts mints into the vaults of unsealed batches. */
export class ReferenceVaults extends ReferencePart<{
  readonly tenants: ReferenceTenants;
  readonly tokens: ReferenceTokens;
}> {
  vaults = 0;
  mints = 0;
  readonly #growing: Record<Mode, Map<number, Growing>> = {
    validium: new Map(),
    "zk-rollup": new Map(),
  };

  at({ mode, batchNumber, slot }: VaultPlace): StoredVault | undefined {
    if (mode === "made") return undefined;
    return this.#growing[mode].get(batchNumber)?.vaults[slot];
  }

  /** Adds one mint to its vault by the rules of docs/protocol.md 3. */
  place(
    mint: PlacedMint,
    applicationIndex: number,
    userIndex: number,
    isBindingKept: boolean,
  ): void {
    const { assetIndex, amount, mintingBlob, mode, batchNumber, slot } = mint;
    const { report, time } = this.out;
    const asset = this.parts.tenants.asset(assetIndex);
    const user = this.parts.tenants.owner(userIndex);
    if (asset === undefined || user?.applicationIndex !== applicationIndex) {
      report(`vault ${vaultIdOf(mint)} has no asset or no user`);
      return;
    }
    this.mints++;
    const batch = this.#batch(mode, batchNumber);
    const vault = batch.vaults[slot];
    batch.mintCount++;
    if (mint.amountBefore === 0n) {
      if (slot !== batch.vaults.length) report(`vault ${vaultIdOf(mint)} is out of order`);
      const holder = { applicationIndex, userIndex, owner: user.owner };
      batch.vaults.push({
        ...holder,
        assetIndex,
        amount,
        mintingBlob,
        createdAt: time,
        updatedAt: time,
      });
      this.vaults++;
    } else if (
      vault?.userIndex !== userIndex ||
      vault.assetIndex !== assetIndex ||
      vault.mintingBlob !== mintingBlob ||
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

  /** The batches of mints that are not sealed. */
  unsealed(): (BatchPlace & { readonly vaults: readonly StoredVault[] })[] {
    return MODES.flatMap((mode) =>
      [...this.#growing[mode]].flatMap(([batchNumber, { vaults, transfers }]) =>
        transfers ? [] : [{ mode, batchNumber, vaults }],
      ),
    );
  }

  /** Adds a batch of transfers, which takes no mints. */
  addTransfers(batchNumber: number, vaults: StoredVault[]): void {
    if (this.#growing["zk-rollup"].has(batchNumber))
      this.out.report(`transfers are put into batch ${batchNumber} of mints`);
    this.#growing["zk-rollup"].set(batchNumber, {
      vaults,
      mintCount: 0,
      transfers: true,
    });
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
    return dropped.map(([batchNumber, batch]) => ({
      mode,
      batchNumber,
      ...batch,
      all: batch.vaults,
    }));
  }

  override finish(): void {
    for (const mode of MODES) {
      for (const [batchNumber, { vaults, ...facts }] of this.#growing[mode]) {
        const place = {
          mode,
          batchNumber,
          openedAt: vaults[0]?.createdAt ?? 0,
          vaultCount: vaults.length,
        };
        putBatch(this.out, { ...emptyOf(batchRecord), ...facts, ...place });
        putChunks(this.out, place, vaults);
      }
    }
  }

  #batch(mode: Mode, batchNumber: number): Growing {
    const known = this.#growing[mode].get(batchNumber);
    if (known !== undefined) return known;
    const first = { vaults: [], mintCount: 0, transfers: false };
    this.#growing[mode].set(batchNumber, first);
    return first;
  }
}
