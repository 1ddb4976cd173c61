import { v7 as uuidv7 } from "uuid";
import { argumentError, type ErrorCode, type Issue, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { markRequest } from "../ledger/marks.ts";
import { type Address, type Hash, type Hex, MODES, type Uuid } from "../model.ts";
import { ZERO_ADDRESS } from "../protocol/hex.ts";
import { compactBytes, isEcdsa } from "../protocol/signature.ts";
import type { Transfer, TransfersMessage } from "../protocol/transfer.ts";
import {
  isRedemption,
  MAX_SESSION_CHANGE_HOPS,
  MAX_TRANSFER_HOPS,
  requireTransfers,
  transfersDigest,
} from "../protocol/transfer.ts";
import { sessionCovers } from "../protocol/transfer-rules.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import {
  type ActivityRecord,
  type TransferListRecord,
  transferIdRecord,
} from "../store/records.ts";
import { keyOf, requestByKey, transferIndexes } from "../store/store-keys.ts";
import type { Transition } from "../store/writer.ts";
import { requireKey } from "../tenants/api-keys.ts";
import { putUser, recipientKey, recipientOf } from "../tenants/users.ts";
import { requireAddress } from "../validate.ts";
import { putActivity } from "../vaults/activity.ts";
import { lineageFaults } from "../vaults/makings.ts";
import { requireMovable } from "../vaults/movable.ts";
import { faultOf, requireDeadline, type VaultCaller } from "../vaults/signed-requests.ts";
import * as lists from "../vaults/transfer-lists.ts";
import { decodeActivity, type LocatedVault, ownVaults } from "../vaults/vaults.ts";
import { readApproval, readSession } from "./powers.ts";
import { requireCarried } from "./transfer-batch.ts";

/**
 * Transfers that an owner has signed, in the order of the message: each vault once, all of one
 * owner and one application. The deadline is an hour to 30 days ahead.
 */
export interface TransferRequest extends TransfersMessage {
  /**
   * The owner's EIP-712 `Transfers` message, in the settlement contract's domain, or that of a key
   * with a session of the owner. `0x` when the owner has approved the transfers on L1.
   */
  readonly signature: Hex;
}

/**
 * Takes signed transfers, all or none. The same ones again return their list, or try anew if it
 * failed.
 */
export async function requestTransfers(
  { ledger, writer }: EngineContext,
  caller: VaultCaller,
  request: TransferRequest,
  signal?: AbortSignal,
): Promise<TransferListRecord> {
  const list = await askedList(ledger, caller, request);
  const isSigned = request.signature !== "0x";
  if (isSigned && !isEcdsa(request.signature))
    throw new MintmarkError("signature_invalid", NOT_ECDSA);
  const signature = isSigned ? compactBytes(request.signature) : "0x";
  const sessionKey = await requireAuthorized(ledger, list, signature);
  const taken = await writer.run(
    taking(ledger, caller, { ...list, signature, sessionKey }),
    signal,
  );
  return typeof taken === "string" ? lists.readTransferList(ledger, taken) : taken;
}

const NOT_SIGNED =
  "The signature is not the vaults' owner's over these transfers, nor that of a key with a final session of the owner.";
const NOT_ECDSA =
  "Transfers take an ECDSA signature of 64 or 65 bytes with a low s. A wallet contract approves them on L1 (approveTransfers), and its signature is 0x.";
const NOT_APPROVED =
  "The vaults' owner has not approved these transfers on L1, or the approval is not final yet.";
const CANCELLED =
  "The owner or the signer has cancelled these transfers on L1. Sign other ones, with another deadline.";
const NOT_COVERED =
  "The key's session has ended, ends before the deadline, or does not cover one of the assets or amounts.";

/**
 * The key that signed the list in a session; null if the owner signed or approved. L1 decides again
 * at the commit.
 */
