import { MODES, type Mode } from "../model.ts";
import type { Group } from "../store/group.ts";
import { assetMark, blockOf, markKey, modeMark } from "../store/store-keys.ts";
import type { Ledger } from "./ledger.ts";

/** The value of a key whose presence says everything. */
export const PRESENT = Buffer.from([1]);

/**
 * Marks the block of sequences in which a request begins with the assets and modes of its transactions. A list of one
 * asset or mode skips the other blocks. A block is marked once, so a mint pays next to nothing.
 *
 * @param modes - a bit for each mode, by its position in `MODES`
 */
export function markRequest(
  ledger: Ledger,
  group: Group,
  applicationIndex: number,
  firstSequence: number,
  assets: Iterable<number>,
  modes: number,
): void {
  const block = blockOf(firstSequence);
  for (const asset of assets) {
    if (isFirst(ledger, applicationIndex, asset, block)) {
      group.put(markKey(assetMark(applicationIndex, asset), block), PRESENT);
    }
  }
  for (let i = 0; i < MODES.length; i++) {
    if (((modes >> i) & 1) === 1 && isFirst(ledger, applicationIndex, -1 - i, block)) {
      group.put(markKey(modeMark(applicationIndex, MODES[i] as Mode), block), PRESENT);
    }
  }
}

/** Whether the block lacks the mark. Nearly every mint asks, so this builds no key. */
function isFirst({ marks }: Ledger, applicationIndex: number, mark: number, block: number): boolean {
  if (marks.get(applicationIndex, mark) === block) return false;
  marks.set(applicationIndex, mark, block);
  return true;
}
