/** A tree that is asked for its root when somebody wants it; some know it by then. */
export interface GrowingTree {
  add(leaf: number): void;
  checkRoot(): void;
}

/**
 * A library as the `trees` section uses it. Leaves are ready in the form that the library wants, so no conversion is
 * measured.
 */
export interface TreeSubject {
  readonly label: string;
  readonly note: string;
  readonly ours: boolean;
  /** An empty tree to which a thousand leaves are added at a time; each call ends with the new root. */
  readonly batches?: () => (batch: number) => void;
  /** A tree that holds {@link PREFILLED} leaves, to which one is added at a time. */
  readonly growing?: () => GrowingTree;
  /** A tree of {@link LEAVES} leaves that tells the siblings of one. */
  readonly proofs?: () => (leaf: number) => void;
  /** The same, and the proof is verified. */
  readonly verifiedProofs?: () => (leaf: number) => void;
}

export const LEAVES = 100_000;
export const BATCH = 1_000;
/** Height of a tree of 100,000 leaves. */
export const HEIGHT = 17;
/** Height of the protocol's state tree, and of peers whose height is fixed. */
export const FIXED_HEIGHT = 32;
/** Leaves of the tree to which single leaves are added. */
export const PREFILLED = 90_000;

/** A leaf that occurs nowhere else; 32 bytes. */
export function leafBytes(index: number): Uint8Array<ArrayBuffer> {
  const leaf = new Uint8Array(32).fill(0xa5);
  new DataView(leaf.buffer).setUint32(28, index);
  return leaf;
}

/** Many leaves, 32 bytes each, from the first on. */
export function leafList(count: number): readonly Uint8Array<ArrayBuffer>[] {
  return Array.from({ length: count }, (_, i) => leafBytes(i));
}

/** An element that is known to be there. */
export function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index}`);
  return item;
}

/** Stops a benchmark that would measure a wrong result. */
export function check(condition: boolean, what: string): void {
  if (!condition) throw new Error(`benchmark of something that does not work: ${what}`);
}
