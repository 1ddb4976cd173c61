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
