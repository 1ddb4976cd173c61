import { MintmarkError } from "../errors.ts";
import { type Group, RecordTable, Table } from "../store/group.ts";
import { encodeRecord } from "../store/layout.ts";
import * as records from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { bySeries } from "./open-batch.ts";

/** The state of L1 as it was last told, and whether this store's history is still L1's. */
export class ObservedL1 {
  readonly portals = new RecordTable(keyOf.portal, records.portalRecord, "chainId");
  /** Mints that L1's history lacks, by the number of their batch. */
  readonly lost = bySeries(() => new Table<number, readonly records.LostRecord[]>());
  /** Why mints are refused; null while L1's history is a prefix of this store's. */
  divergence: records.DivergenceRecord | null = null;
  /**
   * L1 has contradicted this store's history since this time of the monotonic clock; null while it
   * agrees. `source` is the kind of question that L1 answered.
   */
  doubt: { readonly source: string; readonly detail: string; readonly since: number } | null = null;
  /** How long a contradiction lasts before it is recorded, in milliseconds. */
  readonly divergenceMs: number;
  /** Entries recorded since the opening, for all chains. */
  reorganisations = 0;
  /** Signatures since the opening that took the place of refused ones. */
  betterSignatures = 0;
  /** Whether the store must be compared with L1 before it mints. */
  awaitsComparison = false;

  constructor(divergenceMs = 60_000) {
    this.divergenceMs = divergenceMs;
  }

  /** The contract that pays on a chain. Throws `chain_not_supported`. */
  portalOn(chainId: bigint, group: Group | null): records.PortalRecord {
    const portal = this.portals.view(group).get(chainId);
    if (portal !== undefined) return portal;
    throw new MintmarkError(
      "chain_not_supported",
      `No mirror of the state on chain ${chainId} is known here.`,
    );
  }

  /** Throws `history_diverged` while L1 holds another history than this store, or seems to. */
  requireOneHistory(): void {
    const contradiction = this.divergence ?? this.doubt;
    if (contradiction !== null) throw new MintmarkError("history_diverged", contradiction.detail);
  }

  /** Throws `history_diverged` or `l1_not_compared` while a mint here may never reach L1. */
  requirePromising(): void {
    this.requireOneHistory();
    if (this.awaitsComparison) throw new MintmarkError("l1_not_compared");
  }

  putLost(group: Group, record: records.LostRecord): void {
    const { mode, batchNumber, upTo } = record;
    const earlier = this.lost[mode].view(group).get(batchNumber) ?? [];
    this.lost[mode].put(group, batchNumber, [...earlier, record]);
    group.put(keyOf.lost(mode, batchNumber, upTo), encodeRecord(records.lostRecord, record));
  }
}
