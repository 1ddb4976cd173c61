import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine, WaitOptions } from "../../../core/index.ts";
import { type Fixture, fixture, hashOf, knownAsset, mintOf, OWNERS, requestOf } from "./fixture.ts";
import { GatedStore } from "./gated-store.ts";
import { committed, signed, stranger, withdrawn } from "./l1-fixture.ts";

const REASON = new Error("gave up");
const [{ address: ownerAddress }] = OWNERS;

/** The engine over a store whose writes can be held up, a sealed batch of two vaults, and a withdrawal of the first. */
async function gatedFixture() {
  const gate = new GatedStore();
  const made = await fixture({ store: gate.store });
  const { engine, tenant, assets } = made;
  const mint = (...texts: string[]) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], ...texts.map((text) => mintOf(assets.erc721, text))));
  await engine.mint(
    tenant.principal,
    requestOf(tenant.users[0], mintOf(assets.erc20, "", 100), mintOf(assets.erc721, 1)),
  );
  await engine.seal("validium");
  const { withdrawalId } = await engine.requestWithdrawal(tenant.principal, await signed(made, 10n));
  await mint("2");
  await engine.seal("validium");
  const webhook = await engine.webhooks.create(tenant.applicationId, { url: "https://example.com/told" });
  const other = await knownAsset(engine, "erc20", { ready: false });
  const key = await engine.issueKey(tenant.applicationId);
  return { ...made, gate, withdrawalId, webhookId: webhook.webhook.webhookId, other, keyId: key.key.keyId };
}

type Gated = Awaited<ReturnType<typeof gatedFixture>>;
type Call = (made: Gated, wait?: WaitOptions) => Promise<unknown>;

/** Every method that waits for the writer, by a call that changes something; each can follow the ones before it. */
const CALLS: Readonly<Record<string, Call>> = {
  createApplication: ({ engine }, wait) => engine.createApplication({ name: "another" }, wait),
  issueKey: ({ engine, tenant }, wait) => engine.issueKey(tenant.applicationId, {}, wait),
  revokeKey: ({ engine, keyId }, wait) => engine.revokeKey(keyId, wait),
  addAsset: ({ engine }, wait) =>
    engine.addAsset({ standard: "erc20", contractAddress: stranger, name: "New", symbol: "NEW" }, wait),
  whitelistAsset: ({ engine, other }, wait) => engine.whitelistAsset(other, true, wait),
  markAssetRegistered: ({ engine, other }, wait) => engine.markAssetRegistered(other, {}, wait),
  setMintingFault: ({ engine, other }, wait) => engine.setMintingFault(other, "paused", wait),
  enableAsset: ({ engine, tenant, other }, wait) => engine.enableAsset(tenant.applicationId, other, wait),
  disableAsset: ({ engine, tenant, other }, wait) => engine.disableAsset(tenant.applicationId, other, wait),
  createUser: ({ engine, tenant }, wait) => engine.createUser(tenant.applicationId, { ownerAddress }, wait),
  mint: ({ engine, tenant, assets }, wait) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 3)), wait),
  "mint with a key": ({ engine, tenant, assets }, wait) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 4)), {
      ...wait,
      idempotencyKey: "k",
    }),
  seal: ({ engine }, wait) => engine.seal("validium", wait),
  voidSlots: ({ engine }, wait) =>
    engine.voidSlots("validium", 1, [{ firstSlot: 0, count: 1, failure: "refused" }], wait),
  recordSubmitted: ({ engine }, wait) => engine.recordSubmitted("validium", 0, hashOf(1), wait),
  recordCommitted: async ({ engine }, wait) =>
    engine.recordCommitted(await committed(engine, "validium", 0, 10n), wait),
  recordWithdrawalSubmitted: ({ engine, withdrawalId }, wait) =>
    engine.recordWithdrawalSubmitted(withdrawalId, hashOf(2), wait),
  recordWithdrawalAttempt: ({ engine, withdrawalId }, wait) =>
    engine.recordWithdrawalAttempt(withdrawalId, "not yet", wait),
  recordWithdrawalFailed: ({ engine, withdrawalId, clock }, wait) =>
    engine.recordWithdrawalFailed(withdrawalId, "too late", BigInt(clock.now), wait),
  requestWithdrawal: async (made, wait) =>
    made.engine.requestWithdrawal(made.tenant.principal, await signed(made, 5n), wait),
  recordWithdrawn: ({ engine }, wait) => engine.recordWithdrawn(withdrawn(0n, 7n, 7n, stranger, 11n), wait),
  recordEvents: ({ engine }, wait) => engine.recordEvents([withdrawn(0n, 1n, 8n, stranger, 12n)], 12n, wait),
  recordReorg: ({ engine }, wait) => engine.recordReorg(12n, wait),
  recordFinalized: ({ engine }, wait) => engine.recordFinalized(11n, wait),
  forgetIdempotencyKeys: ({ engine, clock }, wait) => engine.forgetIdempotencyKeys(clock.now + 1, wait),
  "webhooks.create": ({ engine, tenant }, wait) =>
    engine.webhooks.create(tenant.applicationId, { url: "https://example.com/also" }, wait),
  "webhooks.rotateSecret": ({ engine, tenant, webhookId }, wait) =>
    engine.webhooks.rotateSecret(tenant.applicationId, webhookId, wait),
  "webhooks.recordDelivered": ({ engine, webhookId }, wait) => engine.webhooks.recordDelivered(webhookId, 1_000, wait),
  "webhooks.recordFailing": ({ engine, webhookId }, wait) => engine.webhooks.recordFailing(webhookId, "500", wait),
  "webhooks.recordDisabled": ({ engine, webhookId }, wait) => engine.webhooks.recordDisabled(webhookId, "500", wait),
  "webhooks.enable": ({ engine, tenant, webhookId }, wait) =>
    engine.webhooks.enable(tenant.applicationId, webhookId, wait),
  "webhooks.delete": ({ engine, tenant, webhookId }, wait) =>
    engine.webhooks.delete(tenant.applicationId, webhookId, wait),
  suspendApplication: ({ engine, tenant }, wait) => engine.suspendApplication(tenant.applicationId, true, wait),
};

