import { readBatchVaults } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { PRESENT } from "../ledger/marks.ts";
import { MODES, type Mode } from "../model.ts";
import { unpackVaultId } from "../protocol/vault.ts";
import { itemRecords, itemsOf } from "../sealing/batch-items.ts";
import { voidMask } from "../sealing/void-runs.ts";
import { readEntry, sequenceIn } from "../store/journal.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import type { StoreOperation } from "../store/ports.ts";
import {
  headRecord,
  INDEX_VERSION,
  ownerRecord,
  userRecord,
  WITHDRAWAL_STATUSES,
  type WithdrawalRecord,
  withdrawalRecord,
} from "../store/records.ts";
import * as keys from "../store/store-keys.ts";
import { CHUNK_VAULTS, decodeChunk } from "../store/vault-chunk.ts";

/** Records per write. */
const AT_ONCE = 4_096;

/**
 * Adds missing indexes to a store of an earlier version. They all follow from the store. The head names them last, so
 * an interrupted upgrade starts anew.
 */
export async function upgradeIndexes(ledger: Ledger): Promise<void> {
  const { store, head } = ledger;
  if (head.indexVersion >= INDEX_VERSION) return;
  ledger.head = { ...head, indexVersion: INDEX_VERSION };
  let waiting: StoreOperation[] = [];
  for (const index of [ownerIndex, transactionIndex, itemIndex]) {
    for await (const { key, value } of index(ledger)) {
      waiting.push({ type: "put", key, value });
      if (waiting.length < AT_ONCE) continue;
      await store.write(waiting);
      waiting = [];
    }
  }
  const value = encodeRecord(headRecord, ledger.head);
  await store.write([...waiting, { type: "put", key: keys.HEAD_KEY, value }]);
}

type Records = AsyncGenerator<{ readonly key: Buffer; readonly value: Buffer }>;

/** The users of each owner, in the order of creation within an application. */
async function* ownerIndex({ store }: Ledger): Records {
  const known = new Set<string>();
  const prefix = Buffer.from([keys.PREFIX.user]);
  for await (const [key, record] of store.entries({ gte: prefix, lt: keys.endOf(prefix) })) {
    const [application, userIndex] = [key.readUInt32BE(1), key.readUInt32BE(5)];
    const { userId, ownerAddress } = decodeRecord(userRecord, record, `User ${userIndex}`);
    const first = keys.ownerKey(application, ownerAddress);
    const isKnown = known.has(keys.keyString(first));
    known.add(keys.keyString(first));
    const at = isKnown ? keys.ownerUserKey(application, ownerAddress, userIndex) : first;
    yield { key: at, value: encodeRecord(ownerRecord, { userIndex, userId }) };
  }
}

/** The marks of blocks, and the lists of withdrawals, in the order of an application's transactions. */
async function* transactionIndex(ledger: Ledger): Records {
  const last = new Map<string, number>();
  const prefix = Buffer.from([keys.PREFIX.transaction]);
  for await (const [key, reference] of ledger.store.entries({ gte: prefix, lt: keys.endOf(prefix) })) {
    const application = key.readUInt32BE(1);
    const block = keys.blockOf(Number(key.readBigUInt64BE(5)));
    const { entry } = await readEntry(ledger.store, sequenceIn(reference));
    let found: { readonly assets: readonly number[]; readonly modes: readonly Mode[] } = { assets: [], modes: [] };
    if (entry.kind === "mint") {
      found = {
        assets: entry.mints.map(({ assetIndex }) => assetIndex),
        modes: entry.mints.map(({ mode }) => mode),
      };
    } else if (entry.kind === "withdrawalRequested") {
      const stored = await ledger.store.get(keys.withdrawalKey(entry.withdrawalId));
      const record = decodeRecord(withdrawalRecord, stored ?? Buffer.alloc(0), `Withdrawal ${entry.withdrawalId}`);
      const asset = await assetOf(ledger, record);
      for (const of of listsOf(record, asset)) {
        yield { key: keys.requestByKey(of, record.sequence), value: reference };
      }
      found = { assets: [asset], modes: [unpackVaultId(record.vaultId).mode] };
    }
    const marks = [
      ...[...new Set(found.assets)].map((asset) => keys.assetMark(application, asset)),
      ...[...new Set(found.modes)].map((mode) => keys.modeMark(application, mode)),
    ];
    for (const mark of marks) {
      if (last.get(keys.keyString(mark)) === block) continue;
      last.set(keys.keyString(mark), block);
      yield { key: keys.markKey(mark, block), value: PRESENT };
    }
  }
}

function listsOf({ applicationIndex, userIndex, vaultId, status }: WithdrawalRecord, asset: number): Buffer[] {
  return [
    keys.withdrawalsOfUser(applicationIndex, userIndex),
    keys.withdrawalsOfAsset(applicationIndex, asset),
    keys.withdrawalsOfVault(applicationIndex, vaultId),
    keys.withdrawalsOfStatus(applicationIndex, WITHDRAWAL_STATUSES.indexOf(status)),
  ];
}

/** The asset of a withdrawal's vault, also of a vault that L1's history replaced. */
async function assetOf(ledger: Ledger, { vaultId, journalSequence }: WithdrawalRecord): Promise<number> {
  const { mode, batchNumber, slot } = unpackVaultId(vaultId);
  const lost = (ledger.lost[mode].get(batchNumber) ?? []).filter(({ upTo }) => journalSequence < upTo);
  const gone = lost.flatMap(({ withdrawn }) => withdrawn).find((each) => each.slot === slot);
  if (gone !== undefined) return gone.assetIndex;
  const chunk = await ledger.store.get(keys.chunkKey(mode, batchNumber, Math.floor(slot / CHUNK_VAULTS)));
  return chunk === undefined ? 0 : (decodeChunk(chunk)[slot % CHUNK_VAULTS]?.assetIndex ?? 0);
}

/** The slots of sealed batches by ERC-1155 id. */
async function* itemIndex(ledger: Ledger): Records {
  for (const mode of MODES) {
    for (const batch of ledger.batches[mode].values()) {
      if (batch.status === "open") continue;
      const adopted = ledger.voids[mode].get(batch.batchNumber)?.filter(({ voidedAt }) => voidedAt === batch.sealedAt);
      const vaults = await readBatchVaults(ledger, batch);
      const mask = voidMask(adopted ?? [], vaults.count);
      yield* itemRecords(itemsOf(batch, vaults, (index) => ledger.assetAt(index), mask));
    }
  }
}
