import type { Ledger } from "../ledger/ledger.ts";
import type { Address, Hash } from "../model.ts";
import type { Transfer } from "../protocol/transfer.ts";
import { activityKey } from "../store/store-keys.ts";
import { decodeActivity } from "../vaults/vaults.ts";
import { type Asked, askedList, requireDeadline, requireTransferable, type TransferCaller } from "./checks.ts";

/** Seconds for which a prepared message is good: a batch may have to wait for L1. */
const VALID_SECONDS = 86_400n;

/** What an owner wants to transfer. */
export interface TransferPreparation {
  /** 1 to 1,024, each vault once. */
  readonly transfers: readonly Transfer[];
  /** Seconds since 1970; default in a day. */
  readonly deadline?: bigint | undefined;
}

/** What the owner signs: `transfersTypedData(settlement, prepared)`. */
export interface PreparedTransfers {
  readonly owner: Address;
  readonly transfers: readonly Transfer[];
  /** Seconds since 1970. */
  readonly deadline: bigint;
  /** Of the typed data. */
  readonly digest: Hash;
}

/** Makes the message that an owner signs, after all checks of a request but that of the signature. Changes nothing. */
export async function prepareTransfers(
  ledger: Ledger,
  caller: TransferCaller,
  preparation: TransferPreparation,
): Promise<PreparedTransfers> {
  ledger.requirePromising();
  const now = BigInt(Math.floor(ledger.journalClock.now() / 1000));
  const { deadline = now + VALID_SECONDS } = preparation;
  const { transfers, digest, asked } = await askedList(ledger, caller, { ...preparation, deadline });
  requireDeadline(ledger, deadline);
  const activities = await ledger.store.getMany(transfers.map(({ vaultId }) => activityKey(vaultId)));
  requireTransferable(ledger, asked, activities.map(decodeActivity));
  return { owner: (asked[0] as Asked).vault.owner, transfers, deadline, digest };
}