async function requireAuthorized(
  ledger: Ledger,
  { digest, deadline, asked }: AskedList,
  signature: Hex,
) {
  const { owner } = asked[0]!.vault;
  const read = (key: Buffer) => ledger.store.get(key);
  const final = ledger.l1.portals.durable.get(ledger.services.settlement.chainId)?.finalized ?? -1n;
  if (signature === "0x") {
    const { approvedAt, cancelledAt, blockNumber } = await readApproval(read, owner, digest);
    if (cancelledAt !== 0n) throw new MintmarkError("signature_invalid", CANCELLED);
    if (approvedAt === 0n || blockNumber > final)
      throw new MintmarkError("signature_invalid", NOT_APPROVED);
    return null;
  }
  const signer = await ledger.services.signers.recover(digest, signature);
  for (const account of new Set([owner, signer ?? owner]))
    if ((await readApproval(read, account, digest)).cancelledAt !== 0n)
      throw new MintmarkError("signature_invalid", CANCELLED);
  if (signer === owner) return null;
  const session = signer === null ? null : await readSession(read, owner, signer);
  if (session === null || session.authorizedAt === 0n || session.blockNumber > final)
    throw new MintmarkError("signature_invalid", NOT_SIGNED);
  const isCovered = ({ transfer, vault }: AskedTransfer) =>
    sessionCovers(
      session,
      { ...vault, assetType: ledger.tenants.assetAt(vault.assetIndex).assetType },
      transfer,
      deadline,
    );
  if (!asked.every(isCovered) || session.revokedAt !== 0n)
    throw new MintmarkError("signature_invalid", NOT_COVERED);
  const issues = asked.flatMap(({ transfer: { amount }, hops }, i) =>
    amount !== 0n && hops > MAX_SESSION_CHANGE_HOPS
      ? [issueAt(i, "transfer_too_deep", CHANGE_TOO_DEEP)]
      : [],
  );
  if (issues.length > 0) throw refusal(issues);
  return signer;
}

const CHANGE_TOO_DEEP =
  "A session's key takes a part of a vault only in its first 4 transfers. Let the owner sign, or give the whole vault.";

interface SignedList extends AskedList, Pick<TransferListRecord, "signature" | "sessionKey"> {}

/** The transition of a signed list: checks its vaults as they are now, then holds all of them. */
function taking(
  ledger: Ledger,
  caller: VaultCaller,
  signed: SignedList,
): Transition<TransferListRecord | Uuid> {
  const { digest, deadline, transfers, asked } = signed;
  const { applicationIndex } = asked[0]!.vault;
  const digestKey = keyOf.transferDigest(digest);
  // The distinct owners who get vaults, and those of them that the cache lacks.
  const receivers = [
    ...new Set(transfers.filter((transfer) => !isRedemption(transfer)).map(({ to }) => to)),
  ];
  let unknown: Address[] = [];
  return {
    weight: lists.slotCount(transfers),
    keys() {
      unknown = receivers.filter(
        (owner) => ledger.tenants.users.get(applicationIndex, owner) === undefined,
      );
      const spent = transfers.map(({ vaultId }) => keyOf.activity(vaultId));
      return [
        digestKey,
        ...spent,
        ...unknown.map((owner) => recipientKey(applicationIndex, owner)),
      ];
    },
    apply(group, [taken, ...stored]) {
      if (!("owner" in caller)) requireKey(ledger, group, caller);
      const earlier = group.resolve(digestKey, taken);
      if (earlier !== undefined)
        return decodeRecord(transferIdRecord, earlier, "The transfers of a digest");
      ledger.l1.requirePromising();
      requireDeadline(ledger, deadline, "transfer");
      const activities = transfers.map(({ vaultId }, i) =>
        decodeActivity(group.resolve(keyOf.activity(vaultId), stored[i])),
      );
      requireTransferable(ledger, asked, activities, group);
      for (const [i, owner] of unknown.entries()) {
        const record = group.resolve(
          recipientKey(applicationIndex, owner),
          stored[transfers.length + i],
        );
        if (record !== undefined)
          ledger.tenants.users.remember(applicationIndex, owner, recipientOf(owner, record));
      }
      requireReceivers(ledger, caller, applicationIndex, receivers);
      const list = putRequested(ledger, group, signed, receivers);
      for (const [i, { transfer, vault }] of asked.entries()) {
        const activity = {
          ...activities[i]!,
          spentBy: list.transferId,
          updatedAt: list.createdAt,
        };
        putActivity(
          ledger,
          group,
          { vaultId: transfer.vaultId, userIndex: vault.userIndex },
          activity,
        );
      }
      group.stage(digestKey, encodeRecord(transferIdRecord, list.transferId));
      return list;
    },
  };
}

