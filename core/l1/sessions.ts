import { encodeFunctionData, type Hash, type Hex } from "viem";
import type { SessionEndMessage, SessionMessage } from "../protocol/transfer.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";

/**
 * Calldata of `authorizeSession` on the settlement contract. With the owner's signature of `sessionTypedData` any account
 * can send it; without one only the owner's own account.
 *
 * @example
 * const data = sessionCalldata(session, await player.signTypedData(sessionTypedData(settlement, session)));
 */
export function sessionCalldata(session: SessionMessage, signature: Hex = "0x"): Hex {
  return encodeFunctionData({ abi, functionName: "authorizeSession", args: sessionArguments(session, signature) });
}

/** Arguments of `authorizeSession`. */
export function sessionArguments({ owner, key, until, limit, assetType }: SessionMessage, signature: Hex) {
  return [owner, key, until, limit, BigInt(assetType), signature] as const;
}

/**
 * Calldata of `revokeSession` on the settlement contract. It ends the session of the key, or makes sure that there never is
 * one. With the owner's signature of `sessionEndTypedData` any account can send it; without one only the owner's own.
 *
 * @example
 * await wallet.sendTransaction({ to: contract, data: revocationCalldata({ owner: wallet.account.address, key }) });
 */
export function revocationCalldata({ owner, key }: SessionEndMessage, signature: Hex = "0x"): Hex {
  return encodeFunctionData({ abi, functionName: "revokeSession", args: [owner, key, signature] });
}

/**
 * Calldata of `cancelTransfers` on the settlement contract, for the account of the owner or of the signer: a commit of a
 * later second no longer counts for these transfers.
 *
 * @example
 * await wallet.sendTransaction({ to: contract, data: cancellationCalldata(digest) });
 */
export function cancellationCalldata(digest: Hash): Hex {
  return encodeFunctionData({ abi, functionName: "cancelTransfers", args: [digest] });
}
