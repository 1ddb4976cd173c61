import { MintmarkError } from "../errors.ts";
import { MAX_BATCH_VAULTS } from "../model.ts";
import { invariant, requireInteger } from "./bounds.ts";
import { equalBytes, HASH_BYTES, hashAt } from "./hex.ts";
import { buildLevels, MAX_HEIGHT, nodeIn, pathHolds, siblingsIn, treeHeight } from "./merkle.ts";
import type { TreeNodes } from "./multiproof.ts";

/** Height of the subtrees that a store keeps as one page of 256 leaves. */
const PAGE_HEIGHT = 8;

/**
 * The whole Merkle tree of a sealed batch in memory: one flat array a level, leaves first, about 64
 * bytes a vault. Immutable; the caller must not change the leaves afterwards.
 *
 * @example
 * const tree = new BatchTree(vaultLeaves(vaults));
 * const proof = proveVault({ tree, assets }, vault);
 */
export class BatchTree implements TreeNodes {
  /** Slots of the batch, 1 to 2^20. */
  readonly count: number;
  /** ceil(log2 count); the number of siblings in each proof. */
  readonly height: number;
  /**
   * `levels[h]` holds the nodes of height h without padding, 32 bytes each; `levels[height]` is the
   * root.
   */
  readonly levels: readonly Uint8Array[];
  /** 32 bytes. */
  readonly root: Uint8Array;

  /**
   * @param leaves - 32 bytes a slot; zero bytes for a void one
   * @throws MintmarkError `validation_failed` unless there are 1 to 2^20 whole leaves
   */
  constructor(leaves: Uint8Array) {
    this.count = leaves.length / HASH_BYTES;
    requireInteger("number of leaves", this.count, 1, MAX_BATCH_VAULTS);
    this.height = treeHeight(this.count);
    this.levels = buildLevels(leaves, 0, this.height);
    this.root = this.levels[this.height] as Uint8Array;
  }

  node(height: number, index: number): Uint8Array {
    requireInteger("height", height, 0, this.height);
    return nodeIn(this.levels[height] as Uint8Array, index, height);
  }

  /** The leaf of a slot; a view of 32 bytes. */
  leaf(slot: number): Uint8Array {
    requireInteger("slot", slot, 0, this.count - 1);
    return hashAt(this.levels[0] as Uint8Array, slot);
  }

  /**
   * The siblings of a slot, 32 bytes each, from the leaf upwards. Checked against the root.
   *
   * @throws MintmarkError `validation_failed` when the batch has no such slot
   */
  siblings(slot: number): Uint8Array {
    const leaf = this.leaf(slot);
    const siblings = siblingsIn(this.levels, slot, 0);
    invariant(
      pathHolds(this.root, leaf, slot, siblings),
      `a proof of slot ${slot} that does not lead to the root`,
    );
    return siblings;
  }

  /**
   * The roots of the tree's pages, 32 bytes each. With them {@link PagedBatchTree} proves slots
   * without the lower levels.
   */
  pageRoots(pageHeight: number = PAGE_HEIGHT): Uint8Array {
    requireInteger("pageHeight", pageHeight, 0, MAX_HEIGHT);
    return this.levels[Math.min(pageHeight, this.height)] as Uint8Array;
  }
}

/** The page of a slot in a batch of `count` slots, with its first slot and its number of leaves. */
export function pageOf(
  count: number,
  slot: number,
  pageHeight: number = PAGE_HEIGHT,
): { readonly page: number; readonly firstSlot: number; readonly leafCount: number } {
  requireInteger("slot", slot, 0, count - 1);
  const height = Math.min(pageHeight, treeHeight(count));
  const page = slot >>> height;
  const firstSlot = page * 2 ** height;
  return { page, firstSlot, leafCount: Math.min(2 ** height, count - firstSlot) };
}

