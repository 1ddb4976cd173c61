import type { LocalAccount } from "viem";
import type { Database } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import type { Address, BlobScheme, Hash, Hex, Standard } from "../model.ts";
import type { L1Reader, SealedBatch, VaultContent } from "../ports.ts";
import { BatchDataError } from "../protocol/batch-data.ts";
import { decodeBatchData, placeVaults } from "../protocol/batch-decoder.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import { keccak256 } from "../protocol/hash.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { validiumBatchTypedData } from "../protocol/typed-data.ts";
import { vaultLeaves } from "../protocol/vault.ts";
import { CommitteeRefusal } from "./refusal.ts";

export interface MemberOptions {
  readonly account: LocalAccount;
  /** The member's own store, shared with nobody. Closed by {@link CommitteeMember.close}. */
  readonly store: Database;
  readonly l1: Pick<L1Reader, "settlement" | "registration" | "token">;
}

interface KnownAsset {
  readonly standard: Standard;
  readonly scheme: BlobScheme;
}

/**
 * One member of the data availability committee. It signs a validium batch only after it has stored the whole data and re-derived from it
 * what it signs, and never signs two roots for one batch number: what it has stored decides, also after a restart.
 *
 * Store: `b/<number>` batch data, `r/<number>` root, count and data hash as JSON, `t/<assetType>/<token id>` the vault that holds an ERC-721 token
 * or the blob bound to an ERC-1155 id.
 */
export class CommitteeMember {
  readonly address: Address;
  readonly #options: MemberOptions;
  readonly #assets = new Map<string, KnownAsset>();
  /** Batches are taken one at a time: the index of tokens is read and written as one step. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: MemberOptions) {
    this.#options = options;
    this.address = options.account.address.toLowerCase() as Address;
  }

  /**
   * Stores and checks a batch, then signs it: 65 bytes, `r ‖ s ‖ v`.
   *
   * @throws CommitteeRefusal with the reason, when the batch is not what it claims or another one was signed under its number
   */
  sign(batch: SealedBatch, epoch: bigint): Promise<Hex> {
    const turn = this.#last.catch(() => {}).then(() => this.#sign(batch, epoch));
    this.#last = turn;
    return turn;
  }

  /** The stored data of a batch, null when this member has not seen it. */
  async data(batchNumber: number): Promise<Uint8Array | null> {
    return (await this.#options.store.get<string, Uint8Array>(key("b", batchNumber), BYTES)) ?? null;
  }

  /** The number of the first batch that this member has not stored. */
  async nextBatch(): Promise<number> {
    const newest = { ...TEXT, gte: "r/", lt: "r0", reverse: true, limit: 1 };
    for await (const stored of this.#options.store.keys<string>(newest))
      return Number.parseInt(stored.slice(2), 16) + 1;
    return 0;
  }

  async close(): Promise<void> {
    await this.#last.catch(() => {});
    await this.#options.store.close();
  }

  async #sign(batch: SealedBatch, epoch: bigint): Promise<Hex> {
    const { batchNumber, batchRoot, vaultCount, dataHash } = batch;
    if (batch.mode !== "validium") throw new CommitteeRefusal("mode", "the committee signs validium batches only");
    const record = JSON.stringify({ batchRoot, vaultCount, dataHash });
    const earlier = await this.#options.store.get<string, string>(key("r", batchNumber), TEXT);
    if (earlier === undefined) await this.#take(batch, record);
    else if (earlier !== record) {
      throw new CommitteeRefusal("equivocation", `another root was signed for validium batch ${batchNumber}`);
    }
    return this.#options.account.signTypedData(
      validiumBatchTypedData(this.#options.l1.settlement, { ...batch, epoch }),
    );
  }

  /** Checks everything, then writes data, record and token index at once. */
  async #take(batch: SealedBatch, record: string): Promise<void> {
    const { batchNumber, data } = batch;
    const { store } = this.#options;
    if (batchNumber > 0 && (await store.get<string, string>(key("r", batchNumber - 1), TEXT)) === undefined) {
      throw new CommitteeRefusal("gap", `validium batch ${batchNumber - 1} has not been seen`);
    }
    if (bytesToHex(keccak256(data)) !== batch.dataHash)
      throw new CommitteeRefusal("data_hash", "the data is not of this hash");
    const tokens = await this.#check(batch);
    const write = store.batch();
    write.put(key("b", batchNumber), data, BYTES);
    for (const [token, holder] of tokens) write.put(token, holder, TEXT);
    write.put(key("r", batchNumber), record, TEXT);
    await write.write({ sync: true } as object);
  }

