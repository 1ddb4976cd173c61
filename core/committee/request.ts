import { recoverTypedDataAddress, type TypedDataDefinition } from "viem";
import { MintmarkError } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import type { HistoryPoint, Settlement } from "../ports.ts";
import { MAX_UINT64, requireBigint } from "../protocol/bounds.ts";
import { TYPED_DATA_TYPES, type ValidiumBatchMessage, validiumBatchTypedData } from "../protocol/typed-data.ts";

/** What a member is to sign a batch for. */
export interface AttestationTerms extends HistoryPoint {
  /** Of the committee in force. */
  readonly epoch: bigint;
}

/**
 * What an operator signs so that a member looks at a batch. Without it anyone could give a member a batch of their own and so use up the
 * number, under which the member signs no other batch until L1's history goes on. The fields of the attestation and one more, under another
 * name, so that neither can stand for the other. Repeating a request does nothing new.
 */
export interface AttestationRequest extends ValidiumBatchMessage {
  /** Commits in `history`, so that a member can tell which side is behind. */
  readonly sequence: bigint;
}

/** The whole `AttestationRequest` typed data, as viem's `signTypedData` takes it. Throws `validation_failed` when out of bounds. */
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

/** The account that signed a request, typed data as viem takes it. Throws `credentials_invalid` for what is no signature. */
export async function requestSigner(request: TypedDataDefinition, signature: Hex): Promise<Address> {
  try {
    return (await recoverTypedDataAddress({ ...request, signature })).toLowerCase() as Address;
  } catch (error) {
    throw new MintmarkError("credentials_invalid", "The request's signature cannot be read.", { cause: error });
  }
}
