import type { Mode } from "../model.ts";
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
  const mark = (prefix: Buffer): void => {
    const name = prefix.toString("latin1");
    if (ledger.marks.get(applicationIndex, name) === block) return;
    ledger.marks.set(applicationIndex, name, block);
    group.put(markKey(prefix, block), PRESENT);
  };
  for (const assetIndex of assets) mark(assetMark(applicationIndex, assetIndex));
  for (const mode of modes) mark(modeMark(applicationIndex, mode));
}