  /** The index entries that the batch adds. What the decoder or a blob scheme does not take is refused as `malformed`. */
  async #check(batch: SealedBatch): Promise<Map<string, string>> {
    try {
      return await this.#newTokens(await this.#derive(batch));
    } catch (error) {
      const malformed =
        error instanceof BatchDataError || (error instanceof MintmarkError && error.code === "blob_invalid");
      throw malformed ? new CommitteeRefusal("malformed", error.message) : error;
    }
  }

  /** Decodes the data under L1's own rules and compares the tree that it makes with the claimed root. */
  async #derive(batch: SealedBatch): Promise<VaultContent[]> {
    const slots = placeVaults(decodeBatchData(batch.data), batch.mode, batch.batchNumber);
    const vaults = slots.filter((vault) => vault !== null);
    for (const { chainId, assetType } of vaults) await this.#asset(chainId, assetType);
    // Once more with what L1 says of each asset: amounts of ERC-721, blobs of ERC-20.
    decodeBatchData(batch.data, {
      standardOf: (chainId, assetType) => this.#assets.get(assetKey(chainId, assetType))?.standard ?? null,
    });
    const root = bytesToHex(new BatchTree(vaultLeaves(slots)).root);
    if (slots.length !== batch.vaultCount || root !== batch.batchRoot) {
      throw new CommitteeRefusal("root", `the data makes root ${root} of ${slots.length} slots`);
    }
    return vaults;
  }

  /** Index entries for the batch's tokens; refuses a token that is there already. */
  async #newTokens(vaults: readonly VaultContent[]): Promise<Map<string, string>> {
    const added = new Map<string, string>();
    for (const { vaultId, chainId, assetType, blob } of vaults) {
      const { standard, scheme } = await this.#asset(chainId, assetType);
      const tokenId = tokenIdOf(standard, scheme, blob);
      if (tokenId === null) continue;
      const at = `t/${assetKey(chainId, assetType)}/${tokenId.toString(16)}`;
      const holder = standard === "erc721" ? vaultId.toString() : blob;
      const known = added.get(at) ?? (await this.#options.store.get<string, string>(at, TEXT));
      if (known !== undefined && (standard === "erc721" || known !== blob)) {
        throw new CommitteeRefusal("duplicate", `vault ${vaultId} repeats a token of ${known}`);
      }
      added.set(at, holder);
    }
    return added;
  }

  async #asset(chainId: bigint, assetType: Hash): Promise<KnownAsset> {
    const id = assetKey(chainId, assetType);
    const known = this.#assets.get(id);
    if (known !== undefined) return known;
    const registration = await this.#options.l1.registration(chainId, assetType);
    if (registration === null) throw new CommitteeRefusal("unregistered", `asset ${assetType} is not registered on L1`);
    const { standard, token } = registration;
    // Registration is permanent, so what L1 says once is good for ever.
    const asset = { standard, scheme: (await this.#options.l1.token(token, standard)).blobScheme };
    this.#assets.set(id, asset);
    return asset;
  }
}

const TEXT = { keyEncoding: "utf8", valueEncoding: "utf8" } as const;
const BYTES = { keyEncoding: "utf8", valueEncoding: "view" } as const;

function key(kind: "b" | "r", batchNumber: number): string {
  return `${kind}/${batchNumber.toString(16).padStart(8, "0")}`;
}

function assetKey(chainId: bigint, assetType: Hash): string {
  return `${chainId}/${assetType}`;
}
