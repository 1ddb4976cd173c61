/** Several servers over one journal: `mintmark/postgres`. */

export { ClusterNode, type ClusterOptions, type ClusterRole } from "./node.ts";
export type { JournalStatus, Leadership, Server, SharedJournal } from "./ports.ts";
export { PostgresJournal, type PostgresOptions } from "./postgres-journal.ts";
