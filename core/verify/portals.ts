import type { EntryOf } from "../store/entries.ts";
import { encodeRecord } from "../store/layout.ts";
import { type PortalRecord, portalRecord } from "../store/records.ts";
import * as keys from "../store/store-keys.ts";
import { type Expected, expectedRecord } from "./records.ts";

/** The part of the reference that follows how far each chain was read, the settlement contract's first. */
export class ReferencePortals {
  readonly #report: (problem: string) => void;
  readonly #byChain = new Map<bigint, PortalRecord>();

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  add({ chainId, contract }: EntryOf<"genesis" | "mirrorAdded">): void {
    this.#byChain.set(chainId, { chainId, contract, observed: null, finalized: null });
  }

  /** Batches are committed on the chain of the first one. */
  isHome(chainId: bigint): boolean {
    return chainId === this.#byChain.keys().next().value;
  }

  change(chainId: bigint, change: Partial<PortalRecord>): void {
    const portal = this.#byChain.get(chainId);
    if (portal === undefined) this.#report(`the journal tells of chain ${chainId}, on which it has no contract`);
    else this.#byChain.set(chainId, { ...portal, ...change });
  }

  /** Blocks from this one on are gone. */
  revert(chainId: bigint, blockNumber: bigint): void {
    const { observed = null, finalized = null } = this.#byChain.get(chainId) ?? {};
    if (observed === null || observed < blockNumber) return;
    const before = blockNumber > 0n ? blockNumber - 1n : null;
    const isDeep = finalized !== null && blockNumber <= finalized;
    this.change(chainId, { observed: before, finalized: isDeep ? before : finalized });
  }

  finish(): Expected[] {
    return [...this.#byChain.values()].map((record) =>
      expectedRecord(
        keys.portalKey(record.chainId),
        encodeRecord(portalRecord, record),
        `the contract on chain ${record.chainId}`,
      ),
    );
  }
}
