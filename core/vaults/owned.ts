import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageEntries, type PageOptions } from "../ledger/list.ts";
import type { Address, Standard, Status, Uuid, Vault } from "../model.ts";
import { isRedemption } from "../protocol/transfer.ts";
import { packVaultId } from "../protocol/vault.ts";
import { decodeRecord } from "../store/layout.ts";
import { ownerRecord } from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { requireAddress } from "../validate.ts";
import { readActivities } from "./activity.ts";
import { remadeAs } from "./makings.ts";
import {
  collect,
  type Found,
  SCAN_BOUND,
  type ScanOptions,
  ScanProgress,
  SLOT_WEIGHT,
  vaultOf,
} from "./transaction-scan.ts";
import { statusOfTransfer } from "./transactions.ts";
import { outputsOf, readTransferList } from "./transfer-lists.ts";
import { readVaults, vaultViews } from "./vaults.ts";

/** A user is looked up in the index and its first transaction is sought. */
const USER_WEIGHT = 20;

/** A user of the owner, and the sequence below which its vaults are still to be listed. */
type OwnedPosition = readonly [applicationIndex: number, userIndex: number, before: number];

/** The vaults of an owner's users, one user after the other, each user's newest first. */
export function listOwned(
  context: EngineContext,
  owner: Address,
  page: PageOptions,
  options: ScanOptions,
): List<OwnedVault> {
  const ownerAddress = requireAddress("owner", owner);
  return listOf<OwnedVault, OwnedPosition>(
    context,
    "owned",
    ownerAddress,
    page,
    async ({ after, limit }, ledger) => {
      const work = new ScanProgress(options);
      const made = await ownedPage(ledger, ownerAddress, after, limit, work);
      await work.tell();
      return made;
    },
  );
}

async function ownedPage(
  ledger: Ledger,
  owner: Address,
  after: OwnedPosition | null,
  limit: number,
  work: ScanProgress,
): Promise<PageEntries<OwnedVault, OwnedPosition>> {
  const data: OwnedVault[] = [];
  let last = after;
  for await (const [applicationIndex, userIndex, before] of usersFrom(ledger, owner, after)) {
    if (data.length === limit || work.done >= SCAN_BOUND) return { data, next: last };
    work.done += USER_WEIGHT;
    const to = ledger.tenants.applications.durable.get(applicationIndex)?.nextSequence ?? 0;
    const part = { users: new Set([userIndex]), within: { from: 0, to: Math.min(to, before) } };
    const scan = { applicationIndex, parts: [part], order: "desc", after: null } as const;
    const wanted = (one: Found) => isGained(ledger, one, userIndex);
    const { found, next } = await collect(ledger, scan, limit - data.length, wanted, work);
    const { views, cutAt } = await viewsOf(ledger, applicationIndex, found, work);
    data.push(...views);
    const upTo = cutAt ?? next;
    if (upTo !== null) return { data, next: [applicationIndex, userIndex, upTo] };
    last = [applicationIndex, userIndex, 0];
  }
  return { data, next: null };
}

/** The owner's users from a place on: those of each application together, in their order. */
async function* usersFrom(
  ledger: Ledger,
  owner: Address,
  after: OwnedPosition | null,
): AsyncGenerator<OwnedPosition> {
  const prefix = prefixOf.owner(owner);
  if (after !== null) yield after;
  const start =
    after === null ? { gte: prefix } : { gt: keyOf.ownerUser(owner, after[0], after[1]) };
  for await (const [key, record] of ledger.store.entries({ ...start, lt: endOf(prefix) })) {
    const { userIndex } = decodeRecord(ownerRecord, record, "An owner");
    yield [key.readUInt32BE(prefix.length), userIndex, Number.MAX_SAFE_INTEGER];
  }
}

/** Whether a transaction made a vault for the user, as the first one that did. */
function isGained(ledger: Ledger, one: Found, userIndex: number): boolean {
  const { source } = one;
  if (vaultOf(ledger, one) === null) return false;
  return source.type === "transfer"
    ? source.output.holderIndex === userIndex
    : source.type === "deposit" || (source.type === "mint" && source.mint.amountBefore === 0n);
}

/**
 * The found vaults as their owner sees them. Those of which transfers of long lists took many are
 * cut off, and `cutAt` is then the sequence of the last one before.
 */
