import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MintmarkError } from "../../core/index.ts";
import { MAX_DEPTH, parseJson } from "../../core/mint/json.ts";

const read = (text: string) => parseJson(new TextEncoder().encode(text));

function issuesOf(text: string): readonly string[] {
  try {
    read(text);
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
    expect(error.code).toBe("malformed_json");
    return error.issues.map(({ pointer, detail }) => `${pointer} ${detail.split(" ", 3).join(" ")}`);
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
    ['{"a":1,"\\u0061":2}', "/\\u0061 The key is"],
    ['{"a":":","a":2}', "/a The key occurs"],
    ['{"a":1,"a":1e8}', "/a The key occurs"],
    ['{"__proto__":{}}', "/__proto__ The key __proto__"],
    ['{"\\u005f_proto__":{}}', "/\\u005f_proto__ The key is"],
  ])("%s is refused", (text, issue) => {
    expect(issuesOf(text)).toEqual([issue]);
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

/** JSON text of random values whose keys often repeat or need an escape; with it, how many do. Naive twin of the checks of keys. */
interface Written {
  readonly text: string;
  readonly bad: number;
}

const KEYS = ["a", "b", ":", '"', "\\"];
const ESCAPED = ['"', "\\"];

function badKeys(keys: readonly string[]): number {
  const plain = keys.filter((key) => !ESCAPED.includes(key));
  return keys.length - new Set(plain).size;
}

const space = fc.constantFrom("", "", " ");

const written: fc.Arbitrary<Written> = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc
      .oneof(
        fc.maxSafeInteger(),
        fc.boolean(),
        fc.constant(null),
        fc.string(),
        fc.constantFrom(":", '"a":', "\\", '\\"'),
      )
      .map((value) => ({ text: JSON.stringify(value), bad: 0 })),
    // Shorter than what they say, by as much as another field may be long.
    fc.constantFrom("1e3", "1e7", "12e8", "1e15", "1.0", "-0").map((text) => ({ text, bad: 0 })),
    fc.tuple(space, fc.array(tie("value"), { maxLength: 4 })).map(([gap, items]) => ({
      text: `[${items.map(({ text }) => text).join(`${gap},${gap}`)}]`,
      bad: items.reduce((sum, { bad }) => sum + bad, 0),
    })),
    fc
      .tuple(space, fc.array(fc.tuple(fc.constantFrom(...KEYS), tie("value")), { maxLength: 4 }))
      .map(([gap, fields]) => ({
        text: `{${fields.map(([key, { text }]) => `${JSON.stringify(key)}${gap}:${gap}${text}`).join(",")}}`,
        bad: badKeys(fields.map(([key]) => key)) + fields.reduce((sum, [, { bad }]) => sum + bad, 0),
      })),
  ),
})).value;

test("accepted text gives the value of JSON.parse, and all bad keys are found", () => {
  fc.assert(
    fc.property(written, ({ text, bad }) => {
      if (bad === 0) expect(read(text)).toEqual(JSON.parse(text));
      else expect(issuesOf(text)).toHaveLength(bad);
    }),
    { numRuns: 2000 },
  );
});

test("a number is accepted if and only if it can be written back", () => {
  const digits = fc.stringMatching(/^(?:0|[1-9]\d{0,20})(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?$/);
  // The twin compares values as fractions of powers of ten, in bigint.
  const value = (literal: string) => {
    const [, whole = "0", fraction = "", exponent = "0"] = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
    return BigInt(whole + fraction) * 10n ** BigInt(2000 + Number(exponent) - fraction.length);
  };
  fc.assert(
    fc.property(digits, (literal) => {
      const number = Number(literal);
      const unsafe = Number.isInteger(number) && !Number.isSafeInteger(number);
      const exact = Number.isFinite(number) && !unsafe && value(literal) === value(String(number));
      if (exact) expect(read(literal)).toBe(number);
      else expect(issuesOf(literal)).toHaveLength(1);
    }),
    { numRuns: 1000 },
  );
});
