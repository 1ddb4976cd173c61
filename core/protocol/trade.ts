import type { Hex } from "../model.ts";
import type { L1Receipt, L1SendOptions, ProvenVault } from "../ports.ts";
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

/** Trades, which any account can send. */
export interface L1Settler {
  /** The reason why L1 would refuse the trade now; null when it would settle it. Sends nothing. */
  checkTrade(trade: Trade): Promise<string | null>;
  /**
   * Sends trades in one transaction, each independent of the others. Resolves when mined, with a
   * reason for each that L1 refused and null for each that it settled; `refusals` is null when the
   * whole transaction reverted.
   */
  settle(
    trades: readonly Trade[],
    options?: L1SendOptions,
  ): Promise<L1Receipt & { readonly refusals: readonly (string | null)[] | null }>;
}
