import { existsSync } from "node:fs";
import type { ClusterOptions, PostgresJournal } from "../../core/cluster/index.ts";
import { MintmarkError } from "../../core/errors.ts";
import type { Engine } from "../../core/index.ts";
import type { Running } from "../../server/process/operator/operation.ts";
import { ConfigError, readConfigFile, readSettings } from "../../server/process/settings/config.ts";
import { storeSettings } from "../../server/process/settings/settings.ts";
import { UsageError } from "./exit.ts";

/** The server reads these too, so one environment or file serves both. */
const SETTINGS = ["MINTMARK_CONFIG", ...Object.keys(storeSettings.shape)];

/** The folder of the store: from the option, else the environment, else the configuration file. */
export function storeOf(option: string | undefined): string {
  const { MINTMARK_STORE, MINTMARK_CONFIG } = process.env;
  const store =
    option ??
    MINTMARK_STORE ??
    (MINTMARK_CONFIG && readConfigFile(MINTMARK_CONFIG).texts.MINTMARK_STORE);
  if (!store) throw new UsageError("give the store's folder: --store, or MINTMARK_STORE");
  return store;
}

/**
 * Runs an operation on a store: by the server that has it open, or in this process if none runs.
 */
export async function operateOn(
  store: string,
  name: string,
  input: unknown,
  running: Running,
): Promise<unknown> {
  const [{ askServer }, { operate }] = await Promise.all([
    import("../../server/process/operator/socket.ts"),
    import("../../server/process/operator/operations.ts"),
  ]);
  const answered = await askServer(store, { operation: name, input }, running);
  if (answered !== undefined) return answered.result;
  if (!existsSync(store))
    throw new UsageError(
      `there is no store in ${store}; create one with: mintmark init --store ${store}`,
    );
  await using engine = await openStore(store, false);
  return await operate(engine, name, input, running);
}

export async function openStore(store: string, createIfMissing: boolean): Promise<Engine> {
  const read = settings(store);
  const options = { store, createIfMissing, ...storeOptions(read) };
  const { openEngine } = await import("../../core/index.ts");
  const journal = await journalIn(read);
  try {
    return journal === undefined
      ? await openEngine(options)
      : await openInCluster(options, journal);
  } catch (error) {
    if (!(error instanceof MintmarkError) || error.code !== "store_locked") throw error;
    const detail =
      "Another process has this store open, but does not listen for its operator. Stop it, then try again.";
    throw new MintmarkError("store_locked", detail, { cause: error });
  }
}

/** Applies the cluster's whole journal, and resolves with the number of its entries. */
export async function restoreFromCluster(
  store: string,
  signal: AbortSignal,
  onProgress: (entries: number) => void,
) {
  const missing = "give the backup's folder, or MINTMARK_JOURNAL for the cluster's";
  await using journal = await journalOf(settings(store), missing);
  const { confirmed } = await journal.status();
  const { ClusterStore } = await import("../../core/cluster/cluster-store.ts");
  const local = await ClusterStore.open(store, journal);
  try {
    await local.follow(confirmed, () => onProgress(local.length), signal);
    return local.length;
  } finally {
    await local.release();
  }
}

/** Begins the cluster's journal with a store, and resolves with the number of its entries. */
export async function beginCluster(store: string): Promise<number> {
  const read = settings(store);
  await using journal = await journalOf(read, "give MINTMARK_JOURNAL, the cluster's journal");
  const { beginJournal } = await import("../../core/cluster/node.ts");
  return await beginJournal(store, { journal, server: ownServer(), ...storeOptions(read) });
}

/** The cluster's journal that the settings name; undefined without one. */
async function journalIn(read: ReturnType<typeof settings>) {
  if (read.MINTMARK_JOURNAL === undefined) return undefined;
  return (await import("../../server/process/cluster.ts")).openJournal(read);
}

async function journalOf(
  read: ReturnType<typeof settings>,
  missing: string,
): Promise<PostgresJournal> {
  const journal = await journalIn(read);
  if (journal === undefined) throw new UsageError(missing);
  return journal;
}

function storeOptions(read: ReturnType<typeof settings>) {
  const {
    MINTMARK_CHAIN_ID: chainId,
    MINTMARK_CONTRACT: contract,
    MINTMARK_ENGINE_VERSION: engineVersion,
  } = read;
  return {
    environment: read.MINTMARK_ENVIRONMENT,
    settlement: { chainId, contract, engineVersion },
  };
}

const ownServer = () => ({ name: `command-${process.pid}`, url: "http://127.0.0.1:1" });

/**
 * Opens as the cluster's leader, or as a reader while another server leads. Closing the engine
 * leaves the cluster.
 */
async function openInCluster(
  options: Omit<ClusterOptions, "journal" | "server">,
  journal: PostgresJournal,
) {
  const { ClusterNode } = await import("../../core/cluster/index.ts");
  const node = await ClusterNode.join({ ...options, journal, server: ownServer() });
  const { engine } = await node.next();
  return { ...engine, [Symbol.asyncDispose]: () => node.close() };
}

function settings(store: string) {
  const given = Object.fromEntries(SETTINGS.map((name) => [name, process.env[name]]));
  try {
    return readSettings(storeSettings, { ...given, MINTMARK_STORE: store });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new UsageError(
      `no server has ${store} open; to open it here, give the server's settings: ${error.message}`,
    );
  }
}
