import type { BlobScheme } from "../../model.ts";
import type { BatchHeader, L1Registration, VaultContent } from "../../ports.ts";
import { tokenIdOf, unpayable } from "../../protocol/blob.ts";
import { unpackVaultId } from "../../protocol/vault.ts";
import type { Database } from "../../store/ports.ts";
import * as keys from "./keys.ts";
import type { KnownAssets } from "./known-assets.ts";

/** A vault whose token is taken: an ERC-721 by another vault, an ERC-1155 id by another blob. */
export interface Repeat {
  readonly vault: VaultContent;
  readonly asset: L1Registration;
  /** The way of reading both blobs. */
  readonly scheme: BlobScheme;
  /** ERC-721: the other vault's id in decimal; ERC-1155: the blob. */
  readonly holder: string;
}

/** The writes that add a batch to the index. */
export interface IndexEntries {
  readonly puts: Map<string, string>;
  readonly repeats: readonly Repeat[];
}

/** When L1 took a batch. */
export type TakenAt = Pick<BatchHeader, "sequence"> & { readonly blockNumber: bigint };

const CHUNK = 4_096; // Vaults read from the index at once

/**
 * Tokens, owners and minted amounts of an archive's vaults. Reads the store and returns the changes; writes nothing.
 */
export class VaultIndex {
  readonly #store: Database;
  readonly #assets: KnownAssets;

  constructor(store: Database, assets: KnownAssets) {
    this.#store = store;
    this.#assets = assets;
  }

