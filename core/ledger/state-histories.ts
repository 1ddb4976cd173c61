import type { Mode } from "../model.ts";
import { StateHistory } from "../protocol/state-tree.ts";
import type { Group } from "../store/group.ts";

/** One of each mode. */
export const byMode = <T>(make: () => T): Readonly<Record<Mode, T>> => ({ validium: make(), "zk-rollup": make() });

/** The state trees over all sealed batches, in the writer's view and in the readers' view. */
export class StateHistories {
  readonly #latest: Record<Mode, StateHistory> = byMode(() => new StateHistory());
  /** The writer's tree, or the one before a batch was sealed anew while that is not on disk. */
  readonly #durable: Record<Mode, StateHistory> = { ...this.#latest };

  /** The tree in the writer's view. Batches are only added. */
  latest(mode: Mode): StateHistory {
    return this.#latest[mode];
  }

  /** The tree in the readers' view. Readers do not ask for batches that are not on disk. */
  of(mode: Mode): StateHistory {
    return this.#durable[mode];
  }

  /** Replaces a mode's tree. Readers see it when the group is on disk. */
  put(group: Group, mode: Mode, history: StateHistory): void {
    this.#latest[mode] = history;
    group.onDurable(() => {
      this.#durable[mode] = history;
    });
  }

  load(mode: Mode, history: StateHistory): void {
    this.#latest[mode] = history;
    this.#durable[mode] = history;
  }
}
