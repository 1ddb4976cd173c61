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
  type TransferListRecord,
  type TransferSessionRecord,
  transferApprovalRecord,
  transferSessionRecord,
} from "../store/records.ts";
import { l1EventKey, transferApprovalKey, transferSessionKey } from "../store/store-keys.ts";

/** What lets others than the owner's key move vaults, as L1 tells it. */
export type PowerEvent = L1Event & { readonly type: "sessionAuthorized" | "sessionRevoked" | "transfersApproved" };

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
export async function readSession(
  read: ReadRecord,
  owner: Address,
  key: Address,
): Promise<TransferSessionRecord | null> {
  const stored = await read(transferSessionKey(owner, key));
  return stored === undefined ? null : decodeRecord(transferSessionRecord, stored, `The session of key ${key}`);
}

/** When and where an owner approved a digest on L1; null when it has not. */
export async function readApproval(read: ReadRecord, owner: Address, digest: Hash) {
  const stored = await read(transferApprovalKey(owner, digest));
  return stored === undefined ? null : decodeRecord(transferApprovalRecord, stored, `The approval of ${digest}`);
}

/** The powers of a list over the vaults of its owner, as L1 has told them until now. */
export async function powersOf(
  read: ReadRecord,
  owner: Address,
  { digest, signature, sessionKey }: Pick<TransferListRecord, "digest" | "signature" | "sessionKey">,
): Promise<TransferPowers> {
  const approval = await readApproval(read, owner, digest);
  const session = sessionKey === null ? null : await readSession(read, owner, sessionKey);
  const signer = signature === "0x" ? null : (sessionKey ?? owner);
  return { signer, session, approvedAt: approval?.approvedAt ?? 0n };
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
  if (event.type === "transfersApproved") {
    const { digest, approvedAt } = event;
    ledger.record(group, { kind: "transfersApproved", owner, digest, approvedAt, ...at });
    const key = transferApprovalKey(owner, digest);
    group.stage(key, encodeRecord(transferApprovalRecord, { approvedAt, blockNumber }));
    note({ approval: { owner, digest } });
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

/** Undoes an event of a replaced block. */
export async function revertPower(ledger: Ledger, group: Group, { session, approval }: L1EventRecord): Promise<void> {
  if (approval !== null) group.remove(transferApprovalKey(approval.owner, approval.digest));
  if (session === null) return;
  const { owner, key, isRevoked } = session;
  const known = (await readSession((one) => group.read(ledger.store, one), owner, key)) ?? NO_SESSION;
  const before = isRevoked ? { ...known, revokedAt: 0n } : { ...NO_SESSION, revokedAt: known.revokedAt };
  if (before.authorizedAt === 0n && before.revokedAt === 0n) group.remove(transferSessionKey(owner, key));
  else putSession(group, owner, key, before);
}

function putSession(group: Group, owner: Address, key: Address, session: TransferSessionRecord): void {
  group.stage(transferSessionKey(owner, key), encodeRecord(transferSessionRecord, session));
}
