import { describe, expect, it } from "vitest";
import type { Engine, EngineOptions } from "../../../core/index.ts";
import { NaiveJournal } from "../naive/naive-store.ts";
import {
  type Fixture,
  fixture,
  hashOf,
  memory,
  mintOf,
  openTest,
  refusal,
  requestOf,
  SETTLEMENT,
  type TestTenant,
} from "./fixture.ts";
import { HOME, holding, signed, stranger } from "./l1-fixture.ts";

/** A call as plain JavaScript can make it. */
// biome-ignore lint/suspicious/noExplicitAny: what the types refuse is what is tried.
type Call = (engine: any, made: Fixture) => Promise<unknown>;

const asset = { standard: "erc721", contractAddress: stranger, name: "New", symbol: "NEW" };
const place = { blockNumber: 5n, logIndex: 0, txHash: hashOf(5) };
const withdrawn = { type: "withdrawn", vaultId: 0n, recipient: stranger, quantity: 1n, withdrawnTotal: 1n, ...place };
const noApplication = "00000000-0000-7000-8000-000000000000";

const WRONG: Readonly<Record<string, Call>> = {
  "an asset of a negative chain": (engine) => engine.assets.add({ ...asset, chainId: -1n }),
  "an asset of a chain past 2^64": (engine) => engine.assets.add({ ...asset, chainId: 1n << 64n }),
  "an asset of a chain in a number": (engine) => engine.assets.add({ ...asset, chainId: 31_337 }),
  "an asset of an unknown blob scheme": (engine) => engine.assets.add({ ...asset, blobScheme: "other" }),
  "a key that expired before 1970": (engine, { tenant }) => engine.keys.issue(tenant.applicationId, { expiresAt: -1 }),
  "a key that expires past any time": (engine, { tenant }) =>
    engine.keys.issue(tenant.applicationId, { expiresAt: 2 ** 48 }),
  "an idempotency key that is no text": (engine, { tenant, assets }) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 1)), { idempotencyKey: 12 }),
  "a final block in a number": (engine) => engine.operator.recordFinalized(HOME, 7),
  "a negative final block": (engine) => engine.operator.recordFinalized(HOME, -7n),
  "a reorganisation from a block in a number": (engine) => engine.operator.recordReorg(HOME, 7),
  "a reorganisation from a negative block": (engine) => engine.operator.recordReorg(HOME, -1n),
  "a block's hash of 31 bytes": (engine) =>
    engine.operator.recordEvents(HOME, [], 7n, { blockHash: `0x${"11".repeat(31)}` }),
  "a final block's hash in bytes": (engine) =>
    engine.operator.recordFinalized(HOME, 7n, { blockHash: new Uint8Array(32) }),
  "events up to a block in a number": (engine) => engine.operator.recordEvents(HOME, [], 700),
  "events of a negative block": (engine) =>
    engine.operator.recordEvents(HOME, [{ ...withdrawn, blockNumber: -1n }], 9n),
  "an event without its place in the block": (engine) =>
    engine.operator.recordEvents(HOME, [{ ...withdrawn, logIndex: Number.NaN }], 9n),
  "a withdrawal of less than nothing": (engine) =>
    engine.operator.recordEvents(HOME, [{ ...withdrawn, withdrawnTotal: -1n }], 5n),
  "a withdrawal past 2^63": (engine) => engine.operator.recordEvents(HOME, [{ ...withdrawn, quantity: 1n << 63n }], 5n),
  "a commit without a time": (engine) =>
    engine.operator.recordEvents(HOME, [{ type: "batchCommitted", mode: "validium", batchNumber: 0, ...place }], 5n),
  "a failure at no time": (engine) => engine.operator.recordWithdrawalFailed(noApplication, "late", Number.NaN),
};

async function holdsTogether(engine: Engine, { database }: Fixture): Promise<void> {
  await engine.applications.create({ name: "still here" });
  expect((await engine.operator.verify()).problems).toEqual([]);
  await engine.close();
  await (await openTest(database)).close();
}

