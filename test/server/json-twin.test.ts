import fc from "fast-check";
import { expect, test } from "vitest";
import { MintmarkError } from "../../core/index.ts";
import { MAX_DEPTH, parseJson } from "../../core/mint/json.ts";

/** Why the plain reader takes no further character. */
class Refused extends Error {}

/**
 * RFC 8259 and what docs/api.md asks beyond it, one character after another: the naive twin of
 * `parseJson`.
 */
class PlainReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): unknown {
    const value = this.#value(1);
    if (this.#at < this.#text.length) throw new Refused();
    return value;
  }

  #value(depth: number): unknown {
    this.#take(/[ \t\n\r]*/y);
    const value = this.#bare(depth);
    this.#take(/[ \t\n\r]*/y);
    return value;
  }

  #bare(depth: number): unknown {
    const next = this.#text[this.#at];
    if (next === "{" || next === "[") {
      if (depth > MAX_DEPTH) throw new Refused();
      return next === "{" ? this.#object(depth) : this.#array(depth);
    }
    if (next === '"') return JSON.parse(this.#string());
    const word = this.#take(/true|false|null/y);
    if (word !== null) return JSON.parse(word);
    const number = this.#take(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (number === null || !isExact(number)) throw new Refused();
    return Number(number);
  }

  #object(depth: number): unknown {
    const fields = new Map<string, unknown>();
    this.#list("}", () => {
      this.#take(/[ \t\n\r]*/y);
      const key: string = JSON.parse(this.#string());
      if (JSON.stringify(key).includes("\\") || key === "__proto__" || fields.has(key))
        throw new Refused();
      if (this.#take(/[ \t\n\r]*:/y) === null) throw new Refused();
      fields.set(key, this.#value(depth + 1));
    });
    return Object.fromEntries(fields);
  }

  #array(depth: number): unknown {
    const items: unknown[] = [];
    this.#list("]", () => items.push(this.#value(depth + 1)));
    return items;
  }

  #list(end: string, item: () => void): void {
    this.#at += 1;
    this.#take(/[ \t\n\r]*/y);
    if (this.#text[this.#at] !== end) {
      do item();
      while (this.#take(/,/y) !== null);
    }
    if (this.#text[this.#at] !== end) throw new Refused();
    this.#at += 1;
  }

  #string(): string {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a string must not hold them as they are.
    const literal = this.#take(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    if (literal === null) throw new Refused();
    return literal;
  }

  #take(pattern: RegExp): string | null {
    const sticky = new RegExp(pattern);
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.#text)?.[0] ?? null;
    this.#at += found?.length ?? 0;
    return found;
  }
}

/**
 * Whether a double says the same as the literal, and no other whole number could have been meant.
 */
function isExact(literal: string): boolean {
  const number = Number(literal);
  const [, whole = "0", fraction = "", exponent = "0"] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
  if (literal.length > 64 || !Number.isFinite(number)) return false;
  if (Number.isInteger(number) && !Number.isSafeInteger(number)) return false;
  if (/^0*$/.test(whole + fraction)) return true;
  if (Math.abs(Number(exponent)) > 1_000) return false;
  const scaled =
    BigInt(whole + fraction) * 10n ** BigInt(2_000 + Number(exponent) - fraction.length);
  const [digits = "", power = "0"] = String(Math.abs(number)).split("e");
  const [before = "", behind = ""] = digits.split(".");
  return scaled === BigInt(before + behind) * 10n ** BigInt(2_000 + Number(power) - behind.length);
}

function plainly(body: Uint8Array): { value: unknown } | null {
  try {
    return {
      value: new PlainReader(
        new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body),
      ).whole(),
    };
  } catch (error) {
    if (error instanceof Refused || error instanceof TypeError) return null;
    throw error;
  }
}

function quickly(body: Uint8Array): { value: unknown } | null {
  try {
    return { value: parseJson(body) };
  } catch (error) {
    if (error instanceof MintmarkError && error.code === "malformed_json") return null;
    throw error;
  }
}

const keys = [
  "a",
  "ab",
  "é",
  "𐀀",
  "__proto__",
  "constructor",
  "0",
  "",
  ":",
  "a\\u0062",
  "\\u005f_proto__",
  '\\"',
];
const literals = [
  "0",
  "-0",
  "7",
  "1000",
  "1e3",
  "1E+3",
  "12e2",
  "1e7",
  "1e15",
  "1.0",
  "0.1",
  "1e-7",
  "5e-324",
  "1e400",
];
const long = [
  "9007199254740991",
  "9007199254740993",
  "123456789012345678",
  "1".repeat(70),
  `0.${"3".repeat(20)}`,
  "0e999999",
];
const texts = [
  '""',
  '"a"',
  '"é𐀀"',
  '"\\u0000"',
  '"\\ud800"',
  '":,{\\"a\\":1"',
  '"1e3"',
  "true",
  "false",
  "null",
];
const gap = fc.constantFrom("", "", "", "", " ", "\n", "\t", "\u00a0", "\ufeff", "\u0000");

const json: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(...literals, ...long, ...texts),
    fc.nat().map(String),
    // A number that is shorter than what it says, by about as much as a field that occurs twice
    // makes the text longer.
    fc
      .tuple(fc.constantFrom("a", "ab"), fc.nat(9), fc.integer({ min: 7, max: 10 }))
      .map(([key, value, zeros]) => {
        return `{"${key}":${value},"${key}":1e${zeros}}`;
      }),
    fc
      .tuple(gap, fc.array(tie("value"), { maxLength: 4 }))
      .map(([g, items]) => `[${items.join(`${g},`)}${g}]`),
    fc
      .tuple(
        gap,
        fc.array(fc.tuple(fc.constantFrom(...keys.slice(0, 2), ...keys), tie("value")), {
          maxLength: 4,
        }),
      )
      .map(
        ([g, fields]) => `{${fields.map(([key, value]) => `"${key}"${g}:${value}`).join(`,${g}`)}}`,
      ),
    fc
      .tuple(
        fc.integer({ min: MAX_DEPTH - 3, max: MAX_DEPTH + 1 }),
        fc.constantFrom("[]", '{"a":', "[1,"),
      )
      .map(([depth, one]) => {
        const open = one === "[]" ? "[" : one;
        return `${open.repeat(depth)}1${(one.startsWith("{") ? "}" : "]").repeat(depth)}`;
      }),
  ),
})).value;

/**
 * Characters that mean something, and bytes that are no UTF-8: an end too early, an overlong one, a
 * surrogate.
 */
const pieces = [...'{}[]",:\\eE.-019 ', "\n", "\u00e9"].map((text) => Buffer.from(text));
const broken = [
  [0xff],
  [0xc3],
  [0x80],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0],
].map(Buffer.from);
const damage = fc.record({
  at: fc.nat(),
  cut: fc.nat(2),
  put: fc.constantFrom(...pieces, ...broken, Buffer.alloc(0)),
});

test("any bytes give the same result or refusal as the plain reader", () => {
  fc.assert(
    fc.property(json, fc.array(damage, { maxLength: 2 }), (text, damages) => {
      let body = Buffer.from(text);
      for (const { at, cut, put } of damages) {
        const start = at % (body.length + 1);
        body = Buffer.concat([body.subarray(0, start), put, body.subarray(start + cut)]);
      }
      expect(quickly(body)).toEqual(plainly(body));
    }),
    { numRuns: 5_000 },
  );
});
