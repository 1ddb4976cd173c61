import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createPublicClient, type Hex, http } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEngine } from "../../core/index.ts";
import { deploySettlement } from "../../scripts/deploy/settlement.ts";
import { ADMIN, GUARDIAN, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { startChain } from "../../scripts/sandbox/chain.ts";
import { cleanEnvironment } from "../cli/cli.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
/** Of the chain that runs, which no list of local test chains holds. */
const CHAIN_ID = 31_338n;
const NOBODY = `0x${"5e".repeat(20)}`;

let folder: string;
let rpcUrl: string;
let contract: Hex;
let stopChain: () => Promise<void>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-start-"));
  ({ rpcUrl, stop: stopChain } = await startChain("other", 0));
  const transport = http(rpcUrl);
  const client = createPublicClient({ transport, pollingInterval: 20 });
  const by = { account: ADMIN, client, transport, chainId: Number(CHAIN_ID) };
  const [admin, guardian, operator] = [ADMIN.address, GUARDIAN.address, OPERATOR.address];
  const terms = { committee: [admin], threshold: 1, changeDelay: 60n, maturity: 1n };
  contract = (await deploySettlement(by, { admin, guardian, operator, ...terms })).address.toLowerCase() as Hex;
  for (const environment of ["sandbox", "live"] as const) {
    const settlement = { chainId: CHAIN_ID, contract, engineVersion: 5 };
    await (
      await openEngine({ store: join(folder, environment), settlement, environment, createIfMissing: true })
    ).close();
  }
});
afterAll(async () => {
  await stopChain();
  await rm(folder, { recursive: true, force: true });
});

/** Starts the server, which must not start; resolves with what it says. */
async function refusal(environment: string, settings: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", "server/main.ts"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    env: cleanEnvironment({
      MINTMARK_STORE: join(folder, environment),
      MINTMARK_ENVIRONMENT: environment,
      MINTMARK_CHAIN_ID: `${CHAIN_ID}`,
      MINTMARK_CONTRACT: contract,
      MINTMARK_PORT: "0",
      ...settings,
    }),
  });
  child.stdout.once("data", () => child.kill("SIGKILL"));
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([code, said]).toEqual([1, expect.not.stringContaining("    at ")]);
  return said;
}

test.each([
  ["a chain of another id", "sandbox", { MINTMARK_CHAIN_ID: "31339" }, /chain 31338, not 31339\n.*MINTMARK_CHAIN_ID/],
  ["a live chain of another id", "live", { MINTMARK_CHAIN_ID: "5" }, /chain 31338, not 5\n.*MINTMARK_CHAIN_ID/],
  [
    "a contract that is on another chain",
    "live",
    { MINTMARK_CONTRACT: NOBODY },
    /engine version of 0x5e.*\n.*MINTMARK_CONTRACT/s,
  ],
])("a server does not start with %s", async (_, environment, settings, reason) => {
  expect(await refusal(environment, { MINTMARK_RPC_URL: rpcUrl, ...settings })).toMatch(reason);
});

test("a server does not start with a store of the other environment, or another chain", async () => {
  const live = { MINTMARK_STORE: join(folder, "live") };
  expect(await refusal("sandbox", live)).toMatch(/environment is live, not sandbox.\n.*MINTMARK_ENVIRONMENT/);
  const chain = { MINTMARK_CHAIN_ID: "31339" };
  expect(await refusal("sandbox", chain)).toMatch(/chainId is 31338, not 31339.\n.*MINTMARK_CHAIN_ID/);
  const sandbox = { MINTMARK_STORE: join(folder, "sandbox"), MINTMARK_RPC_URL: rpcUrl };
  expect(await refusal("live", sandbox)).toMatch(/environment is sandbox, not live.\n.*MINTMARK_ENVIRONMENT/);
});
