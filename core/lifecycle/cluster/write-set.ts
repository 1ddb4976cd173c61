import { MintmarkError } from "../../errors.ts";
import type { StoreOperation } from "../../store/ports.ts";

/** Bytes before each operation's key: whether it puts, and the lengths of key and value. */
const HEADER = 7;

/**
 * Encodes one atomic write. Each operation is `put:u8 key:u16 value:u32`, big-endian, then key and value. Inverse of
 * {@link decodeWrites}.
 */
export function encodeWrites(operations: readonly StoreOperation[]): Buffer {
  let length = 0;
  for (const one of operations) length += HEADER + one.key.length + (one.type === "put" ? one.value.length : 0);
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const one of operations) {
    const value = one.type === "put" ? one.value : null;
    bytes[at] = value === null ? 0 : 1;
    bytes.writeUInt16BE(one.key.length, at + 1);
    bytes.writeUInt32BE(value?.length ?? 0, at + 3);
    bytes.set(one.key, at + HEADER);
    if (value !== null) bytes.set(value, at + HEADER + one.key.length);
    at += HEADER + one.key.length + (value?.length ?? 0);
  }
  return bytes;
}

/** Decodes {@link encodeWrites}. Keys and values share the bytes' memory. Throws `store_corrupt`. */
export function decodeWrites(bytes: Buffer): StoreOperation[] {
  const operations: StoreOperation[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < HEADER) throw damaged();
    const kind = bytes[at];
    const keyEnd = at + HEADER + bytes.readUInt16BE(at + 1);
    const end = keyEnd + bytes.readUInt32BE(at + 3);
    const key = bytes.subarray(at + HEADER, keyEnd);
    if (end > bytes.length || key.length === 0 || (kind !== 1 && (kind !== 0 || end !== keyEnd))) throw damaged();
    operations.push(kind === 1 ? { type: "put", key, value: bytes.subarray(keyEnd, end) } : { type: "del", key });
    at = end;
  }
  return operations;
}

function damaged(): MintmarkError {
  return new MintmarkError("store_corrupt", "An entry of the cluster's journal is damaged.");
}
