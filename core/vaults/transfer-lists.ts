import { MintmarkError } from "../errors.ts";
import { tell } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { batchIdOf, type Uuid } from "../model.ts";
import { isRedemption } from "../protocol/transfer.ts";
import { slotsOf } from "../protocol/transfer-data.ts";
import { TRANSFER_FAULTS, type TransferFault } from "../protocol/transfer-rules.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../protocol/vault.ts";
import type { StoredEvent } from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import {
  type BatchRecord,
  type TransferListRecord,
  transferIdRecord,
  transferListRecord,
} from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { decodeActivity, readVaults } from "./vaults.ts";

/** One slot of a list: the units it gives, and who gets them. */
export interface ListOutput {
  /** The slot's place in the list, from 0; also that of its transaction. */
  readonly position: number;
  readonly index: number;
  readonly transfer: TransferListRecord["transfers"][number];
  /** Whether it is what the owner keeps of a split vault. */
  readonly isChange: boolean;
  /** The user who gets the vault; null for a redemption. */
  readonly holderIndex: number | null;
}

export function outputsOf({ transfers }: Pick<TransferListRecord, "transfers">): ListOutput[] {
  let position = 0;
  return transfers.flatMap((transfer, index): ListOutput[] => {
    const receiver = {
      position: position++,
      index,
      transfer,
      isChange: false,
      holderIndex: transfer.receiverIndex,
    };
    if (transfer.amount === 0n) return [receiver];
    return [
      receiver,
      { ...receiver, position: position++, isChange: true, holderIndex: transfer.userIndex },
    ];
  });
}

/** The users who give or get vaults, each once. */
export function usersOf(outputs: readonly ListOutput[]): number[] {
  return [
    ...new Set(
      outputs.flatMap(({ transfer, holderIndex }) =>
        [transfer.userIndex, holderIndex ?? []].flat(),
      ),
    ),
  ];
}

/**
 * Units of an output, when so many are left in the spent vault. A burnt slot is nobody's, and holds
 * none.
 */
export function unitsOf({ transfer, isChange, holderIndex }: ListOutput, rest: bigint): bigint {
  const paid = transfer.amount === 0n ? rest : transfer.amount;
  return holderIndex === null ? 0n : isChange ? rest - paid : paid;
}

interface Listed {
  readonly list: TransferListRecord;
  readonly output: ListOutput;
}

/** Units that each output gives, keeps or burns; null while unknown. */
export async function amountsOf(
  ledger: Ledger,
  listed: readonly Listed[],
): Promise<(bigint | null)[]> {
  const places = listed.map(({ list, output }) => placeIn(list, output.position));
  const present = places.flatMap((place) => place ?? []);
  const vaults = await readVaults(ledger, present, null);
  const made = new Map<VaultPlace | null, bigint>(
    vaults.map(({ place, vault }) => [place, vault.amount]),
  );
  // A burnt slot holds nothing. The vault that was spent says what left it.
  const burnt = listed.filter(
    ({ output: { holderIndex, transfer } }, i) =>
      places[i] !== null && holderIndex === null && transfer.amount === 0n,
  );
  const activities = await ledger.store.getMany(
    burnt.map(({ output }) => keyOf.activity(output.transfer.vaultId)),
  );
  const left = new Map(
    burnt.map(({ output }, i) => [output, decodeActivity(activities[i]).transferred]),
  );
  return listed.map(({ output }, i) => {
    const { transfer, isChange, holderIndex } = output;
    const amount = made.get(places[i] ?? null);
    if (transfer.fault !== null) return amount ?? 0n;
    const asked = isChange || transfer.amount === 0n ? null : transfer.amount;
    return holderIndex === null ? (left.get(output) ?? asked) : (amount ?? asked);
  });
}

export function slotCount(transfers: readonly { readonly amount: bigint }[]): number {
  return transfers.reduce((sum, transfer) => sum + slotsOf(transfer), 0);
}

