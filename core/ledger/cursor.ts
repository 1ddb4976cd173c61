import { createHmac, timingSafeEqual } from "node:crypto";
import { MintmarkError } from "../errors.ts";

const TAG_BYTES = 16;
const NUMBER_BYTES = 8;

/** Where a page of a list ends: one number, or several where a list consists of lists. */
export type CursorPosition = number | readonly number[];

/**
 * Makes and reads the cursors of pages. A cursor says where the next page starts. It is opaque, and
 * valid only for the list, application and filters that it was made for. Base64url of:
 *
 * ```
 * cursor = position(8 each number) ‖ HMAC-SHA-256(secret, position ‖ scope) cut to 16 bytes
 * ```
 */
export class Cursors {
  readonly #secret: Buffer;

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  /** @param scope - everything that the cursor is bound to */
  issue(position: CursorPosition, scope: string): string {
    const numbers = [position].flat();
    const bytes = Buffer.alloc(NUMBER_BYTES * numbers.length);
    for (const [i, number] of numbers.entries())
      bytes.writeBigUInt64BE(BigInt(number), i * NUMBER_BYTES);
    return Buffer.concat([bytes, this.#tag(bytes, scope)]).toString("base64url");
  }

  /** The position, or null without a cursor. Throws `cursor_invalid`. */
  read<P extends CursorPosition = number>(cursor: string | undefined, scope: string): P | null {
    if (cursor === undefined) return null;
    const bytes = Buffer.from(String(cursor), "base64url");
    const count = (bytes.length - TAG_BYTES) / NUMBER_BYTES;
    const canonical =
      bytes.toString("base64url") === cursor && Number.isInteger(count) && count > 0;
    if (!canonical) throw new MintmarkError("cursor_invalid");
    const position = bytes.subarray(0, -TAG_BYTES);
    if (!timingSafeEqual(bytes.subarray(-TAG_BYTES), this.#tag(position, scope)))
      throw new MintmarkError("cursor_invalid");
    const numbers = Array.from({ length: count }, (_, i) =>
      Number(position.readBigUInt64BE(i * NUMBER_BYTES)),
    );
    // The scope names the list, so the tag vouches that it has as many numbers as were issued.
    return (count === 1 ? numbers[0] : numbers) as P;
  }

  #tag(position: Buffer, scope: string): Buffer {
    return createHmac("sha256", this.#secret)
      .update(position)
      .update(scope)
      .digest()
      .subarray(0, TAG_BYTES);
  }
}
