import { recoverTypedDataAddress, type TypedDataDefinition } from "viem";
import { MintmarkError } from "../../errors.ts";
import type { Address, Hex } from "../../model.ts";
import type { HistoryPoint, ProposedBatch, Settlement } from "../../ports.ts";
import { MAX_UINT64, requireBigint } from "../../protocol/bounds.ts";
import { transferBatchTypedData } from "../../protocol/transfer.ts";
import { isTransferData } from "../../protocol/transfer-data.ts";
import { TYPED_DATA_TYPES, type ValidiumBatchMessage, validiumBatchTypedData } from "../../protocol/typed-data.ts";

/** The values that a member signs with a batch. */
export interface AttestationTerms extends HistoryPoint {
  /** The epoch of the committee in force. */
  readonly epoch: bigint;
}

/** The message that a member signs: of a validium batch, or of a batch of transfers. */
export function attestationTypedData(
  settlement: Pick<Settlement, "chainId" | "contract">,
  batch: ProposedBatch,
  terms: AttestationTerms,
): TypedDataDefinition {
  const message = { ...batch, ...terms };
  return isTransferData(batch.mode, batch.data)
    ? transferBatchTypedData(settlement, message)
    : validiumBatchTypedData(settlement, message);
}

/**
 * The operator's signed request to a member. Without it, anyone could give a member a batch and use up the number: the
 * member signs no other batch for it until L1's history continues. It has the attestation's fields and one more under
 * another type name, so neither signature can pass for the other. A repeated request changes nothing.
 */
export interface AttestationRequest extends ValidiumBatchMessage {
  /** Commits in `history`: shows a member which side is behind. */
  readonly sequence: bigint;
}

/**
 * The `AttestationRequest` typed data for viem's `signTypedData`. Throws `validation_failed` for values out of bounds.
 *
 * @example
 * const request = attestationRequestTypedData(settlement, { ...batch, history, sequence, epoch });
 * const isOperators = (await requestSigner(request, signature)) === operatorAddress;
 */
export function attestationRequestTypedData(
  settlement: Pick<Settlement, "chainId" | "contract">,
  request: AttestationRequest,
) {
  const { sequence } = request;
  const batch = validiumBatchTypedData(settlement, request);
  requireBigint("sequence", sequence, 0n, MAX_UINT64);
  return {
    ...batch,
    types: { AttestationRequest: [...TYPED_DATA_TYPES.ValidiumBatch, { name: "sequence", type: "uint64" }] },
    primaryType: "AttestationRequest",
    message: { ...batch.message, sequence },
  } as const;
}

/**
 * The account that signed the typed data of a request. Throws `credentials_invalid` for an invalid signature.
 *
 * @example
 * const signer = await requestSigner(consentRequestTypedData(settlement, batch), signature);
 */
export async function requestSigner(request: TypedDataDefinition, signature: Hex): Promise<Address> {
  try {
    return (await recoverTypedDataAddress({ ...request, signature })).toLowerCase() as Address;
  } catch (error) {
    throw new MintmarkError("credentials_invalid", "The request's signature cannot be read.", { cause: error });
  }
}
