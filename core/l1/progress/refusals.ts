import type { WaitOptions } from "../../abort.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Mode } from "../../model.ts";
import { packVaultId } from "../../protocol/vault.ts";
import { requireMode, requireText } from "../../validate.ts";
import { putActivity, readActivity } from "../../vaults/activity.ts";
import { readVault } from "../../vaults/vaults.ts";

/** Longest reason that is kept of a token, in characters. */
export const MAX_REFUSAL = 300;

/** What a token says to the mint of a committed vault. */
export interface VaultRefusal {
  readonly slot: number;
  /** Why the token refuses it; null when it takes it again. */
  readonly refusal: string | null;
}

/** Records which vaults of a committed batch their tokens refuse now. Vaults that are not named stay as they are. */
export async function recordRefusals(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  refusals: readonly VaultRefusal[],
  wait?: WaitOptions,
): Promise<void> {
  requireMode(mode);
  for (const { refusal } of refusals) if (refusal !== null) requireText("refusal", refusal, MAX_REFUSAL);
  await ledger.writer.alone(async (group) => {
    const changed = [];
    for (const { slot, refusal } of refusals) {
      const place = { mode, batchNumber, slot };
      const vaultId = packVaultId(place);
      const activity = await readActivity(ledger, group, vaultId);
      if (activity.refusal === refusal) continue;
      const { userIndex } = await readVault(ledger, place);
      changed.push({ slot, refusal, vaultId, userIndex, activity });
    }
    if (changed.length === 0) return;
    const facts = changed.map(({ slot, refusal }) => ({ slot, refusal }));
    const { time } = ledger.record(group, { kind: "vaultsRefused", mode, batchNumber, refusals: facts });
    for (const { refusal, activity, ...vault } of changed) {
      putActivity(ledger, group, vault, { ...activity, refusal, updatedAt: time });
    }
  }, wait?.signal);
}
