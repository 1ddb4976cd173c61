import type { Address, Client, Hex, Transport } from "viem";
import { getCode } from "viem/actions";
import type { Settlement } from "../ports.ts";
import { askL1 } from "./failure.ts";

/** A viem client. viem's actions are imported one by one, because the pages' scripts shall not hold all of them. */
export type L1Client = Client<Transport>;

/** The connection to a settlement contract that reader and committer share. */
export interface L1Connection {
  readonly client: L1Client;
  readonly settlement: Settlement;
  readonly finality: Finality;
  readonly pollingMs: number;
}

/** When a block is final: when the chain says so, or with this many blocks above it (chains without finality). */
export type Finality = "finalized" | { readonly confirmations: bigint };

/** Reads the runtime code of accounts; `0x` for none. */
export function codeOn(client: L1Client): (address: Address) => Promise<Hex> {
  return async (address) => (await askL1(`reading the code of ${address}`, () => getCode(client, { address }))) ?? "0x";
}
