import { MintmarkError } from "../errors.ts";
import { tell } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { markRequest } from "../ledger/marks.ts";
import { enablementId } from "../ledger/tenant-tables.ts";
import { type Address, batchIdOf, type Hash, type Mode } from "../model.ts";
import type { MadeEvent } from "../ports.ts";
import { makingRoot } from "../protocol/making.ts";
import { packVaultId, type VaultPlace } from "../protocol/vault.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import * as records from "../store/records.ts";
import { endOf, keyOf, PRESENT, prefixOf } from "../store/store-keys.ts";
import { fastTokenIdOf } from "../store/token-id.ts";
import { decodeBatchTokens } from "../store/token-index.ts";
import {
  CHUNK_VAULTS,
  chunkKeyOf,
  decodeChunk,
  encodeChunk,
  type HolderIndexes,
  type StoredVault,
} from "../store/vault-columns.ts";
import { isVisible } from "../tenants/asset-view.ts";
import { requireHash } from "../validate.ts";
import { cameBack, lineageEnd, readMaking } from "../vaults/makings.ts";
import { readVaults } from "../vaults/vaults.ts";

type MadeVault = records.MakingRecord["vaults"][number];

/**
 * The application and the asset of a vault that is no user's, and its user less the slot: a record
 * of vaults holds one owner for each user.
 */
export const NOBODY = 0xffff_ffff;
/** Makings above have no keys; L1 would need years of blocks for so many. */
const MOST_MAKINGS = 0x0fff_ffff;
/** Most unclaimed vaults that one step examines. */
const CLAIMS_AT_ONCE = 128;

/** A making as the engine records it. Throws `l1_failed` unless its vaults make its root. */
export function requireWhole(ledger: Ledger, { making, batchRoot, vaults }: MadeEvent): void {
  const { chainId } = ledger.services.settlement;
  const isWhole =
    making <= MOST_MAKINGS &&
    makingRoot({ chainId, making: Number(making), vaults }) === batchRoot.toLowerCase();
  if (!isWhole)
    throw new MintmarkError("l1_failed", `the node tells of other vaults of making ${making}`);
}

/**
 * Records a final making, and gives its vaults to the users of their owners' addresses. A vault of
 * an address without a user waits for one, and its application is told of nothing.
 */
export async function applyMade(ledger: Ledger, group: Group, event: MadeEvent): Promise<void> {
  const { blockNumber, logIndex, vaults, entered, sequence: l1Sequence } = event;
  const making = Number(event.making);
  const txHash = requireHash("txHash", event.txHash);
  const batchRoot = requireHash("batchRoot", event.batchRoot);
  const record = { batchRoot, l1Sequence, txHash, blockNumber, entered, vaults };
  const { time } = ledger.journal.record(group, {
    kind: "vaultsMade",
    making,
    ...record,
    logIndex,
  });
  const { chainId } = ledger.services.settlement;
  group.stage(keyOf.making(making), encodeRecord(records.makingRecord, record));
  const seen = encodeRecord(records.l1EventRecord, records.NO_EVENT);
  group.stage(keyOf.l1Event(chainId, blockNumber, logIndex), seen);
  // A deep reorganisation took the block back, and L1 made the same vaults again.
  if (making <= ledger.batches.makings.count(group)) return;
  ledger.batches.makings.put(group, making, vaults.length);
  if (entered !== null) putEntry(ledger, group, making, vaults[0] as MadeVault, entered);
  const stored: StoredVault[] = [];
  for (const [slot, vault] of vaults.entries()) {
    const place = { mode: "made", batchNumber: making, slot } as const;
    const asset = assetOf(ledger, vault, group);
    const nobodys = vaultOfNobody(vault, slot, asset, time);
    const holder =
      (await traderOf(ledger, group, vault.owner, asset, txHash)) ??
      (await holderOf(ledger, vault.owner, asset, group));
    stored.push(
      holder === null || asset === null
        ? nobodys
        : deposit(ledger, group, place, { holder, asset, vault: nobodys, record }),
    );
    if (holder !== null) continue;
    group.put(keyOf.unclaimed(vault.owner, making, slot), PRESENT);
    group.onDurable(() => ledger.batches.makings.unclaimed++);
  }
  for (let slot = 0; slot < stored.length; slot += CHUNK_VAULTS)
    group.stage(
      chunkKeyOf({ mode: "made", batchNumber: making, slot }),
      encodeChunk(stored.slice(slot, slot + CHUNK_VAULTS)),
    );
}

