import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type Hex, http, toHex } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deploySettlement } from "../../scripts/deploy/settlement.ts";
import { ADMIN, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { startChain } from "../../scripts/sandbox/chain.ts";
import { cleanEnvironment, SERVER, settingsOf } from "../cli/cli.ts";
import { openTest } from "../core/engine/fixture.ts";
import { adminOver, readyAsset, TERMS } from "../settlement/fixture.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
/** The running chain's id, which no list of local test chains holds. */
const CHAIN_ID = 31_338n;
const NOBODY = `0x${"5e".repeat(20)}` as const;

let folder: string;
let rpcUrl: string;
let contract: Hex;
let stopChain: () => Promise<void>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-start-"));
  ({ rpcUrl, stop: stopChain } = await startChain("other", 0));
  const terms = { ...TERMS, committee: [ADMIN.address], threshold: 1, maturity: 1n };
  contract = (
    await deploySettlement(await adminOver(http(rpcUrl)), terms)
  ).address.toLowerCase() as Hex;
  for (const environment of ["sandbox", "live"] as const) {
    const settlement = { chainId: CHAIN_ID, contract, engineVersion: 5 };
    await (await openTest(join(folder, environment), { settlement, environment })).close();
  }
});
afterAll(async () => {
  await stopChain();
  await rm(folder, { recursive: true, force: true });
});

