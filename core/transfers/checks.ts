import { zeroAddress } from "viem";
import { type ErrorCode, type Issue, MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Address, Hash, Principal } from "../model.ts";
import { MAX_TRANSFER_HOPS, requireTransfers, type Transfer, transfersDigest } from "../protocol/transfer.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { runAt } from "../sealing/void-runs.ts";
import type { ActivityRecord } from "../store/records.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { requireAddress } from "../validate.ts";
import { makersOf } from "../vaults/transfer-lists.ts";
import { hasSlot, ownedBy, placeOf, readVaults } from "../vaults/vaults.ts";
import { requireCarried } from "./close.ts";

const MIN_VALIDITY = 3_600n; // Seconds from a request to its deadline. A batch waits up to minutes, and L1 may be slow.
const MAX_VALIDITY = 2_592_000n;

/** Asks for transfers: an application from its vaults, or an owner from its own. */
export type TransferCaller = Principal | { readonly owner: Address };

/** A vault of a request, with everything that no later change touches. */
export interface Asked {
  readonly transfer: Transfer;
  readonly place: VaultPlace;
  readonly vault: StoredVault;
  readonly hops: number;
}

/** A list as its owner signs it, with its vaults. */
export interface AskedList {
  readonly transfers: readonly Transfer[];
  readonly deadline: bigint;
  readonly digest: Hash;
  readonly asked: readonly Asked[];
}

/** Reads the vaults of a list, and checks what no later change touches. Throws as `Transfers.request` says. */
export async function askedList(
  ledger: Ledger,
  caller: TransferCaller,
  message: { readonly transfers: readonly Transfer[]; readonly deadline: bigint },
): Promise<AskedList> {
  const { deadline } = message;
  const transfers = message.transfers.map((transfer, i) => ({ ...transfer, to: receiverOf(transfer, i) }));
  requireTransfers({ transfers, deadline });
  requireCarried(ledger.limits, transfers);
  const digest = transfersDigest(ledger.settlement, { transfers, deadline });
  return { transfers, deadline, digest, asked: await askedVaults(ledger, caller, transfers) };
}

function receiverOf({ to }: Transfer, i: number): Address {
  return to === zeroAddress ? to : requireAddress(`transfers[${i}].to`, to);
}

/** The vaults that the transfers take. Rejects with `vault_not_found` and, for several owners, `validation_failed`. */
async function askedVaults(ledger: Ledger, caller: TransferCaller, transfers: readonly Transfer[]): Promise<Asked[]> {
  const issues: Issue[] = [];
  const places = transfers.map(({ vaultId }) => placeOf(vaultId));
  for (const [i, place] of places.entries())
    if (!hasSlot(ledger, place, "get")) issues.push(issueAt(i, "vault_not_found"));
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
  const makers = await makersOf(ledger, places);
  return found.map(({ place, vault }, i) => {
    const hops = (makers[i]?.output.transfer.hops ?? 0) + 1;
    return { transfer: transfers[i] as Transfer, place, vault, hops };
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
export function requireTransferable(ledger: Ledger, asked: readonly Asked[], activities: readonly ActivityRecord[]) {
  const issues = asked.flatMap((one, i) => {
    const fault = faultOf(ledger, one, activities[i] as ActivityRecord);
    return fault === null ? [] : [issueAt(i, fault.code, fault.message)];
  });
  if (issues.length > 0) throw refusal(issues);
}

/** Why a vault cannot be transferred now; null when it can. Later its owner can still withdraw from it alone. */
function faultOf(ledger: Ledger, { transfer, place, vault, hops }: Asked, activity: ActivityRecord) {
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

export function requireDeadline(ledger: Ledger, deadline: bigint): void {
  const now = BigInt(Math.floor(ledger.journalClock.now() / 1000));
  if (deadline >= now + MIN_VALIDITY && deadline <= now + MAX_VALIDITY) return;
  throw new MintmarkError("deadline_invalid", "The deadline must be an hour to 30 days ahead.");
}
