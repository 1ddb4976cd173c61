import { describe, expect, it } from "vitest";
import { ERROR_CODES, type ErrorCode, MintmarkError } from "../../../core/errors.ts";
import { BatchDataError } from "../../../core/protocol/batch-data.ts";
import { errorOf, failureOf } from "../../../core/thread.ts";

const CLASSES = [BatchDataError];

/** An error as the other thread has it. */
const passed = (error: unknown) => errorOf(structuredClone(failureOf(error)), CLASSES);

describe("an error that goes to another thread", () => {
  it("keeps its class, its code, its words and its cause", () => {
    const issues = [{ pointer: "/a", code: "validation_failed", detail: "is wrong" }] as const;
    const cause = new BatchDataError("truncated", 812);
    for (const error of [
      ...(Object.keys(ERROR_CODES) as ErrorCode[]).map((code) => new MintmarkError(code)),
      new MintmarkError("validation_failed", "two", { issues, moreIssues: true, cause }),
      cause,
      new RangeError("too far", { cause: new TypeError("no text") }),
      Object.assign(new Error("no memory"), { code: "ENOMEM" }),
    ]) {
      const found = passed(error);
      expect(found).toStrictEqual(error);
      expect(found.constructor).toBe(error.constructor);
      expect({ ...found }).toEqual({ ...error });
      expect(found.stack).toBe(error.stack);
    }
    const { cause: inner } = passed(new Error("outer", { cause }));
    expect(inner).toBeInstanceOf(BatchDataError);
    expect(inner).toMatchObject({ reason: "truncated", offset: 812 });
  });

  it("is a plain one of the same words where the class is unknown", () => {
    class Strange extends Error {
      override readonly name = "Strange";
    }
    const found = passed(new Strange("odd"));
    expect([found.constructor, found.name, found.message]).toEqual([Error, "Strange", "odd"]);
  });

  it("loses a property that cannot be cloned, and nothing else", () => {
    const found = passed(Object.assign(new MintmarkError("l1_failed"), { retry: () => {} }));
    expect(found).toMatchObject({ code: "l1_failed", message: ERROR_CODES.l1_failed });
    expect(found).not.toHaveProperty("retry");
    expect(passed("words").message).toBe("words");
  });
});
