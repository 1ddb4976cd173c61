import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { examine } from "../../scripts/doctor/doctor.ts";
import { readConfig } from "../../server/process/settings/config.ts";
import { createWorld } from "../server/fixture.ts";

const node = createServer(async (request, response) => {
  const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
  const isNewest = method === "eth_getBlockByNumber" && params[0] === "latest";
  // Besu's words for a tag that it does not know.
  const error = { code: -32602, message: "Invalid block parameter" };
  const answer = isNewest ? { result: { number: "0x10", timestamp: "0x1" } } : { error };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
afterEach(() => node.close());

const SETTINGS = {
  MINTMARK_STORE: "store",
  MINTMARK_ENVIRONMENT: "sandbox",
  MINTMARK_CHAIN_ID: "31337",
  MINTMARK_CONTRACT: `0x${"5e".repeat(20)}`,
};
const PLACES = { backup: undefined, members: null, watcher: null, isStopped: true };

test("names each failing check of a server that is not ready, and why it refuses everything", async () => {
  let now = Date.now();
  await using world = await createWorld({ clock: () => now });
  const { port } = new URL(await world.app.listen({ host: "127.0.0.1", port: 0 }));
  const config = readConfig({ ...SETTINGS, MINTMARK_PORT: port });
  const server = async () =>
    (await examine(config, PLACES)).filter(({ check }) => check === "server");
  expect(await server()).toMatchObject([{ status: "ok" }]);
  now -= 3_600_000;
  const detail = "the clock is 60 minutes behind the journal's newest entry: set it right";
  // The server holds an answer for a second.
  await expect.poll(server).toMatchObject([
    {
      status: "fault",
      found: `clock: ${detail}`,
      todo: "Find the check clock in docs/operating.md.",
    },
  ]);
  world.app.drain();
  expect(await server()).toMatchObject([
    { status: "fault", found: expect.stringContaining("(503): The server is shutting down") },
  ]);
});

test("a node without final blocks is a fault that names MINTMARK_CONFIRMATIONS, and none with it", async () => {
  await new Promise<void>((resolve) => node.listen(0, "127.0.0.1", resolve));
  const finality = async (settings: Readonly<Record<string, string>>) => {
    const config = readConfig({
      ...SETTINGS,
      MINTMARK_RPC_URL: `http://127.0.0.1:${(node.address() as AddressInfo).port}`,
      ...settings,
    });
    return (await examine(config, PLACES)).find(({ check }) => check === "finality");
  };
  expect(await finality({})).toMatchObject({
    status: "fault",
    todo: expect.stringContaining("MINTMARK_CONFIRMATIONS"),
  });
  expect(await finality({ MINTMARK_CONFIRMATIONS: "64" })).toMatchObject({
    status: "ok",
    found: expect.stringContaining("64 blocks"),
  });
});