describe("a call that is wrong", () => {
  it.each(Object.entries(WRONG))("%s is refused, and the engine and its store go on", async (_, call) => {
    const made = await fixture();
    expect((await refusal(call(made.engine, made))).code).toBe("validation_failed");
    await holdsTogether(made.engine, made);
  });

  it.each([
    ["mint", (engine: Engine) => engine.mint],
    ["mints.check", (engine: Engine) => engine.mints.check],
  ] as const)("by nobody's principal, of %s, stops nobody else's", async (_, methodOf) => {
    const made = await fixture();
    const { engine, tenant, assets } = made;
    const nobody = { ...tenant.principal, applicationId: noApplication };
    const request = (id: number) => requestOf(tenant.users[0], mintOf(assets.erc721, id));
    const [refused, minted] = await Promise.allSettled([
      methodOf(engine)(nobody, request(1)),
      engine.mint(tenant.principal, request(2)),
    ]);
    expect(refused).toMatchObject({ status: "rejected", reason: { code: "application_not_found" } });
    expect(minted.status).toBe("fulfilled");
    await holdsTogether(engine, made);
  });
});

it.each([
  ["a chain in a number", { settlement: { ...SETTLEMENT, chainId: 31_337 } }],
  ["a negative chain", { settlement: { ...SETTLEMENT, chainId: -1n } }],
  ["a version that is no number", { settlement: { ...SETTLEMENT, engineVersion: Number.NaN } }],
  ["an unknown environment", { environment: "production" }],
])("an engine of %s is not opened, and nothing is written", async (_, options) => {
  const store = memory();
  expect((await refusal(openTest(store, options as unknown as Partial<EngineOptions>))).code).toBe("validation_failed");
  await (await openTest(store)).close();
});

it("a refused request binds no ERC-1155 id, however often it names it", async () => {
  const made = await fixture();
  const { engine, tenant, assets } = made;
  const mint = (...mints: Parameters<typeof mintOf>[]) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints.map((one) => mintOf(...one))));
  await mint([assets.erc721, 7]);
  const refused = mint([assets.erc1155, 5], [assets.erc1155, 5], [assets.erc721, 7]);
  expect((await refusal(refused)).code).toBe("token_already_minted");
  await mint([assets.erc1155, 5]);
  await holdsTogether(engine, made);
});

it.each([
  ["revoked", (engine: Engine, { principal }: TestTenant) => engine.keys.revoke(principal.keyId)],
  [
    "its application suspended",
    (engine: Engine, { applicationId }: TestTenant) => engine.applications.suspend(applicationId),
  ],
])("a key that was %s after it had been looked at withdraws nothing", async (_, end) => {
  const made = await holding();
  const { engine, tenant } = made;
  await using _engine = engine;
  const request = await signed(made, 10n);
  await end(engine, tenant);
  expect((await refusal(engine.withdrawals.request(tenant.principal, request))).code).toMatch(
    /^(credentials|application)_/,
  );
  expect((await engine.vaults.get(tenant.applicationId, 0n)).availableBalance).toBe(100n);
});

it("a clock with fractions gives the same times after a restart", async () => {
  const clock = () => 1_893_456_000_000.7;
  const { engine, tenant, assets, database } = await fixture({ clock });
  await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 5)));
  const before = await engine.vaults.get(tenant.applicationId, 0n);
  await engine.close();
  await using again = await openTest(database, { clock });
  expect(await again.vaults.get(tenant.applicationId, 0n)).toEqual(before);
});

describe("a journal beside the store that answers wrong", () => {
  const failing = () => {
    throw new TypeError("no connection");
  };
  it.each([
    ["a length that is none", "validation_failed", { length: async () => Number.NaN }],
    ["with an error that is thrown", "store_failed", { length: failing }],
    ["no entry", "store_failed", { read: failing }],
    ["fewer entries than it has", "store_mismatch", { read: async function* () {} }],
  ])("%s opens no engine, and the store opens without it", async (_, code, answers) => {
    const journal = new NaiveJournal();
    const { engine, database } = await fixture({ journal });
    await engine.close();
    expect((await refusal(openTest(database, { journal: Object.assign(journal, answers) }))).code).toBe(code);
    await (await openTest(database)).close();
  });
});
