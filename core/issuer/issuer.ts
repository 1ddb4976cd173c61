import type { LocalAccount } from "viem";
import { Archive } from "../archive/archive.ts";
import { type BatchContent, vaultsOf } from "../archive/derive.ts";
import * as keys from "../archive/keys.ts";
import { type AssetReader, assetsIn } from "../archive/vault-index.ts";
import { deriveProposed, MAX_AHEAD, Refusal, requireRegistered } from "../committee/proposed.ts";
import { MintmarkError } from "../errors.ts";
import { type Address, batchIdOf, type Hash, type Hex, MODES, type Mode } from "../model.ts";
import type {
  AssetId,
  ConsentAsset,
  IssuerReader,
  L1Reader,
  ProposedBatch,
  VaultContent,
} from "../ports.ts";
import { manifestHash } from "../protocol/blob-batch.ts";
import { countOf } from "../protocol/commitment.ts";
import { assetsHash, consentTypedData } from "../protocol/consent.ts";
import { bytesToHex, keccak256 } from "../protocol/hex.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import { compareAssets } from "../protocol/manifest.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import { contentHashes } from "../protocol/receipt.ts";
import type { Database } from "../store/ports.ts";
import type { IssuedVault, MintRecord } from "./usage-book.ts";

/** Options of an issuer. */
export interface IssuerOptions {
  readonly account: LocalAccount;
  /**
   * The issuer that the tokens name: a wallet contract that accepts the account's signatures.
   * Default: the account.
   */
  readonly address?: Address;
  /**
   * The issuer's own store, empty at first. Its {@link MintRecord} may write there after the
   * opening. {@link Issuer.close} closes it.
   */
  readonly store: Database;
  readonly l1: AssetReader & Pick<IssuerReader, "issuers"> & Pick<L1Reader, "state">;
  readonly record: MintRecord;
  /**
   * Checks blobs; not closed with the issuer. Default: a thread of its own, which the first blob
   * starts.
   */
  readonly kzg?: Kzg;
}

/** An issuer's consent to a batch. */
export interface IssuerConsent {
  /** `IssuerConsent` over {@link IssuerConsent.assets}: 65 bytes, `r ‖ s ‖ v`. */
  readonly signature: Hex;
  /** Asset types that it covers, in the manifest's order. */
  readonly assets: readonly Hash[];
  /** Asset types that name this issuer and that it does not cover, with reasons. */
  readonly refused: readonly { readonly assetType: Hash; readonly reason: string }[];
}

/** A content that the issuer signed for a batch number. */
interface SignedContent {
  readonly content: Hash;
  readonly dataHash: Hash;
  /** The issuer's assets in it, each with the hash of its vaults. */
  readonly assets: readonly (AssetId & { readonly vaults: Hash })[];
}

/**
 * Most stored contents of one batch number: slots become void a few times at most, and a hostile
 * operator would fill the disk.
 */
const MAX_CONTENTS = 16;
const MAX_REASON = 300; // Most characters of the reason for a token

/**
 * The issuer of tokens, a guard against the operator. It signs a batch after it has stored the
 * data, for each token of which its record covers every vault. A token that it does not sign for
 * costs its other tokens nothing: anyone can register a token that names this issuer. It signs a
 * second content of a batch number only if its own vaults are the same as in every content that it
 * signed before, also after a restart.
 *
 * Its store is an {@link Archive}. After each update of it from L1 (by a `Watcher`), call {@link
 * Issuer.settle}: it frees the mints that the final history left out.
 *
 * @example
 * const issuer = await Issuer.open({ account, store, l1, record: new LocalMintRecord(store) });
 */
export class Issuer {
  readonly address: Address;
  readonly archive: Archive;
  readonly #account: LocalAccount;
  readonly #l1: IssuerOptions["l1"];
  readonly #record: MintRecord;

  private constructor(
    { account, address = account.address, l1, record }: IssuerOptions,
    archive: Archive,
  ) {
    this.address = address.toLowerCase() as Address;
    this.archive = archive;
    this.#account = account;
    this.#l1 = l1;
    this.#record = record;
  }

  /**
   * Opens the issuer's store. Rejects with `store_mismatch` for another settlement contract's
   * store.
   */
  static async open(options: IssuerOptions): Promise<Issuer> {
    return new Issuer(options, await Archive.open(options));
  }

