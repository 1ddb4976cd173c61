import { type FileHandle, open } from "node:fs/promises";
import { Stack } from "../stack.ts";

/** Rows left out of a window's request, by line, with the reason. */
export type LeftOut = ReadonlyMap<number, { readonly code: string; readonly detail: string }>;

export interface Intent {
  readonly left: LeftOut;
  /** Time in milliseconds since 1970. */
  readonly at: number;
}

/** The progress of a drop. */
export interface Counts {
  /** Rows. */
  readonly minted: number;
  /** Rows that a dry run found good. */
  readonly mintable: number;
  readonly refused: number;
  /** Rows of windows that an earlier run minted in part; only its result has their outcome. */
  readonly unknown: number;
  /** Bytes of the result. */
  readonly bytes: number;
}

interface Done extends Counts {
  /** Windows. */
  readonly done: number;
}

/** The progress belongs to another drop. */
export class AnotherDrop extends Error {
  override readonly name = "AnotherDrop";
}

/**
 * A drop's two files. The result has a line of JSON for each row. From the progress, a killed run
 * goes on: it has each request before the request is sent. A window is done when its result is on
 * disk.
 */
export class DropFiles implements AsyncDisposable {
  readonly #result: FileHandle;
  readonly #progress: FileHandle;
  counts: Done;
  /** The last request of the first unfinished window; null when none was about to be sent. */
  intent: Intent | null;

  private constructor(result: FileHandle, progress: FileHandle, { done, intent }: Read) {
    this.#result = result;
    this.#progress = progress;
    this.counts = done;
    this.intent = intent;
  }

  /**
   * Opens or creates both. Removes the incomplete end of a killed run. Rejects with `AnotherDrop`.
   */
  static async open(result: string, progress: string, id: string): Promise<DropFiles> {
    await using opening = new Stack();
    // Opening must never truncate them: the flag creates missing files.
    const files = await Promise.all([result, progress].map((path) => open(path, "a+")));
    for (const file of files) opening.defer(() => file.close());
    const [resultFile, progressFile] = files as [FileHandle, FileHandle];
    const read = readProgress(await progressFile.readFile("utf8"), id);
    await progressFile.truncate(read.bytes);
    if (read.bytes === 0) await progressFile.appendFile(`${JSON.stringify({ drop: id })}\n`);
    if ((await resultFile.stat()).size < read.done.bytes)
      throw new AnotherDrop(
        "the result is shorter than its progress says; something else has changed it",
      );
    await resultFile.truncate(read.done.bytes);
    opening.move();
    return new DropFiles(resultFile, progressFile, read);
  }

  /**
   * The request for the next window is about to be sent; of those that are left out, only the new
   * ones are written.
   */
  async intend(intent: Intent): Promise<void> {
    const left = [...intent.left].filter(([row]) => !this.intent?.left.has(row));
    await this.#progress.appendFile(`${JSON.stringify({ at: intent.at, left })}\n`);
    await this.#progress.datasync();
    this.intent = { at: intent.at, left: new Map(intent.left) };
  }

  async finish(
    lines: readonly unknown[],
    { minted, mintable, refused, unknown }: Omit<Counts, "bytes">,
  ): Promise<void> {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    await this.#result.appendFile(text);
    await this.#result.datasync();
    const before = this.counts;
    this.counts = {
      done: before.done + 1,
      bytes: before.bytes + Buffer.byteLength(text),
      minted: before.minted + minted,
      mintable: before.mintable + mintable,
      refused: before.refused + refused,
      unknown: before.unknown + unknown,
    };
    this.intent = null;
    await this.#progress.appendFile(`${JSON.stringify(this.counts)}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#progress.datasync();
    await Promise.all([this.#result.close(), this.#progress.close()]);
  }
}

interface Read {
  /** Up to the end of the last complete line. */
  readonly bytes: number;
  readonly done: Done;
  readonly intent: Intent | null;
}

export const NO_ROWS: Counts = { minted: 0, mintable: 0, refused: 0, unknown: 0, bytes: 0 };
const NOTHING: Done = { ...NO_ROWS, done: 0 };

function readProgress(text: string, id: string): Read {
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  const [head, ...lines] = whole.split("\n").slice(0, -1);
  if (head !== undefined && (JSON.parse(head) as { drop?: unknown }).drop !== id)
    throw new AnotherDrop(
      "the progress belongs to another drop, or the rows or options have changed since it began",
    );
  let done = NOTHING;
  let intent = null as Intent | null;
  for (const line of lines) {
    const read = JSON.parse(line) as
      | Done
      | { left: [number, { code: string; detail: string }][]; at: number };
    if ("done" in read) [done, intent] = [{ ...NOTHING, ...read }, null];
    else intent = { at: read.at, left: new Map([...(intent?.left ?? []), ...read.left]) };
  }
  return { bytes: Buffer.byteLength(whole), done, intent };
}
