import type { Ledger } from "../ledger/ledger.ts";
import type { Address, Hash } from "../model.ts";
import type { L1Event } from "../ports.ts";
import type { TransferPowers } from "../protocol/transfer-rules.ts";
import type { Entry } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import * as records from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";

/**
 * L1 tells by these that others than the owner's key may move vaults, or that something signed is
 * taken back.
 */
export type PowerEvent = L1Event & {
  readonly type:
    | "sessionAuthorized"
    | "sessionRevoked"
    | "transfersApproved"
    | "transfersCancelled";
};

/** Reads a record: of the store, or with a group's changes. */
export type ReadRecord = (key: Buffer) => Promise<Buffer | undefined>;

/** The session of an owner with a key; null when L1 has told of none. */
export async function readSession(read: ReadRecord, owner: Address, key: Address) {
  const stored = await read(keyOf.transferSession(owner, key));
  return stored === undefined
    ? null
    : decodeRecord(records.transferSessionRecord, stored, `The session of key ${key}`);
}

/** When and where an account approved a digest on L1, and when it cancelled it. */
export async function readApproval(read: ReadRecord, owner: Address, digest: Hash) {
  const stored = await read(keyOf.transferApproval(owner, digest));
  return stored === undefined
    ? records.NO_APPROVAL
    : decodeRecord(records.transferApprovalRecord, stored, `The approval of ${digest}`);
}

/** The powers of a list over the vaults of its owner, as L1 has told them until now. */
export async function powersOf(read: ReadRecord, owner: Address, list: records.TransferListRecord) {
  const { digest, signature, sessionKey } = list;
  const { approvedAt, cancelledAt } = await readApproval(read, owner, digest);
  const session = sessionKey === null ? null : await readSession(read, owner, sessionKey);
  const signer = signature === "0x" ? null : (sessionKey ?? owner);
  const signerCancelledAt =
    signer === null ? 0n : (await readApproval(read, signer, digest)).cancelledAt;
  return { signer, session, approvedAt, cancelledAt, signerCancelledAt } satisfies TransferPowers;
}

/**
 * Applies an event of L1 about a session or an approval. The first of each counts for ever. Returns
 * the time of its journal entry; null for a known one.
 */
export async function applyPower(
  ledger: Ledger,
  group: Group,
  event: PowerEvent,
): Promise<number | null> {
  const { blockNumber, logIndex } = event;
  const read: ReadRecord = (key) => group.read(ledger.store, key);
  const eventKey = keyOf.l1Event(ledger.services.settlement.chainId, blockNumber, logIndex);
  if ((await read(eventKey)) !== undefined) return null;
  const owner = event.owner.toLowerCase() as Address;
  const note = (of: Partial<records.L1EventRecord>) =>
    group.stage(eventKey, encodeRecord(records.l1EventRecord, { ...records.NO_EVENT, ...of }));
  if ("digest" in event) {
    const { type: kind, digest } = event;
    const isCancelled = kind === "transfersCancelled";
    const known = await readApproval(read, owner, digest);
    const { time } = ledger.journal.record(group, { ...event, kind, owner } as Entry);
    const approvedIn = isCancelled ? known.blockNumber : blockNumber;
    putApproval(group, owner, digest, { ...known, ...event, blockNumber: approvedIn });
    note({ approval: { owner, digest, isCancelled } });
    return time;
  }
  const key = event.key.toLowerCase() as Address;
  const isRevoked = event.type === "sessionRevoked";
  const kind = isRevoked ? "transferSessionRevoked" : "transferSessionAuthorized";
  const known = (await readSession(read, owner, key)) ?? records.NO_SESSION;
  const { time } = ledger.journal.record(group, { ...event, kind, owner, key } as Entry);
  const authorizedIn = isRevoked ? known.blockNumber : blockNumber;
  putSession(group, owner, key, { ...known, ...event, blockNumber: authorizedIn });
  note({ session: { owner, key, isRevoked } });
  return time;
}

export async function revertPower(
  ledger: Ledger,
  group: Group,
  { session, approval }: records.L1EventRecord,
) {
  const read: ReadRecord = (key) => group.read(ledger.store, key);
  if (approval !== null) {
    const { owner, digest, isCancelled } = approval;
    const undone = isCancelled ? { cancelledAt: 0n } : { approvedAt: 0n, blockNumber: 0n };
    putApproval(group, owner, digest, { ...(await readApproval(read, owner, digest)), ...undone });
  }
  if (session === null) return;
  const { owner, key, isRevoked } = session;
  const known = (await readSession(read, owner, key)) ?? records.NO_SESSION;
  const before = isRevoked
    ? { ...known, revokedAt: 0n }
    : { ...records.NO_SESSION, revokedAt: known.revokedAt };
  if (before.authorizedAt === 0n && before.revokedAt === 0n)
    group.remove(keyOf.transferSession(owner, key));
  else putSession(group, owner, key, before);
}

/** Writes an approval, or removes one that says nothing. */
function putApproval(
  group: Group,
  owner: Address,
  digest: Hash,
  approval: records.TransferApprovalRecord,
): void {
  const key = keyOf.transferApproval(owner, digest);
  if (approval.approvedAt === 0n && approval.cancelledAt === 0n) group.remove(key);
  else group.stage(key, encodeRecord(records.transferApprovalRecord, approval));
}

function putSession(
  group: Group,
  owner: Address,
  key: Address,
  session: records.TransferSessionRecord,
): void {
  group.stage(
    keyOf.transferSession(owner, key),
    encodeRecord(records.transferSessionRecord, session),
  );
}
