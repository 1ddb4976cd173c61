import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../../core/index.ts";
import { CHANGES, type Changeable, changeable } from "./every-change.ts";
import { type Fixture, fixture, mintOf, requestOf } from "./fixture.ts";
import { GatedStore } from "./gated-store.ts";
import { signed, stranger } from "./l1-fixture.ts";

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

  it("of a batch that is being sealed off the loop comes too late", async () => {
    const { engine, tenant, assets } = await fixture();
    await using _ = engine;
    const mints = Array.from({ length: 2_000 }, (_, id) => mintOf(assets.erc721, id));
    for (let at = 0; at < mints.length; at += 1_000) {
      await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints.slice(at, at + 1_000)));
    }
    const controller = new AbortController();
    const sealed = engine.operator.seal("validium", { signal: controller.signal });
    while (engine.batches.getOpen("validium").batchNumber === 0) await settled();
    controller.abort(REASON);
    await expect(sealed).resolves.toMatchObject({ batchNumber: 0, status: "sealed", vaultCount: 2_000 });
  });
});

describe("an abort during an external call", () => {
  const never = () => new Promise<never>(() => {});

  it("cancels the wait for a wallet contract: nothing is reserved", async () => {
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
    await engine.operator.seal("validium");
    const request = { ...(await signed(made, 10n)), signature: "0x01" } as const;
    const controller = new AbortController();
    const waiting = engine.withdrawals.request(tenant.principal, request, { signal: controller.signal });
    await asking;
    controller.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    expect(await engine.vaults.get(tenant.applicationId, 0n)).toMatchObject({ availableBalance: 100n });
  });

  it("cancels the wait for a receipt's signature: the mint stays, and can be requested again", async () => {
    const controller = new AbortController();
    const receiptSigner = { address: stranger, signTypedData: never };
    const { engine, tenant, assets } = await fixture({ receiptSigner });
    await using _ = engine;
    const { receipt } = await engine
      .mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)))
      .then(({ mintId }) => engine.mints.get(tenant.applicationId, mintId));
    const waiting = receipt({ signal: controller.signal });
    controller.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    await expect(receipt({ signal: controller.signal })).rejects.toBe(REASON);
  });
});
