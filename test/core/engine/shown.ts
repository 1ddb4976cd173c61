import type { Engine, Uuid } from "../../../core/index.ts";
import { MODES } from "../../../core/model.ts";
import { ordersOf } from "../../../core/orders/index.ts";
import { all, OWNERS } from "./fixture.ts";

/** All that an engine's reads show. */
export async function shown(engine: Engine, applicationId: Uuid): Promise<unknown> {
  const users = await all(engine.users.list(applicationId));
  const vaults = await all(engine.vaults.list(applicationId));
  const sealed = vaults.filter(({ status }) => status !== "accepted" && status !== "failed");
  const follows = new AbortController();
  const events: unknown[] = [];
  for await (const event of engine.events.stream(applicationId, { signal: follows.signal }))
    events.push(event);
  return {
    applications: await all(engine.applications.list()),
    keys: await all(engine.keys.list(applicationId)),
    assets: await all(engine.operator.assets()),
    enabled: await all(engine.assets.list(applicationId)),
    users,
    vaults,
    events,
    balances: await Promise.all(
      users.map(({ userId }) => all(engine.vaults.balances(applicationId, userId))),
    ),
    transactions: await all(engine.transactions.list(applicationId)),
    withdrawals: await all(engine.withdrawals.list(applicationId)),
    transfers: await all(engine.transfers.list(applicationId)),
    orders: await all(ordersOf(engine).list(applicationId)),
    owned: await Promise.all(OWNERS.map(({ address }) => all(engine.vaults.owned(address)))),
    people: await all(engine.people.list(applicationId)),
    batches: await all(engine.batches.list()),
    state: engine.batches.state(),
    committed: await engine.batches.committedState(),
    history: engine.operator.history(),
    portals: engine.operator.portals(),
    uncommitted: engine.batches.uncommittedVaults(),
    places: MODES.map((mode) => engine.batches.placesLeft(mode)),
    webhooks: await all(engine.webhooks.list(applicationId)),
    proofs: await Promise.all(
      sealed.map(({ vaultId }) => engine.proofs.vault(vaultId).catch(({ code }) => code)),
    ),
  };
}
