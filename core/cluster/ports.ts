import type { Journal } from "../store/ports.ts";

/** One server of a cluster, as the others see it. */
export interface Server {
  /** Unique in the cluster, such as a host's name. At most 200 characters. */
  readonly name: string;
  /** Where the other servers reach it: an HTTP origin. */
  readonly url: string;
}

/** What the shared journal says of its cluster. */
export interface JournalStatus {
  /** Rises by one with each change of leader. */
  readonly epoch: number;
  /** Entries that are known to be replicated. Nobody reads beyond them. */
  readonly confirmed: number;
  /** The first entry that is still there: earlier ones were pruned. */
  readonly pruned: number;
  /** Who leads; null when its lease has run out. */
  readonly leader: Server | null;
}

/**
 * A journal that the servers of a cluster share. One of them leads: it alone appends. An entry is one atomic write of the leader's
 * store, as opaque bytes. The others apply the same writes to stores of their own.
 *
 * `append` belongs to the leader. It rejects with `not_leader` when somebody else leads, and then nothing of it is in the journal.
 * While the journal cannot be reached, or does not replicate, it waits: what it was given may be in the journal already.
 */
export interface SharedJournal extends Journal {
  /** What the journal says now. Rejects with `store_failed` while it cannot be reached. */
  status(): Promise<JournalStatus>;
  /** One entry of those that are there, replicated or not; null for one that is not. */
  entry(position: number): Promise<Uint8Array | null>;
  /**
   * Takes the lead, and ends what an earlier leader had under way. Resolves with null while another server's lease is in force.
   *
   * @param leaseMs - for how long nobody else takes the lead, unless the leader prolongs it
   */
  lead(server: Server, leaseMs: number): Promise<Leadership | null>;
  /** Bytes of the entries that are there. */
  size(): Promise<number>;
  /**
   * Keeps a store as it was after its first `length` entries, in parts of any number. The entries before the snapshot that was kept
   * until now are forgotten: a server that lacks them starts from a snapshot.
   */
  keepSnapshot(length: number, parts: AsyncIterable<Uint8Array>): Promise<void>;
  /** The newest snapshot's parts, in order; null while there is none. */
  snapshot(): Promise<AsyncIterable<Uint8Array> | null>;
  /** Ends what waits for the journal, and frees its connections. */
  close(): Promise<void>;
}

/** The lead of a cluster, from `lead` until it is lost. */
export interface Leadership {
  readonly epoch: number;
  /** Entries that the journal holds. The leader applies all of them before it appends. */
  readonly length: number;
  /** Aborted once somebody else leads. */
  readonly lost: AbortSignal;
  /** Whether the journal answered and replicated lately. Nothing is acknowledged while it does not. */
  readonly available: boolean;
  /** Gives the lead away at once. */
  resign(): Promise<void>;
}
