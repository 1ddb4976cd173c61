import type { Cursors } from "./cursor.ts";
import type { Ledger } from "./ledger.ts";

/** What an engine's nouns work on. */
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
