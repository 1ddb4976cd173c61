import type { Mode } from "../../model.ts";
import * as keys from "../../store/store-keys.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

/**
 * The part of the reference for marks: blocks of an application's sequences, by the assets and modes of their requests.
 */
export class ReferenceMarks {
  /** The last block with a mark, by mark. */
  readonly #last = new Map<string, number>();

  /** The marks that the next request of an application adds. */
  of(applicationIndex: number, firstSequence: number, assets: readonly number[], modes: readonly Mode[]): Expected[] {
    const block = keys.blockOf(firstSequence);
    const marks = [
      ...[...new Set(assets)].map((asset) => keys.assetMark(applicationIndex, asset)),
      ...[...new Set(modes)].map((mode) => keys.modeMark(applicationIndex, mode)),
    ];
    return marks.flatMap((mark) => {
      const name = keys.keyString(mark);
      if (this.#last.get(name) === block) return [];
      this.#last.set(name, block);
      return [expectedRecord(keys.markKey(mark, block), Buffer.from([1]), `a mark of block ${block}`)];
    });
  }
}
