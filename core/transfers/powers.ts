import type { Ledger } from "../ledger/ledger.ts";
import type { Address, Hash } from "../model.ts";
import type { L1Event } from "../ports.ts";
import type { TransferPowers } from "../protocol/transfer-rules.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import {
  type L1EventRecord,
  l1EventRecord,
  NO_EVENT,
  type TransferApprovalRecord,
  type TransferListRecord,
  type TransferSessionRecord,
  transferApprovalRecord,
  transferSessionRecord,
} from "../store/records.ts";
import { l1EventKey, transferApprovalKey, transferSessionKey } from "../store/store-keys.ts";

/** What lets others than the owner's key move vaults, or takes back what was signed, as L1 tells it. */
export type PowerEvent = L1Event & {
  readonly type: "sessionAuthorized" | "sessionRevoked" | "transfersApproved" | "transfersCancelled";
};

/** Reads a record: of the store, or with a group's changes. */
export type ReadRecord = (key: Buffer) => Promise<Buffer | undefined>;

const NO_SESSION: TransferSessionRecord = {
  authorizedAt: 0n,
  until: 0n,
  limit: 0n,
  assetType: `0x${"00".repeat(32)}`,
  revokedAt: 0n,
  blockNumber: 0n,
};

/** The session of an owner with a key; null when L1 has told of none. */
export async function readSession(read: ReadRecord, owner: Address, key: Address) {
  const stored = await read(transferSessionKey(owner, key));
  return stored === undefined ? null : decodeRecord(transferSessionRecord, stored, `The session of key ${key}`);
}

const NO_APPROVAL: TransferApprovalRecord = { approvedAt: 0n, cancelledAt: 0n, blockNumber: 0n };

/** When and where an account approved a digest on L1, and when it cancelled it. */
export async function readApproval(read: ReadRecord, owner: Address, digest: Hash): Promise<TransferApprovalRecord> {
  const stored = await read(transferApprovalKey(owner, digest));
  return stored === undefined ? NO_APPROVAL : decodeRecord(transferApprovalRecord, stored, `The approval of ${digest}`);
}

/** The powers of a list over the vaults of its owner, as L1 has told them until now. */
export async function powersOf(
  read: ReadRecord,
  owner: Address,
  { digest, signature, sessionKey }: Pick<TransferListRecord, "digest" | "signature" | "sessionKey">,
): Promise<TransferPowers> {
  const { approvedAt, cancelledAt } = await readApproval(read, owner, digest);
  const session = sessionKey === null ? null : await readSession(read, owner, sessionKey);
  const signer = signature === "0x" ? null : (sessionKey ?? owner);
  const signerCancelledAt = signer === null ? 0n : (await readApproval(read, signer, digest)).cancelledAt;
  return { signer, session, approvedAt, cancelledAt, signerCancelledAt };
}

/** Applies an event of L1 about a session or an approval. The first of each counts for ever. */
export async function applyPower(ledger: Ledger, group: Group, event: PowerEvent): Promise<void> {
  const { blockNumber, logIndex } = event;
  const at = { blockNumber, logIndex };
  const eventKey = l1EventKey(ledger.settlement.chainId, blockNumber, logIndex);
  if ((await group.read(ledger.store, eventKey)) !== undefined) return;
  const owner = event.owner.toLowerCase() as Address;
  const note = (of: Partial<L1EventRecord>) =>
    group.stage(eventKey, encodeRecord(l1EventRecord, { ...NO_EVENT, ...of }));
  if (event.type === "transfersApproved" || event.type === "transfersCancelled") {
    const { digest } = event;
    const isCancelled = event.type === "transfersCancelled";
    const known = await readApproval((one) => group.read(ledger.store, one), owner, digest);
    if (isCancelled) {
      ledger.record(group, { kind: "transfersCancelled", owner, digest, cancelledAt: event.cancelledAt, ...at });
      putApproval(group, owner, digest, { ...known, cancelledAt: event.cancelledAt });
    } else {
      ledger.record(group, { kind: "transfersApproved", owner, digest, approvedAt: event.approvedAt, ...at });
      putApproval(group, owner, digest, { ...known, approvedAt: event.approvedAt, blockNumber });
    }
    note({ approval: { owner, digest, isCancelled } });
    return;
  }
  const key = event.key.toLowerCase() as Address;
  const known = (await readSession((one) => group.read(ledger.store, one), owner, key)) ?? NO_SESSION;
  if (event.type === "sessionRevoked") {
    const { revokedAt } = event;
    ledger.record(group, { kind: "transferSessionRevoked", owner, key, revokedAt, ...at });
    putSession(group, owner, key, { ...known, revokedAt });
    note({ session: { owner, key, isRevoked: true } });
    return;
  }
  const { until, limit, assetType, authorizedAt } = event;
  const facts = { until, limit, assetType, authorizedAt };
  ledger.record(group, { kind: "transferSessionAuthorized", owner, key, ...facts, ...at });
  putSession(group, owner, key, { ...known, ...facts, blockNumber });
  note({ session: { owner, key, isRevoked: false } });
}

export async function revertPower(ledger: Ledger, group: Group, { session, approval }: L1EventRecord): Promise<void> {
  if (approval !== null) {
    const { owner, digest, isCancelled } = approval;
    const known = await readApproval((one) => group.read(ledger.store, one), owner, digest);
    const undone = isCancelled ? { cancelledAt: 0n } : { approvedAt: 0n, blockNumber: 0n };
    putApproval(group, owner, digest, { ...known, ...undone });
  }
  if (session === null) return;
  const { owner, key, isRevoked } = session;
  const known = (await readSession((one) => group.read(ledger.store, one), owner, key)) ?? NO_SESSION;
  const before = isRevoked ? { ...known, revokedAt: 0n } : { ...NO_SESSION, revokedAt: known.revokedAt };
  if (before.authorizedAt === 0n && before.revokedAt === 0n) group.remove(transferSessionKey(owner, key));
  else putSession(group, owner, key, before);
}

/** Writes an approval, or removes one that says nothing. */
function putApproval(group: Group, owner: Address, digest: Hash, approval: TransferApprovalRecord): void {
  const key = transferApprovalKey(owner, digest);
  if (approval.approvedAt === 0n && approval.cancelledAt === 0n) group.remove(key);
  else group.stage(key, encodeRecord(transferApprovalRecord, approval));
}

function putSession(group: Group, owner: Address, key: Address, session: TransferSessionRecord): void {
  group.stage(transferSessionKey(owner, key), encodeRecord(transferSessionRecord, session));
}
