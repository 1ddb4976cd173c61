import type { Journal } from "../store/ports.ts";

/** A server of a cluster, as the others see it. */
export interface Server {
  /** Unique in the cluster, such as a host's name. At most 200 characters. */
  readonly name: string;
  /** Where the other servers reach it: an HTTP origin. */
  readonly url: string;
}

/** Status of the shared journal. */
export interface JournalStatus {
  /** Grows by one with each change of leader. */
  readonly epoch: number;
  /** Number of entries that are known to be replicated. Nobody reads beyond them. */
  readonly confirmed: number;
  /** The first entry that was not pruned. */
  readonly pruned: number;
  /** The leader; null when its lease has run out by the journal's clock. */
  readonly leader: Server | null;
  /** ms since this process saw the leader prolong its lease. */
  readonly silentMs: number;
}

/**
 * The journal of a cluster. Only the leader appends. An entry is one atomic write of the leader's
 * store, as opaque bytes. The others apply the same writes to their own stores.
 *
 * `append` belongs to the leader. It rejects with `not_leader` when another server leads; the
 * journal then has nothing of it. It waits while the journal cannot be reached or does not
 * replicate; the journal may have the entry already then.
 */
export interface SharedJournal extends Journal {
  /** The journal's status. Rejects with `journal_unavailable` while it cannot be reached. */
  status(): Promise<JournalStatus>;
  /** An entry, replicated or not; null when there is none. */
  entry(position: number): Promise<Uint8Array | null>;
  /**
   * Takes the lead, and ends an earlier leader's open statements. Resolves with null while another
   * server's lease holds: it has not run out, and this process has seen it prolonged within
   * `leaseMs`.
   *
   * @param leaseMs - how long nobody else takes the lead, unless the leader prolongs it
   */
  lead(server: Server, leaseMs: number): Promise<Leadership | null>;
  /** Bytes of all entries. */
  size(): Promise<number>;
  /**
   * Keeps a snapshot of a store after its first `length` entries, in any number of parts. Prunes
   * the entries before the previous snapshot. A server that lacks those starts from a snapshot.
   * Rejects with `not_leader`, and prunes nothing, when another server leads.
   */
  keepSnapshot(length: number, parts: AsyncIterable<Uint8Array>): Promise<void>;
  /** The newest snapshot's parts in order; null when there is none. */
  snapshot(): Promise<AsyncIterable<Uint8Array> | null>;
  /** Ends all waits, and frees the connections. */
  close(): Promise<void>;
}

/** A server's lead of a cluster. */
export interface Leadership {
  readonly epoch: number;
  /** Number of entries in the journal. The leader applies all of them before it appends. */
  readonly length: number;
  /** Aborted when another server leads. */
  readonly lost: AbortSignal;
  /**
   * Whether the journal answered and replicated lately. Nothing is acknowledged while it does not.
   */
  readonly available: boolean;
  /** Gives up the lead at once. */
  resign(): Promise<void>;
}
