import { encodeFunctionData, type Hash, type Hex } from "viem";
import type { SessionEndMessage, SessionMessage } from "../protocol/transfer.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";

/**
 * Calldata of `authorizeSession` on the settlement contract. Any account can send it with the owner's signature of
 * `sessionTypedData`. The owner's own account needs no signature.
 *
 * @example
 * const data = sessionCalldata(session, await player.signTypedData(sessionTypedData(settlement, session)));
 */
export function sessionCalldata(session: SessionMessage, signature: Hex = "0x"): Hex {
  return encodeFunctionData({ abi, functionName: "authorizeSession", args: sessionArguments(session, signature) });
}

export function sessionArguments({ owner, key, until, limit, assetType }: SessionMessage, signature: Hex) {
  return [owner, key, until, limit, BigInt(assetType), signature] as const;
}

/**
 * Calldata of `revokeSession` on the settlement contract. It ends the key's session, or makes sure that there never is
 * one. Any account can send it with the owner's signature of `sessionEndTypedData`. The owner's own needs no signature.
 *
 * @example
 * await wallet.sendTransaction({ to: contract, data: revocationCalldata({ owner: wallet.account.address, key }) });
 */
export function revocationCalldata({ owner, key }: SessionEndMessage, signature: Hex = "0x"): Hex {
  return encodeFunctionData({ abi, functionName: "revokeSession", args: [owner, key, signature] });
}

/**
 * Calldata of `cancelTransfers` on the settlement contract, for the account of the owner or of the signer. These
 * transfers no longer count when they are committed in a later second.
 *
 * @example
 * await wallet.sendTransaction({ to: contract, data: cancellationCalldata(digest) });
 */
export function cancellationCalldata(digest: Hash): Hex {
  return encodeFunctionData({ abi, functionName: "cancelTransfers", args: [digest] });
}
