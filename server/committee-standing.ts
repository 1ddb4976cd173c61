import type { Collector } from "../core/committee/index.ts";

/**
 * For `/readyz`: who signed the last batch and who did not. Why not is for the log: it tells where members are, and anyone may read this. Too
 * few signatures fail the settlement's own check.
 */
export function describeCommittee(committee: Collector, threshold: number): string {
  const told = committee.standings().map(({ address, state, batchNumber }) => {
    return `${address} ${state}${batchNumber === null ? "" : ` validium-${batchNumber}`}`;
  });
  return `${threshold} of ${told.length} must sign; ${told.join("; ")}`;
}
