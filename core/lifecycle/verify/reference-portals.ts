import type { Hash } from "../../model.ts";
import type { EntryOf } from "../../store/entries.ts";
import { checkpointRecord, type PortalRecord, portalRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { type Handlers, Part } from "./reference-records.ts";

/** The part of the reference for the progress of reading each chain, the settlement contract's first. */
export class ReferencePortals extends Part {
  readonly #byChain = this.kept<bigint, PortalRecord>("the contract on chain", keys.portalKey, portalRecord);
  readonly #hashes = new Map<bigint, Map<bigint, Hash>>(); // Hashes of the last blocks read of each chain

  readonly on = {
    genesis: (entry) => this.#add(entry),
    mirrorAdded: (entry) => this.#add(entry),
    l1Observed: ({ chainId, blockNumber, blockHash }) => {
      this.#byChain.change(chainId, { observed: blockNumber });
      this.#note(chainId, blockNumber, blockHash);
    },
  } satisfies Handlers;

  #add({ chainId, contract }: EntryOf<"genesis"> | EntryOf<"mirrorAdded">): void {
    this.#byChain.set(chainId, { chainId, contract, observed: null, finalized: null });
  }

  /** The settlement contract's chain: batches are committed there. */
  get home(): bigint {
    return this.#byChain.keys().next().value ?? 0n;
  }

  isHome(chainId: bigint): boolean {
    return chainId === this.home;
  }

  /** The newest 64 hashes of final blocks are kept. */
  finalize({ chainId, blockNumber, blockHash }: EntryOf<"l1Finalized">): void {
    this.#byChain.change(chainId, { finalized: blockNumber });
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

  revert({ chainId, blockNumber }: EntryOf<"l1Reorganised">): void {
    const hashes = this.#hashes.get(chainId);
    for (const number of [...(hashes?.keys() ?? [])]) if (number >= blockNumber) hashes?.delete(number);
    const { observed = null, finalized = null } = this.#byChain.get(chainId) ?? {};
    if (observed === null || observed < blockNumber) return;
    const before = blockNumber > 0n ? blockNumber - 1n : null;
    const isDeep = finalized !== null && blockNumber <= finalized;
    this.#byChain.change(chainId, { observed: before, finalized: isDeep ? before : finalized });
  }

  override finish(): void {
    super.finish();
    for (const [chainId, hashes] of this.#hashes) {
      for (const [number, hash] of hashes) {
        const name = `the hash of block ${number} of chain ${chainId}`;
        this.out.put(keys.checkpointKey(chainId, number), checkpointRecord, hash, name);
      }
    }
  }
}