/** Throws `scope_missing` when a receiver needs a user that the caller may not create. */
function requireReceivers(
  ledger: Ledger,
  caller: VaultCaller,
  application: number,
  receivers: readonly Address[],
) {
  const isNew = receivers.some(
    (owner) => ledger.tenants.users.get(application, owner) === undefined,
  );
  if (!isNew || !("scopes" in caller) || caller.scopes.includes("users")) return;
  const detail =
    "A receiver has no user yet, and the key does not carry the scope users to create one.";
  throw new MintmarkError("scope_missing", detail);
}

/** Journals a list and its new users, and writes its indexes. */
function putRequested(
  ledger: Ledger,
  group: Group,
  signed: SignedList,
  receivers: readonly Address[],
): TransferListRecord {
  const { digest, deadline, signature, sessionKey, asked } = signed;
  const { applicationIndex } = asked[0]!.vault;
  const users = new Map(
    receivers.map((owner) => [owner, userOf(ledger, group, applicationIndex, owner)]),
  );
  const application = ledger.tenants.applications.change(group, applicationIndex);
  const firstSequence = application.nextSequence;
  application.nextSequence += lists.slotCount(signed.transfers);
  const transfers = asked.map(
    ({ transfer: { vaultId, amount, to }, vault: { userIndex, assetIndex }, hops }) => {
      const receiverIndex = users.get(to) ?? null;
      return { vaultId, amount, to, receiverIndex, userIndex, assetIndex, hops, fault: null };
    },
  );
  const message = { digest, deadline, signature, sessionKey, transfers };
  const requested = { transferId: uuidv7(), applicationIndex, firstSequence, ...message };
  const { sequence: journalSequence, time } = ledger.journal.record(group, {
    kind: "transfersRequested",
    ...requested,
  });
  const list: TransferListRecord = {
    ...requested,
    journalSequence,
    status: "waiting",
    batchNumber: null,
    firstSlot: null,
    failure: null,
    createdAt: time,
    updatedAt: time,
  };
  lists.putTransferList(group, list, null);
  indexTransfers(ledger, group, list);
  lists.tellAccepted(ledger, group, list);
  return list;
}

function userOf(ledger: Ledger, group: Group, application: number, ownerAddress: Address): number {
  const known = ledger.tenants.users.get(application, ownerAddress);
  if (known !== undefined) return known.userIndex;
  return putUser(
    ledger,
    group,
    application,
    { userId: uuidv7(), ownerAddress, reference: null },
    true,
  ).userIndex;
}

/**
 * The index records of a list: by sequence, by each user who gives or gets, by each vault that it
 * spends, and by asset.
 */
function indexTransfers(ledger: Ledger, group: Group, list: TransferListRecord): void {
  const { applicationIndex, firstSequence, journalSequence, transfers } = list;
  const reference = keyOf.journal(journalSequence).subarray(1);
  group.put(keyOf.transaction(applicationIndex, firstSequence), reference);
  for (const user of lists.usersOf(lists.outputsOf(list)))
    group.put(keyOf.userTransaction(applicationIndex, user, firstSequence), reference);
  for (const of of transferIndexes(applicationIndex, transfers))
    group.put(requestByKey(of, firstSequence), reference);
  // Vaults of either mode go into a rollup batch, so a transfer belongs to both.
  const bits = (1 << MODES.length) - 1;
  const assets = new Set(transfers.map(({ assetIndex }) => assetIndex));
  markRequest(ledger, group, applicationIndex, firstSequence, assets, bits);
}

/** A vault of a request, with everything that no later change touches. */
export interface AskedTransfer extends LocatedVault {
  readonly transfer: Transfer;
  readonly hops: number;
}

/** A list as its owner signs it, with its vaults. */
export interface AskedList extends TransfersMessage {
  readonly digest: Hash;
  readonly asked: readonly AskedTransfer[];
}

