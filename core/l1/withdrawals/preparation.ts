import { MintmarkError } from "../../errors.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Address, VaultId } from "../../model.ts";
import type { ListedVault, PortalIdentity } from "../../ports.ts";
import { MAX_UINT64, requireBigint } from "../../protocol/bounds.ts";
import { activityKey } from "../../store/store-keys.ts";
import { requireAddress } from "../../validate.ts";
import { decodeActivity } from "../../vaults/vaults.ts";
import { portalOf } from "../progress/portals.ts";
import { requireAcceptable, requireDeadline, type WithdrawalCaller } from "./acceptance.ts";
import { commonTo, faultOf, isAlone, ownVaults, requireEachOnce, requireListable } from "./list.ts";

/** Seconds for which a prepared message is good: longer than tokens take to mature. */
const VALID_SECONDS = 7n * 86_400n;

/** What an owner wants to withdraw. */
export interface WithdrawalPreparation {
  /** 1 to 256, each vault once; `quantity` in units, default all that are left. */
  readonly vaults: readonly { readonly vaultId: VaultId; readonly quantity?: bigint }[];
  /** Default: the owner. */
  readonly recipient?: Address;
  /** Seconds since 1970; default in seven days. */
  readonly deadline?: bigint;
}

/** What the owner signs: `withdrawalListTypedData(portal, prepared)`, or `withdrawalTypedData` for one vault. */
export interface PreparedWithdrawals {
  readonly owner: Address;
  /** The contract that pays: the domain of the message. */
  readonly portal: PortalIdentity;
  /** The vaults that can be withdrawn now, in the order of the request; at least one. */
  readonly vaults: readonly ListedVault[];
  readonly recipient: Address;
  /** Seconds since 1970. */
  readonly deadline: bigint;
  /** Whether L1 takes no list for the vault, because a transfer made it: the owner signs a single `Withdrawal`. */
  readonly isAlone: boolean;
  /** The vaults that are left out, with the reason. */
  readonly refused: readonly { readonly vaultId: VaultId; readonly error: MintmarkError }[];
}

/** Makes the message that an owner signs to withdraw from vaults as they are now. Changes nothing. */
export async function prepareWithdrawals(
  ledger: Ledger,
  caller: WithdrawalCaller,
  preparation: WithdrawalPreparation,
): Promise<PreparedWithdrawals> {
  const { vaults: asked } = preparation;
  requireEachOnce(asked);
  const found = await ownVaults(ledger, caller, asked);
  const { owner, chainId } = commonTo(ledger, found);
  const now = BigInt(Math.floor(ledger.journalClock.now() / 1000));
  const { deadline = now + VALID_SECONDS } = preparation;
  requireBigint("deadline", deadline, 0n, MAX_UINT64);
  requireDeadline(ledger, deadline);
  const activities = await ledger.store.getMany(asked.map(({ vaultId }) => activityKey(vaultId)));
  const vaults: ListedVault[] = [];
  const refused: { vaultId: VaultId; error: MintmarkError }[] = [];
  for (const [i, { vaultId, quantity }] of asked.entries()) {
    const error = faultOf(() => {
      const vault = found[i];
      if (!vault) throw new MintmarkError("vault_not_found");
      const activity = decodeActivity(activities[i]);
      const left = vault.amount - activity.withdrawn;
      if (left === 0n) throw new MintmarkError("insufficient_balance", "All of this vault has been withdrawn.");
      const listed = { vaultId, withdrawnBefore: activity.withdrawn, quantity: quantity ?? left };
      if (listed.quantity < 1n) throw new MintmarkError("amount_out_of_range");
      if (asked.length > 1) requireListable(ledger, vaultId);
      requireAcceptable(ledger, caller, listed, vault, activity);
      vaults.push(listed);
    });
    if (error !== null) refused.push({ vaultId, error });
  }
  const [first] = refused;
  if (vaults.length === 0 && first !== undefined) throw first.error;
  const recipient = preparation.recipient === undefined ? owner : requireAddress("recipient", preparation.recipient);
  const portal = portalOf(ledger, chainId);
  return { owner, portal, vaults, recipient, deadline, isAlone: isAlone(ledger, vaults), refused };
}
