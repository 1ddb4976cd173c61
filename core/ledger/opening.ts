import type { EngineEvents, EngineOptions, Limits } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import type { Settlement } from "../ports.ts";
import { createStore, genesisOf, readSeed, requireSameStore } from "../store/genesis.ts";
import { JournaledStore } from "../store/journaled-store.ts";
import { LevelStore } from "../store/level-store.ts";
import { HEAD_KEY, SECRET_KEY } from "../store/store-keys.ts";
import type { Store } from "../store-ports.ts";
import { Ledger } from "./ledger.ts";
import { load } from "./loading.ts";

export interface Opened {
  readonly ledger: Ledger;
  /** 32 random bytes of this store, for cursors. */
  readonly secret: Buffer;
}

/**
 * Opens the store, or makes it, and loads the state. The newest sealed batch of each mode is derived again and compared.
 * Rejects with `store_locked`, `store_mismatch`, `store_corrupt`, `store_failed`; the store is closed then.
 */
export async function openLedger(
  options: EngineOptions,
  limits: Limits,
  emit: <K extends keyof EngineEvents>(type: K, event: EngineEvents[K]) => void,
): Promise<Opened> {
  const store = await openStore(options);
  try {
    const genesis = genesisOf(options);
    if ((await store.get(HEAD_KEY)) === undefined) await createStore(store, genesis, options.clock?.() ?? Date.now());
    await requireSameStore(store, genesis);
    const ledger = new Ledger(store, options, limits, emit, await readSeed(store));
    await load(ledger);
    const secret = await store.get(SECRET_KEY);
    if (secret?.length !== 32) throw new MintmarkError("store_corrupt", "The store's secret is missing.");
    return { ledger, secret };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The store of these options, and its journal brought up to it. */
async function openStore({ store: named, journal }: Pick<EngineOptions, "store" | "journal">): Promise<Store> {
  const store = await LevelStore.of(named);
  if (journal === undefined) return store;
  try {
    return await JournaledStore.open(store, journal);
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The settlement with its contract in lower case. */
export function canonicalSettlement({ chainId, contract, engineVersion }: Settlement): Settlement {
  return { chainId, contract: contract.toLowerCase() as Settlement["contract"], engineVersion };
}