/** Notes the latest entry of an ERC-721 id, which cannot be minted from now on. */
function putEntry(
  ledger: Ledger,
  group: Group,
  making: number,
  vault: MadeVault,
  tokenId: bigint,
): void {
  group.stage(keyOf.entry(vault.assetType, tokenId), keyOf.making(making).subarray(1));
  const asset = assetOf(ledger, vault, group);
  if (asset === null) return;
  const { assetIndex, nextTokenId } = asset;
  ledger.minting.tokens.insert(
    ledger.minting.hasher.ofId(assetIndex, tokenId),
    ledger.batches.refs.refOfMade(making),
  );
  if (nextTokenId !== null && tokenId >= nextTokenId)
    ledger.tenants.putAsset(group, { ...asset, nextTokenId: tokenId + 1n });
}

/**
 * The slots of a sealed batch whose ERC-721 ids have come back from L1, with the reason: their
 * vaults never count there. Throws `batch_not_found`.
 */
export async function enteredSlots(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
): Promise<records.VoidRun[]> {
  if (ledger.batches.makings.count(null) === 0) return [];
  const name = batchIdOf(mode, batchNumber);
  const stored = await ledger.store.get(keyOf.batchTokens(mode, batchNumber));
  if (stored === undefined) throw new MintmarkError("batch_not_found");
  const { hashes, slots } = decodeBatchTokens(stored, name);
  const suspects = [...slots].filter((_, i) =>
    ledger.minting.tokens
      .candidates(hashes[i] as number)
      ?.some((ref) => ledger.batches.refs.isMade(ref)),
  );
  suspects.sort((a, b) => a - b);
  const located = await readVaults(
    ledger,
    suspects.map((slot) => ({ mode, batchNumber, slot })),
    null,
  );
  const entered: records.VoidRun[] = [];
  for (const { place, vault } of located) {
    const end = await lineageEnd(ledger, place, vault);
    if (end !== null) entered.push({ firstSlot: place.slot, count: 1, failure: cameBack(end) });
  }
  return entered;
}

/** The asset of a made vault; null when this store does not have it. */
function assetOf(
  ledger: Ledger,
  { assetType }: MadeVault,
  group: Group | null,
): records.AssetRecord | null {
  const name = `${ledger.services.settlement.chainId} ${assetType}`;
  return ledger.tenants.assetsByType.records(name, group)[0] ?? null;
}

function vaultOfNobody(
  { owner, amount, mintingBlob }: MadeVault,
  slot: number,
  asset: records.AssetRecord | null,
  time: number,
): StoredVault {
  const holder = { applicationIndex: NOBODY, userIndex: NOBODY - slot };
  const nobody = { ...holder, createdAt: time, updatedAt: time };
  return asset === null
    ? { ...nobody, owner, assetIndex: NOBODY, amount: 0n, mintingBlob: "0x" }
    : { ...nobody, owner, assetIndex: asset.assetIndex, amount, mintingBlob };
}

/**
 * The owner's first user in the first application that has the asset for its own or enabled; null
 * when there is none.
 */
async function holderOf(
  ledger: Ledger,
  owner: Address,
  asset: records.AssetRecord | null,
  group: Group | null,
): Promise<HolderIndexes | null> {
  if (asset === null) return null;
  const prefix = prefixOf.owner(owner);
  for (let from = 0; ; ) {
    let found: HolderIndexes | null = null;
    const range = { gte: keyOf.owner(owner, from), lt: endOf(prefix), limit: 1 };
    for await (const [key, stored] of ledger.store.entries(range)) {
      const { userIndex } = decodeRecord(records.ownerRecord, stored, "An owner");
      found = { applicationIndex: key.readUInt32BE(prefix.length), userIndex };
    }
    if (found === null) return null;
    const { applicationIndex } = found;
    if (isUsedBy(ledger, asset, applicationIndex, group)) return found;
    from = applicationIndex + 1;
  }
}

/**
 * The user whose order this transaction has settled, if the vault is what the order wants: it stays
 * in the order's application. Null for every other making.
 */
async function traderOf(
  ledger: Ledger,
  group: Group,
  owner: Address,
  asset: records.AssetRecord | null,
  txHash: Hash,
): Promise<HolderIndexes | null> {
  const orderIds = [...new Set(ledger.trades.view(group).values())];
  if (asset === null || orderIds.length === 0) return null;
  for (const stored of await ledger.store.getMany(orderIds.map(keyOf.order))) {
    if (stored === undefined) continue;
    const order = decodeRecord(records.orderRecord, stored, "A taken order");
    const { applicationIndex, userIndex } = order;
    const isOf = order.maker === owner && order.want.assetIndex === asset.assetIndex;
    if (isOf && order.l1TxHash === txHash && isUsedBy(ledger, asset, applicationIndex, group))
      return { applicationIndex, userIndex };
  }
  return null;
}

function isUsedBy(
  ledger: Ledger,
  asset: records.AssetRecord,
  application: number,
  group: Group | null,
): boolean {
  if (!isVisible(asset, application)) return false;
  if (asset.applicationIndex === application) return true;
  return (
    ledger.tenants.enablements.view(group).get(enablementId(application, asset.assetIndex)) ?? false
  );
}

