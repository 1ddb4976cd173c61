import { BLOB_SCHEMES, type BlobScheme, type Hash } from "../../model.ts";
import type { AssetId, L1Reader, L1Registration } from "../../ports.ts";
import { assetKey } from "./keys.ts";

/** A cache of L1's registry, which is permanent. Nothing else is asked: a token may answer with anything, or never. */
export class KnownAssets {
  readonly #l1: AssetReader;
  readonly #known = new Map<string, L1Registration>();

  constructor(l1: AssetReader) {
    this.#l1 = l1;
  }

  /**
   * Reads unknown assets, many at once: a hostile batch can name another asset in each of its million vaults. Reads at
   * the newest final block, or at `notBefore` if later, so a node that lags gives an error, not an old answer.
   */
  async learn(assets: Iterable<AssetId>, notBefore = 0n): Promise<void> {
    const asked = assetsIn(assets).filter(({ chainId, assetType }) => this.known(chainId, assetType) === null);
    if (asked.length === 0) return;
    const final = await this.#l1.finalizedBlockNumber();
    const registrations = await this.#l1.registrations(asked, final > notBefore ? final : notBefore);
    for (const [i, { chainId, assetType }] of asked.entries()) {
      const registration = registrations[i] ?? null;
      if (registration === null) continue;
      // Blobs of another chain's tokens are all accepted, because only the registry there could refuse one.
      const asset = this.#isHere(chainId) ? registration : ({ ...registration, blobScheme: "mintmark" } as const);
      this.#known.set(assetKey(chainId, assetType), asset);
    }
  }

  /** The result of {@link learn}; null while the asset is not registered. */
  known(chainId: bigint, assetType: Hash): L1Registration | null {
    return this.#known.get(assetKey(chainId, assetType)) ?? null;
  }

  /** The ways to read the asset's blobs. For a token of another chain, only the registry there knows the right one. */
  schemes(chainId: bigint, { blobScheme }: L1Registration): readonly BlobScheme[] {
    return this.#isHere(chainId) ? [blobScheme] : BLOB_SCHEMES;
  }

  /** Most base units ever withdrawable, as the token states; null without a bound, or on another chain. */
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
  for (const { chainId, assetType } of assets) found.set(assetKey(chainId, assetType), { chainId, assetType });
  return [...found.values()];
}

/** The part of L1 that reads the registry. */
export type AssetReader = Pick<L1Reader, "settlement" | "finalizedBlockNumber" | "registrations" | "supplyCap">;