async function viewsOf(
  ledger: Ledger,
  applicationIndex: number,
  found: readonly Found[],
  work: ScanProgress,
): Promise<{ readonly views: OwnedVault[]; readonly cutAt: number | null }> {
  const located = await readVaults(
    ledger,
    found.flatMap((one) => vaultOf(ledger, one) ?? []),
    null,
  );
  const vaultIds = located.map(({ place }) => packVaultId(place));
  const [vaults, activities] = await Promise.all([
    vaultViews(ledger, applicationIndex, located),
    readActivities(ledger, vaultIds, null),
  ]);
  const takers = new Map<Uuid, Awaited<ReturnType<typeof readTransferList>>>();
  const views: OwnedVault[] = [];
  for (const [i, vault] of vaults.entries()) {
    const { spentBy, pending } = activities[i]!;
    if (spentBy !== null && !takers.has(spentBy)) {
      if (i > 0 && work.done >= SCAN_BOUND) return { views, cutAt: found[i - 1]!.sequence };
      const list = await readTransferList(ledger, spentBy);
      takers.set(spentBy, list);
      work.done += list.transfers.length * SLOT_WEIGHT;
    }
    // L1 does not count the transfer that made it, so it holds nothing.
    if (vault.amount === 0n) continue;
    const taker = spentBy === null ? undefined : takers.get(spentBy);
    const output =
      taker && outputsOf(taker).find(({ transfer }) => transfer.vaultId === vault.vaultId);
    const transfer =
      taker && output
        ? {
            transferId: taker.transferId,
            to: output.transfer.to,
            status: statusOfTransfer(ledger, taker, output),
          }
        : null;
    const { place, vault: stored } = located[i]!;
    const { source } = found[i]!;
    const { userId: _, ...shown } = vault;
    const asset = ledger.tenants.assetNow(stored.assetIndex, null);
    views.push({
      ...shown,
      chainId: asset.chainId,
      standard: asset.standard,
      contractAddress: asset.contractAddress,
      transferable: asset.transferable === true,
      slot: place.slot,
      hops: source.type === "transfer" ? source.output.transfer.hops : 0,
      standing: await ownersStanding(ledger, vault, stored, pending.length > 0, transfer),
      transfer,
    });
  }
  return { views, cutAt: null };
}

async function ownersStanding(
  ledger: Ledger,
  vault: Vault,
  stored: StoredVault,
  ...more: [isPending: boolean, transfer: OwnedVault["transfer"]]
): Promise<Standing> {
  const standing = standingOf(vault, ...more);
  if (standing !== "withdrawn") return standing;
  return (await remadeAs(ledger, vault.vaultId, stored)) ?? standing;
}

function standingOf(
  { status, amount, withdrawnBalance }: Vault,
  isPending: boolean,
  transfer: OwnedVault["transfer"],
): Standing {
  if (status === "failed") return "failed";
  if (transfer !== null && transfer.status !== "failed")
    return isRedemption(transfer) ? "redeemed" : "given";
  if (withdrawnBalance >= amount) return "withdrawn";
  if (isPending) return "leaving";
  return status === "accepted" ? "arriving" : "held";
}

/** How a vault stands for its owner, from its mint to its end. */
export const STANDINGS = [
  "arriving",
  "held",
  "leaving",
  "withdrawn",
  "renewed",
  "traded",
  "given",
  "redeemed",
  "failed",
] as const;

/**
 * `arriving` is in an open batch, `leaving` has a pending withdrawal. L1 has paid `withdrawn` ones
 * in tokens, `renewed` ones in a new vault of the owner, `traded` ones in one of somebody else.
 * `given` and `redeemed` begin with the request; `failed` is a mint that L1 refuses.
 */
export type Standing = (typeof STANDINGS)[number];

/** A vault as its owner sees it, whatever application it is of. */
export interface OwnedVault extends Omit<Vault, "userId"> {
  /** The chain of the vault's token. */
  readonly chainId: bigint;
  readonly standard: Standard;
  readonly contractAddress: Address;
  /** Whether the owner can give the vault away before a withdrawal. */
  readonly transferable: boolean;
  /** The place of the vault in its batch. */
  readonly slot: number;
  /** Transfers since the mint; at most 8. */
  readonly hops: number;
  readonly standing: Standing;
  /**
   * The transfer that has taken the vault, with its receiver; the zero address redeems. Null for
   * none.
   */
  readonly transfer: {
    readonly transferId: Uuid;
    readonly to: Address;
    readonly status: Status;
  } | null;
}
