import { MintmarkError } from "../../errors.ts";
import { Ledger } from "../../ledger/ledger.ts";
import type { EngineOptions } from "../../ledger/options.ts";
import type { Limits } from "../../model.ts";
import type { Settlement } from "../../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "../../protocol/bounds.ts";
import { Stack } from "../../stack.ts";
import { bringUp, FORMAT_VERSION } from "../../store/format.ts";
import { createStore, genesisOf, readSeed, requireEmpty, requireSameStore } from "../../store/genesis.ts";
import { requireBeginning, withJournal } from "../../store/journaled-store.ts";
import { storeMissing } from "../../store/level-folder.ts";
import { LevelStore } from "../../store/level-store.ts";
import type { Store } from "../../store/ports.ts";
import { HEAD_KEY, POSITION_KEY, SECRET_KEY } from "../../store/store-keys.ts";
import { requireAddress } from "../../validate.ts";
import { load } from "./loading.ts";

const MAX_UINT32 = 2 ** 32 - 1;

export interface Opened {
  readonly ledger: Ledger;
  /** 32 random bytes of this store, for cursors. */
  readonly secret: Buffer;
}

/**
 * Opens the store, creates it if `createIfMissing` allows, and loads the state. Derives the newest sealed batch of each
 * mode again and compares it. Rejects with `store_missing`, `store_locked`, `store_mismatch`, `store_corrupt`,
 * `store_failed`; the store is closed then.
 *
 * @param role - a standby changes nothing and follows the leader's writes
 */
export async function openLedger(
  options: EngineOptions,
  limits: Limits,
  emit: Ledger["emit"],
  role: "leader" | "standby",
): Promise<Opened> {
  await using opened = new Stack();
  const store = await openStore(options);
  opened.defer(() => store.close());
  if ((await store.get(HEAD_KEY)) === undefined) {
    await requireEmpty(store);
    if (options.createIfMissing !== true) throw storeMissing(typeof options.store === "string" ? options.store : "it");
    await createStore(store, genesisOf(options), options.clock?.() ?? Date.now());
  }
  const ledger = new Ledger(store, options, limits, emit, await readSeed(store));
  await load(ledger, role === "leader");
  if (role === "standby") ledger.writer.refuse(new MintmarkError("not_leader"));
  const secret = await store.get(SECRET_KEY);
  if (secret?.length !== 32) throw new MintmarkError("store_corrupt", "The store's secret is missing.");
  opened.move();
  return { ledger, secret };
}

/** The store of these options, with its journal brought up to it. Writes nothing for a store of others. */
async function openStore(options: EngineOptions): Promise<Store> {
  const { store: named, journal, createIfMissing } = options;
  await using opened = new Stack();
  const store = await LevelStore.of(named, createIfMissing === true);
  opened.defer(() => store.close());
  if (store instanceof LevelStore) await requireNoCluster(store);
  const isNew = (await store.get(HEAD_KEY)) === undefined;
  const format = isNew ? FORMAT_VERSION : await requireSameStore(store, genesisOf(options));
  await bringUp(store, format, async () => {
    // A wrong backup must not cost the way back to the version before.
    if (journal !== undefined) await requireBeginning(store, journal);
    // A cluster's store raises each server's file when the step comes to it.
    if (store instanceof LevelStore) await store.raiseFormat();
  });
  // It may write to the backup, which the version before then refuses. So the step comes first.
  const whole = journal === undefined ? store : await withJournal(store, journal);
  opened.move();
  return whole;
}

/** Alone, an engine would write what the cluster's journal never gets. */
async function requireNoCluster(store: Store): Promise<void> {
  if ((await store.get(POSITION_KEY)) === undefined) return;
  const detail = "This store is a server's of a cluster. Open it with the cluster's journal (MINTMARK_JOURNAL).";
  throw new MintmarkError("store_mismatch", detail);
}

/** The settlement with its contract in lower case. Throws `validation_failed`. */
export function canonicalSettlement({ chainId, contract, engineVersion }: Settlement): Settlement {
  requireBigint("settlement.chainId", chainId, 1n, MAX_UINT64);
  requireInteger("settlement.engineVersion", engineVersion, 0, MAX_UINT32);
  return { chainId, contract: requireAddress("settlement.contract", contract), engineVersion };
}
