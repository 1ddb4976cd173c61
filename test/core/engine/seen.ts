import type { Engine, Uuid } from "../../../core/index.ts";

/** Everything that readers see of an application, and the state over all. */
export async function seen(engine: Engine, applicationId: Uuid) {
  const users = await Array.fromAsync(engine.users.list(applicationId));
  return {
    state: engine.batches.state(),
    committed: await engine.batches.committedState(),
    open: [engine.batches.getOpen("validium"), engine.batches.getOpen("zk-rollup")],
    batches: await Array.fromAsync(engine.batches.list()),
    users,
    keys: await Array.fromAsync(engine.keys.list(applicationId)),
    assets: await Array.fromAsync(engine.assets.list(applicationId)),
    transactions: await Array.fromAsync(engine.transactions.list(applicationId)),
    vaults: await Array.fromAsync(engine.vaults.list(applicationId)),
    withdrawals: await Array.fromAsync(engine.withdrawals.list(applicationId)),
    events: await Array.fromAsync(engine.events.stream(applicationId)),
    balances: await Promise.all(
      users.map(({ userId }) => Array.fromAsync(engine.vaults.balances(applicationId, userId))),
    ),
    portals: engine.operator.portals(),
  };
}
