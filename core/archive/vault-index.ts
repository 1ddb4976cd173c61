import { setImmediate as nextPass } from "node:timers/promises";
import { settledBlock } from "../blocks.ts";
import { type Hash, MINTING_BLOB_SCHEMES, type MintingBlobScheme, type Mode } from "../model.ts";
import { inPieces } from "../pieces.ts";
import type {
  AssetId,
  BatchHeader,
  L1Reader,
  L1Registration,
  ProposedBatch,
  Settlement,
  VaultContent,
} from "../ports.ts";
import { invariant } from "../protocol/bounds.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import { tokenIdOf, unpayable } from "../protocol/minting-blob.ts";
import { unpackBatchVaultId } from "../protocol/vault.ts";
import type { Database } from "../store/ports.ts";
import type { ArchiveReads } from "./archive-reads.ts";
import { type BatchContent, vaultsOf } from "./derive.ts";
import type { DerivingThread } from "./deriving-thread.ts";
import * as keys from "./keys.ts";

/**
 * A cache of L1's registry, which is permanent. Nothing else is asked: a token may answer with
 * anything, or never.
 */
export class KnownAssets {
  readonly #l1: AssetReader;
  readonly #known = new Map<string, L1Registration>();

  constructor(l1: AssetReader) {
    this.#l1 = l1;
  }

  /**
   * Reads unknown assets, many at once: a hostile batch can name another asset in each of its
   * million vaults. Reads at the settled block, or at `notBefore` if later, so a node that lags
   * gives an error, not an old answer.
   */
  async learn(assets: Iterable<AssetId>, notBefore = 0n): Promise<void> {
    const asked = assetsIn(assets).filter(
      ({ chainId, assetType }) => this.known(chainId, assetType) === null,
    );
    if (asked.length === 0) return;
    const final = await settledBlock(this.#l1);
    const registrations = await this.#l1.registrations(
      asked,
      final > notBefore ? final : notBefore,
    );
    for (const [i, { chainId, assetType }] of asked.entries()) {
      const registration = registrations[i] ?? null;
      if (registration === null) continue;
      // Minting blobs of another chain's tokens are all accepted, because only the registry there
      // could refuse one.
      const asset = this.#isHere(chainId)
        ? registration
        : ({ ...registration, mintingBlobScheme: "mintmark" } as const);
      this.#known.set(keys.assetKey(chainId, assetType), asset);
    }
  }

  /** The result of {@link learn}; null while the asset is not registered. */
  known(chainId: bigint, assetType: Hash): L1Registration | null {
    return this.#known.get(keys.assetKey(chainId, assetType)) ?? null;
  }

  /**
   * The ways to read the asset's minting blobs. For a token of another chain, only the registry
   * there knows the right one.
   */
  schemes(chainId: bigint, { mintingBlobScheme }: L1Registration): readonly MintingBlobScheme[] {
    return this.#isHere(chainId) ? [mintingBlobScheme] : MINTING_BLOB_SCHEMES;
  }

  /**
   * Most base units ever withdrawable, as the token states; null without a bound, or on another
   * chain.
   */
  async cap(chainId: bigint, { standard, token }: L1Registration): Promise<bigint | null> {
    return standard === "erc20" && this.#isHere(chainId) ? this.#l1.supplyCap(token) : null;
  }

  #isHere(chainId: bigint): boolean {
    return chainId === this.#l1.settlement.chainId;
  }
}

/** Each asset once. */
export function assetsIn(assets: Iterable<AssetId>): AssetId[] {
  const found = new Map<string, AssetId>();
  for (const { chainId, assetType } of assets)
    found.set(keys.assetKey(chainId, assetType), { chainId, assetType });
  return [...found.values()];
}

/** The part of L1 that reads the registry. */
export type AssetReader = Pick<
  L1Reader,
  "settlement" | "blockNumber" | "finalizedBlockNumber" | "registrations" | "supplyCap"
>;

/**
 * A vault whose token is taken: an ERC-721 by another vault, an ERC-1155 id by another minting
 * blob.
 */
export interface Repeat {
  readonly vault: VaultContent;
  readonly asset: L1Registration;
  /** Scheme by which both ids are compared. */
  readonly scheme: MintingBlobScheme;
  /** ERC-721: the other vault's id in decimal; ERC-1155: the minting blob. */
  readonly holder: string;
}

/** The writes that add a batch to the index. */
export interface IndexEntries {
  readonly puts: Map<string, string>;
  readonly repeats: readonly Repeat[];
}

/** When L1 took a batch. */
export type TakenAt = Pick<BatchHeader, "sequence"> & { readonly blockNumber: bigint };

// Vaults read from the index at once: some ms of the event loop
const CHUNK = 1_024;

/** The ground that the parts of an archive share. */
export interface ArchiveGround {
  /** A store of its own, not shared. */
  readonly store: Database;
  readonly settlement: Settlement;
  /** Checks and opens blobs. */
  readonly kzg: Kzg;
  readonly assets: KnownAssets;
  /** Derives the batches whose vaults are put into the index, or leave it. */
  readonly deriving: DerivingThread;
}

