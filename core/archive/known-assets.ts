import type { Hash } from "../model.ts";
import type { L1Reader, L1Registration } from "../ports.ts";
import { assetKey } from "./keys.ts";

/**
 * The registry of L1, asked once for each asset: registration is permanent, so what L1 says once is good for ever. Whoever follows L1 asks
 * nobody else, because a token may answer with anything, or never.
 */
export class KnownAssets {
  readonly #l1: AssetReader;
  readonly #known = new Map<string, L1Registration>();

  constructor(l1: AssetReader) {
    this.#l1 = l1;
  }

  /** null while the asset is not registered. */
  async find(chainId: bigint, assetType: Hash): Promise<L1Registration | null> {
    const key = assetKey(chainId, assetType);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const registration = await this.#l1.registration(chainId, assetType);
    if (registration === null) return null;
    // L1's registry speaks for tokens of its own chain. Of another one's, every blob is taken as it is: the strictest reading that refuses
    // no valid one.
    const asset = this.#isHere(chainId) ? registration : ({ ...registration, blobScheme: "mintmark" } as const);
    this.#known.set(key, asset);
    return asset;
  }

  /** What {@link find} has found before. */
  known(chainId: bigint, assetType: Hash): L1Registration | null {
    return this.#known.get(assetKey(chainId, assetType)) ?? null;
  }

  /** Most quantized units that can ever be withdrawn, as the token itself says; null for no bound, and for a token of another chain. */
  async cap(chainId: bigint, assetType: Hash): Promise<bigint | null> {
    const asset = await this.find(chainId, assetType);
    if (asset?.standard !== "erc20" || !this.#isHere(chainId)) return null;
    const cap = await this.#l1.supplyCap(asset.token);
    return cap === null ? null : cap / asset.quantum;
  }

  #isHere(chainId: bigint): boolean {
    return chainId === this.#l1.settlement.chainId;
  }
}

/** The part of L1 that tells of assets. */
export type AssetReader = Pick<L1Reader, "settlement" | "registration" | "supplyCap">;
