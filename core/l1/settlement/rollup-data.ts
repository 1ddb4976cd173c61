import { MintmarkError } from "../../errors.ts";
import type { SettlementPort } from "../../operator.ts";
import type { L1Committer } from "../../ports.ts";

/**
 * Where the data of rollup batches go: into blobs where they fit (`blobs`), into blobs on chains that are known to take
 * them (`auto`), or into calldata.
 */
export const ROLLUP_DATA = ["auto", "blobs", "calldata"] as const;
/** See {@link ROLLUP_DATA}. */
export type RollupData = (typeof ROLLUP_DATA)[number];

/**
 * Chains that take blob transactions: Ethereum, Sepolia, Hoodi, Gnosis, Chiado, and local chains. Others can have the
 * fields and the precompile and still refuse them, and batches in blobs could then never be committed.
 */
const BLOB_CHAINS: ReadonlySet<bigint> = new Set([1n, 11_155_111n, 560_048n, 100n, 10_200n, 1_337n, 31_337n, 31_338n]);

/**
 * Decides where the engine's rollup batches go. Batches that are open already keep their kind. Rejects with `l1_failed`;
 * with `kzg_unavailable` when batches must go into blobs and cannot.
 */
export async function placeRollupData(
  { operator, settlement }: SettlementPort,
  l1: Pick<L1Committer, "takesBlobs">,
  wanted: RollupData,
): Promise<void> {
  const isAsked = wanted === "blobs" || (wanted === "auto" && BLOB_CHAINS.has(settlement.chainId));
  const takesBlobs = isAsked && (await l1.takesBlobs());
  if (wanted === "blobs" && !takesBlobs) {
    const detail = "The settlement chain takes no blobs, or native KZG code does not run here. Choose `auto`.";
    throw new MintmarkError("kzg_unavailable", detail);
  }
  operator.placeInBlobs(settlement.chainId, takesBlobs);
}
