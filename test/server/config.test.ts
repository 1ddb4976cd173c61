import { describe, expect, test } from "vitest";
import { ConfigError, readConfig } from "../../server/config.ts";

const REQUIRED = {
  MINTMARK_STORE: "./data",
  MINTMARK_ENVIRONMENT: "sandbox",
  MINTMARK_CHAIN_ID: "31337",
  MINTMARK_CONTRACT: `0x${"AB".repeat(20)}`,
};

function problems(environment: Record<string, string>): string[] {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

describe("settings", () => {
  test("have defaults but for what only the operator knows", () => {
    expect(readConfig({ ...REQUIRED, PATH: "/bin" })).toMatchObject({
      MINTMARK_CHAIN_ID: 31_337n,
      MINTMARK_CONTRACT: `0x${"ab".repeat(20)}`,
      MINTMARK_ENGINE_VERSION: 5,
      MINTMARK_HOST: "127.0.0.1",
      MINTMARK_PORT: 3000,
      MINTMARK_TRUSTED_PROXIES: [],
    });
  });

  test("that are missing are all named", () => {
    expect(problems({}).map((line) => line.split(":", 1)[0])).toEqual(Object.keys(REQUIRED));
  });

  test("of the wrong form are named without their values", () => {
    const wrong = {
      MINTMARK_PORT: "70000",
      MINTMARK_TOKEN_SECRET: "hunter2",
      MINTMARK_TRUSTED_PROXIES: "10.0.0.1, nowhere",
      MINTMARK_CHAIN_ID: "0x1",
    };
    const lines = problems({ ...REQUIRED, ...wrong });
    expect(lines.map((line) => line.split(":", 1)[0]).toSorted()).toEqual(Object.keys(wrong).toSorted());
    expect(lines.join()).not.toContain("hunter2");
  });

  test("that nobody reads are likely typing errors", () => {
    expect(problems({ ...REQUIRED, MINTMARK_PROT: "1" })).toEqual(["MINTMARK_PROT: no such setting"]);
  });

  test("lists and secrets are read", () => {
    const config = readConfig({
      ...REQUIRED,
      MINTMARK_TOKEN_SECRET: "0f".repeat(32),
      MINTMARK_TRUSTED_PROXIES: "10.0.0.1, fd00::/8",
    });
    expect(config.MINTMARK_TOKEN_SECRET).toEqual(new Uint8Array(32).fill(15));
    expect(config.MINTMARK_TRUSTED_PROXIES).toEqual(["10.0.0.1", "fd00::/8"]);
  });
});
