import { afterAll, beforeAll, describe, expect } from "vitest";
import type { Engine, EngineOptions } from "../../../core/index.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import { NaiveJournal } from "../naive/naive-store.ts";
import { CHANGES, type Changeable, changeable } from "./every-change.ts";
import type { Fixture, TestTenant } from "./fixture.ts";
import {
  fixture,
  hashOf,
  memory,
  mintOf,
  openTest,
  refusal,
  requestOf,
  SETTLEMENT,
} from "./fixture.ts";
import { GatedStore } from "./gated-store.ts";
import { it } from "./it.ts";
import { HOME, holding, signed, stranger } from "./l1-fixture.ts";

const REASON = new Error("gave up");

async function entriesOf(engine: Engine): Promise<number> {
  const { journalEntries, problems } = await engine.operator.verify();
  expect(problems).toEqual([]);
  return journalEntries;
}

/** Resolves once nothing that was started before can go on without something else happening. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("an abort while the writer is busy with another write", () => {
  const gate = new GatedStore();
  let made: Changeable;
  beforeAll(async () => {
    made = await changeable({ store: gate.store });
  });
  afterAll(() => made.engine.close());

  it.each(Object.entries(CHANGES))("of %s changes nothing, then or later", async (_, call) => {
    const { engine } = made;
    const before = await entriesOf(engine);
    const writing = gate.close();
    const busy = engine.applications.create({ name: "busy" });
    await writing;
    const controller = new AbortController();
    const waiting = call(made, { signal: controller.signal });
    waiting.catch(() => {});
    await settled();
    controller.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    gate.open();
    await busy;
    expect(await entriesOf(engine)).toBe(before + 1);
    await expect(call(made, { signal: controller.signal })).rejects.toBe(REASON);
    await call(made);
    expect(await entriesOf(engine)).toBeGreaterThan(before + 1);
  });
});

describe("an abort while the change itself is being written", () => {
  it.each(["users.create", "mint", "operator.seal", "operator.voidSlots"])(
    "of %s comes too late: the change happens",
    async (name) => {
      const gate = new GatedStore();
      const made = await changeable({ store: gate.store });
      const { engine } = made;
      await using _ = engine;
      await CHANGES["mint with a key"]?.(made);
      const before = await entriesOf(engine);
      const writing = gate.close();
      const controller = new AbortController();
      const done = CHANGES[name]?.(made, { signal: controller.signal });
      await writing;
      controller.abort(REASON);
      gate.open();
      await expect(done).resolves.toBeDefined();
      expect(await entriesOf(engine)).toBeGreaterThan(before);
    },
  );

  it("of a batch that is being sealed off the loop comes too late", async ({
    engine,
    tenant,
    assets,
  }) => {
    const mints = Array.from({ length: 2_000 }, (_, id) => mintOf(assets.erc721, id));
    for (let at = 0; at < mints.length; at += 1_000) {
      await engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], ...mints.slice(at, at + 1_000)),
      );
    }
    const controller = new AbortController();
    const sealed = engine.operator.seal("validium", { signal: controller.signal });
    while (engine.batches.getOpen("validium").batchNumber === 0) await settled();
    controller.abort(REASON);
    await expect(sealed).resolves.toMatchObject({
      batchNumber: 0,
      status: "sealed",
      vaultCount: 2_000,
    });
  });
});

describe("an abort during an external call", () => {
  const never = () => new Promise<never>(() => {});

  it("cancels the wait for a wallet contract: nothing is reserved", async ({ make }) => {
    let asked = () => {};
    const asking = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const verifySignature = () => {
      asked();
      return never();
    };
    const made: Fixture = await make({ verifySignature });
    const { engine, tenant, assets } = made;
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 100)));
    await engine.operator.seal("validium");
    const request = { ...(await signed(made, 10n)), signature: "0x01" } as const;
    const controller = new AbortController();
    const waiting = withdrawOne(engine, tenant.principal, request, {
      signal: controller.signal,
    });
    await asking;
    controller.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    expect(await engine.vaults.get(tenant.applicationId, 0n)).toMatchObject({
      availableBalance: 100n,
    });
  });

  it("cancels the wait for a receipt's signature: the mint stays, and can be requested again", async ({
    make,
  }) => {
    const controller = new AbortController();
    const receiptSigner = { address: stranger, signTypedData: never };
    const { engine, tenant, assets } = await make({ receiptSigner });
    const { receipt } = await engine
      .mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)))
      .then(({ mintId }) => engine.mints.get(tenant.applicationId, mintId));
    const waiting = receipt({ signal: controller.signal });
    controller.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    await expect(receipt({ signal: controller.signal })).rejects.toBe(REASON);
  });
});

/** A call as plain JavaScript can make it. */
// biome-ignore lint/suspicious/noExplicitAny: what the types refuse is what is tried.
type Call = (engine: any, made: Fixture) => Promise<unknown>;

