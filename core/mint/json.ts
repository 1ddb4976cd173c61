import { isUtf8 } from "node:buffer";
import { type Issue, MAX_ISSUES, MintmarkError } from "../errors.ts";

/** Deepest nesting of arrays and objects in a body; the API's own bodies have five levels. */
export const MAX_DEPTH = 32;

/** A number that JSON.parse may change: with a fraction or an exponent, even inside a string. */
const FRACTION_OR_EXPONENT = /(?:^|[:,[\s])-?\d+[.eE]/;
const COLON = 0x3a;
/**
 * Longer number literals are refused unread: no amount needs them, and comparing them is expensive.
 */
const MAX_LITERAL = 64;

/**
 * Parses a JSON body without changing its meaning. Beyond RFC 8259 it refuses, with
 * `malformed_json`: bytes that are not UTF-8, a repeated key in one object, the key `__proto__`, a
 * key with a quote, a backslash or a control character, a number that JavaScript would round, and
 * nesting past `MAX_DEPTH`.
 *
 * A body without white space goes through JSON.parse and a length check. Others get a cheap check
 * that can only err towards suspicion; a slow, exact scanner reads suspects again and names each
 * bad place.
 */
export function parseJson(body: Uint8Array): unknown {
  if (!isUtf8(body)) throw new MintmarkError("malformed_json", "The body is not UTF-8.");
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // V8 quotes the surrounding text, which could be secret. The position is enough.
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
    throw new MintmarkError(
      "malformed_json",
      `The body is not JSON${position ? ` (at character ${position})` : ""}.`,
    );
  }
  const census: Census = { keys: 0, suspicious: text.includes("\\") };
  const length = shortestLength(value, 1, census);
  if (!census.suspicious && length === text.length) return value;
  // Each key has one colon. Equal numbers of keys and colons mean that no repeated key was dropped.
  if (census.suspicious || FRACTION_OR_EXPONENT.test(text) || census.keys !== colons(body)) {
    const { issues, plain } = inspect(text);
    if (issues.length > 0) throw new MintmarkError("malformed_json", undefined, { issues });
    // V8 of Node 24 can confuse a key that has an escape with another that starts alike.
    if (plain !== text) value = JSON.parse(plain);
    shortestLength(value, 1, census);
  }
  return value;
}

/**
 * The number of a parsed value's keys, and whether it has something that parsing may have changed.
 */
interface Census {
  keys: number;
  suspicious: boolean;
}

/**
 * The length of the shortest JSON text of `value`, in UTF-16 units; NaN when another text could be
 * shorter: see below. A text of this length without a backslash lost nothing in parsing: white
 * space, a repeated key, or a number's rounded digits would all have made it longer.
 *
 * Only exponents make a text shorter than the digits of a whole number, from three zeros on: `1e3`.
 * So such numbers give NaN. Fractions, numbers past 2^53 and the key `__proto__` are suspicious.
 * `MAX_DEPTH` bounds the recursion.
 */
function shortestLength(value: unknown, depth: number, census: Census): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value === "number") return lengthOfNumber(value, census);
  if (typeof value === "boolean") return value ? 4 : 5;
  if (typeof value !== "object" || value === null) return 4;
  if (depth > MAX_DEPTH)
    throw new MintmarkError(
      "malformed_json",
      `The body is nested deeper than ${MAX_DEPTH} levels.`,
    );
  let length = 1;
  if (Array.isArray(value)) {
    for (const item of value) length += 1 + shortestLength(item, depth + 1, census);
    return Math.max(2, length);
  }
  for (const key in value) {
    census.keys += 1;
    if (key === "__proto__") census.suspicious = true;
    // Two quotes, a colon, and a comma or the closing brace.
    length +=
      key.length + 4 + shortestLength((value as Record<string, unknown>)[key], depth + 1, census);
  }
  return Math.max(2, length);
}

function lengthOfNumber(value: number, census: Census): number {
  if (value >= 0 && value < 10 && Number.isInteger(value)) return 1;
  const isWhole = Number.isSafeInteger(value);
  if (!isWhole) census.suspicious = true;
  if (!isWhole || value % 1000 === 0) return Number.NaN;
  let length = value < 0 ? 2 : 1;
  for (let bound = 10; Math.abs(value) >= bound; bound *= 10) length += 1;
  return length;
}

