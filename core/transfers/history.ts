import { zeroAddress } from "viem";
import type { Ledger } from "../ledger/ledger.ts";
import type { Address, Status, Uuid, VaultId } from "../model.ts";
import { packVaultId } from "../protocol/vault.ts";
import type { TransferListRecord } from "../store/records.ts";
import { activityKey } from "../store/store-keys.ts";
import { statusOfTransfer } from "../vaults/transactions.ts";
import {
  amountsOf,
  makerOf,
  outputsOf,
  placeIn,
  readTransferList,
  sourceOf,
  type TransferOutput,
} from "../vaults/transfer-lists.ts";
import { batchAt, decodeActivity, hasSlot, placeOf, readVault } from "../vaults/vaults.ts";

/** One vault that a transfer made, or a waiting one will make. */
export interface HistoryStep {
  readonly transferId: Uuid;
  readonly status: Status;
  readonly vaultId: VaultId;
  readonly from: Address;
  /** The receiver; the zero address redeems. Of change it is the giver. */
  readonly to: Address;
  readonly isChange: boolean;
  /** Null before the batch is sealed, and for a redemption. */
  readonly newVaultId: VaultId | null;
  /** Units of the new vault, or burnt. Null while unknown: the batch settles how much is left of a vault. */
  readonly amount: bigint | null;
  /** Milliseconds since 1970, of the request. */
  readonly createdAt: number;
}

/** Where a vault comes from, and where it went. */
export interface VaultHistory {
  /** The transfers from the mint to the vault, oldest first; at most 8. */
  readonly before: readonly HistoryStep[];
  /** What took the vault: the receiver's part and the change. Empty while nothing did. */
  readonly after: readonly HistoryStep[];
}

export async function historyOf(ledger: Ledger, vaultId: VaultId): Promise<VaultHistory> {
  batchAt(ledger, placeOf(vaultId));
  const before: HistoryStep[] = [];
  for (let maker = await makerOf(ledger, placeOf(vaultId)); maker !== null; ) {
    before.unshift(await stepOf(ledger, maker.list, maker.output));
    const source = sourceOf(maker);
    maker = source === null ? null : await makerOf(ledger, source);
  }
  const { spentBy } = decodeActivity(await ledger.store.get(activityKey(vaultId)));
  if (spentBy === null) return { before, after: [] };
  const list = await readTransferList(ledger, spentBy);
  const outputs = outputsOf(list).filter(({ transfer }) => transfer.vaultId === vaultId);
  return { before, after: await Promise.all(outputs.map((output) => stepOf(ledger, list, output))) };
}

async function stepOf(ledger: Ledger, list: TransferListRecord, output: TransferOutput): Promise<HistoryStep> {
  const { transfer, position, isChange, holderIndex } = output;
  const { vaultId, to } = transfer;
  // A record of a hostile operator can spend an id that no batch has made.
  const source = placeOf(vaultId);
  const from = hasSlot(ledger, source) ? (await readVault(ledger, source)).owner : zeroAddress;
  const place = placeIn(list, position);
  const [amount = null] = await amountsOf(ledger, [{ list, output }]);
  return {
    transferId: list.transferId,
    status: statusOfTransfer(ledger, list, output),
    vaultId,
    from,
    to: isChange ? from : to,
    isChange,
    newVaultId: place === null || holderIndex === null ? null : packVaultId(place),
    amount,
    createdAt: list.createdAt,
  };
}
