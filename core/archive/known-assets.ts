import type { Hash } from "../model.ts";
import type { L1Reader, L1Registration } from "../ports.ts";
import { assetKey } from "./keys.ts";

/** What L1 says of a registered asset. */
export interface KnownAsset extends L1Registration {
  /** Most quantized units that can ever be withdrawn; null for no bound, and for a token of a chain that cannot be read. */
  readonly cap: bigint | null;
}

/** The registry of L1, asked once for each asset: registration is permanent, so what L1 says once is good for ever. */
export class KnownAssets {
  readonly #l1: AssetReader;
  readonly #known = new Map<string, KnownAsset>();

  constructor(l1: AssetReader) {
    this.#l1 = l1;
  }

  /** null while the asset is not registered. */
  async find(chainId: bigint, assetType: Hash): Promise<KnownAsset | null> {
    const key = assetKey(chainId, assetType);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const registration = await this.#l1.registration(chainId, assetType);
    if (registration === null) return null;
    const { token, standard, quantum } = registration;
    const isHere = chainId === this.#l1.settlement.chainId;
    const far = isHere ? null : (this.#l1.elsewhere?.(chainId) ?? null);
    const cap = standard === "erc20" ? ((await (isHere ? this.#l1 : far)?.supplyCap(token)) ?? null) : null;
    // L1's registry speaks for tokens of its own chain. Of a chain that cannot be read, every blob is taken as it is: the strictest reading
    // that refuses no valid one.
    const blobScheme = isHere
      ? registration.blobScheme
      : ((await far?.token(token, standard))?.blobScheme ?? "mintmark");
    const asset = { ...registration, blobScheme, cap: cap === null ? null : cap / quantum };
    this.#known.set(key, asset);
    return asset;
  }

  /** What {@link find} has found before. */
  known(chainId: bigint, assetType: Hash): KnownAsset | null {
    return this.#known.get(assetKey(chainId, assetType)) ?? null;
  }
}

/** The part of L1 that tells of assets. */
export type AssetReader = Pick<L1Reader, "settlement" | "registration" | "supplyCap"> & {
  /** The chain of that id, for its tokens; null when it cannot be read. Default: no other chain can. */
  readonly elsewhere?: (chainId: bigint) => Pick<L1Reader, "token" | "supplyCap"> | null;
};
