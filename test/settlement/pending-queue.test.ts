import { expect, test } from "vitest";
import type { Engine, VaultId } from "../../core/index.ts";
import { pendingQueue } from "../../core/settlement/withdrawal-sender.ts";
import type { PendingOptions } from "../../core/withdrawals/pending.ts";
import { fixture, mintOf, requestOf } from "../core/engine/fixture.ts";
import { committed, HOME, ownerAddress, withdrawn } from "../core/engine/l1-fixture.ts";
import { withdrawOne } from "../one-withdrawal.ts";

/**
 * A queue, and how many withdrawals it has listed and read of the engine's since it was last asked.
 */
function counted(engine: Engine) {
  let [listed, read] = [0, 0];
  const operator = {
    ...engine.operator,
    async *pendingWithdrawals(chainId: bigint, options?: PendingOptions) {
      for await (const pending of engine.operator.pendingWithdrawals(chainId, options)) {
        listed++;
        yield pending;
      }
    },
    pendingWithdrawal(id: Parameters<Engine["operator"]["pendingWithdrawal"]>[0]) {
      read++;
      return engine.operator.pendingWithdrawal(id);
    },
  };
  const queue = pendingQueue({ ...engine, operator }, HOME);
  /**
   * The withdrawals that are ready so many seconds after the commit, and the work that it took to
   * know.
   */
  const pass = async (seconds: bigint) => {
    [listed, read] = [0, 0];
    const moment = { maturity: 100n, time: 1_007n + seconds, finalTime: 1_000n };
    const ready: VaultId[] = [];
    for await (const { withdrawal } of queue.ready(moment, () => false))
      ready.push(withdrawal.vaultId);
    return { ready, listed, read };
  };
  return { queue, pass };
}

/** Four tokens in a sealed batch, and a way to ask for them. */
async function asking() {
  const { engine, tenant, assets, clock } = await fixture({ verifySignature: async () => true });
  const mints = ["1", "2", "3", "4"].map((id) => mintOf(assets.erc721, id, 1));
  await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
  await engine.operator.seal("validium");
  const deadline = BigInt(clock.now / 1_000 + 3_600);
  const ask = async (...vaults: bigint[]) => {
    const asked = { deadline, signature: "0x1234" } as const;
    for (const vaultId of vaults) {
      const listed = [{ vaultId, withdrawnBefore: 0n, quantity: 1n }];
      await withdrawOne(engine, tenant.principal, { vaults: listed, ...asked });
    }
  };
  const commit = async () =>
    engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 7n)], 9n);
  return { engine, ask, commit };
}

test("a pass lists what is new, and reads nothing of what has not matured", async () => {
  const { engine, ask, commit } = await asking();
  await using _ = engine;
  await commit();
  await ask(0n, 1n, 2n);
  const { pass } = counted(engine);
  expect(await pass(0n)).toEqual({ ready: [], listed: 3, read: 0 });
  expect(await pass(99n)).toEqual({ ready: [], listed: 0, read: 0 });
  await ask(3n);
  expect(await pass(99n)).toEqual({ ready: [], listed: 1, read: 0 });
  expect(await pass(100n)).toEqual({ ready: [0n, 1n, 2n, 3n], listed: 0, read: 4 });
  // A vault that its owner has withdrawn alone is read once more, and forgotten.
  await engine.operator.recordEvents(HOME, [withdrawn(1n, 1n, 1n, ownerAddress, 12n)], 12n);
  expect(await pass(100n)).toEqual({ ready: [0n, 2n, 3n], listed: 0, read: 4 });
  expect(await pass(100n)).toEqual({ ready: [0n, 2n, 3n], listed: 0, read: 3 });
});

test("a pass reads one of those that wait for a batch, and all once a reorganisation took something back", async () => {
  const { engine, ask, commit } = await asking();
  await using _ = engine;
  await ask(0n, 1n, 2n);
  const { queue, pass } = counted(engine);
  expect(await queue.awaitedBatches()).toHaveLength(1);
  expect(await pass(100n)).toEqual({ ready: [], listed: 0, read: 1 });
  await commit();
  expect(await pass(100n)).toEqual({ ready: [0n, 1n, 2n], listed: 0, read: 3 });
  expect(await queue.awaitedBatches()).toEqual([]);
  await engine.operator.recordEvents(HOME, [withdrawn(1n, 1n, 1n, ownerAddress, 12n)], 12n);
  expect((await pass(100n)).ready).toEqual([0n, 2n]);
  await engine.operator.recordReorg(HOME, 10n);
  expect(await pass(100n)).toEqual({ ready: [0n, 1n, 2n], listed: 3, read: 3 });
});