/**
 * Reads the vaults of a list, and checks what no later change touches. Throws as
 * `Transfers.request` says.
 */
export async function askedList(
  ledger: Ledger,
  caller: VaultCaller,
  message: TransfersMessage,
): Promise<AskedList> {
  const { deadline } = message;
  const transfers = message.transfers.map((transfer, i) => ({
    ...transfer,
    to: receiverOf(transfer, i),
  }));
  requireTransfers({ transfers, deadline });
  requireCarried(ledger.services.limits, transfers);
  const digest = transfersDigest(ledger.services.settlement, { transfers, deadline });
  return { transfers, deadline, digest, asked: await askedVaults(ledger, caller, transfers) };
}

function receiverOf({ to }: Transfer, i: number): Address {
  return to === ZERO_ADDRESS ? to : requireAddress(`transfers[${i}].to`, to);
}

/**
 * The vaults that the transfers take. Rejects with `vault_not_found` and, for several owners,
 * `validation_failed`.
 */
async function askedVaults(
  ledger: Ledger,
  caller: VaultCaller,
  transfers: readonly Transfer[],
): Promise<AskedTransfer[]> {
  const found = await ownVaults(ledger, caller, transfers);
  // A burnt slot holds no units, and is nobody's vault.
  const issues = found.flatMap((located, i) =>
    located?.vault.amount ? [] : [issueAt(i, "vault_not_found")],
  );
  if (issues.length > 0) throw refusal(issues);
  const located = found as readonly LocatedVault[];
  const first = located[0]?.vault;
  const isCommon = ({ vault: { owner, applicationIndex } }: LocatedVault) =>
    owner === first?.owner && applicationIndex === first.applicationIndex;
  if (!located.every(isCommon))
    throw argumentError(
      "transfers",
      "must have one owner and one application; sign a list for each",
    );
  const faults = await lineageFaults(ledger, located);
  const ended = faults.flatMap((fault, i) =>
    fault ? [issueAt(i, fault.code, fault.message)] : [],
  );
  if (ended.length > 0) throw refusal(ended);
  const makers = await lists.makersOf(
    ledger,
    located.map(({ place }) => place),
  );
  return located.map((each, i) => {
    const hops = (makers[i]?.output.transfer.hops ?? 0) + 1;
    return { transfer: transfers[i]!, ...each, hops };
  });
}

function issueAt(i: number, code: ErrorCode, detail = new MintmarkError(code).message): Issue {
  return { pointer: `/transfers/${i}`, code, detail };
}

function refusal(issues: readonly Issue[]): MintmarkError {
  const [first] = issues as readonly [Issue];
  return new MintmarkError(first.code, first.detail, { issues });
}

/** Throws unless each vault can be transferred as it is now, and names all that cannot. */
export function requireTransferable(
  ledger: Ledger,
  asked: readonly AskedTransfer[],
  activities: readonly ActivityRecord[],
  group: Group | null,
) {
  const issues = asked.flatMap((one, i) => {
    const fault = faultOf(() => requireOneTransferable(ledger, one, activities[i]!, group));
    return fault === null ? [] : [issueAt(i, fault.code, fault.message)];
  });
  if (issues.length > 0) throw refusal(issues);
}

/** Throws unless the vault can be transferred now. Otherwise its owner can only withdraw it. */
function requireOneTransferable(
  ledger: Ledger,
  { transfer, place, vault, hops }: AskedTransfer,
  activity: ActivityRecord,
  group: Group | null,
): void {
  requireMovable(ledger, place, vault, activity, group);
  const { standard } = ledger.tenants.assetAt(vault.assetIndex);
  const rest = vault.amount - activity.withdrawn;
  if (hops > MAX_TRANSFER_HOPS) throw new MintmarkError("transfer_too_deep");
  const isPart = transfer.amount !== 0n;
  if (isPart && (standard === "erc721" || transfer.amount >= rest))
    throw new MintmarkError("amount_out_of_range", PARTS);
}

const PARTS =
  "A part is at least 1 and less than all that is left; 0 means all. An ERC-721 token has no parts.";
