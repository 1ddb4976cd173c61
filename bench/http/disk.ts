import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Appends evenly to a file, and has all that is due on disk before it goes on, as the store does with requests.
 *
 * @param rate - appends a second
 * @param bytes - of one append
 * @returns milliseconds from the time when an append was due until it was on disk, ascending
 */
export async function appendPaced(folder: string, rate: number, seconds: number, bytes: number): Promise<number[]> {
  await using file = await open(join(folder, "appended"), "wx");
  const times: number[] = [];
  const count = Math.ceil(rate * seconds);
  const start = performance.now();
  while (times.length < count) {
    const due = Math.min(count, Math.floor(((performance.now() - start) / 1000) * rate) + 1) - times.length;
    if (due === 0) await sleep(1);
    else {
      await appendDurably(file, due * bytes);
      const now = performance.now() - start;
      for (let i = 0; i < due; i++) times.push(now - (times.length / rate) * 1000);
    }
  }
  return times.sort((a, b) => a - b);
}

async function appendDurably(file: FileHandle, bytes: number): Promise<void> {
  await file.appendFile(Buffer.alloc(bytes, 0xa5));
  await file.datasync();
}
