import { recoverTypedDataAddress, type TypedDataDefinition } from "viem";
import { MintmarkError } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import type { Settlement } from "../ports.ts";
import { TYPED_DATA_TYPES, type ValidiumBatchMessage, validiumBatchTypedData } from "../protocol/typed-data.ts";

/**
 * What an operator signs so that a member looks at a batch. Without it anyone could give a member a batch of their own and so use up the
 * number, under which the member signs no other batch until L1's history goes on. The same fields as the attestation, under another name, so that neither can
 * stand for the other. Repeating a request does nothing new.
 */
export type AttestationRequest = ValidiumBatchMessage;

/** The whole `AttestationRequest` typed data, as viem's `signTypedData` takes it. Throws `validation_failed` when out of bounds. */
export function attestationRequestTypedData(
  settlement: Pick<Settlement, "chainId" | "contract">,
  { batchNumber, batchRoot, vaultCount, dataHash, epoch }: AttestationRequest,
) {
  const message = { batchNumber, batchRoot, vaultCount, dataHash, epoch };
  return {
    ...validiumBatchTypedData(settlement, message),
    types: { AttestationRequest: TYPED_DATA_TYPES.ValidiumBatch },
    primaryType: "AttestationRequest",
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