/** The vaults of a batch, and the manifest of their assets. */
type NamedVaults = Pick<BatchContent, "assets" | "slots">;

export type BatchData = Pick<ProposedBatch, "dataHash" | "data">;

export type ArchiveIndex = ReturnType<typeof archiveIndex>;

/** Writes of an archive, with the index of its vaults. */
export function archiveIndex(ground: ArchiveGround, reads: ArchiveReads) {
  const index = {
    /**
     * The writes that add a batch's vaults to the index, none if they are there; and the tokens
     * already taken.
     *
     * @param taken - when L1 took the batch; null before
     */
    async indexing(
      mode: Mode,
      batchNumber: number,
      batch: BatchContent,
      taken: TakenAt | null,
    ): Promise<IndexEntries> {
      const key = keys.batchKey("indexed", mode, batchNumber);
      const indexed = await reads.text(key);
      const name = [batch.dataHash, batch.leftOut, batch.unnamed].join(" ");
      if (indexed === name) return { puts: new Map(), repeats: [] };
      // The member signed a batch that L1 did not take, or took without some assets: those vaults
      // do not exist.
      if (indexed !== undefined) {
        invariant(mode === "validium", "a rollup batch has other data than before");
        await index.unindex(batchNumber);
      }
      const { puts, repeats } = await indexEntries(ground, batch, taken);
      return { puts: puts.set(key, name), repeats };
    },

    /**
     * Removes a validium batch that L1 did not take from the index, with the member's record, in
     * one write.
     */
    async unindex(batchNumber: number, record?: string): Promise<void> {
      const key = keys.batchKey("indexed", "validium", batchNumber);
      const [dataHash, ...places] = (await reads.text(key))?.split(" ") ?? [];
      const [leftOut = [], unnamed = []] = places.map((list) =>
        list.split(",").filter(Boolean).map(Number),
      );
      const place = { mode: "validium", batchNumber, leftOut, unnamed } as const;
      const batch =
        dataHash === undefined
          ? { assets: [], slots: [] }
          : await ground.deriving.deriveCommitted(place, await reads.storedData(dataHash as Hash));
      const changes = (await indexRemovals(ground, batch)).set(key, null);
      await index.write(record === undefined ? changes : changes.set(record, null));
    },

    /** Writes changes at once, with a batch's data. */
    async write(
      changes: ReadonlyMap<string, string | null>,
      batch?: BatchData,
      options: object = {},
    ): Promise<void> {
      const write = ground.store.batch();
      const entries = changes.entries();
      await inPieces(changes.size, () => {
        const [key, value] = entries.next().value!;
        if (value === null) write.del(key, keys.TEXT);
        else write.put(key, value, keys.TEXT);
      });
      if (batch !== undefined) write.put(keys.dataKey(batch.dataHash), batch.data, keys.BYTES);
      await write.write(options);
    },
  };
  return index;
}

/**
 * The entries of a batch's vaults, in slot order. The first holder of a token stays. A vault that
 * L1 took before its asset's registration never counts: it holds no token and no part of a cap.
 *
 * @param taken - null while L1 has not taken the batch: then a vault counts if its asset is
 *   registered
 */
async function indexEntries(
  { store, assets }: ArchiveGround,
  batch: NamedVaults,
  taken: TakenAt | null,
): Promise<IndexEntries> {
  await assets.learn(batch.assets, taken?.blockNumber);
  const vaults = vaultsOf(batch);
  const puts = new Map<string, string>();
  const repeats: Repeat[] = [];
  const minted = new Map<string, bigint>();
  for (let start = 0; start < vaults.length; start += CHUNK) {
    // A store in memory answers without one.
    if (start > 0) await nextPass();
    const all = vaults
      .slice(start, start + CHUNK)
      .map((vault) => ({ vault, ...takenBy(assets, vault, taken) }));
    for (const { vault, fault, units, tokens } of all) {
      if (fault === null) puts.set(keys.ownerKey(vault.owner, vault.vaultId), "");
      else puts.set(keys.vaultKey("unpayable", vault.vaultId), fault);
      if (units !== null) minted.set(units.key, (minted.get(units.key) ?? 0n) + units.amount);
      for (const { asset, reading, tokenId } of tokens) {
        if (asset.standard !== "erc1155") continue;
        const bound = keys.boundKey(reading, tokenId, unpackBatchVaultId(vault.vaultId));
        if (!puts.has(bound)) puts.set(bound, vault.mintingBlob);
      }
    }
    const tokens = all.flatMap(({ vault, tokens }) => tokens.map((token) => ({ vault, ...token })));
    const stored = await store.getMany<string, string>(
      tokens.map(({ key }) => key),
      keys.TEXT,
    );
    for (const [i, { vault, asset, scheme, reading, key }] of tokens.entries()) {
      const mine = asset.standard === "erc721" ? vault.vaultId.toString() : vault.mintingBlob;
      const holder = puts.get(key) ?? stored[i];
      if (holder === undefined) puts.set(key, mine);
      else if (holder !== mine) {
        if (asset.standard === "erc721")
          puts.set(keys.duplicateKey(reading, vault.vaultId), holder);
        repeats.push({ vault, asset, scheme, holder });
      }
    }
  }
  const lines = [...minted.keys()];
  const before = await store.getMany<string, string>(lines, keys.TEXT);
  for (const [i, key] of lines.entries())
    puts.set(key, ((minted.get(key) ?? 0n) + BigInt(before[i] ?? "0")).toString());
  return { puts, repeats };
}

