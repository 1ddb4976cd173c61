import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toHex } from "viem";
import type { HDAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ADMIN, COMMITTEE, OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { answer, createClient, mint } from "../../server/client/index.ts";
import { Npm } from "../npm.ts";
import { at } from "../settlement/fixture.ts";

// One system whose processes and commands all run as the documentation names them.

const POLL = { interval: 200 };
const MODES = ["validium", "zk-rollup"] as const;
const [member, { owner }] = [at(COMMITTEE, 0), at(USERS, 0)];
const keyOf = (account: HDAccount) => toHex(account.getHdKey().privateKey ?? new Uint8Array());

type Settings = Readonly<Record<string, string>>;
const stack = new AsyncDisposableStack();
const start = (args: readonly string[], settings: Settings, input?: string) =>
  stack.use(new Npm(args, settings, input));
const MINTMARK = ["exec", "--", "mintmark"];
const run = async (name: string, args: readonly string[], settings: Settings, input?: string) => {
  await using command = new Npm([...MINTMARK, name, ...args, "--json"], settings, input);
  return await command.json();
};

let folder: string;
/** Settings of whatever reads L1. */
let l1: Settings;
let keeper: Npm;
let server: Npm;
/** Who has the data of the batches. */
let peers: string;
let vaults: readonly { readonly vaultId: string }[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-documented-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
});
afterAll(() => stack.disposeAsync());
const file = (name: string) => join(folder, name);

test("`npm run server` makes the mints of both modes final", async () => {
  const chain = start([...MINTMARK, "chain"], { MINTMARK_CHAIN_PORT: "0" });
  const rpcUrl = await chain.says(/local chain (http:\S+)/);
  const { settlement, tokens } = await run("deploy", [], {
    MINTMARK_RPC_URL: rpcUrl,
    MINTMARK_DEPLOYER_KEY: keyOf(OPERATOR),
    MINTMARK_DEPLOYMENTS: folder,
    MINTMARK_COMMITTEE: member.address,
    MINTMARK_THRESHOLD: "1",
    MINTMARK_MATURITY: "1",
    MINTMARK_TOKEN: JSON.stringify({ standard: "erc721", name: "Swords", symbol: "SWRD" }),
  });
  l1 = {
    MINTMARK_RPC_URL: rpcUrl,
    MINTMARK_CONTRACT: settlement.address,
    MINTMARK_FROM_BLOCK: `${settlement.deployedAtBlock}`,
    MINTMARK_CONFIRMATIONS: "1",
  };
  const own = {
    ...l1,
    MINTMARK_STORE: file("store"),
    MINTMARK_ENVIRONMENT: "sandbox",
    MINTMARK_CHAIN_ID: "31337",
  };
  const mintmark = async (...args: string[]) => {
    await using command = new Npm(["exec", "--", "mintmark", ...args, "--json"], own);
    return await command.json();
  };
  await mintmark("init");
  const { applicationId } = await mintmark("applications", "create", "My game");
  const { apiKey } = await mintmark("keys", "issue", "--application", applicationId);
  const sword = [
    "--standard",
    "erc721",
    "--name",
    "Swords",
    "--symbol",
    "SWRD",
    "--application",
    applicationId,
  ];
  const { assetId } = await mintmark("assets", "add", tokens[0].address, ...sword);
  await mintmark("assets", "register", assetId);

  const poll = { MINTMARK_PORT: "0", MINTMARK_POLL_MS: "200" };
  keeper = start(
    [...MINTMARK, "member"],
    { ...l1, ...poll, MINTMARK_MEMBER_STORE: file("member") },
    keyOf(member),
  );
  const memberUrl = await keeper.says(/member 0x\w+ listens on (\S+)/);
  server = start(["run", "server"], {
    ...own,
    MINTMARK_PORT: "0",
    MINTMARK_OPERATOR_KEY: keyOf(OPERATOR),
    MINTMARK_MEMBERS: `${member.address}=${memberUrl}`,
    MINTMARK_THRESHOLD: "1",
    MINTMARK_SEAL_SECONDS: "1",
  });
  const baseUrl = await server.says(/Server listening at (http:[^"\s]+)/);
  peers = `${memberUrl},${baseUrl}`;
  const client = createClient({ baseUrl, apiKey });
  await expect
    .poll(async () => (await answer(client.GET("/api/v1/limits"))).rollupData, POLL)
    .toBe("blobs");
  const mints = MODES.map((dataAvailabilityMode, i) => {
    return { assetId, tokenId: `${i + 1}`, amount: "1", dataAvailabilityMode };
  });
  ({ vaults } = await mint(client, { users: [{ ownerAddress: owner.address, mints }] }));
  for (const { vaultId } of vaults) {
    const params = { path: { vaultId } };
    const status = async () =>
      (await answer(client.GET("/api/v1/vaults/{vaultId}", { params }))).status;
    await expect.poll(status, POLL).toBe("finalized");
  }
  expect((await fetch(`${baseUrl}/readyz`)).status, server.said).toBe(200);
  expect(server.said).not.toContain("Warning");
});

test("`mintmark watch` watches, and `mintmark rebuild` finds every root and all data", async () => {
  const store = { ...l1, MINTMARK_PEERS: peers };
  const watch = start(
    [...MINTMARK, "watch"],
    { ...store, MINTMARK_STORE: file("watcher") },
    keyOf(ADMIN),
  );
  await watch.says(/watching 0x\w+; Ctrl-C stops/);
  // The last block is not final yet.
  const rebuilt = () => run("rebuild", [], { ...store, MINTMARK_STORE: file("rebuilt") });
  await expect.poll(rebuilt, POLL).toMatchObject({
    batches: { validium: 1, "zk-rollup": 1 },
    vaults: { validium: 1, "zk-rollup": 1 },
    missing: [],
  });
  expect(await server.stop()).toBe(0);
  await Promise.all([watch.interrupt(), keeper.interrupt()]);
});

test("`mintmark exit-kit` and `mintmark exit` withdraw both vaults when server and member are gone", async () => {
  for (const { vaultId } of vaults) {
    const kit = file(`${vaultId}.json`);
    await using made = new Npm(
      [...MINTMARK, "exit-kit", vaultId, "--store", file("rebuilt"), "--out", kit],
      {
        MINTMARK_RPC_URL: l1.MINTMARK_RPC_URL ?? "",
        MINTMARK_CONTRACT: l1.MINTMARK_CONTRACT ?? "",
      },
    );
    expect(await made.ended, made.said).toBe(0);
    expect(JSON.parse(await readFile(kit, "utf8"))).toMatchObject({ vault: { vaultId } });
    const settings = { MINTMARK_RPC_URL: l1.MINTMARK_RPC_URL ?? "" };
    expect(await run("exit", [kit, "--wait"], settings, keyOf(owner))).toMatchObject({
      vaultId,
      heldBefore: "0",
      held: "1",
    });
  }
});