  /**
   * The entries of a batch's vaults, in slot order. The first holder of a token stays. A vault that L1 took before its
   * asset's registration never counts: it holds no token and no part of a cap.
   *
   * @param taken - null while L1 has not taken the batch: then a vault counts if its asset is registered
   */
  async entries(vaults: readonly VaultContent[], taken: TakenAt | null): Promise<IndexEntries> {
    await this.#assets.learn(vaults, taken?.blockNumber);
    const puts = new Map<string, string>();
    const repeats: Repeat[] = [];
    const minted = new Map<string, bigint>();
    for (let start = 0; start < vaults.length; start += CHUNK) {
      const all = vaults.slice(start, start + CHUNK).map((vault) => ({ vault, ...this.#takenBy(vault, taken) }));
      for (const { vault, fault, units, tokens } of all) {
        if (fault === null) puts.set(keys.ownerKey(vault.owner, vault.vaultId), "");
        else puts.set(keys.vaultKey("unpayable", vault.vaultId), fault);
        if (units !== null) minted.set(units.key, (minted.get(units.key) ?? 0n) + units.amount);
        for (const { asset, reading, tokenId } of tokens) {
          if (asset.standard !== "erc1155") continue;
          const bound = keys.boundKey(reading, tokenId, unpackVaultId(vault.vaultId));
          if (!puts.has(bound)) puts.set(bound, vault.blob);
        }
      }
      const tokens = all.flatMap(({ vault, tokens }) => tokens.map((token) => ({ vault, ...token })));
      const stored = await this.#store.getMany<string, string>(
        tokens.map(({ key }) => key),
        keys.TEXT,
      );
      for (const [i, { vault, asset, scheme, reading, key }] of tokens.entries()) {
        const mine = asset.standard === "erc721" ? vault.vaultId.toString() : vault.blob;
        const holder = puts.get(key) ?? stored[i];
        if (holder === undefined) puts.set(key, mine);
        else if (holder !== mine) {
          if (asset.standard === "erc721") puts.set(keys.duplicateKey(reading, vault.vaultId), holder);
          repeats.push({ vault, asset, scheme, holder });
        }
      }
    }
    const lines = [...minted.keys()];
    const before = await this.#store.getMany<string, string>(lines, keys.TEXT);
    for (const [i, key] of lines.entries())
      puts.set(key, ((minted.get(key) ?? 0n) + BigInt(before[i] ?? "0")).toString());
    return { puts, repeats };
  }

  /**
   * The changes that remove the vaults of a batch that L1 did not take. Tokens of other holders stay. A token of these
   * vaults goes to a later vault, and an ERC-1155 id to another batch's blob, if there is one. null deletes a key.
   */
  async removals(vaults: readonly VaultContent[]): Promise<Map<string, string | null>> {
    await this.#assets.learn(vaults);
    const changes = new Map<string, string | null>();
    /** Tokens by reading, with the vault that held them. */
    const freed = new Map<string, string>();
    for (const vault of vaults) {
      const { vaultId, owner } = vault;
      changes.set(keys.ownerKey(owner, vaultId), null).set(keys.vaultKey("unpayable", vaultId), null);
      const { units, tokens } = this.#takenBy(vault, null);
      if (units) {
        const before = changes.get(units.key) ?? (await this.#store.get<string, string>(units.key, keys.TEXT)) ?? "0";
        changes.set(units.key, (BigInt(before) - units.amount).toString());
      }
      for (const { asset, reading, tokenId, key } of tokens) {
        if (asset.standard === "erc1155") {
          const own = keys.boundKey(reading, tokenId, unpackVaultId(vaultId));
          if (changes.has(own)) continue;
          changes.set(own, null).set(key, await this.#boundBeside(own, reading, tokenId));
        } else {
          changes.set(keys.duplicateKey(reading, vaultId), null);
          const holder = await this.#store.get<string, string>(key, keys.TEXT);
          if (holder === vaultId.toString()) freed.set(`${reading}/${holder}`, key);
        }
      }
    }
    const heirs = new Map<string, string>();
    for await (const [key, holder] of this.#store.iterator<string, string>(keys.within("duplicate/"))) {
      const held = `${key.slice(key.indexOf("/") + 1, key.lastIndexOf("/"))}/${holder}`;
      if (!freed.has(held) || changes.has(key)) continue;
      const heir = heirs.get(held) ?? keys.vaultIdOf(key).toString();
      changes.set(key, heirs.has(held) ? heir : null);
      heirs.set(held, heir);
    }
    for (const [held, token] of freed) changes.set(token, heirs.get(held) ?? null);
    return changes;
  }

  /** The blob for an ERC-1155 id in a batch other than this key's; null without one. */
  async #boundBeside(own: string, reading: string, tokenId: bigint): Promise<string | null> {
    const others = { ...keys.within(keys.boundPrefix(reading, tokenId)), limit: 2 };
    for await (const [key, blob] of this.#store.iterator<string, string>(others)) if (key !== own) return blob;
    return null;
  }

  /**
   * What a vault that counts takes: a token for each way of reading its blob, or base units of an ERC-20; or why L1 never
   * pays it, whatever way its blob is read.
   */
  #takenBy(vault: VaultContent, taken: TakenAt | null) {
    const { chainId, assetType, blob } = vault;
    const asset = this.#assets.known(chainId, assetType);
    if (asset === null || (taken !== null && taken.sequence < asset.since))
      return { fault: null, units: null, tokens: [] };
    const schemes = this.#assets.schemes(chainId, asset);
    const faults = schemes.map((scheme) => unpayable(vault, asset.standard, scheme));
    const tokens = schemes.flatMap((scheme, i) => {
      const tokenId = faults[i] === null ? tokenIdOf(asset.standard, scheme, blob) : null;
      if (tokenId === null) return [];
      const reading = keys.readingKey(chainId, assetType, scheme);
      return [{ asset, scheme, reading, tokenId, key: keys.tokenKey(reading, tokenId) }];
    });
    const fault = faults.includes(null) ? null : (faults[0] ?? null);
    return { fault, units: fault === null ? fungibleUnits(vault, asset) : null, tokens };
  }
}

/** Base units that an ERC-20 vault mints, since a token can have several quanta; null for other standards. */
function fungibleUnits({ chainId, amount }: VaultContent, { standard, token, quantum }: L1Registration) {
  return standard === "erc20" ? { key: keys.mintedKey(chainId, token), amount: amount * quantum } : null;
}
