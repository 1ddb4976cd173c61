import { MemoryLevel } from "memory-level";

/** A store in memory whose writes can be held up. */
export class GatedStore {
  readonly store = new MemoryLevel<Buffer, Buffer>({ storeEncoding: "buffer" });
  #waiting: (() => void)[] = [];
  #closed = false;
  #started = (): void => {};

  constructor() {
    const batch = this.store.batch.bind(this.store) as () => {
      write: (...all: unknown[]) => Promise<void>;
    };
    const gatedBatch = () => {
      const own = batch();
      const write = own.write.bind(own);
      own.write = async (...all) => {
        this.#started();
        if (this.#closed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
        return write(...all);
      };
      return own;
    };
    Object.defineProperty(this.store, "batch", { value: gatedBatch });
  }

  /** Holds up every write from now on; resolves when the next one has begun. */
  close(): Promise<void> {
    this.#closed = true;
    return new Promise<void>((resolve) => {
      this.#started = resolve;
    });
  }

  /** Lets through what waits and what comes. */
  open(): void {
    this.#closed = false;
    for (const resume of this.#waiting.splice(0)) resume();
  }
}
