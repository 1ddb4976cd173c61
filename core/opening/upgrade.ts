import { decodeRecord, encodeRecord } from "../store/layout.ts";
import type { Store, StoreOperation } from "../store/ports.ts";
import { type HeadRecord, headRecord, INDEX_VERSION, ownerRecord, userRecord } from "../store/records.ts";
import { endOf, HEAD_KEY, keyString, ownerKey, ownerUserKey, PREFIX } from "../store/store-keys.ts";

/** Records that are written together. */
const AT_ONCE = 4_096;

/**
 * Gives a store that an earlier version wrote the indexes that it lacks. All of them follow from what it has, and the head names them last:
 * a store whose upgrade was cut short is upgraded anew.
 */
export async function upgradeIndexes(store: Store, head: HeadRecord): Promise<HeadRecord> {
  if (head.indexVersion >= INDEX_VERSION) return head;
  const upgraded = { ...head, indexVersion: INDEX_VERSION };
  let waiting: StoreOperation[] = [];
  for await (const operation of ownerIndex(store)) {
    waiting.push(operation);
    if (waiting.length < AT_ONCE) continue;
    await store.write(waiting);
    waiting = [];
  }
  await store.write([...waiting, { type: "put", key: HEAD_KEY, value: encodeRecord(headRecord, upgraded) }]);
  return upgraded;
}

/** The users of each owner. Within an application they come in the order of their making. */
async function* ownerIndex(store: Store): AsyncGenerator<StoreOperation> {
  const prefix = Buffer.from([PREFIX.user]);
  const known = new Set<string>();
  for await (const [key, record] of store.entries({ gte: prefix, lt: endOf(prefix) })) {
    const [application, userIndex] = [key.readUInt32BE(1), key.readUInt32BE(5)];
    const { userId, ownerAddress } = decodeRecord(userRecord, record, `User ${userIndex}`);
    const first = ownerKey(application, ownerAddress);
    const isKnown = known.has(keyString(first));
    known.add(keyString(first));
    const at = isKnown ? ownerUserKey(application, ownerAddress, userIndex) : first;
    yield { type: "put", key: at, value: encodeRecord(ownerRecord, { userIndex, userId }) };
  }
}
