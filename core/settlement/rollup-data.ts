/**
 * Where the data of rollup batches go: into blobs (`blobs`), into blobs on chains that are known to
 * take them (`auto`), or into calldata.
 */
export const ROLLUP_DATA = ["auto", "blobs", "calldata"] as const;
/** See {@link ROLLUP_DATA}. */
export type RollupData = (typeof ROLLUP_DATA)[number];
