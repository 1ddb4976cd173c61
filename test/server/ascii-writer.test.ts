import fc from "fast-check";
import { expect, test } from "vitest";
import { AsciiWriter } from "../../server/http/wire/ascii-writer.ts";
import { BufferPool } from "../../server/http/wire/buffer-pool.ts";

type Piece =
  | readonly ["decimal", number]
  | readonly ["text", string]
  | readonly ["bytes" | "hex" | "slice", Uint8Array];

const bytes = fc.uint8Array({ maxLength: 300 });
const pieces: fc.Arbitrary<readonly Piece[]> = fc.array(
  fc.oneof(
    fc.tuple(
      fc.constant("decimal" as const),
      fc.oneof(fc.maxSafeNat(), fc.nat(), fc.constantFrom(0, 9, 10, 999_999_999, 1_000_000_000, 2 ** 53 - 1)),
    ),
    fc.tuple(fc.constant("text" as const), fc.string({ unit: "grapheme-ascii", maxLength: 300 })),
    fc.tuple(fc.constantFrom("bytes" as const, "hex" as const, "slice" as const), bytes),
  ),
  { maxLength: 50 },
);

function plain([kind, value]: Piece): string {
  if (kind === "decimal" || kind === "text") return String(value);
  return Buffer.from(value).toString(kind === "hex" ? "hex" : "latin1");
}

function write(writer: AsciiWriter, [kind, value]: Piece): void {
  writer.reserve(600);
  if (kind === "decimal") writer.decimal(value);
  else if (kind === "text") writer.text(value);
  else if (kind === "bytes") writer.bytes(value);
  else writer[kind](value, 0, value.length);
}

test("pieces written one by one give their text, whatever the buffer held before", () => {
  const buffers = new BufferPool();
  fc.assert(
    fc.property(pieces, fc.constantFrom(0, 70_000), (some, expected) => {
      const writer = new AsciiWriter(buffers, expected);
      for (const piece of some) write(writer, piece);
      expect(writer.written().toString("latin1")).toBe(some.map(plain).join(""));
      writer.release();
    }),
    { numRuns: 500 },
  );
});

test("a buffer is reused once released, by one user at a time, within a limit", () => {
  const buffers = new BufferPool();
  const room = buffers.take(100_000);
  expect(buffers.take(100_000)).not.toBe(room);
  buffers.give(room);
  expect(buffers.take(200_000)).not.toBe(room);
  expect(buffers.take(90_000)).toBe(room);
  const many = Array.from({ length: 40 }, () => buffers.take(2 ** 20));
  for (const one of many) buffers.give(one);
  const again = many.map(() => buffers.take(2 ** 20)).filter((one) => many.includes(one));
  expect(again).toHaveLength(32);
});