/** The place of a list's output; null while the list has no batch. */
export function placeIn(
  { batchNumber, firstSlot }: TransferListRecord,
  position: number,
): VaultPlace | null {
  if (batchNumber === null || firstSlot === null) return null;
  return { mode: "zk-rollup", batchNumber, slot: firstSlot + position };
}

/** A list as readers see it. Throws `store_corrupt` when it is missing. */
export async function readTransferList(
  ledger: Ledger,
  transferId: Uuid,
): Promise<TransferListRecord> {
  return decodeTransferList(await ledger.store.get(keyOf.transferList(transferId)), transferId);
}

/** A list in the writer's view. Throws `store_corrupt` when it is missing. */
export async function latestTransferList(
  ledger: Ledger,
  group: Group,
  transferId: Uuid,
): Promise<TransferListRecord> {
  return decodeTransferList(
    await group.read(ledger.store, keyOf.transferList(transferId)),
    transferId,
  );
}

export function decodeTransferList(
  record: Buffer | undefined,
  transferId: Uuid,
): TransferListRecord {
  if (record === undefined)
    throw new MintmarkError("store_corrupt", `Transfer ${transferId} is missing.`);
  return decodeRecord(transferListRecord, record, `Transfer ${transferId}`);
}

export function failureOfFault({
  vaultId,
  fault,
}: TransferListRecord["transfers"][number]): string {
  return `L1 does not count the transfer of vault ${vaultId}: ${TRANSFER_FAULTS[fault as TransferFault]}`;
}

/** Writes a list, and its place among those that wait or among those of its batch. */
export function putTransferList(
  group: Group,
  record: TransferListRecord,
  before: TransferListRecord | null,
): void {
  const { transferId, journalSequence, status, batchNumber, firstSlot } = record;
  const waiting = keyOf.waitingTransfers(journalSequence, transferId);
  const id = encodeRecord(transferIdRecord, transferId);
  if (before?.status === "waiting" && status !== "waiting") group.remove(waiting);
  if (before !== null && before.batchNumber !== null && before.firstSlot !== null)
    group.remove(keyOf.batchTransfers(before.batchNumber, before.firstSlot));
  if (status === "waiting") group.put(waiting, id);
  if (batchNumber !== null && firstSlot !== null)
    group.stage(keyOf.batchTransfers(batchNumber, firstSlot), id);
  group.stage(keyOf.transferList(transferId), encodeRecord(transferListRecord, record));
}

/**
 * Tells a list's application of it, and of each redemption, so that it sees a used ticket at once.
 */
export function tellAccepted(ledger: Ledger, group: Group, list: TransferListRecord): void {
  const { applicationIndex, transferId, transfers, createdAt } = list;
  const redeemed = transfers.filter(isRedemption);
  const tellOf = (event: StoredEvent) => tell(ledger, group, applicationIndex, createdAt, event);
  tellOf({
    type: "transfer.accepted",
    transferId,
    transfers: transfers.length,
    redemptions: redeemed.length,
  });
  for (const { userIndex, vaultId, amount } of redeemed)
    tellOf({ type: "transfer.redeemed", transferId, userIndex, vaultId, amount });
}

/**
 * The lists of a batch of transfers, in slot order. Throws `store_corrupt` unless they fill its
 * slots.
 */
export async function listsOfBatch(ledger: Ledger, { batchNumber, vaultCount }: BatchRecord) {
  const prefix = prefixOf.batchTransfers(batchNumber);
  const ids: Uuid[] = [];
  for await (const [, id] of ledger.store.entries({ gte: prefix, lt: endOf(prefix) }))
    ids.push(decodeRecord(transferIdRecord, id, "A list of a batch"));
  const records = await ledger.store.getMany(ids.map(keyOf.transferList));
  const lists = records.map((record, i) => decodeTransferList(record, ids[i] as Uuid));
  if (slotCount(lists.flatMap(({ transfers }) => transfers)) === vaultCount) return lists;
  const name = batchIdOf("zk-rollup", batchNumber);
  throw new MintmarkError(
    "store_corrupt",
    `The transfers of ${name} are not those of its ${vaultCount} slots.`,
  );
}

