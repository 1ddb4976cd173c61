import type { Hex, Mode, Page, Standard, Status, Transaction, Uuid, VaultId, Withdrawal } from "./model.ts";

/**
 * A list: awaited it is one page; iterated it is every entry from that page on, of which no more than a page is in memory.
 *
 * @example
 * const { data, nextCursor } = await engine.users(applicationId, { limit: 100 });
 * for await (const vault of engine.vaults(applicationId, { userId })) total += vault.amount;
 */
export interface List<T> extends Promise<Page<T>>, AsyncIterable<T> {}

export interface PageOptions {
  /** 1 to 100; default 50. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export interface TransactionFilter extends PageOptions {
  readonly status?: Status | undefined;
  readonly type?: Transaction["type"] | undefined;
  readonly userId?: Uuid | undefined;
  readonly assetId?: Uuid | undefined;
  readonly vaultId?: VaultId | undefined;
  /** `validium-12`, `zk-rollup-3`. */
  readonly batchId?: string | undefined;
  readonly mintId?: Uuid | undefined;
  readonly dataAvailabilityMode?: Mode | undefined;
  /** Milliseconds since 1970, exclusive. */
  readonly createdAfter?: number | undefined;
  readonly createdBefore?: number | undefined;
  /** By sequence; default `desc`, newest first. */
  readonly order?: "asc" | "desc" | undefined;
}

export interface AssetFilter extends PageOptions {
  /** Any of these. */
  readonly standard?: readonly Standard[] | undefined;
  readonly mintable?: boolean | undefined;
  readonly enabled?: boolean | undefined;
  readonly symbol?: string | undefined;
}

export interface VaultFilter extends PageOptions {
  readonly userId?: Uuid | undefined;
  readonly assetId?: Uuid | undefined;
}

export interface WithdrawalFilter extends PageOptions {
  readonly userId?: Uuid | undefined;
  readonly status?: Withdrawal["status"] | undefined;
}

export interface BatchFilter extends PageOptions {
  readonly mode?: Mode | undefined;
}

/** What a user holds of one token over all vaults. */
export interface Balance {
  readonly assetId: Uuid;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
  readonly mintingBlob: Hex;
  readonly amount: bigint;
  readonly available: bigint;
  readonly withdrawn: bigint;
}
