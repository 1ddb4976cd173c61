import { v7 as uuidv7 } from "uuid";
import { zeroAddress } from "viem";
import type { StoredVault } from "../columns/vault-columns.ts";
import { type ErrorCode, type Issue, MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { markRequest } from "../ledger/marks.ts";
import { type Address, type Hex, MODES, type Mode, type Principal, type Uuid } from "../model.ts";
import { sessionCovers, transferSigner } from "../protocol/transfer-rules.ts";
import { isRedemption, MAX_TRANSFER_HOPS, type Transfer, transfersDigest } from "../protocol/transfers.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { runAt } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { type ActivityRecord, type TransferListRecord, transferIdRecord } from "../store/records.ts";
import { activityKey, journalKey, transactionKey, transferDigestKey, userTransactionKey } from "../store/store-keys.ts";
import type { Transition } from "../store/writer.ts";
import { requireKey } from "../tenants/api-keys.ts";
import { putUser, recipientKey, recipientOf } from "../tenants/users.ts";
import { requireAddress } from "../validate.ts";
import {
  makerOf,
  outputsOf,
  putTransferList,
  readTransferList,
  slotCount,
  tellAccepted,
} from "../vaults/transfer-lists.ts";
import { decodeActivity, placeOf, readVaults } from "../vaults/vaults.ts";
import { putActivity } from "../vaults/withdrawals.ts";
import { requireCarried } from "./bounds.ts";
import { readApproval, readSession } from "./powers.ts";

/** Seconds from a request to its deadline. A batch waits up to minutes, and L1 may be slow. */
const MIN_VALIDITY = 3_600n;
const MAX_VALIDITY = 2_592_000n;

/** What an owner has signed, in the order of the message. */
export interface TransferRequest {
  /** 1 to 1,024, each vault once. All vaults have one owner, and are of one application. */
  readonly transfers: readonly Transfer[];
  /** Seconds since 1970, as signed: an hour to 30 days ahead. */
  readonly deadline: bigint;
  /**
   * The owner's EIP-712 `Transfers` message, in the settlement contract's domain, or that of a key with a session of the
   * owner. `0x` when the owner has approved the transfers on L1.
   */
  readonly signature: Hex;
}

/** Asks for transfers: an application from its vaults, or an owner from its own. */
export type TransferCaller = Principal | { readonly owner: Address };

/** A vault of a request, with everything that no later change touches. */
interface Spent {
  readonly transfer: Transfer;
  readonly place: VaultPlace;
  readonly vault: StoredVault;
  readonly hops: number;
}

/**
 * Takes an owner's signed transfers, all or none, and holds their vaults. The same transfers signed again return the list
 * that was taken, or try anew if that one failed.
 */
export async function requestTransfers(
  ledger: Ledger,
  caller: TransferCaller,
  request: TransferRequest,
  signal?: AbortSignal,
): Promise<TransferListRecord> {
  const transfers = request.transfers.map((transfer, i) => ({ ...transfer, to: receiverOf(transfer, i) }));
  const asked = { transfers, deadline: request.deadline };
  const digest = transfersDigest(ledger.settlement, asked);
  const signature = String(request.signature).toLowerCase() as Hex;
  requireCarried(ledger.limits, transfers);
  const spent = await spentVaults(ledger, caller, transfers);
  const sessionKey = await requireAuthorized(ledger, { ...asked, digest, signature }, spent);
  const taken = await ledger.writer.run(
    new TakeTransfers(ledger, caller, { ...asked, digest, signature, sessionKey }, spent),
    signal,
  );
  return typeof taken === "string" ? readTransferList(ledger, taken) : taken;
}

const NOT_SIGNED =
  "The signature is not the vaults' owner's over these transfers, nor that of a key with a final session of the owner. " +
  "It has v 27 or 28 and a low s.";
const NOT_APPROVED = "The vaults' owner has not approved these transfers on L1, or the approval is not final yet.";
const NOT_COVERED =
  "The key's session has ended, ends before the deadline, or does not cover one of the assets or amounts.";

/**
 * Requires that the owner has signed or approved the list, or that a key with a session has signed it. Returns that key;
 * null when the list needs none. L1 decides once more at the commit.
 */
async function requireAuthorized(
  ledger: Ledger,
  { digest, deadline, signature }: Omit<Signed, "sessionKey">,
  spent: readonly Spent[],
): Promise<Address | null> {
  const { owner } = (spent[0] as Spent).vault;
  const read = (key: Buffer) => ledger.store.get(key);
  const final = ledger.portals.get(ledger.settlement.chainId)?.finalized ?? -1n;
  if (signature === "0x") {
    const approval = await readApproval(read, owner, digest);
    if (approval === null || approval.blockNumber > final) throw new MintmarkError("signature_invalid", NOT_APPROVED);
    return null;
  }
  const signer = await transferSigner(digest, signature);
  if (signer === owner) return null;
  const session = signer === null ? null : await readSession(read, owner, signer);
  if (session === null || session.authorizedAt === 0n || session.blockNumber > final)
    throw new MintmarkError("signature_invalid", NOT_SIGNED);
  const isCovered = ({ transfer, vault }: Spent) =>
    sessionCovers(session, { ...vault, assetType: ledger.assetAt(vault.assetIndex).assetType }, transfer, deadline);
  if (!spent.every(isCovered) || session.revokedAt !== 0n) throw new MintmarkError("signature_invalid", NOT_COVERED);
  return signer;
}

function receiverOf({ to }: Transfer, i: number): Address {
  return to === zeroAddress ? to : requireAddress(`transfers[${i}].to`, to);
}

/** The vaults that the transfers take. Rejects with `vault_not_found` and, for several owners, `validation_failed`. */
async function spentVaults(ledger: Ledger, caller: TransferCaller, transfers: readonly Transfer[]): Promise<Spent[]> {
  const issues: Issue[] = [];
  const places = transfers.map(({ vaultId }) => placeOf(vaultId));
  const isKnown = ({ mode, batchNumber, slot }: VaultPlace) =>
    slot < (ledger.batches[mode].get(batchNumber)?.vaultCount ?? 0);
  for (const [i, place] of places.entries()) if (!isKnown(place)) issues.push(issueAt(i, "vault_not_found"));
  if (issues.length > 0) throw refusal(issues);
  const found = await readVaults(ledger, places);
  const isOwn = ownedBy(ledger, caller);
  // A burnt slot holds no units, and is nobody's vault.
  for (const [i, { vault }] of found.entries())
    if (vault.amount === 0n || !isOwn(vault)) issues.push(issueAt(i, "vault_not_found"));
  if (issues.length > 0) throw refusal(issues);
  const [first] = found;
  const isCommon = ({ vault }: (typeof found)[number]) =>
    vault.owner === first?.vault.owner && vault.applicationIndex === first.vault.applicationIndex;
  if (!found.every(isCommon)) {
    const detail = "The vaults of a list have one owner and one application. Sign a list for each.";
    throw new MintmarkError("validation_failed", detail);
  }
  const makers = await Promise.all(places.map((place) => makerOf(ledger, place)));
  return found.map(({ place, vault }, i) => {
    const hops = (makers[i]?.output.transfer.hops ?? 0) + 1;
    return { transfer: transfers[i] as Transfer, place, vault, hops };
  });
}

function ownedBy(ledger: Ledger, caller: TransferCaller): (vault: StoredVault) => boolean {
  if ("owner" in caller) {
    const owner = requireAddress("owner", caller.owner);
    return (vault) => vault.owner === owner;
  }
  const { applicationIndex } = ledger.application(caller.applicationId);
  return (vault) => vault.applicationIndex === applicationIndex;
}

function issueAt(i: number, code: ErrorCode, detail = new MintmarkError(code).message): Issue {
  return { pointer: `/transfers/${i}`, code, detail };
}

function refusal(issues: readonly Issue[]): MintmarkError {
  const [first] = issues as readonly [Issue];
  return new MintmarkError(first.code, first.detail, { issues });
}

interface Signed extends Pick<TransferListRecord, "digest" | "deadline" | "signature" | "sessionKey"> {
  readonly transfers: readonly Transfer[];
}

/** The transition of a signed list: checks its vaults as they are now, then holds all of them. */
class TakeTransfers implements Transition<TransferListRecord | Uuid> {
  readonly weight: number;
  readonly #ledger: Ledger;
  readonly #caller: TransferCaller;
  readonly #signed: Signed;
  readonly #spent: readonly Spent[];
  readonly #applicationIndex: number;
  /** The distinct owners who get vaults. */
  readonly #receivers: readonly Address[];
  /** Of them, those that the cache lacked. */
  readonly #asked: Address[] = [];

  constructor(ledger: Ledger, caller: TransferCaller, signed: Signed, spent: readonly Spent[]) {
    this.#ledger = ledger;
    this.#caller = caller;
    this.#signed = signed;
    this.#spent = spent;
    this.#applicationIndex = (spent[0] as Spent).vault.applicationIndex;
    this.#receivers = [...new Set(signed.transfers.filter((one) => !isRedemption(one)).map(({ to }) => to))];
    this.weight = slotCount(signed.transfers);
  }

  keys(): Buffer[] {
    const application = this.#applicationIndex;
    const unknown = this.#receivers.filter((owner) => this.#ledger.users.get(application, owner) === undefined);
    this.#asked.push(...unknown);
    return [
      transferDigestKey(this.#signed.digest),
      ...this.#spent.map(({ transfer }) => activityKey(transfer.vaultId)),
      ...unknown.map((owner) => recipientKey(application, owner)),
    ];
  }

  apply(group: Group, [taken, ...stored]: readonly (Buffer | undefined)[]): TransferListRecord | Uuid {
    const ledger = this.#ledger;
    const { digest, deadline } = this.#signed;
    if (!("owner" in this.#caller)) requireKey(ledger, this.#caller);
    const earlier = group.resolve(transferDigestKey(digest), taken);
    if (earlier !== undefined) return decodeRecord(transferIdRecord, earlier, "The transfers of a digest");
    ledger.requirePromising();
    requireDeadline(ledger, deadline);
    const activities = this.#spent.map(({ transfer: { vaultId } }, i) =>
      decodeActivity(group.resolve(activityKey(vaultId), stored[i])),
    );
    this.#requireTransferable(activities);
    this.#learnUsers(group, stored.slice(this.#spent.length));
    const list = this.#record(group);
    for (const [i, { transfer, vault }] of this.#spent.entries()) {
      const activity = { ...(activities[i] as ActivityRecord), spentBy: list.transferId, updatedAt: list.createdAt };
      putActivity(ledger, group, { vaultId: transfer.vaultId, userIndex: vault.userIndex }, activity);
    }
    group.stage(transferDigestKey(digest), encodeRecord(transferIdRecord, list.transferId));
    return list;
  }

  /** Throws unless each vault can be transferred as it is now, and names all that cannot. */
  #requireTransferable(activities: readonly ActivityRecord[]): void {
    const issues = this.#spent.flatMap((spent, i) => {
      const fault = faultOf(this.#ledger, spent, activities[i] as ActivityRecord);
      return fault === null ? [] : [issueAt(i, fault.code, fault.message)];
    });
    if (issues.length > 0) throw refusal(issues);
  }

  #learnUsers(group: Group, stored: readonly (Buffer | undefined)[]): void {
    const { users } = this.#ledger;
    const application = this.#applicationIndex;
    for (const [i, owner] of this.#asked.entries()) {
      const record = group.resolve(recipientKey(application, owner), stored[i]);
      if (record !== undefined) users.set(application, owner, recipientOf(owner, record));
    }
    const caller = this.#caller;
    const isNew = this.#receivers.some((owner) => users.get(application, owner) === undefined);
    if (isNew && "scopes" in caller && !caller.scopes.includes("users")) {
      const detail = "A receiver has no user yet, and the key does not carry the scope users to create one.";
      throw new MintmarkError("scope_missing", detail);
    }
  }

  /** Journals the list and its new users, and writes its indexes. */
  #record(group: Group): TransferListRecord {
    const ledger = this.#ledger;
    const applicationIndex = this.#applicationIndex;
    const payees = new Map(this.#receivers.map((owner) => [owner, this.#userOf(group, owner)]));
    const application = ledger.applications.latest(applicationIndex);
    if (application === undefined) throw new Error("a vault's application is missing");
    const { nextSequence: firstSequence } = application;
    const { digest, deadline, signature, sessionKey } = this.#signed;
    const transfers = this.#spent.map(({ transfer: { vaultId, amount, to }, vault, hops }) => {
      const { userIndex, assetIndex } = vault;
      return { vaultId, amount, to, payeeIndex: payees.get(to) ?? null, userIndex, assetIndex, hops, fault: null };
    });
    const signed = { digest, deadline, signature, sessionKey, transfers };
    const facts = { transferId: uuidv7(), applicationIndex, firstSequence, ...signed };
    const { sequence: journalSequence, time } = ledger.record(group, { kind: "transfersRequested", ...facts });
    const waiting = { status: "waiting", batchNumber: null, firstSlot: null, failure: null } as const;
    const list: TransferListRecord = { ...facts, journalSequence, ...waiting, createdAt: time, updatedAt: time };
    ledger.putApplication(group, { ...application, nextSequence: firstSequence + this.weight });
    putTransferList(group, list, null);
    indexTransfers(ledger, group, list);
    tellAccepted(ledger, group, list);
    return list;
  }

  #userOf(group: Group, ownerAddress: Address): number {
    const known = this.#ledger.users.get(this.#applicationIndex, ownerAddress);
    if (known !== undefined) return known.userIndex;
    const user = { userId: uuidv7(), ownerAddress, reference: null };
    return putUser(this.#ledger, group, this.#applicationIndex, user, true).userIndex;
  }
}

