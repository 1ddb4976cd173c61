/** A tree that is asked for its root from time to time; some compute it only then. */
export interface GrowingTree {
  add(leaf: number): void;
  checkRoot(): void;
}

/** A library in the `trees` section. Leaves are already in the library's form, so no conversion is measured. */
export interface TreeSubject {
  readonly label: string;
  readonly note: string;
  readonly ours: boolean;
  /** An empty tree that grows by a thousand leaves at a time; each call ends with the new root. */
  readonly batches?: () => (batch: number) => void;
  /** A tree of {@link PREFILLED} leaves that grows by one leaf at a time. */
  readonly growing?: () => GrowingTree;
  /** A tree of {@link LEAVES} leaves that returns the siblings of one. */
  readonly proofs?: () => (leaf: number) => void;
  /** The same, with verification of the proof. */
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

/** A unique leaf of 32 bytes. */
export function leafBytes(index: number): Uint8Array<ArrayBuffer> {
  const leaf = new Uint8Array(32).fill(0xa5);
  new DataView(leaf.buffer).setUint32(28, index);
  return leaf;
}

/** Many leaves of 32 bytes, from the first on. */
export function leafList(count: number): readonly Uint8Array<ArrayBuffer>[] {
  return Array.from({ length: count }, (_, i) => leafBytes(i));
}

/** An element that must exist. */
export function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index}`);
  return item;
}

/** Stops a benchmark with a wrong result. */
export function check(condition: boolean, what: string): void {
  if (!condition) throw new Error(`benchmark of something that does not work: ${what}`);
}
