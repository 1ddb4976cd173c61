import { MemoryLevel } from "memory-level";
import { Archive } from "../../core/archive/archive.ts";
import type { BatchSource } from "../../core/archive/sources.ts";
import type { CommitteeMember } from "../../core/committee/member.ts";
import type { Database } from "../../core/store/ports.ts";
import type { World } from "../settlement/fixture.ts";

/** An archive over an empty store, or over what an earlier one left. */
export function openArchive(
  { l1 }: Pick<World, "l1">,
  store: Database = new MemoryLevel(),
): Promise<Archive> {
  return Archive.open({ store, l1 });
}

/** A rebuild of a world's chain needs this, up to its newest block. */
export async function chainOf({ l1, chain }: World) {
  return { l1, fromBlock: chain.settlement.deployedAtBlock, toBlock: await l1.blockNumber() };
}

/** A member of this process as a source of batch data. */
export function sourceOf(member: CommitteeMember): BatchSource {
  return {
    name: member.address,
    batchData: async (mode, batchNumber) =>
      mode === "validium" ? member.data("validium", batchNumber) : null,
  };
}
