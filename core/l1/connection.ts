import type { PublicClient } from "viem";
import type { Settlement } from "../ports.ts";

/** What reader and committer share: one connection to one settlement contract. */
export interface L1Connection {
  readonly client: PublicClient;
  readonly settlement: Settlement;
  readonly finality: Finality;
  readonly pollingMs: number;
}

/** What a transaction may cost, and when it is sent again. */
export interface FeeOptions {
  /** Milliseconds without a receipt after which a transaction is sent again at a higher fee; default 60 000. */
  readonly replaceAfterMs?: number;
  /** Never offers more than this, in wei of gas; default no cap. */
  readonly maxFeePerGas?: bigint;
}

/** When a block counts as final: when the chain says so, or when so many blocks stand above it (chains without a finality gadget). */
export type Finality = "finalized" | { readonly confirmations: bigint };
