import type { Mode } from "../model.ts";
import { StateHistory } from "../protocol/state-tree.ts";
import type { Group } from "../store/group.ts";

/** The state trees over all sealed batches, in two views: as the writer has them, and as readers see them. */
export class StateHistories {
  readonly #latest: Record<Mode, StateHistory> = { validium: new StateHistory(), "zk-rollup": new StateHistory() };
  /** The same trees, or those before a batch was sealed anew, while that is not on disk. */
  readonly #durable: Record<Mode, StateHistory> = { ...this.#latest };

  /** The tree as the writer has it; batches are only added to it. */
  latest(mode: Mode): StateHistory {
    return this.#latest[mode];
  }

  /** The tree as readers see it; what it holds beyond the batches that are on disk they do not ask for. */
  of(mode: Mode): StateHistory {
    return this.#durable[mode];
  }

  /** Puts another tree in the place of a mode's, for readers when the group is on disk. */
  put(group: Group, mode: Mode, history: StateHistory): void {
    this.#latest[mode] = history;
    group.onDurable(() => {
      this.#durable[mode] = history;
    });
  }

  /** Puts in what was read from disk. */
  load(mode: Mode, history: StateHistory): void {
    this.#latest[mode] = history;
    this.#durable[mode] = history;
  }
}
