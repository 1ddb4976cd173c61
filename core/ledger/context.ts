import type { WaitOptions } from "../abort.ts";
import type { Group } from "../store/group.ts";
import type { ChangeWriter } from "../store/writer.ts";
import type { Cursors } from "./cursor.ts";
import type { Actor, Ledger } from "./ledger.ts";

/** The ledger as an engine's nouns use it, in the name of one actor or of nobody. */
export class EngineContext {
  readonly cursors: Cursors;
  /** Who makes the changes; null for programs with an API key, and for the engine's own work. */
  readonly actor: Actor | null;
  /** Takes changes, and writes them under the actor's name. */
  readonly writer: ChangeWriter;
  readonly #ledger: Ledger;

  constructor(ledger: Ledger, cursors: Cursors, actor: Actor | null = null) {
    this.#ledger = ledger;
    this.cursors = cursors;
    this.actor = actor;
    this.writer = actor === null ? ledger.writer : ledger.changesOf(actor);
  }

  /** Throws `engine_closed`, or `store_failed` once its store has failed. */
  get ledger(): Ledger {
    this.#ledger.writer.ensureUsable();
    return this.#ledger;
  }

  /** Makes a change that runs alone in the writer, under the actor's name. */
  async change<T>(
    work: (ledger: Ledger, group: Group) => Promise<T> | T,
    wait?: WaitOptions,
  ): Promise<T> {
    const { ledger, writer } = this;
    return writer.alone(async (group) => work(ledger, group), wait?.signal);
  }

  actingAs(actor: Actor): EngineContext {
    return new EngineContext(this.#ledger, this.cursors, actor);
  }
}
