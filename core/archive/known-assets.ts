import { BLOB_SCHEMES, type BlobScheme, type Hash } from "../model.ts";
import type { AssetId, L1Reader, L1Registration } from "../ports.ts";
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

  /**
   * Asks for those that are not known, many at once: a hostile batch can name another asset in each of its million vaults. What counts is the
   * registry as of the newest final block, or of `notBefore` if that is later. So a node that lags behind gives an error, not an old answer.
   */
  async learn(assets: Iterable<AssetId>, notBefore = 0n): Promise<void> {
    const unknown = new Map<string, AssetId>();
    for (const { chainId, assetType } of assets) {
      const key = assetKey(chainId, assetType);
      if (!this.#known.has(key)) unknown.set(key, { chainId, assetType });
    }
    if (unknown.size === 0) return;
    const asked = [...unknown.values()];
    const final = await this.#l1.finalizedBlockNumber();
    const registrations = await this.#l1.registrations(asked, final > notBefore ? final : notBefore);
    for (const [i, asset] of asked.entries()) this.#learn(asset, registrations[i] ?? null);
  }

  /** What {@link learn} has found before; null while the asset is not registered. */
  known(chainId: bigint, assetType: Hash): L1Registration | null {
    return this.#known.get(assetKey(chainId, assetType)) ?? null;
  }

  /** In which ways its blobs may name tokens: of another chain's, only the registry there knows which one holds. */
  schemes(chainId: bigint, { blobScheme }: L1Registration): readonly BlobScheme[] {
    return this.#isHere(chainId) ? [blobScheme] : BLOB_SCHEMES;
  }

  /** Most base units that can ever be withdrawn, as the token itself says; null for no bound, and for a token of another chain. */
  async cap(chainId: bigint, { standard, token }: L1Registration): Promise<bigint | null> {
    return standard === "erc20" && this.#isHere(chainId) ? this.#l1.supplyCap(token) : null;
  }

  #learn({ chainId, assetType }: AssetId, registration: L1Registration | null): void {
    if (registration === null) return;
    // L1's registry speaks for tokens of its own chain. Of another one's, every blob is taken as it is, so that no valid one is refused.
    const asset = this.#isHere(chainId) ? registration : ({ ...registration, blobScheme: "mintmark" } as const);
    this.#known.set(assetKey(chainId, assetType), asset);
  }

  #isHere(chainId: bigint): boolean {
    return chainId === this.#l1.settlement.chainId;
  }
}

/** The part of L1 that tells of assets. */
export type AssetReader = Pick<L1Reader, "settlement" | "finalizedBlockNumber" | "registrations" | "supplyCap">;
