import type { Address, Hash } from "../model.ts";
import type { TransferPowers } from "../protocol/transfer-rules.ts";
import type { EntryOf } from "../store/entries.ts";
import * as records from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { type Handlers, hexOfKey, keyOfHex, ReferencePart } from "./reference-records.ts";

type ApprovalEntry = EntryOf<"transfersApproved"> | EntryOf<"transfersCancelled">;
export type PowerEntry =
  | EntryOf<"transferSessionAuthorized">
  | EntryOf<"transferSessionRevoked">
  | ApprovalEntry;

const isApproval = (event: PowerEntry): event is ApprovalEntry => "digest" in event;

/**
 * The part of the reference for the progress of reading each chain, the settlement contract's
 * first, and for sessions and approvals of transfers: every event of L1, in its order.
 */
export class ReferencePortals extends ReferencePart {
  readonly #byChain = this.kept<bigint, records.PortalRecord>(
    "the contract on chain",
    keyOf.portal,
    records.portalRecord,
  );
  readonly #hashes = this.kept("the hash of the block at", keyOfHex, records.checkpointRecord);
  #events: PowerEntry[] = [];

  readonly on = {
    genesis: (entry) => this.#byChain.add(entry.chainId, entry),
    mirrorAdded: (entry) => this.#byChain.add(entry.chainId, entry),
    l1Observed: ({ chainId, blockNumber, blockHash }) => {
      this.#byChain.change(chainId, { observed: blockNumber });
      this.#note(chainId, blockNumber, blockHash);
    },
  } satisfies Handlers;

  power(entry: PowerEntry): void {
    this.#events.push(entry);
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
    const chain = hexOfKey(prefixOf.checkpoint(chainId));
    const block = hexOfKey(keyOf.checkpoint(chainId, blockNumber));
    const below = [...this.#hashes.keys()].filter((at) => at >= chain && at < block).sort();
    for (const at of below.slice(0, -63)) this.#hashes.delete(at);
  }

  #note(chainId: bigint, blockNumber: bigint, hash: Hash | null): void {
    if (hash !== null) this.#hashes.set(hexOfKey(keyOf.checkpoint(chainId, blockNumber)), hash);
  }

  /** Blocks from this one on were replaced. */
  revert({ chainId, blockNumber }: EntryOf<"l1Reorganised">): void {
    if (this.isHome(chainId))
      this.#events = this.#events.filter((event) => event.blockNumber < blockNumber);
    const block = hexOfKey(keyOf.checkpoint(chainId, blockNumber));
    const end = hexOfKey(endOf(prefixOf.checkpoint(chainId)));
    for (const at of [...this.#hashes.keys()]) if (at >= block && at < end) this.#hashes.delete(at);
    const { observed = null, finalized = null } = this.#byChain.get(chainId) ?? {};
    if (observed === null || observed < blockNumber) return;
    const before = blockNumber > 0n ? blockNumber - 1n : null;
    const isDeep = finalized !== null && blockNumber <= finalized;
    this.#byChain.change(chainId, { observed: before, finalized: isDeep ? before : finalized });
  }

  powersOf(owner: Address, list: records.TransferListRecord): TransferPowers {
    const { approvedAt, cancelledAt } = this.#approval(owner, list.digest);
    const session = list.sessionKey === null ? null : this.#session(owner, list.sessionKey);
    const signer = list.signature === "0x" ? null : (list.sessionKey ?? owner);
    const signerCancelledAt =
      signer === null ? 0n : this.#approval(signer, list.digest).cancelledAt;
    return { signer, session, approvedAt, cancelledAt, signerCancelledAt };
  }

  override finish(): void {
    super.finish();
    for (const event of this.#events) {
      const { owner, blockNumber, logIndex } = event;
      const at = `event ${logIndex} of block ${blockNumber}`;
      const told = isApproval(event)
        ? {
            approval: {
              owner,
              digest: event.digest,
              isCancelled: event.kind === "transfersCancelled",
            },
          }
        : {
            session: { owner, key: event.key, isRevoked: event.kind === "transferSessionRevoked" },
          };
      const key = keyOf.l1Event(this.home, blockNumber, logIndex);
      this.out.put(key, records.l1EventRecord, { ...records.NO_EVENT, ...told }, at);
      if (isApproval(event)) {
        const approval = this.#approval(owner, event.digest);
        const key = keyOf.transferApproval(owner, event.digest);
        this.out.put(key, records.transferApprovalRecord, approval, `the approval of ${at}`);
      } else {
        const session = this.#session(owner, event.key) ?? records.NO_SESSION;
        const key = keyOf.transferSession(owner, event.key);
        this.out.put(key, records.transferSessionRecord, session, `the session of ${at}`);
      }
    }
  }

  #approval(owner: Address, digest: Hash): records.TransferApprovalRecord {
    const approved = this.#last("transfersApproved", owner, digest);
    const cancelled = this.#last("transfersCancelled", owner, digest);
    return { ...records.NO_APPROVAL, ...approved, cancelledAt: cancelled?.cancelledAt ?? 0n };
  }

  #session(owner: Address, key: Address): records.TransferSessionRecord | null {
    const authorized = this.#last("transferSessionAuthorized", owner, key);
    const revoked = this.#last("transferSessionRevoked", owner, key);
    if (authorized === undefined && revoked === undefined) return null;
    return { ...records.NO_SESSION, ...authorized, revokedAt: revoked?.revokedAt ?? 0n };
  }

  /** The last event of a kind about an owner's key or digest. */
  #last<K extends PowerEntry["kind"]>(kind: K, owner: Address, of: Hash): EntryOf<K> | undefined {
    return this.#events.findLast((event): event is Extract<PowerEntry, EntryOf<K>> => {
      return (
        event.kind === kind &&
        event.owner === owner &&
        (isApproval(event) ? event.digest : event.key) === of
      );
    });
  }
}
