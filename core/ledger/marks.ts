import { MODES } from "../model.ts";
import type { Group } from "../store/group.ts";
import { blockOf, PRESENT, prefixOf, requestByKey } from "../store/store-keys.ts";
import type { Ledger } from "./ledger.ts";

/**
 * Marks the block of sequences in which a request begins with its assets and modes (bits by place
 * in `MODES`). A list of one asset or mode skips the other blocks. A block is marked once, so a
 * mint pays next to nothing.
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
  const marks = [...assets];
  for (let i = 0; i < MODES.length; i++) if (((modes >> i) & 1) === 1) marks.push(-1 - i);
  for (const mark of marks) {
    // Nearly every block has its marks, so the question builds no key.
    if (ledger.minting.marks.get(applicationIndex, mark) === block) continue;
    ledger.minting.marks.set(applicationIndex, mark, block);
    const key =
      mark >= 0
        ? prefixOf.assetMark(applicationIndex, mark)
        : prefixOf.modeMark(applicationIndex, MODES[-1 - mark] ?? "validium");
    group.put(requestByKey(key, block), PRESENT);
  }
}
