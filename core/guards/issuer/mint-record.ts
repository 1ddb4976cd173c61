import type { Address, Hex, Standard, VaultId } from "../../model.ts";

/** A vault of the issuer's tokens in a batch. */
export interface IssuedVault {
  readonly vaultId: VaultId;
  readonly owner: Address;
  /** The token's contract. */
  readonly token: Address;
  readonly standard: Standard;
  /** Base units of the token; 1 for an ERC-721. A vault can hold several mints of one owner. */
  readonly amount: bigint;
  /** The minting blob; `0x` for an ERC-20. */
  readonly blob: Hex;
  /** The token id in the blob; null for an ERC-20. */
  readonly tokenId: bigint | null;
}

/**
 * The record that an issuer compares batches with: the application's mints, or a policy. The issuer makes one call at a
 * time.
 *
 * An implementation stores which mints each batch uses, so that no mint is used twice.
 */
export interface MintRecord {
  /**
   * Marks the mints of these vaults as used by the batch, all or none, durably. The same call again changes nothing. A
   * call with other vaults replaces the batch's use of the token; the issuer makes one only if it signed nothing of the
   * token for the batch.
   *
   * @param batchId - such as `validium-12`
   * @param token - contract of all of these vaults
   * @returns null, or why the issuer must not sign for this token
   */
  use(batchId: string, token: Address, vaults: readonly IssuedVault[]): Promise<string | null>;
  /**
   * L1's final history has this batch, and pays exactly these vaults of the issuer's tokens. Frees what the batch used
   * beyond them. Vaults beyond its use count as used, also above a limit.
   */
  settle(batchId: string, vaults: readonly IssuedVault[]): Promise<void>;
}
