import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { invalid, MintmarkError } from "../errors.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The hash before the first entry. */
export const FIRST_HASH = Buffer.alloc(32);

/** The place of an entry. Without the key, nobody can move an entry to another place. */
export interface EntryPlace {
  readonly shard: string;
  readonly position: number;
  readonly epoch: number;
  /** {@link hashOf} the entry before; {@link FIRST_HASH} for the first. */
  readonly previous: Uint8Array;
}

/**
 * The keys that encrypt a journal, which holds secrets (webhook keys, hashes of API keys). The
 * first key encrypts; the others only decrypt. To replace a key, add the new one in front on every
 * server, and remove the old one when its entries are pruned.
 */
export class JournalKeys {
  readonly #keys: ReadonlyMap<number, Buffer>;
  readonly #first: number;

  /**
   * @param keys - 32 bytes each. The first byte of a key's SHA-256 names it, so two keys must not
   *   share it. Throws `validation_failed`.
   */
  constructor(keys: readonly Uint8Array[]) {
    const named = keys.map((key) => [nameOf(key), Buffer.from(key)] as const);
    this.#keys = new Map(named);
    this.#first = named[0]?.[0] ?? -1;
    const isSound =
      named.length > 0 &&
      named.length === this.#keys.size &&
      keys.every((key) => key.length === KEY_BYTES);
    if (!isSound) {
      const detail = "Give one or more different keys of 32 random bytes for the journal.";
      throw invalid(detail);
    }
  }

  /** `name:u8 nonce:12 ciphertext tag:16`, AES-256-GCM bound to the place. */
  seal(place: EntryPlace, entry: Uint8Array): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#keys.get(this.#first) as Buffer, nonce);
    cipher.setAAD(placeBytes(place));
    return Buffer.concat([
      Buffer.of(this.#first),
      nonce,
      cipher.update(entry),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
  }

  /**
   * Decrypts the entry of a place. Throws `store_corrupt` for another place or key, or changed
   * bytes.
   */
  open(place: EntryPlace, sealed: Buffer): Buffer {
    const key = this.#keys.get(sealed[0] ?? -1);
    const end = sealed.length - TAG_BYTES;
    if (key === undefined || end < 1 + NONCE_BYTES) throw unreadable(place);
    try {
      const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(1, 1 + NONCE_BYTES));
      decipher.setAAD(placeBytes(place)).setAuthTag(sealed.subarray(end));
      return Buffer.concat([
        decipher.update(sealed.subarray(1 + NONCE_BYTES, end)),
        decipher.final(),
      ]);
    } catch (cause) {
      throw unreadable(place, cause);
    }
  }
}

/** The hash of the journal up to an entry. */
export function hashOf(place: EntryPlace, sealed: Uint8Array): Buffer {
  return createHash("sha256").update(placeBytes(place)).update(sealed).digest();
}

function nameOf(key: Uint8Array): number {
  return createHash("sha256").update(key).digest()[0] as number;
}

function placeBytes({ shard, position, epoch, previous }: EntryPlace): Buffer {
  const numbers = Buffer.alloc(16);
  numbers.writeBigUInt64BE(BigInt(position), 0);
  numbers.writeBigUInt64BE(BigInt(epoch), 8);
  return Buffer.concat([numbers, previous, Buffer.from(shard)]);
}

function unreadable({ position }: EntryPlace, cause?: unknown): MintmarkError {
  const detail = `Entry ${position} of the journal cannot be read. Either MINTMARK_JOURNAL_KEYS lacks its key, or it was changed.`;
  return new MintmarkError("store_corrupt", detail, { cause });
}