/** Starts the server, which must not start; resolves with what it says. */
async function refusal(environment: string, settings: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, SERVER, {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    env: cleanEnvironment({
      ...settingsOf(join(folder, environment), { chainId: CHAIN_ID, contract }),
      MINTMARK_ENVIRONMENT: environment,
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
  [
    "a chain of another id",
    "sandbox",
    { MINTMARK_CHAIN_ID: "31339" },
    /chain 31338, not 31339\n.*MINTMARK_CHAIN_ID/,
  ],
  [
    "a live chain of another id",
    "live",
    { MINTMARK_CHAIN_ID: "5" },
    /chain 31338, not 5\n.*MINTMARK_CHAIN_ID/,
  ],
  [
    "a contract that is on another chain",
    "live",
    { MINTMARK_CONTRACT: NOBODY },
    /0x5e.*is not this version's StateCommitment.*\n.*MINTMARK_CONTRACT/s,
  ],
])("a server does not start with %s", async (_, environment, settings, reason) => {
  expect(await refusal(environment, { MINTMARK_RPC_URL: rpcUrl, ...settings })).toMatch(reason);
});

test("a server does not start with a store of the other environment, or another chain", async () => {
  const live = { MINTMARK_STORE: join(folder, "live") };
  expect(await refusal("sandbox", live)).toMatch(
    /environment is live, not sandbox.\n.*MINTMARK_ENVIRONMENT/,
  );
  const chain = { MINTMARK_CHAIN_ID: "31339" };
  expect(await refusal("sandbox", chain)).toMatch(
    /chainId is 31338, not 31339.\n.*MINTMARK_CHAIN_ID/,
  );
  const sandbox = { MINTMARK_STORE: join(folder, "sandbox"), MINTMARK_RPC_URL: rpcUrl };
  expect(await refusal("live", sandbox)).toMatch(
    /environment is sandbox, not live.\n.*MINTMARK_ENVIRONMENT/,
  );
});

function toChain(socket: Socket): void {
  const chain = connect(Number(new URL(rpcUrl).port), "127.0.0.1");
  socket.on("error", () => chain.destroy()).pipe(chain);
  chain.on("error", () => socket.destroy()).pipe(socket);
}

/** A port that is free now, and leads to the chain from when it is asked to. */
async function laterNode() {
  const node = createServer(toChain);
  const listen = (port: number) =>
    new Promise<void>((done) => node.listen(port, "127.0.0.1", done));
  await listen(0);
  const { port } = node.address() as AddressInfo;
  await new Promise((done) => node.close(done));
  return { url: `http://127.0.0.1:${port}`, comesUp: () => listen(port), stop: () => node.close() };
}

/** Starts a server and resolves when it listens. */
async function listening(settings: Record<string, string>) {
  const child = spawn(process.execPath, SERVER, {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    env: cleanEnvironment({
      ...settingsOf("", { chainId: CHAIN_ID, contract }),
      MINTMARK_PORT: "0",
      ...settings,
    }),
  });
  const said = text(child.stderr);
  let log = "";
  const url = await new Promise<string>((done, failed) => {
    child.once("exit", () => void said.then((reason) => failed(new Error(reason))));
    child.stdout.on("data", (lines: Buffer) => {
      log += lines;
      const [, at] = /Server listening at (http:[^"]+)/.exec(log) ?? [];
      if (at !== undefined) done(at);
    });
  });
  return { child, url, said };
}

/** A store of the contract with all that a mint needs. */
async function mintable(name: string) {
  const store = join(folder, name);
  const settlement = { chainId: CHAIN_ID, contract, engineVersion: 5 };
  const engine = await openTest(store, { settlement });
  const { applicationId } = await engine.applications.create({ name });
  const { secret } = await engine.keys.issue(applicationId);
  const { userId } = await engine.users.create(applicationId, { ownerAddress: NOBODY });
  const asset = { standard: "erc20", contractAddress: NOBODY, name, symbol: name } as const;
  const assetId = await readyAsset(engine, applicationId, asset);
  await engine.close();
  const mints = [{ assetId, mintingBlob: "", amount: 1, dataAvailabilityMode: "validium" }];
  return { store, secret, request: { users: [{ userId, mints }] } };
}

test.each([
  ["without a key", {}],
  [
    "that settles",
    {
      MINTMARK_OPERATOR_KEY: toHex(OPERATOR.getHdKey().privateKey ?? 0),
      MINTMARK_MEMBERS: `${ADMIN.address}=http://127.0.0.1:1`,
      MINTMARK_THRESHOLD: "1",
    },
  ],
])("a server %s serves reads and takes no mints until L1 answers", async (name, settings) => {
  const { store, secret, request } = await mintable(name);
  const node = await laterNode();
  const { child, url } = await listening({
    ...settings,
    MINTMARK_STORE: store,
    MINTMARK_RPC_URL: node.url,
  });
  const ask = async (path: string, body?: unknown) => {
    const headers = {
      "x-api-key": secret,
      ...(body !== undefined && { "content-type": "application/json" }),
    };
    const more = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const answer = await fetch(`${url}${path}`, { headers, ...more });
    return [answer.status, ((await answer.json()) as { code?: string }).code];
  };
  try {
    expect(await ask("/healthz")).toEqual([200, undefined]);
    expect(await ask("/api/v1/state")).toEqual([200, undefined]);
    expect(await ask("/readyz")).toEqual([503, "not_ready"]);
    expect(await ask("/api/v1/mint", request)).toEqual([503, "l1_not_compared"]);
    await node.comesUp();
    await expect
      .poll(() => ask("/api/v1/mint", request), { interval: 200 })
      .toEqual([200, undefined]);
    // A finding holds for a second. The server that settles has a committee that does not answer.
    const ready = name === "without a key" ? [200, undefined] : [503, "not_ready"];
    await expect.poll(() => ask("/readyz"), { interval: 200 }).toEqual(ready);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  } finally {
    child.kill("SIGKILL");
    node.stop();
  }
});

test("a server ends on SIGTERM while it waits for L1, and by itself when the L1 that comes up is another", async () => {
  const other = { chainId: CHAIN_ID, contract: NOBODY, engineVersion: 5 } as const;
  const store = join(folder, "nobody");
  await (await openTest(store, { settlement: other })).close();
  const node = await laterNode();
  const settings = { MINTMARK_STORE: store, MINTMARK_CONTRACT: NOBODY, MINTMARK_RPC_URL: node.url };
  const first = await listening(settings);
  first.child.kill("SIGTERM");
  expect(await once(first.child, "exit")).toEqual([0, null]);
  const second = await listening(settings);
  try {
    await node.comesUp();
    expect(await once(second.child, "exit")).toEqual([1, null]);
    expect(await second.said).toMatch(
      /0x5e.*is not this version's StateCommitment.*\n.*MINTMARK_CONTRACT/s,
    );
  } finally {
    second.child.kill("SIGKILL");
    node.stop();
  }
});

test.each(["member", "watch"])(
  "`mintmark %s` ends on a SIGTERM that comes while it connects to L1",
  async (command) => {
    const node = await interrupting(() => child.kill("SIGTERM"));
    const store = join(folder, command);
    const child = spawn(process.execPath, ["scripts/mintmark.js", command], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "inherit"],
      env: cleanEnvironment({
        [command === "member" ? "MINTMARK_MEMBER_STORE" : "MINTMARK_STORE"]: store,
        [command === "member" ? "MINTMARK_MEMBER_KEY" : "MINTMARK_WATCHER_KEY"]: toHex(7n, {
          size: 32,
        }),
        MINTMARK_FROM_BLOCK: "0",
        MINTMARK_CONTRACT: contract,
        MINTMARK_PORT: "0",
        MINTMARK_RPC_URL: node,
      }),
    });
    try {
      const started = once(child.stdout, "data").then(([line]) => `it started: ${line}`);
      expect(await Promise.race([once(child, "exit"), started])).toEqual([0, null]);
    } finally {
      child.kill("SIGKILL");
    }
  },
);

/** The chain's node, which does something at each connection before it answers. */
async function interrupting(work: () => void): Promise<string> {
  const node = createServer((socket) => {
    work();
    toChain(socket);
  });
  await new Promise<void>((done) => node.listen(0, "127.0.0.1", done));
  node.unref();
  return `http://127.0.0.1:${(node.address() as AddressInfo).port}`;
}