/** The list that made a vault, and the vault's output of it; null for a vault that a mint made. */
export async function makerOf(ledger: Ledger, place: VaultPlace): Promise<Listed | null> {
  const [maker = null] = await makersOf(ledger, [place]);
  return maker;
}

/**
 * Where a vault was made from; null if the record came first: a hostile operator can make circles
 * of such ones.
 */
export function sourceOf({ list, output }: Listed): VaultPlace | null {
  const source = unpackVaultId(output.transfer.vaultId);
  return source.mode === "zk-rollup" && source.batchNumber >= (list.batchNumber ?? 0)
    ? null
    : source;
}

/** The place of the mint that transfers have made a vault of; the vault's own if a mint made it. */
export async function originOf(ledger: Ledger, vault: VaultPlace): Promise<VaultPlace> {
  for (let place = vault; ; ) {
    const maker = await makerOf(ledger, place);
    const source = maker === null ? null : sourceOf(maker);
    if (source === null) return place;
    place = source;
  }
}

/**
 * The makers of many vaults. Reads each list once, because one list can have made a thousand of
 * them.
 */
export async function makersOf(
  ledger: Ledger,
  places: readonly VaultPlace[],
): Promise<(Listed | null)[]> {
  const known = new Map<Uuid, readonly Listed[]>();
  const makers: (Listed | null)[] = [];
  for (const place of places) {
    const found = await listIdAt(ledger, place);
    if (found !== null && !known.has(found.id)) {
      const list = await readTransferList(ledger, found.id);
      const listed = outputsOf(list).map((output) => ({ list, output }));
      known.set(found.id, listed);
    }
    makers.push(
      found === null ? null : (known.get(found.id)?.[place.slot - found.firstSlot] ?? null),
    );
  }
  return makers;
}

/**
 * The last list of a batch of transfers that begins at a slot or before; null for a batch of mints.
 */
async function listIdAt(ledger: Ledger, { mode, batchNumber, slot }: VaultPlace) {
  if (
    mode !== "zk-rollup" ||
    ledger.batches.records[mode].durable.get(batchNumber)?.transfers !== true
  )
    return null;
  const range = {
    gte: prefixOf.batchTransfers(batchNumber),
    lte: keyOf.batchTransfers(batchNumber, slot),
  };
  for await (const [key, id] of ledger.store.entries({ ...range, reverse: true, limit: 1 }))
    return {
      id: decodeRecord(transferIdRecord, id, "A list of a batch"),
      firstSlot: key.readUInt32BE(5),
    };
  return null;
}

/**
 * The list that spends a vault, with its first output of the vault and that output's place; null
 * for none.
 */
export async function spenderOf(ledger: Ledger, vaultId: bigint) {
  const { spentBy } = decodeActivity(await ledger.store.get(keyOf.activity(vaultId)));
  if (spentBy === null) return null;
  const list = await readTransferList(ledger, spentBy);
  const output = outputsOf(list).find(({ transfer }) => transfer.vaultId === vaultId);
  const place = output === undefined ? null : placeIn(list, output.position);
  return output === undefined || place === null ? null : { output, place };
}

/**
 * The place of the vault that holds an ERC-721 token now, or held it before its redemption.
 *
 * @param onVault - awaited before each vault on the way
 */
export async function tipOf(
  ledger: Ledger,
  minted: VaultPlace,
  onVault: () => Promise<void>,
): Promise<VaultPlace> {
  for (let place = minted; ; ) {
    await onVault();
    const spender = await spenderOf(ledger, packVaultId(place));
    if (
      spender === null ||
      spender.output.holderIndex === null ||
      spender.output.transfer.fault !== null
    )
      return place;
    place = spender.place;
  }
}
