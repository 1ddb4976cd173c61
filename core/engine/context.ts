import type { Cursors } from "../ledger/cursor.ts";
import type { Ledger } from "../ledger/ledger.ts";

/** What every method of an engine works on. */
export class EngineContext {
  readonly cursors: Cursors;
  readonly #ledger: Ledger;

  constructor(ledger: Ledger, cursors: Cursors) {
    this.#ledger = ledger;
    this.cursors = cursors;
  }

  /** Throws `engine_closed`, or `store_failed` once its store has failed. */
  get ledger(): Ledger {
    this.#ledger.writer.ensureUsable();
    return this.#ledger;
  }
}
