import { createHmac, timingSafeEqual } from "node:crypto";
import { MintmarkError } from "../errors.ts";

const TAG_BYTES = 16;
const POSITION_BYTES = 8;

/**
 * Makes and reads the cursors of pages. A cursor says where the next page starts. It is opaque, and
 * valid only for the list, application and filters that it was made for. Base64url of:
 *
 * ```
 * cursor = position(8) ‖ HMAC-SHA-256(secret, position ‖ scope) cut to 16 bytes
 * ```
 */
export class Cursors {
  readonly #secret: Buffer;

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  /** @param scope - everything that the cursor is bound to */
  issue(position: number, scope: string): string {
    const bytes = Buffer.alloc(POSITION_BYTES);
    bytes.writeBigUInt64BE(BigInt(position));
    return Buffer.concat([bytes, this.#tag(bytes, scope)]).toString("base64url");
  }

  /** The position, or null without a cursor. Throws `cursor_invalid`. */
  read(cursor: string | undefined, scope: string): number | null {
    if (cursor === undefined) return null;
    const bytes = Buffer.from(String(cursor), "base64url");
    const canonical =
      bytes.toString("base64url") === cursor && bytes.length === POSITION_BYTES + TAG_BYTES;
    if (!canonical) throw new MintmarkError("cursor_invalid");
    const position = bytes.subarray(0, POSITION_BYTES);
    if (!timingSafeEqual(bytes.subarray(POSITION_BYTES), this.#tag(position, scope)))
      throw new MintmarkError("cursor_invalid");
    return Number(position.readBigUInt64BE());
  }

  #tag(position: Buffer, scope: string): Buffer {
    return createHmac("sha256", this.#secret)
      .update(position)
      .update(scope)
      .digest()
      .subarray(0, TAG_BYTES);
  }
}