/** The index records of a list: by sequence, by each user who gives or gets, and by asset and mode. */
function indexTransfers(ledger: Ledger, group: Group, list: TransferListRecord): void {
  const { applicationIndex, firstSequence, journalSequence, transfers } = list;
  const reference = journalKey(journalSequence).subarray(1);
  group.put(transactionKey(applicationIndex, firstSequence), reference);
  const users = new Set(
    outputsOf(list).flatMap(({ transfer, holderIndex }) => [transfer.userIndex, holderIndex ?? []].flat()),
  );
  for (const user of users) group.put(userTransactionKey(applicationIndex, user, firstSequence), reference);
  const modes: Mode[] = ["zk-rollup", ...transfers.map(({ vaultId }) => placeOf(vaultId).mode)];
  const bits = modes.reduce((sum, mode) => sum | (1 << MODES.indexOf(mode)), 0);
  const assets = new Set(transfers.map(({ assetIndex }) => assetIndex));
  markRequest(ledger, group, applicationIndex, firstSequence, assets, bits);
}

/** Why a vault cannot be transferred now; null when it can. Later its owner can still withdraw from it alone. */
function faultOf(
  ledger: Ledger,
  { transfer, place, vault, hops }: Spent,
  activity: ActivityRecord,
): MintmarkError | null {
  const { standard, transferable, chainId } = ledger.assetAt(vault.assetIndex);
  const batch = ledger.batches[place.mode].latest(place.batchNumber);
  const run = runAt(ledger.voids[place.mode].latest(place.batchNumber) ?? [], place.slot);
  const rest = vault.amount - activity.withdrawn;
  if (run !== null) return new MintmarkError("vault_void", `The vault is void: ${run.failure}`);
  if (transferable !== true || chainId !== ledger.settlement.chainId)
    return new MintmarkError("asset_not_transferable");
  if (activity.spentBy !== null) return new MintmarkError("vault_spent");
  if (batch?.status !== "finalized") return new MintmarkError("proof_not_ready", NOT_FINAL);
  if (activity.pending.length > 0) return new MintmarkError("withdrawal_pending");
  if (rest <= 0n) return new MintmarkError("insufficient_balance", "Nothing is left in this vault.");
  if (hops > MAX_TRANSFER_HOPS) return new MintmarkError("transfer_too_deep");
  const isPart = transfer.amount !== 0n;
  if (isPart && (standard === "erc721" || transfer.amount >= rest))
    return new MintmarkError("amount_out_of_range", PARTS);
  return null;
}

const NOT_FINAL = "The vault's batch is not final on L1 yet. Transfer the vault afterwards.";
const PARTS = "A part is at least 1 and less than all that is left; 0 means all. An ERC-721 token has no parts.";

function requireDeadline(ledger: Ledger, deadline: bigint): void {
  const now = BigInt(Math.floor(ledger.journalClock.now() / 1000));
  if (deadline >= now + MIN_VALIDITY && deadline <= now + MAX_VALIDITY) return;
  throw new MintmarkError("deadline_invalid", "The deadline must be an hour to 30 days ahead.");
}
