import type { Settlement } from "../ports.ts";
import type { L1Client } from "./client.ts";

/** The connection to a settlement contract that reader and committer share. */
export interface L1Connection {
  readonly client: L1Client;
  readonly settlement: Settlement;
  readonly finality: Finality;
  readonly pollingMs: number;
}

/** Fee bounds and resending of transactions. */
export interface FeeOptions {
  /** Milliseconds without a receipt until a transaction is sent again at a higher fee; default 60 000. */
  readonly replaceAfterMs?: number;
  /** Most wei per gas that is ever offered; default 64 times a transaction's first estimate. */
  readonly maxFeePerGas?: bigint;
  /** Most wei per unit of blob gas that is ever offered; default as for gas. */
  readonly maxFeePerBlobGas?: bigint;
}

/** When a block is final: when the chain says so, or with this many blocks above it (chains without finality). */
export type Finality = "finalized" | { readonly confirmations: bigint };
