import type { Address, Hash } from "../../model.ts";
import type { TransferPowers } from "../../protocol/transfer-rules.ts";
import type { Entry, EntryOf } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import {
  l1EventRecord,
  NO_EVENT,
  type TransferApprovalRecord,
  type TransferListRecord,
  type TransferSessionRecord,
  transferApprovalRecord,
  transferSessionRecord,
} from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

type PowerEntry = EntryOf<"transferSessionAuthorized"> | EntryOf<"transferSessionRevoked"> | ApprovalEntry;
type ApprovalEntry = EntryOf<"transfersApproved"> | EntryOf<"transfersCancelled">;

const isApproval = (event: PowerEntry): event is ApprovalEntry => "digest" in event;

/** The part of the reference for sessions and approvals of transfers: every event of L1, in its order. */
export class ReferencePowers {
  #events: PowerEntry[] = [];

  /** Applies an entry of this part; false for any other. */
  apply(entry: Entry): boolean {
    switch (entry.kind) {
      case "transferSessionAuthorized":
      case "transferSessionRevoked":
      case "transfersApproved":
      case "transfersCancelled":
        this.#events.push(entry);
        return true;
      default:
        return false;
    }
  }

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

  #approval(owner: Address, digest: Hash): TransferApprovalRecord {
    let approval: TransferApprovalRecord = { approvedAt: 0n, cancelledAt: 0n, blockNumber: 0n };
    for (const event of this.#events) {
      if (!isApproval(event) || event.owner !== owner || event.digest !== digest) continue;
      if (event.kind === "transfersCancelled") approval = { ...approval, cancelledAt: event.cancelledAt };
      else approval = { ...approval, approvedAt: event.approvedAt, blockNumber: event.blockNumber };
    }
    return approval;
  }

  finish(chainId: bigint): Expected[] {
    const expected: Expected[] = [];
    for (const event of this.#events) {
      const { owner, blockNumber, logIndex } = event;
      const at = `event ${logIndex} of block ${blockNumber}`;
      const told = isApproval(event)
        ? { approval: { owner, digest: event.digest, isCancelled: event.kind === "transfersCancelled" } }
        : { session: { owner, key: event.key, isRevoked: event.kind === "transferSessionRevoked" } };
      const record = encodeRecord(l1EventRecord, { ...NO_EVENT, ...told });
      expected.push(expectedRecord(keys.l1EventKey(chainId, blockNumber, logIndex), record, at));
      if (isApproval(event)) {
        const approval = this.#approval(owner, event.digest);
        const key = keys.transferApprovalKey(owner, event.digest);
        expected.push(expectedRecord(key, encodeRecord(transferApprovalRecord, approval), `the approval of ${at}`));
      } else {
        const session = this.#session(owner, event.key) as TransferSessionRecord;
        const key = keys.transferSessionKey(owner, event.key);
        expected.push(expectedRecord(key, encodeRecord(transferSessionRecord, session), `the session of ${at}`));
      }
    }
    return [...new Map(expected.map((one) => [keys.keyString(one.key), one])).values()];
  }

  #session(owner: Address, key: Address): TransferSessionRecord | null {
    let session: TransferSessionRecord | null = null;
    const none = { authorizedAt: 0n, until: 0n, limit: 0n, assetType: NO_ASSET_TYPE, revokedAt: 0n, blockNumber: 0n };
    for (const event of this.#events) {
      if (isApproval(event) || event.owner !== owner || event.key !== key) continue;
      const before: TransferSessionRecord = session ?? none;
      if (event.kind === "transferSessionRevoked") session = { ...before, revokedAt: event.revokedAt };
      else {
        const { until, limit, assetType, authorizedAt, blockNumber } = event;
        session = { ...before, until, limit, assetType, authorizedAt, blockNumber };
      }
    }
    return session;
  }
}

const NO_ASSET_TYPE: Hash = `0x${"00".repeat(32)}`;
