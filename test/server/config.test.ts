import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, readConfig } from "../../server/process/settings/config.ts";
import { configurationPage } from "./configuration-page.ts";

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
  test("have defaults, except those that only the operator knows", () => {
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
    expect(problems({})).toEqual([`missing: ${Object.keys(REQUIRED).join(", ")}; see --help`]);
  });

  test("of the wrong form are named without their values", () => {
    const wrong = {
      MINTMARK_PORT: "70000",
      MINTMARK_TOKEN_SECRET: "hunter2",
      MINTMARK_TRUSTED_PROXIES: "10.0.0.1, nowhere",
      MINTMARK_CHAIN_ID: "0x1",
    };
    const lines = problems({ ...REQUIRED, ...wrong });
    expect(lines.map((line) => line.split(":", 1)[0]).toSorted()).toEqual(
      Object.keys(wrong).toSorted(),
    );
    expect(lines.join()).not.toContain("hunter2");
  });

  test("that are addresses with a wrong checksum are refused", () => {
    const right = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    const wrong = right.replace("5aA", "5Aa");
    const given = (contract: string) => ({
      ...REQUIRED,
      MINTMARK_CONTRACT: contract,
      MINTMARK_OPERATOR_KEY: `0x${"11".repeat(32)}`,
      MINTMARK_RPC_URL: "https://rpc.example",
      MINTMARK_MEMBERS: `${contract}=https://member.example`,
      MINTMARK_THRESHOLD: "1",
      MINTMARK_MIRRORS: JSON.stringify([{ chainId: 10, contract, rpcUrl: "https://rpc.example" }]),
    });
    expect(problems(given(right))).toEqual([]);
    const lines = problems(given(wrong));
    expect(lines.map((line) => line.split(/[.:]/, 1)[0])).toEqual([
      "MINTMARK_CONTRACT",
      "MINTMARK_MEMBERS",
      "MINTMARK_MIRRORS",
    ]);
    for (const line of lines) expect(line).toContain("EIP-55");
  });

  test("of other commands may be exported beside them", () => {
    const others = {
      MINTMARK_URL: "http://127.0.0.1:3000",
      MINTMARK_API_KEY: "mm_test_x",
      MINTMARK_OWNER_KEY: "0x1",
    };
    expect(
      problems({
        ...REQUIRED,
        ...others,
        MINTMARK_PAYER_KEYSTORE: "/keys",
        MINTMARK_FOLDER: "net",
      }),
    ).toEqual([]);
  });

  test("that are unknown are likely typing errors", () => {
    const misspelt = { ...REQUIRED, MINTMARK_PROT: "1", MINTMARK_NOTHING_LIKE_IT: "1" };
    expect(problems(misspelt)).toEqual([
      "MINTMARK_PROT: no such setting; did you mean MINTMARK_PORT?",
      "MINTMARK_NOTHING_LIKE_IT: no such setting",
    ]);
  });
});

describe("a configuration file", () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "mintmark-config-"));
    path = join(folder, "mintmark.json");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const write = (fields: unknown) =>
    writeFileSync(path, typeof fields === "string" ? fields : JSON.stringify(fields));

  test("fills gaps of the environment", () => {
    write({
      store: "/data",
      environment: "sandbox",
      chainId: 11_155_111,
      contract: REQUIRED.MINTMARK_CONTRACT,
      port: 4000,
      trustedProxies: ["10.0.0.1", "fd00::/8"],
    });
    expect(readConfig({ MINTMARK_CONFIG: path, MINTMARK_PORT: "5000" })).toMatchObject({
      MINTMARK_STORE: "/data",
      MINTMARK_CHAIN_ID: 11_155_111n,
      MINTMARK_PORT: 5000,
      MINTMARK_TRUSTED_PROXIES: ["10.0.0.1", "fd00::/8"],
    });
  });

  test("holds mirrors as objects", () => {
    const mirror = {
      chainId: 10,
      contract: REQUIRED.MINTMARK_CONTRACT,
      rpcUrl: "https://rpc.example",
      threshold: 1,
    };
    write({ mirrors: [{ ...mirror, members: [`${mirror.contract}=https://member.example`] }] });
    const operator = {
      MINTMARK_OPERATOR_KEY: `0x${"11".repeat(32)}`,
      MINTMARK_RPC_URL: "https://rpc.example",
    };
    const config = readConfig({ ...REQUIRED, ...operator, MINTMARK_CONFIG: path });
    expect(config.MINTMARK_MIRRORS).toMatchObject([{ chainId: 10n, fromBlock: 0n, threshold: 1 }]);
  });

  test("has all its faults reported at once, with the environment's", () => {
    write({ prot: 1, tokenSecret: "0f".repeat(32), port: "http", seal: {}, sealSeconds: 1.5 });
    const lines = problems({ ...REQUIRED, MINTMARK_CONFIG: path, MINTMARK_CHAIN_ID: "x" });
    expect(lines).toEqual([
      `prot in ${path}: no such setting; did you mean port?`,
      `tokenSecret in ${path}: is secret; give MINTMARK_TOKEN_SECRET in the environment`,
      `seal in ${path}: no such setting`,
      `sealSeconds in ${path}: Give a text, a whole number, or an array of texts or objects.`,
      "MINTMARK_CHAIN_ID: Give the settlement chain's id.",
      "MINTMARK_PORT (port in the file): Give a whole number.",
    ]);
    expect(lines.join()).not.toContain("0f0f");
  });
});

