import { type Address, encodeFunctionData, type Hex } from "viem";
import type { SessionMessage } from "../protocol/transfers.ts";
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
 * Calldata of `revokeSession` on the settlement contract, for the owner's own account. It ends the session of the key, or
 * makes sure that there never is one.
 *
 * @example
 * await wallet.sendTransaction({ to: contract, data: revocationCalldata(key) });
 */
export function revocationCalldata(key: Address): Hex {
  return encodeFunctionData({ abi, functionName: "revokeSession", args: [key] });
}
