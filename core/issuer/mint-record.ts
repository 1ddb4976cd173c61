import type { Address, Hex, Standard, VaultId } from "../model.ts";

/** A vault of the issuer's own tokens, as a batch holds it. */
export interface IssuedVault {
  readonly vaultId: VaultId;
  readonly owner: Address;
  /** The token's contract. */
  readonly token: Address;
  readonly standard: Standard;
  /** Base units of the token; 1 for an ERC-721. One vault can hold several mints of one owner. */
  readonly amount: bigint;
  /** The minting blob; `0x` for an ERC-20. */
  readonly blob: Hex;
  /** The token id that the blob names; null for an ERC-20. */
  readonly tokenId: bigint | null;
}

/**
 * What an issuer compares batches with: the application's own record of its mints, or a policy. The issuer makes one call at a time.
 *
 * An implementation keeps which mints each batch uses, so that no mint is used twice.
 */
export interface MintRecord {
  /**
   * Marks the mints of these vaults as used by the batch: all of them or none, durable when it resolves. The same call again changes
   * nothing. A call with other vaults replaces what the batch used: the issuer makes one only if it signed nothing for the batch.
   *
   * @param batchId - such as `validium-12`
   * @returns null, or why the issuer must not sign
   */
  use(batchId: string, vaults: readonly IssuedVault[]): Promise<string | null>;
  /**
   * L1's final history has this batch, and these are all vaults of the issuer's tokens that it pays. What the batch used beyond them is
   * free again. What it holds beyond its use counts as used, also above any limit.
   */
  settle(batchId: string, vaults: readonly IssuedVault[]): Promise<void>;
}
