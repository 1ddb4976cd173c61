import { committedCount, sealedCount, stateOver } from "../batches/batches.ts";
import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MODES } from "../model.ts";
import type { L1State } from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import type { Group } from "../store/group.ts";
import { encodeRecord } from "../store/layout.ts";
import { divergenceRecord } from "../store/records.ts";
import { DIVERGENCE_KEY } from "../store/store-keys.ts";

/**
 * Compares L1's state with the store's: L1's batches must be the first ones of this store, of each mode. Mints may go on after that.
 * Otherwise the store is diverged from now on, also after a restart; throws `history_diverged`.
 *
 * Returns false when only the events of commits that are not recorded yet can tell: L1 may have left assets out of them.
 */
export async function compareState(ledger: Ledger, there: L1State, signal?: AbortSignal): Promise<boolean> {
  return observing(ledger, signal, async () => {
    ledger.requireOneHistory();
    for (const mode of MODES) {
      const [sealed, count] = [sealedCount(ledger, mode), countOf(mode, there)];
      if (count > sealed) {
        const detail = `L1 has ${count} batches of ${mode}, and this store has sealed ${sealed}.`;
        throw new MintmarkError("history_diverged", detail);
      }
    }
    const here = stateOver(ledger, there.countValidium, there.countRollup);
    if (here.commitment !== there.commitment) {
      if (MODES.some((mode) => countOf(mode, there) > committedCount(ledger, mode, "latest"))) return false;
      const detail = `L1's state after ${there.countValidium} validium and ${there.countRollup} rollup batches is another.`;
      throw new MintmarkError("history_diverged", detail);
    }
    ledger.awaitsComparison = false;
    return true;
  });
}

/** Takes in what L1 says, alone in the writer. What no history of this store can cause makes it diverged, and is thrown. */
export async function observing<T>(
  ledger: Ledger,
  signal: AbortSignal | undefined,
  body: (group: Group) => Promise<T>,
): Promise<T> {
  try {
    return await ledger.writer.alone(body, signal);
  } catch (error) {
    if (error instanceof MintmarkError && error.code === "history_diverged") await diverge(ledger, error.message);
    throw error;
  }
}

/** Nothing is promised any more from here on. What was found first stands. */
async function diverge(ledger: Ledger, detail: string): Promise<void> {
  await ledger.writer.alone(async (group) => {
    if (ledger.divergence !== null) return;
    const { time: since } = ledger.record(group, { kind: "historyDiverged", detail });
    ledger.divergence = { detail, since };
    group.put(DIVERGENCE_KEY, encodeRecord(divergenceRecord, ledger.divergence));
  });
}
