import type { Collector } from "../core/committee/index.ts";

/** For `/readyz`: who signed the last batch, and who did not and why. Too few signatures fail the settlement's own check. */
export function describeCommittee(committee: Collector, threshold: number): string {
  const told = committee.standings().map(({ address, state, batchNumber, failure }) => {
    return `${address} ${state}${batchNumber === null ? "" : ` validium-${batchNumber}`}${failure ? `: ${failure}` : ""}`;
  });
  return `${threshold} of ${told.length} must sign; ${told.join("; ")}`;
}
