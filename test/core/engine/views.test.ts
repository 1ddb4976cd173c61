import { setImmediate as nextPass } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { contextOf } from "../../../core/engine.ts";
import type { Engine } from "../../../core/index.ts";
import type { Ledger } from "../../../core/ledger/ledger.ts";
import { ordersOf } from "../../../core/orders/index.ts";
import { CHANGES, changeable } from "./every-change.ts";
import { fixture, knownAsset, mintOf, OWNERS, refusal, requestOf } from "./fixture.ts";
import { GatedStore } from "./gated-store.ts";
import { signedList } from "./l1-fixture.ts";
import { signedOrder } from "./orders-fixture.ts";
import { shown } from "./shown.ts";
import { transferable } from "./transfers-fixture.ts";

test("the compiler refuses a reader the writer's view, because a reader has no group", () => {
  const read = ({ tenants, batches, journal, trades, l1 }: Ledger) => [
    // @ts-expect-error
    tenants.applications.latest,
    // @ts-expect-error
    batches.records.validium.latest,
    // @ts-expect-error
    batches.records.made.latest,
    // @ts-expect-error
    batches.histories.validium.view(),
    // @ts-expect-error
    batches.unsealed.open("validium"),
    // @ts-expect-error
    journal.head.view(),
    // @ts-expect-error
    journal.now(),
    // @ts-expect-error
    trades.latest,
    // @ts-expect-error A reader gives null, so nobody forgets the group.
    tenants.applications.view(),
    // @ts-expect-error
    tenants.applications.named(""),
    // @ts-expect-error
    tenants.assetsByContract.records(""),
    // @ts-expect-error
    l1.portalOn(1n),
    // @ts-expect-error
    tenants.assetNow(0),
    // @ts-expect-error What changes of an asset is in no fact.
    tenants.assetAt(0).minted,
  ];
  expect(read).toBeTypeOf("function");
});

test("no answer shows a change before its write is durable", async () => {
  const gate = new GatedStore();
  const made = await changeable({ store: gate.store });
  const { applicationId } = made.tenant;
  await using engine = made.engine;
  const [, { address }] = OWNERS;
  await engine.people.invite({ applicationId, role: "viewer", name: "Ada", address });
  const { token } = await engine.people.signIn({ address });
  const answers = async () => ({
    ...((await shown(engine, applicationId)) as object),
    signIn: await engine.people.signedIn(token).catch(({ code }) => code),
    clock: engine.operator.clockFault(),
  });
  for (const [name, change] of Object.entries(CHANGES)) {
    const before = await answers();
    const begun = gate.close();
    const changed = change(made);
    await Promise.race([begun, changed]);
    const meanwhile = await answers();
    gate.open();
    await changed;
    expect(meanwhile, name).toEqual(before);
  }
});

/** The code of what refuses a request, while the change before it is being written. */
async function refusedBehind(
  engine: Engine,
  gate: GatedStore,
  change: () => Promise<unknown>,
  request: () => Promise<unknown>,
) {
  const queued = vi.spyOn(contextOf(engine).ledger.writer, "run");
  let begun = gate.close();
  const earlier = engine.applications.create({ name: "earlier" });
  await begun;
  const changed = change();
  const refused = refusal(request());
  await vi.waitFor(() => expect(queued).toHaveBeenCalledTimes(3));
  gate.open();
  begun = gate.close();
  await begun;
  // The writer applies the request meanwhile.
  for (let pass = 0; pass < 10; pass++) await nextPass();
  gate.open();
  await Promise.all([earlier, changed]);
  return (await refused).code;
}

test("a withdrawal is refused behind a change that leaves its asset out, durable or not", async () => {
  const gate = new GatedStore();
  const made = await fixture({ store: gate.store });
  const { engine, tenant, assets } = made;
  await using _ = engine;
  const sword = mintOf(assets.erc721, 1);
  await engine.mint(tenant.principal, requestOf(tenant.users[0], sword));
  await engine.operator.seal("validium");
  const [asset] = (await engine.batches.getSealed("validium", 0)).assets;
  const list = await signedList(made, [0n]);
  const leaveOut = () =>
    engine.operator.leaveOut("validium", 0, [{ ...asset!, failure: "no consent" }]);
  const request = () => engine.withdrawals.request(tenant.principal, list);
  expect(await refusedBehind(engine, gate, leaveOut, request)).toBe("vault_void");
});

test("an order is refused behind the removal of the asset that it wants, durable or not", async () => {
  const gate = new GatedStore();
  const made = await transferable({ store: gate.store });
  const { engine, tenant } = made;
  await using _ = engine;
  const orders = ordersOf(engine);
  await orders.setTerms(tenant.applicationId, { listing: "owners", fee: null, assets: [] });
  const assetId = await knownAsset(engine, "erc20");
  await engine.operator.recordRegistered(assetId, { minterLocked: true, transferable: true });
  const want = { assetId, amount: 250n };
  const order = await signedOrder(made, { vaultId: made.token, want });
  const remove = () => engine.assets.remove(assetId);
  const list = () => orders.create(tenant.principal, order);
  expect(await refusedBehind(engine, gate, remove, list)).toBe("asset_not_found");
});
