import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MintmarkError } from "../../core/index.ts";
import { MAX_DEPTH, parseJson } from "../../core/mint/json.ts";
import { AsciiWriter, BufferPool } from "../../server/http/wire/buffers.ts";

const read = (text: string) => parseJson(new TextEncoder().encode(text));

function issuesOf(text: string): readonly string[] {
  try {
    read(text);
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
    expect(error.code).toBe("malformed_json");
    return error.issues.map(
      ({ pointer, detail }) => `${pointer} ${detail.split(" ", 3).join(" ")}`,
    );
  }
  throw new Error(`accepted ${text}`);
}

describe("a body is read exactly or refused", () => {
  test.each([
    ['{"amount":9007199254740993}', "/amount 9007199254740993 cannot be"],
    ['{"amount":9007199254740992}', "/amount 9007199254740992 cannot be"],
    ['{"amount":-9007199254740992}', "/amount -9007199254740992 cannot be"],
    ['[{"a/b":1.0000000000000001}]', "/0/a~1b 1.0000000000000001 cannot be"],
    ["[1,1e400]", "/1 1e400 cannot be"],
    ["[1e-400]", "/0 1e-400 cannot be"],
    ['{"a":{"b":1,"b":1}}', "/a/b The key occurs"],
    ['{"a":1,"\\u0061":2}', "/a The key occurs"],
    ['{"a":":","a":2}', "/a The key occurs"],
    ['{"a":1,"a":1e8}', "/a The key occurs"],
    ['{"__proto__":{}}', "/__proto__ The key __proto__"],
    ['{"\\u005f_proto__":{}}', "/__proto__ The key __proto__"],
    ['{"a\\"b":1}', '/a"b The key has'],
    ['{"\\ud800":1}', "/\ud800 The key has"],
    ['{"Gr\\u00f6\\u00dfe":1,"Größe":2}', "/Größe The key occurs"],
  ])("%s is refused", (text, issue) => {
    expect(issuesOf(text)).toEqual([issue]);
  });

  // PHP's json_encode and Python's json.dumps write keys like these.
  test.each([
    [
      '{"name":"x","properties":{"Gr\\u00f6\\u00dfe":"L"}}',
      { name: "x", properties: { Größe: "L" } },
    ],
    ['{"a\\/b":1,"a":[{"\\ud83d\\ude00":2}]}', { "a/b": 1, a: [{ "😀": 2 }] }],
  ])("%s is read by its unescaped keys", (text, value) => {
    expect(read(text)).toEqual(value);
  });

  test("nesting is bounded", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    expect(read(nested(MAX_DEPTH))).toBeInstanceOf(Array);
    expect(() => read(nested(MAX_DEPTH + 1))).toThrow("deeper");
    expect(() => read(nested(200_000))).toThrow("deeper");
  });

  test("a string of a million characters or escapes passes the slow reader", () => {
    for (const text of ["a".repeat(1_000_000), "\\".repeat(1_000_000), '":,1.5e'.repeat(100_000)]) {
      expect(read(JSON.stringify([text]))).toEqual([text]);
    }
  });
});

type Piece =
  | readonly ["decimal", number]
  | readonly ["text", string]
  | readonly ["bytes" | "hex" | "slice", Uint8Array];

const bytes = fc.uint8Array({ maxLength: 300 });
const pieces: fc.Arbitrary<readonly Piece[]> = fc.array(
  fc.oneof(
    fc.tuple(
      fc.constant("decimal" as const),
      fc.oneof(
        fc.maxSafeNat(),
        fc.nat(),
        fc.constantFrom(0, 9, 10, 999_999_999, 1_000_000_000, 2 ** 53 - 1),
      ),
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
