import type { Address, Asset, Principal, Status, Uuid, Vault, VaultId } from "./model.ts";
import type { MintReceipt } from "./protocol/receipt.ts";
import type { WaitOptions } from "./wait-types.ts";

export interface MintOptions extends WaitOptions {
  /** At most 255 printable ASCII characters. */
  readonly idempotencyKey?: string;
}

export interface MintTransaction {
  readonly transactionId: string;
  /** Position in the request: `/users/<userIndex>/mints/<mintIndex>`. */
  readonly userIndex: number;
  readonly mintIndex: number;
  readonly vaultId: VaultId;
  readonly status: Status;
}

/**
 * A fresh mint's answer without an object for each vault and transaction: typed arrays with one element an entry, the entries of all users
 * back to back. They are the engine's own, to be read and not changed. `MintResult.vaults` and `.transactions` say the same plainly.
 */
export interface AcceptedColumns {
  /** ms since 1970. */
  readonly time: number;
  readonly users: readonly { readonly userId: Uuid; readonly ownerAddress: Address; readonly entries: number }[];
  /** Equal for entries of one asset. */
  readonly assetIndex: Uint32Array;
  /** Position in `MODES`. */
  readonly mode: Uint8Array;
  readonly batchNumber: Uint32Array;
  readonly slot: Uint32Array;
  /** ms that the entry's vault had existed. */
  readonly age: Float64Array;
  /** Back to back, and where each ends. */
  readonly blobs: Uint8Array;
  readonly blobEnd: Uint32Array;
  asset(entry: number): Pick<Asset, "assetId" | "assetType">;
  /** What the entry's vault holds after it. */
  amountAfter(entry: number): bigint;
  tokenId(entry: number): bigint | null;
  /** Whether the entry's blob is its token id in ASCII decimals. */
  spellsTokenId(entry: number): boolean;
  /** The last entry of each vault, in order of the vaults' first ones. */
  lastEntries(): Uint32Array;
}

export interface MintResult {
  readonly mintId: Uuid;
  /** Every vault that the request touched, once, as it stood after it; in order of first touch. */
  readonly vaults: readonly Vault[];
  /** One per entry, in request order. */
  readonly transactions: readonly MintTransaction[];
  /** The same by columns; null unless the mint was made just now. */
  readonly columns: AcceptedColumns | null;
  /** Whether an earlier request of the same idempotency key gave this answer. */
  readonly replayed: boolean;
  /**
   * The operator's signed receipt for the vaults as they were acknowledged, the same each time; null without a `receiptSigner`. Signed
   * when it is asked for, one signature a call; a mint that nobody asks for its receipt costs nothing more. Rejects as the signer does.
   */
  receipt(wait?: WaitOptions): Promise<MintReceipt | null>;
}

/** Minting, and what became of it. */
export interface Minting {
  /**
   * Mints everything in the request or nothing. `request` is the parsed body of the HTTP API, untrusted:
   * `{users: [{userId, mints: [{mintingBlob, assetId, amount, dataAvailabilityMode}]}]}`.
   *
   * Rejects with every bad entry in `issues`, in request order; the error's own code is that of the first of them.
   */
  mint(principal: Principal, request: unknown, options?: MintOptions): Promise<MintResult>;
  /** Everything `mint` checks, at this moment, without minting: rejects as `mint` would. */
  checkMint(
    principal: Principal,
    request: unknown,
    wait?: WaitOptions,
  ): Promise<{ readonly users: number; readonly mints: number }>;
  /**
   * Forgets the idempotency keys of mints that were made before a time (ms since 1970), so that the store does not keep them for ever;
   * the mints stay. Whoever repeats one of these requests then mints anew: leave callers the time that they were promised. Resolves
   * with the number of keys; mints go on meanwhile. An aborted `signal` stops it between two steps.
   */
  forgetIdempotencyKeys(before: number, wait?: WaitOptions): Promise<number>;
  mintResult(applicationId: Uuid, mintId: Uuid): Promise<MintResult>;
}