async function entriesOf(engine: Engine): Promise<number> {
  const { journalEntries, problems } = await engine.verify();
  expect(problems).toEqual([]);
  return journalEntries;
}

/** Resolves once nothing that was started before can go on without something else happening. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("an abort while the writer is busy with another write", () => {
  let made: Gated;
  beforeAll(async () => {
    made = await gatedFixture();
  });
  afterAll(() => made.engine.close());

  it.each(Object.entries(CALLS))("of %s changes nothing, then or later", async (_, call) => {
    const { engine, gate } = made;
    const before = await entriesOf(engine);
    const writing = gate.close();
    const busy = engine.createApplication({ name: "busy" });
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
  it.each(["createUser", "mint", "seal", "voidSlots"])("of %s comes too late: it is done", async (name) => {
    const made = await gatedFixture();
    const { engine, gate } = made;
    await using _ = engine;
    await CALLS["mint with a key"]?.(made);
    const before = await entriesOf(engine);
    const writing = gate.close();
    const controller = new AbortController();
    const done = CALLS[name]?.(made, { signal: controller.signal });
    await writing;
    controller.abort(REASON);
    gate.open();
    await expect(done).resolves.toBeDefined();
    expect(await entriesOf(engine)).toBeGreaterThan(before);
  });

  it("of a batch that is being sealed off the loop comes too late", async () => {
    const { engine, tenant, assets } = await fixture();
    await using _ = engine;
    const mints = Array.from({ length: 2_000 }, (_, id) => mintOf(assets.erc721, id));
    for (let at = 0; at < mints.length; at += 1_000) {
      await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints.slice(at, at + 1_000)));
    }
    const controller = new AbortController();
    const sealed = engine.seal("validium", { signal: controller.signal });
    while (engine.openBatch("validium").batchNumber === 0) await settled();
    controller.abort(REASON);
    await expect(sealed).resolves.toMatchObject({ batchNumber: 0, status: "sealed", vaultCount: 2_000 });
  });
});

describe("an abort while somebody else is asked", () => {
  const never = () => new Promise<never>(() => {});

  it("gives up a wallet contract's answer: nothing is reserved", async () => {
    let asked = () => {};
    const asking = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const verifySignature = () => {
      asked();
      return never();
    };
    const made: Fixture = await fixture({ verifySignature });
    const { engine, tenant, assets } = made;
    await using _ = engine;
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 100)));
    await engine.seal("validium");
    const request = { ...(await signed(made, 10n)), signature: "0x01" } as const;
    const controller = new AbortController();
    const waiting = engine.requestWithdrawal(tenant.principal, request, { signal: controller.signal });
    await asking;
    controller.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    expect(await engine.vault(tenant.applicationId, 0n)).toMatchObject({ availableBalance: 100n });
  });

  it("gives up the signature of a receipt: the mint stays, and can be asked for it again", async () => {
    const controller = new AbortController();
    const receiptSigner = { address: stranger, signTypedData: never };
    const { engine, tenant, assets } = await fixture({ receiptSigner });
    await using _ = engine;
    const { receipt } = await engine
      .mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)))
      .then(({ mintId }) => engine.mintResult(tenant.applicationId, mintId));
    const waiting = receipt({ signal: controller.signal });
    controller.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    await expect(receipt({ signal: controller.signal })).rejects.toBe(REASON);
  });
});