/**
 * A {@link BatchTree} with only the levels above the pages in memory. A proof needs the leaves of
 * one page, which a store can keep in one record:
 *
 * ```
 *            root              ┐
 *         ╱       ╲            │ kept: one root a page
 *      page 0    page 1  …     ┘
 *     ╱  …  ╲
 *   256 leaves                   read when a slot of the page is proven
 * ```
 */
export class PagedBatchTree {
  readonly count: number;
  readonly height: number;
  /** Height of the pages; the height of the tree when the tree is smaller than a page. */
  readonly pageHeight: number;
  readonly root: Uint8Array;
  readonly #levels: readonly Uint8Array[];

  /**
   * @param count - slots of the batch
   * @param pageRoots - from {@link BatchTree.pageRoots} with the same page height
   * @throws MintmarkError `validation_failed` when the number of roots does not fit the count
   */
  constructor(count: number, pageRoots: Uint8Array, pageHeight: number = PAGE_HEIGHT) {
    requireInteger("count", count, 1, MAX_BATCH_VAULTS);
    this.count = count;
    this.height = treeHeight(count);
    this.pageHeight = Math.min(pageHeight, this.height);
    const pages = Math.ceil(count / 2 ** this.pageHeight);
    requireInteger("number of page roots", pageRoots.length / HASH_BYTES, pages, pages);
    this.#levels = buildLevels(pageRoots, this.pageHeight, this.height);
    this.root = this.#levels.at(-1) as Uint8Array;
  }

  /**
   * The siblings of a slot, as from {@link BatchTree.siblings}.
   *
   * @param pageLeaves - all leaves of the slot's page, 32 bytes each
   * @throws MintmarkError `store_corrupt` when the leaves do not hash to the page's root
   */
  siblings(slot: number, pageLeaves: Uint8Array): Uint8Array {
    const { page, firstSlot } = pageOf(this.count, slot, this.pageHeight);
    const pageLevels = this.#pageLevels(page, pageLeaves);
    const siblings = new Uint8Array(this.height * HASH_BYTES);
    siblings.set(siblingsIn(pageLevels, slot - firstSlot, 0), 0);
    siblings.set(siblingsIn(this.#levels, page, this.pageHeight), this.pageHeight * HASH_BYTES);
    const leaf = hashAt(pageLeaves, slot - firstSlot);
    invariant(
      pathHolds(this.root, leaf, slot, siblings),
      `a proof of slot ${slot} that does not lead to the root`,
    );
    return siblings;
  }

  /**
   * The tree's nodes above the pages, and inside the pages of `leaves`, by page number.
   *
   * @throws MintmarkError `store_corrupt` when a page's leaves do not hash to its root
   */
  withPages(leaves: ReadonlyMap<number, Uint8Array>): TreeNodes {
    const { count, height, pageHeight } = this;
    const pages = new Map(
      [...leaves].map(([page, nodes]) => [page, this.#pageLevels(page, nodes)]),
    );
    return {
      count,
      height,
      node: (height, index) => {
        if (height >= pageHeight)
          return nodeIn(this.#levels[height - pageHeight] as Uint8Array, index, height);
        const width = 2 ** (pageHeight - height);
        const levels = pages.get(Math.floor(index / width));
        invariant(levels !== undefined, `no leaves for node ${index} of height ${height}`);
        return nodeIn(levels[height] as Uint8Array, index % width, height);
      },
    };
  }

  /** The levels of a page, up to its root. */
  #pageLevels(page: number, leaves: Uint8Array): readonly Uint8Array[] {
    const { leafCount } = pageOf(this.count, page * 2 ** this.pageHeight, this.pageHeight);
    requireInteger("number of page leaves", leaves.length / HASH_BYTES, leafCount, leafCount);
    const levels = buildLevels(leaves, 0, this.pageHeight);
    if (
      !equalBytes(
        levels[this.pageHeight] as Uint8Array,
        hashAt(this.#levels[0] as Uint8Array, page),
      )
    ) {
      throw new MintmarkError(
        "store_corrupt",
        `the leaves of page ${page} do not hash to its root`,
      );
    }
    return levels;
  }
}