interface Deposited {
  readonly holder: HolderIndexes;
  readonly asset: records.AssetRecord;
  readonly vault: StoredVault;
  readonly record: Pick<records.MakingRecord, "txHash" | "blockNumber">;
}

/** Gives a made vault to a user: the next transaction of its application. */
function deposit(
  ledger: Ledger,
  group: Group,
  place: VaultPlace,
  { holder, asset, vault, record }: Deposited,
): StoredVault {
  const { batchNumber: making, slot } = place;
  const { applicationIndex, userIndex } = holder;
  const { assetIndex, assetId, standard, mintingBlobScheme } = asset;
  const vaultId = packVaultId(place);
  const sequence = ledger.tenants.applications.change(group, applicationIndex).nextSequence++;
  const recorded = ledger.journal.record(group, {
    kind: "deposited",
    making,
    slot,
    applicationIndex,
    userIndex,
    sequence,
    assetIndex,
  });
  const { time } = recorded;
  const reference = keyOf.journal(recorded.sequence).subarray(1);
  for (const key of [
    keyOf.transaction(applicationIndex, sequence),
    keyOf.userTransaction(applicationIndex, userIndex, sequence),
    keyOf.applicationDeposit(applicationIndex, sequence),
    keyOf.deposit(vaultId),
  ])
    group.put(key, reference);
  markRequest(ledger, group, applicationIndex, sequence, [assetIndex], 0);
  const { amount, mintingBlob } = vault;
  tell(ledger, group, applicationIndex, time, {
    type: "deposit.credited",
    userIndex,
    vaultId,
    assetId,
    tokenId: fastTokenIdOf(standard, mintingBlobScheme, mintingBlob),
    amount,
    l1TxHash: record.txHash,
    l1BlockNumber: record.blockNumber,
  });
  return { ...vault, ...holder, assetIndex, createdAt: time, updatedAt: time };
}

/**
 * Gives unclaimed vaults to the users that their owners have by now: those of one owner, or of all.
 * Rejects with the writer's errors.
 */
export async function claimDeposits(ledger: Ledger, owner: Address | null): Promise<void> {
  if (ledger.batches.makings.unclaimed === 0) return;
  const prefix = owner === null ? prefixOf.unclaimed() : prefixOf.unclaimed(owner);
  for (let after: Buffer | null = null; ; ) {
    const keys: Buffer[] = [];
    const start: { readonly gt: Buffer } | { readonly gte: Buffer } =
      after === null ? { gte: prefix } : { gt: after };
    const range = { ...start, lt: endOf(prefix), limit: CLAIMS_AT_ONCE };
    for await (const [key] of ledger.store.entries(range)) keys.push(key);
    const claimed: Buffer[] = [];
    for (const key of keys) if ((await claimAt(ledger, key, null)) !== null) claimed.push(key);
    if (claimed.length > 0)
      await ledger.writer.alone(async (group) => {
        for (const key of claimed) await claim(ledger, group, key);
      });
    after = keys.at(-1) ?? null;
    if (keys.length < CLAIMS_AT_ONCE) return;
  }
}

/** The vault of an unclaimed key with the user that it waits for; null while there is none. */
async function claimAt(ledger: Ledger, key: Buffer, group: Group | null) {
  const batchNumber = key.readUInt32BE(21);
  const slot = key.readUInt8(25);
  const record = await readMaking(ledger, batchNumber);
  const vault = record.vaults[slot] as MadeVault;
  const asset = assetOf(ledger, vault, group);
  const holder = await holderOf(ledger, vault.owner, asset, group);
  const place = { mode: "made", batchNumber, slot } as const;
  return asset === null || holder === null ? null : { place, record, vault, asset, holder };
}

async function claim(ledger: Ledger, group: Group, key: Buffer): Promise<void> {
  const isUnclaimed = (await group.read(ledger.store, key)) !== undefined;
  const found = isUnclaimed ? await claimAt(ledger, key, group) : null;
  if (found === null) return;
  const { place, record, asset, holder } = found;
  const chunkKey = chunkKeyOf(place);
  const stored = await group.read(ledger.store, chunkKey);
  if (stored === undefined)
    throw new MintmarkError(
      "store_corrupt",
      `The vaults of making ${place.batchNumber} are missing.`,
    );
  const vaults = decodeChunk(stored);
  const vault = vaultOfNobody(found.vault, place.slot, asset, 0);
  vaults[place.slot % CHUNK_VAULTS] = deposit(ledger, group, place, {
    holder,
    asset,
    vault,
    record,
  });
  group.stage(chunkKey, encodeChunk(vaults));
  group.remove(key);
  group.onDurable(() => ledger.batches.makings.unclaimed--);
}
