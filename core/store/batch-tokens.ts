import { crc32 } from "node:zlib";
import { MintmarkError } from "../errors.ts";
import { RECORD_VERSION } from "./binary.ts";

export const SHARDS = 256; // Shards of the index of tokens; the record is sorted by shard. A power of two.

export interface BatchTokens {
  readonly hashes: Uint32Array;
  readonly slots: Uint32Array;
}

/**
 * The record of a sealed batch that restores the index of tokens when the engine opens. Sorted by shard of the index,
 * then by slot. So all batches together fill one shard after another, each while it is in the processor's cache:
 *
 * ```
 * record = version:1 = 0x01 count*( hash:4 ) count*( slot:4 ) crc32:4
 * ```
 */
export function encodeBatchTokens({ hashes, slots }: BatchTokens): Buffer {
  const count = hashes.length;
  const record = Buffer.allocUnsafe(1 + 8 * count + 4);
  record[0] = RECORD_VERSION;
  const starts = new Uint32Array(SHARDS + 1);
  for (let i = 0; i < count; i++) {
    const shard = ((hashes[i] as number) & (SHARDS - 1)) + 1;
    starts[shard] = (starts[shard] as number) + 1;
  }
  for (let shard = 1; shard <= SHARDS; shard++)
    starts[shard] = (starts[shard] as number) + (starts[shard - 1] as number);
  for (let i = 0; i < count; i++) {
    const hash = hashes[i] as number;
    const shard = hash & (SHARDS - 1);
    const at = starts[shard] as number;
    starts[shard] = at + 1;
    record.writeUInt32BE(hash, 1 + 4 * at);
    record.writeUInt32BE(slots[i] as number, 1 + 4 * (count + at));
  }
  record.writeUInt32BE(crc32(record.subarray(0, record.length - 4)), record.length - 4);
  return record;
}

/** The inverse, in the order of the record. Throws `store_corrupt`. */
export function decodeBatchTokens(record: Buffer, name: string): BatchTokens {
  const count = (record.length - 5) / 8;
  const end = record.length - 4;
  const whole = Number.isInteger(count) && count >= 0 && record[0] === RECORD_VERSION;
  if (!whole || record.readUInt32BE(end) !== crc32(record.subarray(0, end)))
    throw new MintmarkError("store_corrupt", `The tokens of ${name} are not what the engine wrote.`);
  // Converts all to this machine's byte order at once. Single reads would take longer than the rest of opening.
  const words = Buffer.allocUnsafeSlow(8 * count);
  record.copy(words, 0, 1, end);
  const values = new Uint32Array(words.swap32().buffer);
  return { hashes: values.subarray(0, count), slots: values.subarray(count) };
}