function colons(body: Uint8Array): number {
  let found = 0;
  for (let at = body.indexOf(COLON); at !== -1; at = body.indexOf(COLON, at + 1)) found += 1;
  return found;
}

/**
 * One token of valid JSON; of a string, the opening quote, because a long match would exhaust the
 * stack.
 */
const TOKEN = /["{}[\],:]|-?\d[\d.eE+-]*|true|false|null/g;

function* tokens(text: string): Generator<readonly [token: string, start: number]> {
  const pattern = new RegExp(TOKEN);
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    if (match[0] !== '"') {
      yield [match[0], match.index];
      continue;
    }
    pattern.lastIndex = endOfString(text, match.index);
    yield [text.slice(match.index, pattern.lastIndex), match.index];
  }
}

/**
 * Position after the string that opens at `start`: an even number of backslashes precedes its
 * closing quote.
 */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); ; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === "\\") backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
  }
}

type Frame = { readonly keys: Set<string>; key: string } | { index: number };

/**
 * Reads text that JSON.parse has accepted, and lists each key and number that parsing changed or
 * lost, by JSON pointer. `plain` is the text with each key written without escapes.
 */
function inspect(text: string): { readonly issues: Issue[]; readonly plain: string } {
  const issues: Issue[] = [];
  let plain = "";
  let copied = 0;
  const frames: Frame[] = [];
  let expectKey = false;
  const report = (detail: string) =>
    issues.push({ pointer: pointerOf(frames), code: "malformed_json", detail });
  for (const [token, start] of tokens(text)) {
    // One more than a response lists, so it can say that there are more.
    if (issues.length > MAX_ISSUES) break;
    const frame = frames.at(-1);
    if (token === "{") frames.push({ keys: new Set(), key: "" });
    else if (token === "[") frames.push({ index: 0 });
    else if (token === "}" || token === "]") frames.pop();
    else if (token === "," && frame !== undefined && "index" in frame) frame.index += 1;
    else if (expectKey && token.startsWith('"') && frame !== undefined && "keys" in frame) {
      frame.key = token.slice(1, -1);
      if (token.includes("\\")) {
        frame.key = JSON.parse(token) as string;
        const written = JSON.stringify(frame.key);
        if (written.includes("\\"))
          report("The key has a quote, a backslash, a control character or half a surrogate pair.");
        plain += text.slice(copied, start) + written;
        copied = start + token.length;
      }
      if (frame.keys.has(frame.key)) report("The key occurs twice in one object.");
      if (frame.key === "__proto__") report("The key __proto__ is not allowed.");
      frame.keys.add(frame.key);
    } else if (isLossy(token))
      report(`${shorten(token)} cannot be read exactly as a JSON number. Send it as a string.`);
    expectKey = token === "{" || (token === "," && frame !== undefined && "keys" in frame);
  }
  return { issues, plain: plain + text.slice(copied) };
}

function pointerOf(frames: readonly Frame[]): string {
  const part = (frame: Frame) => ("index" in frame ? String(frame.index) : frame.key);
  return frames
    .map((frame) => `/${part(frame).replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}

/**
 * Whether a number does not fit a double, or is past 2^53, where a sender may have rounded it
 * already.
 */
function isLossy(token: string): boolean {
  if (!/^-?\d/.test(token)) return false;
  if (token.length > MAX_LITERAL) return true;
  const value = Number(token);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return true;
  // A double always holds fifteen digits.
  if (token.length <= 15 && !/[eE][+-]?\d{3}/.test(token)) return false;
  return !Number.isFinite(value) || decimal(token) !== decimal(String(value));
}

/**
 * One spelling of a number literal's digits and power of ten: `1.50e1` and `15` are both `15e0`.
 */
function decimal(literal: string): string {
  const [, whole = "", fraction = "", exponent = "0"] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${significant}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length)}`;
}

function shorten(token: string): string {
  return token.length <= 40 ? token : `${token.slice(0, 40)}…`;
}