test("mirrors are read from JSON, each on a chain of its own", () => {
  const far = {
    chainId: "10",
    contract: REQUIRED.MINTMARK_CONTRACT,
    rpcUrl: "https://rpc.example/key",
    fromBlock: 7,
  };
  const operator = {
    MINTMARK_OPERATOR_KEY: `0x${"11".repeat(32)}`,
    MINTMARK_RPC_URL: "https://rpc.example",
  };
  const given = (mirrors: unknown, others = {}) => ({
    ...{ ...REQUIRED, ...operator, ...others },
    MINTMARK_MIRRORS: typeof mirrors === "string" ? mirrors : JSON.stringify(mirrors),
  });
  const other = { ...far, chainId: 11, confirmations: 12, maxFeePerGas: "100" };
  expect(readConfig(given([far, other])).MINTMARK_MIRRORS).toEqual([
    { ...far, chainId: 10n, contract: far.contract.toLowerCase(), fromBlock: 7n },
    {
      ...other,
      chainId: 11n,
      contract: far.contract.toLowerCase(),
      ...{ fromBlock: 7n, confirmations: 12n, maxFeePerGas: 100n },
    },
  ]);
  const members = [`${far.contract}=https://member.example`];
  const [apart] = readConfig(given([{ ...far, members, threshold: 1 }])).MINTMARK_MIRRORS;
  expect(apart).toMatchObject({ threshold: 1, members: [{ url: "https://member.example" }] });
  const live = { MINTMARK_ENVIRONMENT: "live", MINTMARK_CHAIN_ID: "1" };
  for (const [wrong, others] of [
    ["[", {}],
    [{ ...far }, {}],
    [[{ ...far, rpc: "x" }], {}],
    [[{ ...far, contract: "0x1" }], {}],
    [[{ ...far, threshold: 2 }], {}],
    [[far, { ...far, contract: `0x${"cd".repeat(20)}` }], {}],
    [[{ ...far, chainId: REQUIRED.MINTMARK_CHAIN_ID }], {}],
    [[{ ...far, chainId: 31_337 }], live],
  ] as const) {
    const lines = problems(given(wrong, others));
    expect(lines.map((line) => line.split(":", 1)[0])).toContain("MINTMARK_MIRRORS");
    expect(lines.join()).not.toContain("rpc.example");
  }
  const keyless = problems({ ...REQUIRED, MINTMARK_MIRRORS: JSON.stringify([far]) });
  expect(keyless.map((line) => line.split(":", 1)[0])).toEqual(["MINTMARK_OPERATOR_KEY"]);
});

test("a server that is the committee's only member has a key, and no members beside it", () => {
  const alone = { ...REQUIRED, MINTMARK_OWN_MEMBER: "yes" };
  const operated = {
    ...alone,
    MINTMARK_RPC_URL: "http://127.0.0.1:8545",
    MINTMARK_OPERATOR_KEY: `0x${"11".repeat(32)}`,
  };
  const wrong = (environment: Record<string, string>) =>
    problems(environment).map((line) => line.split(":", 1)[0]);
  expect(wrong(operated)).toEqual([]);
  expect(wrong(alone)).toEqual(["MINTMARK_OPERATOR_KEY"]);
  const member = `0x${"22".repeat(20)}=https://member.example`;
  expect(wrong({ ...operated, MINTMARK_MEMBERS: member })).toEqual(["MINTMARK_OWN_MEMBER"]);
  const journal = {
    MINTMARK_JOURNAL: "postgres://journal.example/mintmark",
    MINTMARK_JOURNAL_KEYS: "33".repeat(32),
  };
  expect(wrong({ ...operated, ...journal })).toEqual(["MINTMARK_OWN_MEMBER"]);
  const mirror = {
    chainId: "10",
    contract: `0x${"44".repeat(20)}`,
    rpcUrl: "http://127.0.0.1:9545",
    fromBlock: "0",
  };
  expect(wrong({ ...operated, MINTMARK_MIRRORS: JSON.stringify([mirror]) })).toEqual([
    "MINTMARK_MIRRORS",
  ]);
});

test("an identity provider is named apart from this server, with keys that only it can change", () => {
  const issuer = {
    MINTMARK_JWKS: "http://keys.example",
    MINTMARK_JWT_ISSUER: "mintmark",
    MINTMARK_JWT_AUDIENCE: "x",
  };
  const names = (environment: Record<string, string>) =>
    problems({ ...REQUIRED, ...environment }).map((line) => line.split(":", 1)[0]);
  expect(names(issuer)).toEqual(["MINTMARK_JWKS", "MINTMARK_JWT_ISSUER"]);
  expect(names({ MINTMARK_JWT_ISSUER: "https://identity.example" })).toEqual(["MINTMARK_JWKS"]);
});

test("a live server checks a public chain at start", () => {
  const names = problems({ ...REQUIRED, MINTMARK_ENVIRONMENT: "live" }).map(
    (line) => line.split(":", 1)[0],
  );
  expect(names).toEqual(["MINTMARK_RPC_URL", "MINTMARK_CHAIN_ID"]);
  const live = {
    MINTMARK_ENVIRONMENT: "live",
    MINTMARK_CHAIN_ID: "1",
    MINTMARK_RPC_URL: "https://rpc.example",
  };
  expect(readConfig({ ...REQUIRED, ...live }).MINTMARK_ENVIRONMENT).toBe("live");
});

test("docs/configuration.md lists every setting and metric (vitest -u writes it)", async () => {
  await expect(await configurationPage()).toMatchFileSnapshot("../../docs/configuration.md");
});
