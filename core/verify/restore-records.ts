import { MintmarkError } from "../errors.ts";
import { BYTES_AT_ONCE } from "../store/backup.ts";
import type { Store, StoreOperation, StoreReader } from "../store/ports.ts";
import { HEAD_KEY } from "../store/store-keys.ts";
import type { CommitToBlob } from "./reference-derive.ts";
import type { Expected } from "./reference-records.ts";
import { derive, referenceOf, type VerifyOptions } from "./verify.ts";

const RECORDS_AT_ONCE = 4_096;

/** The store that is being restored: its records so far can be read. */
export type Target = StoreReader & Pick<Store, "write">;

/**
 * Writes the records that follow from the journal in the same store, the head last. Resolves with
 * the number of entries. It can be repeated, because the records are the same each time.
 */
export async function restoreRecords(
  target: Target,
  following: VerifyOptions,
  commit: CommitToBlob,
): Promise<number> {
  const records = recordsIn(target);
  const report = (problem: string): never => {
    throw unrestorable(problem);
  };
  const reference = await referenceOf(target, report, commit, () => records.flush());
  await derive(target, reference, following, (expected) => records.put(expected.map(asPut)));
  const last = await reference.finish();
  await records.put(last.filter(({ key }) => !key.equals(HEAD_KEY)).map(asPut));
  await records.flush();
  await target.write(last.filter(({ key }) => key.equals(HEAD_KEY)).map(asPut));
  return reference.entries;
}

export function unrestorable(problem: string): MintmarkError {
  return new MintmarkError("store_corrupt", `The journal gives no store: ${problem}.`);
}

function asPut({ key, value }: Expected): StoreOperation {
  return { type: "put", key, value };
}

/** Collects records, and writes some of them at a time. */
export function recordsIn(store: Pick<Store, "write">) {
  let waiting: StoreOperation[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    const operations = waiting;
    waiting = [];
    bytes = 0;
    if (operations.length > 0) await store.write(operations);
  };
  const put = async (operations: readonly StoreOperation[]): Promise<void> => {
    for (const operation of operations) {
      waiting.push(operation);
      if (operation.type === "put") bytes += operation.value.length;
      if (waiting.length >= RECORDS_AT_ONCE || bytes >= BYTES_AT_ONCE) await flush();
    }
  };
  return { put, flush };
}
