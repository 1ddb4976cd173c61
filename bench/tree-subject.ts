/**
 * A library in the `trees` section. Leaves are already in the library's form, so no conversion is
 * measured.
 */
export interface TreeSubject {
  readonly label: string;
  readonly note: string;
  readonly ours: boolean;
  /** An empty tree that grows by a thousand leaves at a time; each call ends with the new root. */
  readonly batches?: () => (batch: number) => void;
  /**
   * A tree of some leaves that grows by one leaf at a time. Some compute the root only when they
   * are asked for it.
   */
  readonly growing?: (count: number) => { add(leaf: number): void; checkRoot(): void };
  /** A tree of {@link LEAVES} leaves that returns the siblings of one. */
  readonly proofs?: () => (leaf: number) => void;
  /** Makes proofs and verifies each. */
  readonly verifiedProofs?: () => (leaf: number) => void;
}

export const LEAVES = 100_000;
export const BATCH = 1_000;

export function leafBytes(index: number): Uint8Array<ArrayBuffer> {
  const leaf = new Uint8Array(32).fill(0xa5);
  new DataView(leaf.buffer).setUint32(28, index);
  return leaf;
}

export function leafList(count: number): readonly Uint8Array<ArrayBuffer>[] {
  return Array.from({ length: count }, (_, i) => leafBytes(i));
}

/** Stops a benchmark with a wrong result. */
export function check(condition: boolean, what: string): void {
  if (!condition) throw new Error(`benchmark of something that does not work: ${what}`);
}
