import type { Hash } from "../../model.ts";
import type { EntryOf } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import { checkpointRecord, type PortalRecord, portalRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

/** The part of the reference for the progress of reading each chain, the settlement contract's first. */
export class ReferencePortals {
  readonly #report: (problem: string) => void;
  readonly #byChain = new Map<bigint, PortalRecord>();
  /** Hashes of the last blocks read of each chain. */
  readonly #hashes = new Map<bigint, Map<bigint, Hash>>();

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  add({ chainId, contract }: EntryOf<"genesis" | "mirrorAdded">): void {
    this.#byChain.set(chainId, { chainId, contract, observed: null, finalized: null });
  }

  /** The settlement contract's chain: batches are committed there. */
  get home(): bigint {
    return this.#byChain.keys().next().value ?? 0n;
  }

  isHome(chainId: bigint): boolean {
    return chainId === this.home;
  }

  change(chainId: bigint, change: Partial<PortalRecord>): void {
    const portal = this.#byChain.get(chainId);
    if (portal === undefined) this.#report(`the journal has chain ${chainId}, on which it has no contract`);
    else this.#byChain.set(chainId, { ...portal, ...change });
  }

  observe({ chainId, blockNumber, blockHash }: EntryOf<"l1Observed">): void {
    this.change(chainId, { observed: blockNumber });
    this.#note(chainId, blockNumber, blockHash);
  }

  /** The newest 64 hashes of final blocks are kept. */
  finalize({ chainId, blockNumber, blockHash }: EntryOf<"l1Finalized">): void {
    this.change(chainId, { finalized: blockNumber });
    this.#note(chainId, blockNumber, blockHash);
    const hashes = this.#hashes.get(chainId);
    const below = [...(hashes?.keys() ?? [])].filter((number) => number < blockNumber).sort((a, b) => (a < b ? 1 : -1));
    for (const number of below.slice(63)) hashes?.delete(number);
  }

  #note(chainId: bigint, blockNumber: bigint, hash: Hash | null): void {
    if (hash === null) return;
    const hashes = this.#hashes.get(chainId) ?? new Map<bigint, Hash>();
    this.#hashes.set(chainId, hashes.set(blockNumber, hash));
  }

  revert(chainId: bigint, blockNumber: bigint): void {
    const hashes = this.#hashes.get(chainId);
    for (const number of [...(hashes?.keys() ?? [])]) if (number >= blockNumber) hashes?.delete(number);
    const { observed = null, finalized = null } = this.#byChain.get(chainId) ?? {};
    if (observed === null || observed < blockNumber) return;
    const before = blockNumber > 0n ? blockNumber - 1n : null;
    const isDeep = finalized !== null && blockNumber <= finalized;
    this.change(chainId, { observed: before, finalized: isDeep ? before : finalized });
  }

  finish(): Expected[] {
    const portals = [...this.#byChain.values()].map((record) =>
      expectedRecord(
        keys.portalKey(record.chainId),
        encodeRecord(portalRecord, record),
        `the contract on chain ${record.chainId}`,
      ),
    );
    const checkpoints = [...this.#hashes].flatMap(([chainId, hashes]) =>
      [...hashes].map(([number, hash]) => {
        const name = `the hash of block ${number} of chain ${chainId}`;
        return expectedRecord(keys.checkpointKey(chainId, number), encodeRecord(checkpointRecord, hash), name);
      }),
    );
    return [...portals, ...checkpoints];
  }
}