const asset = { standard: "erc721", contractAddress: stranger, name: "New", symbol: "NEW" };
const place = { blockNumber: 5n, logIndex: 0, txHash: hashOf(5) };
const withdrawn = {
  type: "withdrawn",
  vaultId: 0n,
  recipient: stranger,
  quantity: 1n,
  withdrawnTotal: 1n,
  ...place,
};
const noApplication = "00000000-0000-7000-8000-000000000000";

const WRONG: Readonly<Record<string, Call>> = {
  "an asset of a negative chain": (engine) => engine.assets.add({ ...asset, chainId: -1n }),
  "an asset of a chain past 2^64": (engine) => engine.assets.add({ ...asset, chainId: 1n << 64n }),
  "an asset of a chain in a number": (engine) => engine.assets.add({ ...asset, chainId: 31_337 }),
  "an asset of an unknown minting blob scheme": (engine) =>
    engine.assets.add({ ...asset, mintingBlobScheme: "other" }),
  "a key that expired before 1970": (engine, { tenant }) =>
    engine.keys.issue(tenant.applicationId, { expiresAt: -1 }),
  "a key that expires past any time": (engine, { tenant }) =>
    engine.keys.issue(tenant.applicationId, { expiresAt: 2 ** 48 }),
  "an idempotency key that is no text": (engine, { tenant, assets }) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 1)), {
      idempotencyKey: 12,
    }),
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
  "a withdrawal past 2^63": (engine) =>
    engine.operator.recordEvents(HOME, [{ ...withdrawn, quantity: 1n << 63n }], 5n),
  "a commit without a time": (engine) =>
    engine.operator.recordEvents(
      HOME,
      [{ type: "batchCommitted", mode: "validium", batchNumber: 0, ...place }],
      5n,
    ),
  "a failure at no time": (engine) =>
    engine.operator.recordWithdrawalFailed(noApplication, "late", Number.NaN),
};

async function holdsTogether(engine: Engine, { database }: Fixture): Promise<void> {
  await engine.applications.create({ name: "still here" });
  expect((await engine.operator.verify()).problems).toEqual([]);
  await engine.close();
  await (await openTest(database)).close();
}

describe("a call that is wrong", () => {
  it.for(Object.entries(WRONG))(
    "%s is refused, and the engine and its store go on",
    async ([, call], { made }) => {
      expect((await refusal(call(made.engine, made))).code).toBe("validation_failed");
      await holdsTogether(made.engine, made);
    },
  );

  it.for([
    ["mint", (engine: Engine) => engine.mint],
    ["mints.check", (engine: Engine) => engine.mints.check],
  ] as const)(
    "by nobody's principal, of %s, stops nobody else's",
    async ([, methodOf], { made }) => {
      const { engine, tenant, assets } = made;
      const nobody = { ...tenant.principal, applicationId: noApplication };
      const request = (id: number) => requestOf(tenant.users[0], mintOf(assets.erc721, id));
      const [refused, minted] = await Promise.allSettled([
        methodOf(engine)(nobody, request(1)),
        engine.mint(tenant.principal, request(2)),
      ]);
      expect(refused).toMatchObject({
        status: "rejected",
        reason: { code: "application_not_found" },
      });
      expect(minted.status).toBe("fulfilled");
      await holdsTogether(engine, made);
    },
  );
});

it.each([
  ["a chain in a number", { settlement: { ...SETTLEMENT, chainId: 31_337 } }],
  ["a negative chain", { settlement: { ...SETTLEMENT, chainId: -1n } }],
  ["a version that is no number", { settlement: { ...SETTLEMENT, engineVersion: Number.NaN } }],
  ["an unknown environment", { environment: "production" }],
])("an engine of %s is not opened, and nothing is written", async (_, options) => {
  const store = memory();
  expect((await refusal(openTest(store, options as unknown as Partial<EngineOptions>))).code).toBe(
    "validation_failed",
  );
  await (await openTest(store)).close();
});

it("a refused request binds no ERC-1155 id, however often it names it", async ({
  engine,
  tenant,
  assets,
  made,
}) => {
  const mint = (...mints: Parameters<typeof mintOf>[]) =>
    engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], ...mints.map((one) => mintOf(...one))),
    );
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
  expect((await refusal(withdrawOne(engine, tenant.principal, request))).code).toMatch(
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
    expect(
      (await refusal(openTest(database, { journal: Object.assign(journal, answers) }))).code,
    ).toBe(code);
    await (await openTest(database)).close();
  });
});
