import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { http } from "viem";
import { expect, test } from "vitest";
import { COMMITTEE } from "../../scripts/sandbox/accounts.ts";
import { openTest } from "../core/engine/fixture.ts";
import { operatorOf, startMembersWorld } from "../e2e/member-world.ts";
import { OperatorProcess } from "../e2e/operator-process.ts";
import { FaultyNode } from "../faulty-node.ts";
import type { Request } from "../settlement/fixture.ts";

const requestOf = (url: string) => http(url, { retryCount: 0 })({}).request as Request;

test("an idle server with a block each 12 seconds asks little of its node", async () => {
  await using stack = new AsyncDisposableStack();
  const world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
  stack.defer(() => world.close());
  const node = new FaultyNode({ request: requestOf(world.rpcUrl) });
  const rpcUrl = await node.listen();
  stack.defer(() => node.close());
  const store = join(world.folder, "operator");
  await (await openTest(store, { settlement: world.l1.settlement })).close();
  const defaults = { MINTMARK_SEAL_SECONDS: "60", MINTMARK_SETTLE_SECONDS: "2" };
  stack.use(
    await OperatorProcess.start({
      ...{ ...operatorOf(world, store), rpcUrl },
      settings: { ...defaults, MINTMARK_THRESHOLD: "1" },
    }),
  );
  const all = () => [...node.asked.values()].reduce((sum, count) => sum + count, 0);
  await world.client.request({ method: "evm_setIntervalMining", params: [12_000] } as never);
  await pause(15_000);
  const before = all();
  await pause(60_000);
  const aDay = (all() - before) * 24 * 60;
  console.info(`requests of an idle server a day: ${aDay}`, Object.fromEntries(node.asked));
  expect(aDay).toBeLessThan(276_000);
});
