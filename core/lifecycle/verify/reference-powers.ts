import type { Address, Hash } from "../../model.ts";
import type { TransferPowers } from "../../protocol/transfer-rules.ts";
import type { EntryOf } from "../../store/entries.ts";
import type { TransferApprovalRecord, TransferListRecord, TransferSessionRecord } from "../../store/records.ts";
import { l1EventRecord, NO_EVENT, transferApprovalRecord, transferSessionRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import type { ReferencePortals } from "./reference-portals.ts";
import { type Handlers, Part } from "./reference-records.ts";

type ApprovalEntry = EntryOf<"transfersApproved"> | EntryOf<"transfersCancelled">;
type PowerEntry = EntryOf<"transferSessionAuthorized"> | EntryOf<"transferSessionRevoked"> | ApprovalEntry;

const isApproval = (event: PowerEntry): event is ApprovalEntry => "digest" in event;

const NO_APPROVAL: TransferApprovalRecord = { approvedAt: 0n, cancelledAt: 0n, blockNumber: 0n };
const NO_SESSION: TransferSessionRecord = {
  authorizedAt: 0n,
  until: 0n,
  limit: 0n,
  assetType: `0x${"00".repeat(32)}`,
  revokedAt: 0n,
  blockNumber: 0n,
};

/** The part of the reference for sessions and approvals of transfers: every event of L1, in its order. */
export class ReferencePowers extends Part<{ readonly portals: ReferencePortals }> {
  #events: PowerEntry[] = [];

  readonly on = {
    transferSessionAuthorized: (entry) => void this.#events.push(entry),
    transferSessionRevoked: (entry) => void this.#events.push(entry),
    transfersApproved: (entry) => void this.#events.push(entry),
    transfersCancelled: (entry) => void this.#events.push(entry),
  } satisfies Handlers;

  /** Blocks from this one on were replaced. */
  revert(blockNumber: bigint): void {
    this.#events = this.#events.filter((event) => event.blockNumber < blockNumber);
  }

  /** The powers of a list over vaults of its owner. */
  of(owner: Address, list: Pick<TransferListRecord, "digest" | "signature" | "sessionKey">): TransferPowers {
    const { approvedAt, cancelledAt } = this.#approval(owner, list.digest);
    const session = list.sessionKey === null ? null : this.#session(owner, list.sessionKey);
    const signer = list.signature === "0x" ? null : (list.sessionKey ?? owner);
    const signerCancelledAt = signer === null ? 0n : this.#approval(signer, list.digest).cancelledAt;
    return { signer, session, approvedAt, cancelledAt, signerCancelledAt };
  }

  override finish(): void {
    for (const event of this.#events) {
      const { owner, blockNumber, logIndex } = event;
      const at = `event ${logIndex} of block ${blockNumber}`;
      const told = isApproval(event)
        ? { approval: { owner, digest: event.digest, isCancelled: event.kind === "transfersCancelled" } }
        : { session: { owner, key: event.key, isRevoked: event.kind === "transferSessionRevoked" } };
      const key = keys.l1EventKey(this.parts.portals.home, blockNumber, logIndex);
      this.out.put(key, l1EventRecord, { ...NO_EVENT, ...told }, at);
      if (isApproval(event)) {
        const approval = this.#approval(owner, event.digest);
        const key = keys.transferApprovalKey(owner, event.digest);
        this.out.put(key, transferApprovalRecord, approval, `the approval of ${at}`);
      } else {
        const session = this.#session(owner, event.key) ?? NO_SESSION;
        const key = keys.transferSessionKey(owner, event.key);
        this.out.put(key, transferSessionRecord, session, `the session of ${at}`);
      }
    }
  }

  #approval(owner: Address, digest: Hash): TransferApprovalRecord {
    let approval = NO_APPROVAL;
    for (const event of this.#events) {
      if (!isApproval(event) || event.owner !== owner || event.digest !== digest) continue;
      if (event.kind === "transfersCancelled") approval = { ...approval, cancelledAt: event.cancelledAt };
      else approval = { ...approval, approvedAt: event.approvedAt, blockNumber: event.blockNumber };
    }
    return approval;
  }

  #session(owner: Address, key: Address): TransferSessionRecord | null {
    let session: TransferSessionRecord | null = null;
    for (const event of this.#events) {
      if (isApproval(event) || event.owner !== owner || event.key !== key) continue;
      const before: TransferSessionRecord = session ?? NO_SESSION;
      if (event.kind === "transferSessionRevoked") session = { ...before, revokedAt: event.revokedAt };
      else {
        const { until, limit, assetType, authorizedAt, blockNumber } = event;
        session = { ...before, until, limit, assetType, authorizedAt, blockNumber };
      }
    }
    return session;
  }
}
