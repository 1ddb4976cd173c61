import { type BigIntStats, statSync } from "node:fs";
import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { MintmarkError } from "../errors.ts";
import { ifThere } from "./format.ts";

const LOOK_MS = 250; // Pause between two looks of an owner that writes nothing
/**
 * An owner whose LOCK file was removed has closed the folder by then, whatever container it is in.
 */
const HANDOVER_MS = 8 * LOOK_MS;

/**
 * A process's hold on a LevelDB folder, which it looks at again while it has the folder open.
 *
 * LevelDB locks the file LOCK, not its name. When somebody removes or replaces the file or the
 * folder, another process can lock the new file, in another container too. So the owner compares
 * the inode behind the name after each write: another process that opened the folder before has
 * changed it, and one that opens it later reads the write.
 */
export class LevelLock implements Disposable {
  readonly #folder: string;
  readonly #own: BigIntStats;
  readonly #lost = new AbortController();
  readonly #looking: NodeJS.Timeout;

  private constructor(folder: string, own: BigIntStats) {
    this.#folder = folder;
    this.#own = own;
    this.#looking = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Call it before LevelDB opens the folder, and {@link requireHeld} afterwards. */
  static async take(folder: string): Promise<LevelLock> {
    const path = join(folder, "LOCK");
    const isThere = (await ifThere(stat(path))) !== undefined;
    if (!isThere) {
      await (await open(path, "a")).close();
      const isStore = (await ifThere(stat(join(folder, "CURRENT")))) !== undefined;
      if (isStore) await pause(HANDOVER_MS);
    }
    return new LevelLock(folder, await stat(path, { bigint: true }));
  }

  /** Aborted with the error when the folder is no longer this process's. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Takes some microseconds. Throws `store_failed` when the folder is no longer this process's. */
  requireHeld(): void {
    if (!this.#lost.signal.aborted) {
      const found = statSync(join(this.#folder, "LOCK"), ASKED);
      if (found?.ino !== this.#own.ino || found.dev !== this.#own.dev) this.#lose();
    }
    this.#lost.signal.throwIfAborted();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#looking);
  }

  #look(): void {
    try {
      this.requireHeld();
    } catch {
      // {@link lost} tells of a lost folder. A look that fails otherwise decides nothing.
    }
  }

  #lose(): void {
    clearInterval(this.#looking);
    this.#lost.abort(lockLost(this.#folder));
  }
}

const ASKED = { bigint: true, throwIfNoEntry: false } as const;

function lockLost(folder: string): MintmarkError {
  const detail =
    `The file LOCK in ${folder} was removed or replaced, so another process may have opened the store. ` +
    "This one acknowledges nothing more. Make sure that no other process uses the folder, then start again.";
  return new MintmarkError("store_failed", detail);
}
