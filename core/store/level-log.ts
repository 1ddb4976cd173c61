/**
 * LevelDB's log of writes that are not in its tables yet. When LevelDB opens it, it silently drops what it cannot read.
 * So the log is read here first.
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
const [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4];
const CRC_MASK = 0xa282ead8;
/** CRC-32C of each byte; `node:zlib` has only the other CRC-32. */
const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  return crc;
});

/** One atomic write. */
interface LogWrite {
  readonly sequence: bigint; // LevelDB's number of its first operation. Writes have consecutive ranges.
  readonly operations: Buffer;
  readonly next: bigint;
}

/** A log without a write that later ones follow. */
export class LogHole extends Error {
  override readonly name = "LogHole";
  constructor(at: number) {
    super(`the write at byte ${at} is damaged or missing, and later writes follow it`);
  }
}

/**
 * The writes of a log in order, up to its end or to a torn last write. A crash cut that one short, and nobody got its
 * acknowledgement. Writes go to disk one after another, so a damaged write before another one had been acknowledged.
 *
 * @param expected - the sequence of the first write; undefined for any
 * @throws LogHole
 */
export function* readLog(log: Buffer, expected?: bigint): Generator<LogWrite, void, void> {
  let parts: Buffer[] = [];
  let began = 0;
  for (let at = 0; ; ) {
    at = recordStart(at);
    if (at >= log.length) return;
    const record = readRecord(log, at);
    const begins = record?.type === FULL || record?.type === FIRST;
    if (record === null || begins !== (parts.length === 0)) {
      if (laterWrite(log, at, expected)) throw new LogHole(at);
      return;
    }
    if (begins) began = at;
    parts.push(record.payload);
    at = record.end;
    if (record.type === FIRST || record.type === MIDDLE) continue;
    const write = readWrite(parts.length === 1 ? record.payload : Buffer.concat(parts));
    if (write === null || (expected !== undefined && write.sequence !== expected)) throw new LogHole(began);
    parts = [];
    expected = write.next;
    yield write;
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

function readWrite(bytes: Buffer): LogWrite | null {
  if (bytes.length < WRITE_HEAD_BYTES) return null;
  const sequence = bytes.readBigUInt64LE(0);
  return { sequence, operations: bytes.subarray(WRITE_HEAD_BYTES), next: sequence + BigInt(bytes.readUInt32LE(8)) };
}

function crc32c(bytes: Uint8Array): number {
  let crc = -1;
  for (let at = 0; at < bytes.length; at++)
    crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ (bytes[at] as number)) & 0xff] as number);
  return ~crc;
}

/** Whether another write follows, at a byte or later. Damage can hide where records begin, so this tries every byte. */
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
  const reader = new FieldReader(operations);
  while (!reader.atEnd) {
    const isPut = reader.number() === 1;
    const key = reader.bytes();
    if (!isPut) continue;
    reader.bytes();
    yield key;
  }
}

/** Fields of a manifest's record: a tag, then numbers `n` or byte strings `b`. */
const MANIFEST_FIELDS: Readonly<Record<number, string>> = {
  1: "b",
  2: "n",
  3: "n",
  4: "n",
  5: "nb",
  6: "nn",
  7: "nnnbb",
  9: "n",
};
const LOG_NUMBER = 2;

/**
 * The number of the oldest log with writes that are not in tables, from a manifest; null without one. A manifest has
 * the format of a log. LevelDB trusts a truncated one, and then deletes or overwrites the tables that it lacks.
 */
export function oldestLog(manifest: Buffer): number | null {
  let parts: Buffer[] = [];
  let number: number | null = null;
  for (let at = 0; ; ) {
    const record = readRecord(manifest, recordStart(at));
    if (record === null) return number;
    at = record.end;
    parts.push(record.payload);
    if (record.type === FIRST || record.type === MIDDLE) continue;
    const reader = new FieldReader(Buffer.concat(parts));
    parts = [];
    while (!reader.atEnd) {
      const tag = reader.number();
      for (const kind of MANIFEST_FIELDS[tag] ?? "") {
        if (kind === "b") reader.bytes();
        else if (tag === LOG_NUMBER) number = reader.number();
        else reader.number();
      }
    }
  }
}

/** Reads LevelDB's varints, and byte strings after their length. */
class FieldReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  get atEnd(): boolean {
    return this.#at >= this.#data.length;
  }

  number(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#data[this.#at++] ?? 0;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  bytes(): Buffer {
    const length = this.number();
    this.#at += length;
    return this.#data.subarray(this.#at - length, this.#at);
  }
}
