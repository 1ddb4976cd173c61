import { randomBytes } from "node:crypto";
import { MintmarkError } from "../errors.ts";
import type { Environment } from "../model.ts";
import type { Settlement } from "../ports.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import type { EntryOf } from "./entries.ts";
import { FORMAT_VERSION, formatOf } from "./format.ts";
import { encodeEntry, type Journaled, readEntry } from "./journal.ts";
import { decodeRecord, encodeRecord, hash } from "./layout.ts";
import type { Store, StoreOperation, StoreReader } from "./ports.ts";
import { headRecord, portalRecord } from "./records.ts";
import { HEAD_KEY, keyOf, SECRET_KEY, SEED_KEY } from "./store-keys.ts";

export function genesisOf(given: {
  settlement: Settlement;
  environment: Environment;
}): EntryOf<"genesis"> {
  const { settlement, environment } = given;
  const { chainId, contract, engineVersion } = settlement;
  return {
    kind: "genesis",
    formatVersion: FORMAT_VERSION,
    environment,
    chainId,
    contract,
    engineVersion,
  };
}

/** Throws `store_corrupt` for a store with records but without a head. */
export async function requireEmpty(store: Store): Promise<void> {
  for await (const _ of store.entries({ limit: 1 }))
    throw new MintmarkError(
      "store_corrupt",
      "The store holds records but no head; it is not an engine's, or damaged.",
    );
}

export async function createStore(
  store: Store,
  genesis: EntryOf<"genesis">,
  time: number,
): Promise<void> {
  const head = { journalLength: 1, time, userCount: 0, keysForgotten: 0 };
  const home = {
    chainId: genesis.chainId,
    contract: genesis.contract,
    observed: null,
    finalized: null,
  };
  await store.write([
    { type: "put", key: keyOf.journal(0), value: encodeEntry(time, genesis) },
    ...newSecrets(),
    { type: "put", key: keyOf.portal(genesis.chainId), value: encodeRecord(portalRecord, home) },
    { type: "put", key: HEAD_KEY, value: encodeRecord(headRecord, head) },
  ]);
}

/** The store's own secrets, which no journal determines. */
export function newSecrets(): StoreOperation[] {
  return [
    { type: "put", key: SECRET_KEY, value: randomBytes(32) },
    { type: "put", key: SEED_KEY, value: encodeRecord(hash, bytesToHex(randomBytes(32))) },
  ];
}

/** The seed has its own checksum, because a wrong one would hide every token. */
export async function readSeed(store: Pick<StoreReader, "get">): Promise<Uint8Array> {
  const record = await store.get(SEED_KEY);
  if (record === undefined)
    throw new MintmarkError("store_corrupt", "The store's seed is missing.");
  return hexToBytes(decodeRecord(hash, record, "The store's seed"), 32);
}

/** The genesis in the first entry of a journal. Throws `store_corrupt`. */
export function genesisIn(entry: Journaled["entry"]): EntryOf<"genesis"> {
  if (entry.kind === "genesis") return entry;
  throw new MintmarkError("store_corrupt", "The journal does not begin with its genesis.");
}

/**
 * Resolves with the format of the store's records. Throws `store_mismatch` and names the
 * difference.
 */
export async function requireSameStore(
  store: StoreReader,
  expected: EntryOf<"genesis">,
): Promise<number> {
  const entry = genesisIn((await readEntry(store, 0)).entry);
  const format = await formatOf(store, entry.formatVersion);
  for (const name of ["environment", "chainId", "contract", "engineVersion"] as const) {
    const [is, asked] = [String(entry[name]), String(expected[name])];
    if (is === asked) continue;
    const detail = `The store's ${name} is ${is}, not ${asked}.`;
    throw new MintmarkError("store_mismatch", detail, {
      issues: [{ pointer: `/${name}`, code: "store_mismatch", detail }],
    });
  }
  return format;
}