  /**
   * Stores and checks a batch of either mode, then signs for the tokens that its record covers.
   *
   * @throws Refusal with the reason, if it signs for none
   */
  async consent(batch: ProposedBatch): Promise<IssuerConsent> {
    const { assets, derived, refused } = await this.archive.inTurn(() => this.#take(batch));
    const { mode, batchNumber } = batch;
    const { vaultCount, content, assets: named } = derived;
    const message = {
      mode,
      batchNumber,
      vaultCount,
      content,
      manifest: manifestHash(named),
      assetsHash: assetsHash(assets),
    };
    const signature = await this.#account.signTypedData(
      consentTypedData(this.archive.settlement, message),
    );
    return { signature, assets: assets.map(({ assetType }) => assetType), refused };
  }

  /**
   * The stored data of a batch, of its newest signed content; null when this issuer has not seen
   * it.
   */
  async data(mode: Mode, batchNumber: number): Promise<Uint8Array | null> {
    const committed = await this.archive.data(mode, batchNumber);
    if (committed !== null) return committed;
    const newest = (await this.#signed(mode, batchNumber)).at(-1);
    return newest === undefined ? null : this.archive.dataOf(newest.dataHash);
  }

  /**
   * Tells the record which vaults of newly final batches L1 pays. Returns the number of batches.
   */
  async settle(signal?: AbortSignal): Promise<number> {
    let settled = 0;
    for (const mode of MODES) {
      const from = await this.#firstUnsettled(mode);
      const unsettled = this.archive.store.keys<string>(keys.within(`unsettled/${mode}/`));
      const left = await Array.fromAsync(unsettled, keys.batchNumberOf);
      const count = countOf(mode, this.archive.state());
      for (let next = from; next < count; next++) left.push(next);
      for (const batchNumber of left) {
        signal?.throwIfAborted();
        if (await this.archive.inTurn(() => this.#settle(mode, batchNumber))) settled++;
      }
    }
    return settled;
  }

  close(): Promise<void> {
    return this.archive.close();
  }

  /**
   * Checks everything, then writes data and record durably. Returns what the issuer signs of the
   * batch.
   */
  async #take(batch: ProposedBatch) {
    const { mode, batchNumber, dataHash } = batch;
    const batchId = batchIdOf(mode, batchNumber);
    if ((await this.archive.commit(mode, batchNumber)) !== null)
      throw new Refusal("committed", `L1 has committed ${batchId}; no consent changes it`);
    const committed = countOf(mode, await this.#l1.state());
    if (batchNumber >= committed + MAX_AHEAD)
      throw new Refusal(
        "ahead",
        `L1 has only ${committed} ${mode} batches: commit those before ${batchNumber} first`,
      );
    const signed = await this.#signed(mode, batchNumber);
    const derived = await deriveProposed(batch, this.archive);
    const { content } = derived;
    const vaults = this.#here(derived);
    const named = (await this.#named(vaults)).filter(({ suspended }) => !suspended);
    if (named.length === 0)
      throw new Refusal("not_issuer", `${batchId} holds no asset of issuer ${this.address}`);
    const before = signed.flatMap((earlier) => earlier.assets);
    for (const asset of before) {
      if (vaultsHash(vaults, asset) !== asset.vaults)
        throw new Refusal(
          "equivocation",
          `a consent stands for other vaults of ${asset.assetType} in ${batchId}`,
        );
    }
    const same = signed.find((earlier) => earlier.content === content);
    if (same === undefined && signed.length >= MAX_CONTENTS)
      throw new Refusal("equivocation", `${batchId} has had ${MAX_CONTENTS} contents`);
    await requireRegistered(derived, this.archive.assets);
    // Mints used by an earlier content stay used, because that content may still become final.
    const types = new Set([...named, ...before].map(({ assetType }) => assetType));
    const used = this.#issued(vaults.filter(({ assetType }) => types.has(assetType)));
    const reasons = new Map<Address, string>();
    for (const [token, minted] of Map.groupBy(used, (vault) => vault.token)) {
      const reason = await this.#record.use(batchId, token, minted);
      if (reason !== null) reasons.set(token, reason.slice(0, MAX_REASON));
    }
    const reasonOf = ({ chainId, assetType }: AssetId) =>
      reasons.get(this.archive.assets.known(chainId, assetType)?.token as Address);
    const assets = named.filter((asset) => reasonOf(asset) === undefined);
    if (assets.length === 0) throw new Refusal("not_allowed", [...reasons.values()].join("; "));
    const refused = named.flatMap((asset) => {
      const reason = reasonOf(asset);
      return reason === undefined ? [] : [{ assetType: asset.assetType, reason }];
    });
    const added = assets
      .filter(({ assetType }) => !same?.assets.some((earlier) => earlier.assetType === assetType))
      .map(({ chainId, assetType }) => ({
        chainId,
        assetType,
        vaults: vaultsHash(vaults, { chainId, assetType }),
      }));
    if (added.length > 0) {
      const others = signed.filter((earlier) => earlier !== same);
      const newest: SignedContent = {
        content,
        dataHash,
        assets: [...(same?.assets ?? []), ...added],
      };
      const consent = [
        keys.batchKey("consent", mode, batchNumber),
        keys.toText([...others, newest]),
      ] as const;
      await this.archive.write(new Map([consent]), batch, keys.DURABLE);
    }
    return { assets, derived, refused };
  }

  /** Whether a final batch is settled now; false while its data is missing. */
  async #settle(mode: Mode, batchNumber: number): Promise<boolean> {
    const data = await this.archive.data(mode, batchNumber);
    if (data !== null) {
      // L1 left some assets out of the batch, so it pays nobody of those.
      const commit = await this.archive.commit(mode, batchNumber);
      const place = commit ?? { mode, batchNumber };
      const vaults = this.#here(await this.archive.deriving.deriveCommitted(place, data));
      const signed = (await this.#signed(mode, batchNumber)).flatMap(({ assets }) => assets);
      const types = new Set(
        [...(await this.#named(vaults)), ...signed].map(({ assetType }) => assetType),
      );
      const own = vaults.filter(({ assetType }) => types.has(assetType));
      await this.archive.assets.learn(own);
      await this.#record.settle(batchIdOf(mode, batchNumber), this.#issued(own));
    }
    const changes = new Map([
      [keys.batchKey("unsettled", mode, batchNumber), data === null ? "" : null],
    ]);
    if (batchNumber >= (await this.#firstUnsettled(mode)))
      changes.set(settledKey(mode), `${batchNumber + 1}`);
    await this.archive.write(changes, undefined, keys.DURABLE);
    return data !== null;
  }

  /** The first final batch that was not settled. */
  async #firstUnsettled(mode: Mode): Promise<number> {
    return Number((await this.archive.text(settledKey(mode))) ?? "0");
  }

  /** Only tokens of the state's own chain have issuers. */
  #here(batch: BatchContent): VaultContent[] {
    return vaultsOf(batch).filter(({ chainId }) => chainId === this.archive.settlement.chainId);
  }

  /** The assets of these vaults that name this issuer, in the manifest's order. */
  async #named(
    vaults: readonly VaultContent[],
  ): Promise<(ConsentAsset & { readonly suspended: boolean })[]> {
    const assets = assetsIn(vaults).sort(compareAssets);
    const issuers = assets.length === 0 ? [] : await this.#l1.issuers(assets);
    return assets.flatMap((asset, i) => {
      const named = issuers[i] ?? null;
      if (named?.issuer.toLowerCase() !== this.address) return [];
      return [{ ...asset, issuerEpoch: named.epoch, suspended: named.suspended }];
    });
  }

  #issued(vaults: readonly VaultContent[]): IssuedVault[] {
    return vaults.flatMap(({ vaultId, chainId, owner, assetType, amount, mintingBlob }) => {
      const asset = this.archive.assets.known(chainId, assetType);
      // L1 took it before its asset was registered, so it never pays.
      if (asset === null) return [];
      const { standard, token, quantum, mintingBlobScheme } = asset;
      const tokenId = readTokenId(() => tokenIdOf(standard, mintingBlobScheme, mintingBlob));
      return [{ vaultId, owner, token, standard, amount: amount * quantum, mintingBlob, tokenId }];
    });
  }

  /** Oldest first. */
  async #signed(mode: Mode, batchNumber: number): Promise<readonly SignedContent[]> {
    return (
      keys.fromText(await this.archive.text(keys.batchKey("consent", mode, batchNumber))) ?? []
    );
  }
}

/** null for a minting blob that the scheme refuses: L1 pays no such vault. */
function readTokenId(read: () => bigint | null): bigint | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof MintmarkError && error.code === "minting_blob_invalid") return null;
    throw error;
  }
}

/** One hash over the contents of an asset's vaults, which hold their ids. */
function vaultsHash(vaults: readonly VaultContent[], { chainId, assetType }: AssetId): Hash {
  const own = vaults.filter((vault) => vault.chainId === chainId && vault.assetType === assetType);
  return bytesToHex(keccak256(contentHashes(own)));
}

/**
 * Records of an issuer, besides the archive's and its mint record's:
 *
 * ```
 * consent/<mode>/<number>    JSON: the contents that were signed of a batch
 * settled/<mode>             decimal: batches that the record was told of once they were final
 * unsettled/<mode>/<number>  final batches below that whose data nobody has given yet
 * ```
 */
const settledKey = (mode: Mode) => `settled/${mode}`;
