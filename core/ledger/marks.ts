import { MODES, type Mode } from "../model.ts";
import type { Group } from "../store/group.ts";
import { assetMark, blockOf, markKey, modeMark } from "../store/store-keys.ts";
import type { Ledger } from "./ledger.ts";

/** What the store keeps under a key that says everything by being there. */
export const PRESENT = Buffer.from([1]);

/**
 * Marks the block of an application's sequences in which a request begins by the assets and modes of its transactions, so that a list of
 * one asset or mode passes over the other blocks. A block is marked once, so it costs a mint next to nothing.
 */
export function markRequest(
  ledger: Ledger,
  group: Group,
  applicationIndex: number,
  firstSequence: number,
  assets: Iterable<number>,
  modes: Iterable<Mode>,
): void {
  const block = blockOf(firstSequence);
  for (const asset of assets) {
    if (isFirst(ledger, applicationIndex, asset, block)) {
      group.put(markKey(assetMark(applicationIndex, asset), block), PRESENT);
    }
  }
  for (const mode of modes) {
    if (isFirst(ledger, applicationIndex, -1 - MODES.indexOf(mode), block)) {
      group.put(markKey(modeMark(applicationIndex, mode), block), PRESENT);
    }
  }
}

/** Whether the block has not been marked lately. Nearly every mint asks this, so it makes no key. */
function isFirst({ marks }: Ledger, applicationIndex: number, mark: number, block: number): boolean {
  if (marks.get(applicationIndex, mark) === block) return false;
  marks.set(applicationIndex, mark, block);
  return true;
}
