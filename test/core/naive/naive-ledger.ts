import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import type { Hash, Hex, Mode } from "../../../core/model.ts";
import { encodeBatchData } from "../../../core/protocol/batch-data.ts";
import { naiveNode } from "./naive-tree.ts";
import { naiveBatchRoot, naiveStateLeaf } from "./naive-vault.ts";
import { naiveContent, naiveWordsOf } from "./naive-words.ts";

/** The model must be told this of an asset. */
export interface NaiveAsset {
  readonly standard: "erc20" | "erc721" | "erc1155";
  readonly assetType: Hash;
  readonly supplyCap: bigint | null;
  enabled: boolean;
}

export interface NaiveMint {
  readonly asset: NaiveAsset;
  readonly owner: Hex;
  readonly amount: bigint;
  readonly mintingBlob: Hex;
  /** The id that the minting blob names, told apart by the test. */
  readonly tokenId: bigint;
  readonly mode: Mode;
}

interface NaiveVault {
  readonly asset: NaiveAsset;
  readonly owner: Hex;
  readonly mintingBlob: Hex;
  readonly tokenId: bigint;
  amount: bigint;
  isVoid: boolean;
}

const MAX_AMOUNT = 2n ** 63n - 1n;

/**
 * The rules of minting over plain lists and maps, one mint at a time; knows neither journal nor
 * store nor writer.
 */
export class NaiveLedger {
  readonly batches: Record<Mode, NaiveVault[][]> = { validium: [[]], "zk-rollup": [[]] };
  readonly #tokens = new Map<string, Hex>();
  readonly #minted = new Map<NaiveAsset, bigint>();
  readonly #chainId: bigint;
  readonly #batchVaults: number;

  constructor(chainId: bigint, batchVaults: number) {
    this.#chainId = chainId;
    this.#batchVaults = batchVaults;
  }

  /** The vault ids of the mints, or the code of the first thing that is wrong; all or nothing. */
  mint(mints: readonly NaiveMint[]): bigint[] | string {
    const tokens = new Map(this.#tokens);
    const minted = new Map(this.#minted);
    const found = mints
      .map((mint) => this.#check(mint, tokens, minted))
      .find((code) => code !== null);
    if (found) return found;
    for (const [key, mintingBlob] of tokens) this.#tokens.set(key, mintingBlob);
    for (const [asset, amount] of minted) this.#minted.set(asset, amount);
    return mints.map((mint) => this.#place(mint));
  }

  #check(
    { asset, amount, mintingBlob, tokenId }: NaiveMint,
    tokens: Map<string, Hex>,
    minted: Map<NaiveAsset, bigint>,
  ) {
    if (!asset.enabled) return "asset_not_enabled";
    const total = (minted.get(asset) ?? 0n) + amount;
    minted.set(asset, total);
    const key = `${asset.assetType}:${tokenId}`;
    const bound = tokens.get(key);
    if (asset.standard !== "erc20") tokens.set(key, bound ?? mintingBlob);
    if (asset.standard === "erc721" && bound !== undefined) {
      return this.#tokens.has(key) ? "token_already_minted" : "duplicate_mint";
    }
    if (asset.standard === "erc1155" && bound !== undefined && bound !== mintingBlob)
      return "token_id_conflict";
    return asset.supplyCap !== null && total > asset.supplyCap ? "supply_cap_exceeded" : null;
  }

  #place({ asset, owner, amount, mintingBlob, tokenId, mode }: NaiveMint): bigint {
    let open = this.#open(mode);
    const same = open.findLast(
      (vault) =>
        vault.asset === asset && vault.owner === owner && vault.mintingBlob === mintingBlob,
    );
    if (asset.standard !== "erc721" && same !== undefined && same.amount + amount <= MAX_AMOUNT) {
      same.amount += amount;
      return this.#idOf(mode, this.batches[mode].length - 1, open.indexOf(same));
    }
    if (open.length === this.#batchVaults) open = this.#next(mode);
    open.push({ asset, owner, mintingBlob, tokenId, amount, isVoid: false });
    return this.#idOf(mode, this.batches[mode].length - 1, open.length - 1);
  }

  seal(mode: Mode): boolean {
    if (this.#open(mode).length === 0) return false;
    this.#next(mode);
    return true;
  }

  /** Makes a slot of a sealed batch void; false when there is none, or it is void already. */
  voidSlot(mode: Mode, batch: number, slot: number): boolean {
    const vault = this.batches[mode].slice(0, -1)[batch]?.[slot];
    if (vault === undefined || vault.isVoid) return false;
    vault.isVoid = true;
    const { asset, amount, tokenId } = vault;
    this.#minted.set(asset, (this.#minted.get(asset) ?? 0n) - amount);
    if (asset.standard === "erc721") this.#tokens.delete(`${asset.assetType}:${tokenId}`);
    return true;
  }

  #open(mode: Mode): NaiveVault[] {
    return this.batches[mode].at(-1) ?? [];
  }

  #next(mode: Mode): NaiveVault[] {
    const next: NaiveVault[] = [];
    this.batches[mode].push(next);
    return next;
  }

  #idOf(mode: Mode, batch: number, slot: number): bigint {
    return (mode === "validium" ? 0n : 2n ** 63n) + BigInt(batch) * 2n ** 20n + BigInt(slot);
  }

  /** The root of the mode's state tree over all sealed batches. */
  root(mode: Mode): Hash {
    const leaves = this.batches[mode].slice(0, -1).map((vaults, number) => {
      const contents = vaults.map((vault, slot) =>
        vault.isVoid
          ? null
          : {
              vaultId: this.#idOf(mode, number, slot),
              chainId: this.#chainId,
              owner: vault.owner,
              assetType: vault.asset.assetType,
              amount: vault.amount,
              mintingBlob: vault.mintingBlob,
            },
      );
      // The encoding's choices are the encoder's own; that it says the same vaults is its own
      // tests' matter.
      const dataHash: Hash = `0x${bytesToHex(keccak_256(encodeBatchData(contents)))}`;
      const content = naiveContent(naiveWordsOf(contents), this.#idOf(mode, number, 0));
      const batchRoot = naiveBatchRoot(mode, contents, content);
      const leaf = naiveStateLeaf(BigInt(number), contents.length, dataHash, batchRoot);
      return hexToBytes(leaf.slice(2));
    });
    return `0x${bytesToHex(stateRoot(leaves))}`;
  }

  balance(owner: Hex, asset: NaiveAsset): bigint {
    const vaults = [...this.batches.validium.flat(), ...this.batches["zk-rollup"].flat()];
    return vaults
      .filter((v) => v.owner === owner && v.asset === asset && !v.isVoid)
      .reduce((sum, { amount }) => sum + amount, 0n);
  }
}

/** The root of the tree of height 32, level by level. */
function stateRoot(leaves: readonly Uint8Array[]): Uint8Array {
  let level = [...leaves];
  let zero: Uint8Array = new Uint8Array(32);
  for (let height = 0; height < 32; height++) {
    const below = level;
    const empty = zero;
    level = Array.from({ length: Math.ceil(below.length / 2) }, (_, i) =>
      naiveNode(below[2 * i] ?? empty, below[2 * i + 1] ?? empty),
    );
    zero = naiveNode(zero, zero);
  }
  return level[0] ?? zero;
}
