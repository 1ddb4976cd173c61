import type { Hex } from "../model.ts";
import type { ProvenVault } from "../ports.ts";
import type { OrderMessage } from "./typed-data.ts";

/** One half of a trade: a signed order, and the proof of the vault that its signer gives of. */
export interface TradeSide extends ProvenVault {
  readonly order: OrderMessage;
  /** The signer's over `orderTypedData`; `0x` when the owner itself sends the transaction. */
  readonly signature: Hex;
  /** Base units of one quantized unit of the vault's asset. */
  readonly quantum: bigint;
}

/** Two orders that fit each other. */
export interface Trade {
  readonly maker: TradeSide;
  readonly taker: TradeSide;
}
