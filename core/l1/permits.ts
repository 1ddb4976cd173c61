import type { Asset, Hash, Hex, MintingBlobScheme, VaultId } from "../model.ts";
import type { L1SendOptions } from "../ports.ts";
import type { SessionEndMessage, SessionMessage } from "../protocol/transfer.ts";
import { cancellationId } from "../protocol/typed-data.ts";
import type { L1Account } from "./account.ts";
import * as calldata from "./arguments.ts";
import type { ViemReader } from "./reader.ts";

type RegistrableAsset = Pick<
  Asset,
  "standard" | "chainId" | "contractAddress" | "quantum" | "mintingBlobScheme"
>;

/** Permissions that owners of vaults and tokens give and take back. */
export function permitsOf(
  { account, settlement, transact }: L1Account,
  { statedScheme }: ViemReader,
) {
  return {
    /**
     * Lets a key transfer for an owner. With the owner's signature any account can send it, else
     * only the owner's.
     */
    async authorizeSession(
      session: SessionMessage,
      signature: Hex = "0x",
      options?: L1SendOptions,
    ) {
      return transact("authorizeSession", calldata.sessionArguments(session, signature), options);
    },

    /**
     * Ends the session of an owner with a key, or makes sure that there never is one. With the
     * owner's signature any account can send it, else only the owner's.
     */
    async revokeSession(end: SessionEndMessage, signature: Hex = "0x", options?: L1SendOptions) {
      return transact("revokeSession", [end.owner, end.key, signature], options);
    },

    /**
     * Cancels a list of transfers that this account has signed or approved, or that takes its
     * vaults.
     */
    async cancelTransfers(digest: Hash, options?: L1SendOptions) {
      return transact("cancelTransfers", [digest], options);
    },

    /**
     * Takes back on L1 what this account has signed: a list of withdrawals or an order by its
     * digest, or by a vault's id all that its lists and orders say of the vault.
     */
    async cancel(id: Hash | VaultId, options?: L1SendOptions) {
      return transact("cancel", [account.address, cancellationId(id), "0x"], options);
    },

    /**
     * Enters a token into the registry. Anyone may, if the token states how it reads its minting
     * blobs (`mintingBlobScheme()`). Otherwise its owner or admin may, who says so here.
     */
    async registerAsset(asset: RegistrableAsset, options?: L1SendOptions) {
      const { standard, chainId, contractAddress, quantum } = asset;
      const scheme = calldata.SCHEME_VALUE[await schemeOf(asset)];
      const args = [
        calldata.STANDARD_VALUE[standard],
        chainId,
        contractAddress,
        quantum,
        scheme,
      ] as const;
      return transact("registerAsset", args, options);
    },
  };

  /**
   * An ERC-20 has no minting blobs. The registry does not know the scheme of another chain's token.
   */
  async function schemeOf(asset: RegistrableAsset): Promise<MintingBlobScheme> {
    if (asset.chainId !== settlement.chainId) return "imx";
    return asset.standard === "erc20"
      ? ((await statedScheme(asset.contractAddress)) ?? "imx")
      : asset.mintingBlobScheme;
  }
}
