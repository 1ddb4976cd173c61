import { get } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { Metrics, serveMetrics } from "../../server/process/metrics.ts";
import { createWorld, entries } from "./fixture.ts";

test("metrics count requests, problems and mints, show batches and L1, and name no caller", async () => {
  let metrics: Metrics | undefined;
  await using world = await createWorld({ onAnswer: (answer) => metrics?.observe(answer) });
  let reachable = true;
  const chain = {
    blockNumber: async () => 7n,
    operatorBalance: () =>
      reachable ? Promise.resolve(5n * 10n ** 17n) : Promise.reject(new Error("down")),
  };
  const checks = () => ({ purse: () => Promise.reject(new Error("empty")) });
  const chains = new Map([[world.engine.settlement.chainId, async () => chain]]);
  metrics = new Metrics({ engine: world.engine, chains, checks });
  await using server = await serveMetrics(metrics, "127.0.0.1", 0, ["metrics.example"]);
  const read = async () => (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();

  const body = { users: [{ userId: world.users[0], mints: entries(world, 1) }] };
  await world.send("POST", "/api/v1/mint", { body });
  await world.send("POST", "/api/v1/mint", { body });
  await world.send("GET", `/api/v1/users/${world.users[0]}`);
  await world.app.inject({ url: `/nowhere/${world.key}` });
  await world.engine.operator.seal("validium");

  const text = await read();
  for (const line of [
    "mintmark_mint_requests_total 1",
    "mintmark_mints_total 3",
    'mintmark_http_problems_total{code="token_already_minted"} 1',
    'mintmark_http_request_seconds_count{method="POST",route="/api/v1/mint",status="200"} 1',
    'mintmark_http_request_seconds_count{method="GET",route="/api/v1/users/:userId",status="200"} 1',
    'mintmark_http_request_seconds_count{method="GET",route="none",status="404"} 1',
    'mintmark_open_batch_vaults{mode="zk-rollup"} 1',
    'mintmark_batches_sealed{mode="validium"} 1',
    'mintmark_batches_committed{mode="validium"} 0',
    'mintmark_vaults_sealed_total{mode="validium"} 2',
    'mintmark_l1_lag_blocks{chain="31337"} 7',
    'mintmark_operator_balance_ether{chain="31337"} 0.5',
    'mintmark_check_ok{check="store"} 1',
    'mintmark_check_ok{check="purse"} 0',
  ]) {
    expect(text.split("\n"), line).toContain(line);
  }
  expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
  expect(text).not.toContain(world.users[0]);
  expect(text).not.toContain(world.key);
  expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(404);
  expect((await fetch(`http://127.0.0.1:${server.port}/metrics`, { method: "HEAD" })).status).toBe(
    404,
  );

  reachable = false;
  const without = await read();
  expect(without).toContain('mintmark_l1_lag_blocks{chain="31337"} 7');
  expect(without).not.toMatch(/^mintmark_operator_balance_ether\{.*\d/m);
});

test("a fault of the server is an internal error, and counts as one", async () => {
  let metrics: Metrics | undefined;
  await using world = await createWorld({ onAnswer: (answer) => metrics?.observe(answer) });
  metrics = new Metrics({ engine: world.engine });
  vi.spyOn(world.engine, "mint").mockRejectedValue(new Error("broken"));
  const body = { users: [{ userId: world.users[0], mints: entries(world, 1) }] };
  const answer = await world.send("POST", "/api/v1/mint", { body });
  expect(answer.status).toBe(500);
  expect(answer.body).toMatchObject({ code: "internal" });
  expect(await metrics.registry.metrics()).toContain(
    'mintmark_http_problems_total{code="internal"} 1',
  );
  metrics.close();
});

test("the metrics of a server are refused to another site's name", async () => {
  await using world = await createWorld();
  await using server = await serveMetrics(new Metrics({ engine: world.engine }), "127.0.0.1", 0, [
    "metrics.example",
  ]);
  const asked = (host: string) =>
    new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const options = { port: server.port, path: "/metrics", headers: { host } };
      get(options, async (response) =>
        resolve({ status: response.statusCode, text: await text(response) }),
      ).on("error", reject);
    });
  const refused = await asked("attacker.example");
  expect(refused.status).toBe(421);
  expect(refused.text).toContain("MINTMARK_HOSTS");
  expect(refused.text).not.toContain("mintmark_");
  for (const host of ["metrics.example:9464", "localhost", "10.0.0.7"])
    expect((await asked(host)).status).toBe(200);
});
