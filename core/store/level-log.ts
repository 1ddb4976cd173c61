import { ByteReader } from "./binary.ts";

/**
 * LevelDB's log of writes that are not in its tables yet. When LevelDB opens it, it silently drops
 * what it cannot read. So the log is read here first.
 *
 * ```
 * log    = blocks of 32 KiB; a block's last bytes are padding when no record's head fits there
 * record = crc32c of type and payload, masked(4) ‖ length(2) ‖ type(1) ‖ payload, integers little-endian
 * write  = the payload of one FULL record, or of a FIRST, any number of MIDDLE and a LAST
 *        = sequence(8) ‖ count(4) ‖ count operations
 * ```
 */
const BLOCK_BYTES = 32_768;
const HEAD_BYTES = 7;
const WRITE_HEAD_BYTES = 12;
const [FULL, FIRST, LAST] = [1, 2, 4]; // MIDDLE is 3
const CRC_MASK = 0xa282ead8;
/** CRC-32C of each byte; `node:zlib` has only the other CRC-32. */
const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  return crc;
});

interface LogWrite {
  readonly operations: Buffer;
  readonly next: bigint; // LevelDB's number of the first operation behind it
}

/** A log without a write that later ones follow. */
export class LogHole extends Error {
  override readonly name = "LogHole";
  constructor(at: number) {
    super(`the write at byte ${at} is damaged or missing, and later writes follow it`);
  }
}

/**
 * The writes of a log in order, up to its end or to a torn last write. A crash cut that one short,
 * and nobody got its acknowledgement. Writes go to disk one after another, so a damaged write
 * before another one had been acknowledged.
 *
 * @param expected - the sequence of the first write; undefined for any
 * @throws LogHole
 */
export function* readLog(log: Buffer, expected?: bigint): Generator<LogWrite, void, void> {
  for (let at = 0; at < log.length; ) {
    const { payload, end } = readPayload(log, at);
    if (payload === null) {
      if (laterWrite(log, end, expected)) throw new LogHole(end);
      return;
    }
    const sequence = payload.length < WRITE_HEAD_BYTES ? null : payload.readBigUInt64LE(0);
    if (sequence === null || (expected !== undefined && sequence !== expected))
      throw new LogHole(at);
    expected = sequence + BigInt(payload.readUInt32LE(8));
    yield { operations: payload.subarray(WRITE_HEAD_BYTES), next: expected };
    at = end;
  }
}

/**
 * The payload that begins at a position, from one record or several, and its end; null where a
 * record is missing.
 */
function readPayload(
  log: Buffer,
  start: number,
): { readonly payload: Buffer | null; readonly end: number } {
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    const record = readRecord(log, at);
    const begins = record?.type === FULL || record?.type === FIRST;
    if (record === null || begins !== (parts.length === 0)) return { payload: null, end: at };
    parts.push(record.payload);
    at = recordStart(record.end);
    if (record.type === FULL || record.type === LAST)
      return { payload: Buffer.concat(parts), end: at };
  }
}

function recordStart(at: number): number {
  const left = BLOCK_BYTES - (at % BLOCK_BYTES);
  return left < HEAD_BYTES ? at + left : at;
}

/** The record at a position; null when there is none. */
function readRecord(log: Buffer, at: number) {
  const type = log[at + 6];
  if (type === undefined || type < FULL || type > LAST) return null;
  const start = at + HEAD_BYTES;
  const end = start + log.readUInt16LE(at + 4);
  const blockEnd = at - (at % BLOCK_BYTES) + BLOCK_BYTES;
  if (end > log.length || end > blockEnd) return null;
  const crc = crc32c(log.subarray(at + 6, end));
  const masked = (((crc >>> 15) | (crc << 17)) + CRC_MASK) >>> 0;
  return log.readUInt32LE(at) === masked ? { type, payload: log.subarray(start, end), end } : null;
}

function crc32c(bytes: Uint8Array): number {
  let crc = -1;
  for (let at = 0; at < bytes.length; at++)
    crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ (bytes[at] as number)) & 0xff]!;
  return ~crc;
}

/**
 * Whether another write follows, at a byte or later. Damage can hide where records begin, so this
 * tries every byte.
 */
function laterWrite(log: Buffer, from: number, expected: bigint | undefined): boolean {
  for (let at = from; at + HEAD_BYTES + WRITE_HEAD_BYTES <= log.length; at++) {
    const type = log[at + 6];
    if (type !== FULL && type !== FIRST) continue;
    const record = readRecord(log, at);
    if (record === null || record.payload.length < WRITE_HEAD_BYTES) continue;
    if (expected === undefined || record.payload.readBigUInt64LE(0) >= expected) return true;
  }
  return false;
}

/** The keys that a write puts, in order. */
export function* putKeys({ operations }: LogWrite): Generator<Buffer, void, void> {
  const reader = new ByteReader(operations);
  while (!reader.ended) {
    const isPut = reader.varint() === 1;
    const key = reader.bytes(reader.varint());
    if (!isPut) continue;
    reader.skip(reader.varint());
    yield key;
  }
}

/** Fields of a manifest's record: a tag, then numbers `n`, byte strings `b` or keys `k`. */
const MANIFEST_FIELDS: Readonly<Record<number, string>> = {
  1: "b",
  2: "n",
  3: "n",
  4: "n",
  5: "nb",
  6: "nn",
  7: "nnnkk",
  9: "n",
};
const LOG_NUMBER = 2;

interface Manifest {
  /** The number of the oldest log with writes that are not in tables; null without one. */
  readonly oldestLog: number | null;
  /** The least and the greatest key of each table, also of tables that were merged since. */
  readonly tableKeys: readonly Buffer[];
}

/**
 * Reads a manifest, which has the format of a log. LevelDB trusts a truncated one, and then deletes
 * or overwrites the tables that it lacks.
 */
export function readManifest(manifest: Buffer): Manifest {
  let oldestLog: number | null = null;
  const tableKeys: Buffer[] = [];
  for (let at = 0; ; ) {
    const { payload, end } = readPayload(manifest, at);
    if (payload === null) return { oldestLog, tableKeys };
    at = end;
    const reader = new ByteReader(payload);
    while (!reader.ended) {
      const tag = reader.varint();
      for (const kind of MANIFEST_FIELDS[tag] ?? "") {
        const value = reader.varint();
        if (kind === "k") tableKeys.push(reader.bytes(value));
        else if (kind === "b") reader.skip(value);
        else if (tag === LOG_NUMBER) oldestLog = value;
      }
    }
  }
}
