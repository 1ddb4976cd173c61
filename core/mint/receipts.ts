import { orAborted } from "../abort.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { MintResult } from "../mint-types.ts";
import type { Address, Uuid, Vault } from "../model.ts";
import type { ReceiptSigner } from "../protocol/receipt.ts";
import { type MintReceipt, receiptContents, receiptRoot, receiptTypedData } from "../protocol/receipt.ts";

const NO_RECEIPT: MintResult["receipt"] = async () => null;

/**
 * How a mint's result gives its receipt.
 *
 * @param time - when the mint was acknowledged, ms since 1970
 * @param accepted - its vaults as they stood then
 */
export function receiptFor(ledger: Ledger, time: number, accepted: () => readonly Vault[]): MintResult["receipt"] {
  const signer = ledger.receiptSigner;
  return signer === undefined ? NO_RECEIPT : ({ signal } = {}) => signReceipt(ledger, signer, time, accepted(), signal);
}

async function signReceipt(
  ledger: Ledger,
  signer: ReceiptSigner,
  time: number,
  vaults: readonly Vault[],
  signal: AbortSignal | undefined,
): Promise<MintReceipt> {
  const chainIds: Record<Uuid, bigint> = {};
  for (const { assetId } of vaults) {
    chainIds[assetId] ??= ledger.assetAt(ledger.assetIndices.get(assetId) ?? -1).chainId;
  }
  const message = { root: receiptRoot(receiptContents(vaults, chainIds)), count: vaults.length, time };
  const signing = signer.signTypedData(receiptTypedData(ledger.settlement, message));
  const signature = await orAborted(signing, signal);
  return { ...message, signer: signer.address.toLowerCase() as Address, signature, chainIds };
}
