import { hostname } from "node:os";
import { MintmarkError } from "../../core/index.ts";
import { type Backoff, backoffDelay, pause } from "../../core/internal.ts";
import { ClusterNode, type ClusterOptions, PostgresJournal } from "../../core/lifecycle/cluster/index.ts";
import { type LogOptions, swept } from "../http/log.ts";
import type { Config } from "./settings/settings.ts";

type JournalSettings = Pick<
  Config,
  "MINTMARK_JOURNAL" | "MINTMARK_JOURNAL_KEYS" | "MINTMARK_JOURNAL_COPIES" | "MINTMARK_CHAIN_ID" | "MINTMARK_CONTRACT"
>;

/** The journal of the settings; undefined for a server that works alone. */
export async function openJournal(settings: JournalSettings): Promise<PostgresJournal | undefined> {
  const { MINTMARK_JOURNAL: url, MINTMARK_JOURNAL_KEYS: keys, MINTMARK_CHAIN_ID: chainId } = settings;
  if (url === undefined) return undefined;
  // One journal for each settlement contract, named by chain and the contract's first digits.
  const shard = `${chainId}-${settings.MINTMARK_CONTRACT.slice(2, 18).toLowerCase()}`;
  return PostgresJournal.open({ url, shard, keys, single: settings.MINTMARK_JOURNAL_COPIES === 1 });
}

type JoinOptions = Omit<ClusterOptions, "store" | "journal" | "server" | "leaseMs" | "journalBytes">;

const AGAIN: Backoff = { firstMs: 250, maxMs: 2_000 };

/**
 * Joins the cluster of the settings. Tries again while PostgreSQL is away, as after a power cut that took all machines.
 * A wrong setting does not mend itself, so it throws.
 */
export async function joinCluster(config: Config, options: JoinOptions, { secrets = [] }: LogOptions) {
  const { MINTMARK_SERVER_NAME: name, MINTMARK_SERVER_URL: url, MINTMARK_HOST: host, MINTMARK_PORT: port } = config;
  for (let attempt = 1; ; attempt++) {
    try {
      const journal = (await openJournal(config)) as PostgresJournal;
      return await ClusterNode.join({
        ...options,
        store: config.MINTMARK_STORE,
        journal,
        server: { name: name ?? `${hostname()}-${process.pid}`, url: new URL(url ?? `http://${host}:${port}`).origin },
        leaseMs: config.MINTMARK_LEASE_SECONDS * 1_000,
        journalBytes: config.MINTMARK_JOURNAL_MIB * 1024 * 1024,
      });
    } catch (error) {
      if (!(error instanceof MintmarkError) || error.code !== "journal_unavailable") throw error;
      console.error(swept(`${error.message}\nThe server tries again.`, secrets));
      await pause(backoffDelay(AGAIN, attempt));
    }
  }
}
