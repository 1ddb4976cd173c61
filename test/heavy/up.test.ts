import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createPublicClient, http } from "viem";
import { afterEach, expect, test } from "vitest";
import { readRecord } from "../../scripts/deploy/record.ts";
import { freePort } from "../../scripts/sandbox/port.ts";
import { Npm } from "../npm.ts";
import {
  AWAY,
  answersIn,
  BASE,
  chainOf,
  clientOf,
  endAll,
  folderOf,
  funded,
  HARDHAT,
  mintAndWithdraw,
  mintmark,
  portOf,
  TOKEN,
  track,
} from "../up-world.ts";

afterEach(endAll);

test("runs against `npx hardhat node`, whose accounts pay", async () => {
  const folder = await folderOf();
  const [chainPort, port] = [await freePort(0), portOf()];
  const node = new Npm(["exec", "--", "hardhat", "node", "--port", `${chainPort}`]);
  track(() => node[Symbol.asyncDispose]());
  await node.says(/Started HTTP/);
  const url = `http://127.0.0.1:${chainPort}`;
  const answers = await answersIn(folder, { members: 1, tokens: [TOKEN], maturitySeconds: 1, port });
  const args = ["--folder", folder, "--answers", answers, "--poll-ms", "200", "--yes", "--start"];
  const running = mintmark("up", "--network", url, ...args);
  await running.says(/all processes are ready/);
  await mintAndWithdraw({ folder, port, chainId: HARDHAT, client: clientOf(url) });
});

test("is killed at each step and started again, and deploys everything once", async () => {
  const run = async (isKilled: boolean, steps: readonly string[]) => {
    const { url, client } = await chainOf(BASE);
    const folder = await folderOf();
    const answers = await answersIn(folder, { members: 1, tokens: [TOKEN] });
    const args = ["up", "--network", url, "--folder", folder, "--answers", answers, "--poll-ms", "200"];
    const more = [...args, "--sourcify", AWAY, "--yes"];
    await funded(more, client);
    for (const step of isKilled ? steps : []) {
      const killed = mintmark(...more);
      // A later run need not come by each step.
      await killed.says(new RegExp(`${step}|apiKeyFile|API key`));
      await killed[Symbol.asyncDispose]();
    }
    const last = mintmark(...more);
    expect(await last.ended).toBe(0);
    const { settlement } = (await readRecord(join(folder, "deployments", `${BASE}.json`))) ?? {};
    const sent = await createPublicClient({ transport: http(url) }).getTransactionCount({
      address: settlement?.admin ?? "0x",
    });
    const record = JSON.parse(await readFile(join(folder, "up.json"), "utf8")) as { seeded: { assets: unknown[] } };
    expect(record.seeded.assets).toHaveLength(1);
    return { sent, steps: [...last.said.matchAll(/^… (\w+ \w+)/gm)].map(([, line = ""]) => line) };
  };
  const whole = await run(false, []);
  const killed = await run(true, whole.steps);
  expect(whole.steps.length).toBeGreaterThan(4);
  expect(killed.sent).toBe(whole.sent);
});
