import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { examine } from "../../scripts/doctor/doctor.ts";
import { readConfig } from "../../server/process/settings/config.ts";

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

test("a node without final blocks is a fault that names MINTMARK_CONFIRMATIONS, and none with it", async () => {
  await new Promise<void>((resolve) => node.listen(0, "127.0.0.1", resolve));
  const finality = async (settings: Readonly<Record<string, string>>) => {
    const config = readConfig({
      MINTMARK_STORE: "store",
      MINTMARK_ENVIRONMENT: "sandbox",
      MINTMARK_CHAIN_ID: "31337",
      MINTMARK_CONTRACT: `0x${"5e".repeat(20)}`,
      MINTMARK_RPC_URL: `http://127.0.0.1:${(node.address() as AddressInfo).port}`,
      ...settings,
    });
    const places = { backup: undefined, members: null, watcher: null, isStopped: true };
    return (await examine(config, places)).find(({ check }) => check === "finality");
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
