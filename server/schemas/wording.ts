import type { z } from "zod";

/** Says what to give, where a schema has no words of its own. For the `error` option of `safeParse`. */
export function wording(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "This is missing.";
      return Array.isArray(issue.input)
        ? "Give one value, not a list."
        : `Give ${KINDS[issue.expected] ?? issue.expected}.`;
    case "invalid_value":
      return `Give ${issue.values.length > 1 ? "one of " : ""}${issue.values.map(String).join(", ")}.`;
    case "too_big":
      return `Give at most ${issue.maximum}${UNITS[issue.origin] ?? ""}.`;
    case "too_small":
      return `Give at least ${issue.minimum}${UNITS[issue.origin] ?? ""}.`;
    case "invalid_format":
      return issue.format === "guid" ? "Give a UUID." : undefined;
    default:
      return undefined;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
};
const UNITS: Readonly<Record<string, string>> = { string: " characters", array: " entries" };
