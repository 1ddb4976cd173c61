import type { Network } from "./networks.ts";
import type { GivenAnswers } from "./terms.ts";

/** What `mintmark up` works with. */
export interface UpOptions {
  /** An absolute path. */
  readonly folder: string;
  readonly rpc: string;
  /** The network that was named; undefined for a URL. */
  readonly expected: Network | undefined;
  /** All that are known by name. */
  readonly known: readonly Network[];
  /** The base of Sourcify's HTTP interface. */
  readonly sourcify: string;
  /** The terms of a new deployment; asked only for the first run. */
  readonly terms: () => Promise<GivenAnswers>;
  /** Allows a cost. */
  readonly allow: (question: string) => Promise<boolean>;
  readonly say: (line: string) => void;
  readonly progress: (line: string) => void;
  readonly signal: AbortSignal;
  readonly pollMs: number;
}