/**
 * The changes that remove the vaults of a batch that L1 did not take. Tokens of other holders stay.
 * A token of these vaults goes to a later vault, and an ERC-1155 id to another batch's minting
 * blob, if there is one. null deletes a key.
 */
async function indexRemovals({ store, assets }: ArchiveGround, batch: NamedVaults) {
  await assets.learn(batch.assets);
  const vaults = vaultsOf(batch);
  const changes = new Map<string, string | null>();
  /** Tokens by reading, with the vault that held them. */
  const freed = new Map<string, string>();
  for (const vault of vaults) {
    const { vaultId, owner } = vault;
    changes.set(keys.ownerKey(owner, vaultId), null).set(keys.vaultKey("unpayable", vaultId), null);
    const { units, tokens } = takenBy(assets, vault, null);
    if (units) {
      const before =
        changes.get(units.key) ?? (await store.get<string, string>(units.key, keys.TEXT)) ?? "0";
      changes.set(units.key, (BigInt(before) - units.amount).toString());
    }
    for (const { asset, reading, tokenId, key } of tokens) {
      if (asset.standard === "erc1155") {
        const own = keys.boundKey(reading, tokenId, unpackBatchVaultId(vaultId));
        if (changes.has(own)) continue;
        changes.set(own, null).set(key, await boundBeside(store, own, reading, tokenId));
      } else {
        changes.set(keys.duplicateKey(reading, vaultId), null);
        const holder = await store.get<string, string>(key, keys.TEXT);
        if (holder === vaultId.toString()) freed.set(`${reading}/${holder}`, key);
      }
    }
  }
  const heirs = new Map<string, string>();
  for await (const [key, holder] of store.iterator<string, string>(keys.within("duplicate/"))) {
    const held = `${key.slice(key.indexOf("/") + 1, key.lastIndexOf("/"))}/${holder}`;
    if (!freed.has(held) || changes.has(key)) continue;
    const heir = heirs.get(held) ?? keys.vaultIdOf(key).toString();
    changes.set(key, heirs.has(held) ? heir : null);
    heirs.set(held, heir);
  }
  for (const [held, token] of freed) changes.set(token, heirs.get(held) ?? null);
  return changes;
}

/** The minting blob for an ERC-1155 id in a batch other than this key's; null without one. */
async function boundBeside(
  store: Database,
  own: string,
  reading: string,
  tokenId: bigint,
): Promise<string | null> {
  const others = { ...keys.within(keys.boundPrefix(reading, tokenId)), limit: 2 };
  for await (const [key, mintingBlob] of store.iterator<string, string>(others))
    if (key !== own) return mintingBlob;
  return null;
}

/**
 * A vault that counts takes a token for each way of reading its minting blob, or base units of an
 * ERC-20. `fault` is why L1 never pays it, whatever way its minting blob is read.
 */
function takenBy(assets: KnownAssets, vault: VaultContent, taken: TakenAt | null) {
  const { chainId, assetType, mintingBlob } = vault;
  const asset = assets.known(chainId, assetType);
  if (asset === null || (taken !== null && taken.sequence < asset.since))
    return { fault: null, units: null, tokens: [] };
  const schemes = assets.schemes(chainId, asset);
  const faults = schemes.map((scheme) => unpayable(vault, asset.standard, scheme));
  const tokens = schemes.flatMap((scheme, i) => {
    const tokenId = faults[i] === null ? tokenIdOf(asset.standard, scheme, mintingBlob) : null;
    if (tokenId === null) return [];
    const reading = keys.readingKey(chainId, assetType, scheme);
    return [{ asset, scheme, reading, tokenId, key: keys.tokenKey(reading, tokenId) }];
  });
  const fault = faults.includes(null) ? null : (faults[0] ?? null);
  return { fault, units: fault === null ? fungibleUnits(vault, asset) : null, tokens };
}

/**
 * Base units that an ERC-20 vault mints, since a token can have several quanta; null for other
 * standards.
 */
function fungibleUnits(
  { chainId, amount }: VaultContent,
  { standard, token, quantum }: L1Registration,
) {
  return standard === "erc20"
    ? { key: keys.mintedKey(chainId, token), amount: amount * quantum }
    : null;
}
