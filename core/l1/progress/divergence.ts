import type { WaitOptions } from "../../abort.ts";
import { committedCount, sealedCount, stateOver } from "../../batches/batches.ts";
import { MintmarkError } from "../../errors.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { MODES } from "../../model.ts";
import type { L1State } from "../../ports.ts";
import { countOf } from "../../protocol/commitment.ts";
import type { Group } from "../../store/group.ts";
import { encodeRecord } from "../../store/layout.ts";
import { divergenceRecord } from "../../store/records.ts";
import { DIVERGENCE_KEY } from "../../store/store-keys.ts";

/**
 * Mints may go on only if L1's batches are the first ones of this store in each mode. Otherwise the store is diverged.
 * Returns false when only the events of unrecorded commits can tell, because L1 may have left assets out.
 */
export async function compareState(ledger: Ledger, there: L1State, wait?: WaitOptions): Promise<boolean> {
  return observing(ledger, wait?.signal, async () => {
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

/**
 * Applies L1's word in the writer, so that no mint is acknowledged after a word that makes the store diverged, and
 * before its record. Throws `history_diverged` when no history of this store explains the word.
 */
export async function observing<T>(
  ledger: Ledger,
  signal: AbortSignal | undefined,
  body: (group: Group) => Promise<T>,
): Promise<T> {
  const outcome = await ledger.writer.alone(async (group) => {
    try {
      return { value: await body(group) };
    } catch (error) {
      const isDiverged = error instanceof MintmarkError && error.code === "history_diverged";
      if (!isDiverged || group.operations.length > 0) throw error;
      diverge(ledger, group, error.message);
      return { error };
    }
  }, signal);
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/** Marks the store as diverged: mints are refused from here on. The first reason stays. */
function diverge(ledger: Ledger, group: Group, detail: string): void {
  if (ledger.divergence !== null) return;
  const { time: since } = ledger.record(group, { kind: "historyDiverged", detail });
  ledger.divergence = { detail, since };
  group.put(DIVERGENCE_KEY, encodeRecord(divergenceRecord, ledger.divergence));
}
