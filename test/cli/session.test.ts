import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deploySettlement } from "../../scripts/deploy/settlement.ts";
import { buildServer } from "../../server/app.ts";
import { anvil, at } from "../settlement/fixture.ts";
import {
  becomeFinal,
  createTransferWorld,
  type TransferWorld,
} from "../settlement/transfers-fixture.ts";
import { mintmark } from "./cli.ts";

const friend = privateKeyToAccount(generatePrivateKey()).address;
const payerKey = generatePrivateKey();
const NOBODY = `0x${"00".repeat(20)}`;

let chain: Awaited<ReturnType<typeof anvil>>;
let world: TransferWorld;
let folder: string;
let owner: string;
let settings: Record<string, string>;
let app: Awaited<ReturnType<typeof buildServer>>;
/** A server in between that changes what the real one answers. */
let liar: Server;
let lie: (text: string) => string = (text) => text;

beforeAll(async () => {
  chain = await anvil();
  world = await createTransferWorld({ node: async () => chain });
  folder = await mkdtemp(join(tmpdir(), "mintmark-session-"));
  app = await buildServer({ engine: world.engine });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  liar = createServer(async (asked, reply) => {
    const answered = await fetch(`${url}${asked.url}`, {
      headers: { "x-api-key": String(asked.headers["x-api-key"]) },
    });
    reply
      .writeHead(answered.status, { "content-type": "application/json" })
      .end(lie(await answered.text()));
  });
  await new Promise<void>((listening) => liar.listen(0, "127.0.0.1", listening));
  const { secret } = await world.engine.keys.issue(world.principal.applicationId);
  const account = at(world.users, 0).owner;
  owner = account.address.toLowerCase();
  settings = {
    MINTMARK_URL: url,
    MINTMARK_API_KEY: secret,
    MINTMARK_RPC_URL: chain.url,
    MINTMARK_CONTRACT: world.chain.settlement.address,
    MINTMARK_OWNER_KEY: toHex(account.getHdKey().privateKey ?? new Uint8Array()),
  };
});
afterAll(async () => {
  liar.close();
  await app.close();
  await world.close();
  await rm(folder, { recursive: true, force: true });
});

/** A new key by the command, and its file's content. */
async function newKey(): Promise<{ key: string; privateKey: string }> {
  const file = join(folder, `${Math.random()}.key`);
  const { code, json } = await mintmark(["session", "key", file, "--json"]);
  expect(code).toBe(0);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await mintmark(["session", "key", file])).code).toBe(2);
  return { key: json().keyAddress, privateKey: (await readFile(file, "utf8")).trim() };
}

const authorize = (key: string, ...more: string[]) =>
  mintmark(
    ["session", "authorize", key, "--until", "3h", "--limit-units", "40", "--json", ...more],
    settings,
  );
const onL1 = async (key: string) => world.l1.session(owner as `0x${string}`, key as `0x${string}`);
const show = async (key: string) =>
  (await mintmark(["session", "show", owner, key, "--json"], settings)).json();

/** Makes everything on L1 final until a command has ended. */
async function whileFinal<T>(command: Promise<T>): Promise<T> {
  let isOver = false;
  const over = command.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await becomeFinal(world);
    await Promise.race([over, new Promise((later) => setTimeout(later, 200))]);
  }
  return over;
}

test("an owner authorizes a key, the key gives within its bounds, and after its revocation gives nothing", async () => {
  const { assets, vaults } = world;
  const { key, privateKey } = await newKey();
  const byKey = { ...settings, MINTMARK_SESSION_KEY: privateKey };
  const give = (...args: string[]) =>
    mintmark(["transfer", ...args, "--to", friend, "--session", "--json"], byKey);
  const units = `${vaults.units}`;
  expect(await show(key)).toMatchObject({ status: "none" });

  const { code, json, stderr } = await whileFinal(
    authorize(key, "--asset", assets.get("erc20") ?? "", "--wait"),
  );
  expect([code, stderr]).toEqual([0, ""]);
  const token = world.chain.tokens[0]?.address.toLowerCase();
  expect(json()).toMatchObject({
    ownerAddress: owner,
    keyAddress: key,
    status: "active",
    limit: "40",
    token,
  });
  const known = await onL1(key);
  expect(known).toMatchObject({ limit: 40n, assetType: json().assetType, revokedAt: 0n });
  expect(String(known?.until)).toBe(json().until);

  const wrong = await give(`${vaults.token}`);
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringContaining("does not cover one of the assets"),
  ]);
  expect((await give(units)).stderr).toContain("signature_invalid");
  const given = await give(units, "--units", "40");
  expect(given.code).toBe(0);
  await world.settler.round();
  await becomeFinal(world);
  const { transfers, status } = await world.engine.transfers.get(
    world.principal.applicationId,
    given.json().transferId,
  );
  expect([status, transfers.map(({ amount }) => amount)]).toEqual(["finalized", [40n, 60n]]);

  const revoked = await whileFinal(mintmark(["session", "revoke", key, "--wait"], settings));
  expect([revoked.code, revoked.stdout]).toEqual([0, expect.stringMatching(/^status +revoked$/m)]);
  const change = `${transfers[1]?.newVaultId}`;
  expect((await give(change, "--units", "1")).stderr).toContain("session has ended");
  const again = await authorize(key);
  expect([again.code, again.stderr]).toEqual([
    1,
    expect.stringContaining("has used this key before"),
  ]);
  const { stdout } = await mintmark(["session", "show", owner, key], settings);
  expect(stdout).toMatch(/^status +revoked$/m);
  expect(stdout).toMatch(/^until +20\d\d-.*Z$/m);
});

test("another account pays for what the owner signs, without the server", async () => {
  const { key } = await newKey();
  const payer = privateKeyToAccount(payerKey).address;
  await chain.rpc("anvil_setBalance", [payer, toHex(10n ** 18n)]);
  const balance = () =>
    world.chain.client.getBalance({ address: at(world.users, 0).owner.address });
  const before = await balance();
  const { MINTMARK_URL: _, MINTMARK_API_KEY: __, ...bare } = settings;
  const args = ["session", "authorize", key, "--until", "2h", "--limit-units", "1"];
  const { code, stdout } = await mintmark(args, { ...bare, MINTMARK_PAYER_KEY: payerKey });
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^status +pending$/m)]);
  expect(await onL1(key)).toMatchObject({ limit: 1n, assetType: `0x${"00".repeat(32)}` });
  expect(await balance()).toBe(before);
});

test("a revocation of a key without a session makes it unusable, and says so", async () => {
  const { key } = await newKey();
  const { code, stderr, json } = await mintmark(["session", "revoke", key, "--json"], settings);
  expect([code, stderr]).toEqual([0, expect.stringContaining("can never have one")]);
  expect(json()).toMatchObject({ keyAddress: key, status: "revoked" });
  expect((await mintmark(["session", "revoke", key, "--json"], settings)).json().txHash).toBeNull();
  expect((await authorize(key)).stderr).toContain("has used this key before");
});

test("nothing is signed or sent where the server is of another contract or tells of another asset", async () => {
  const { key } = await newKey();
  const { assets, chain: ours } = world;
  const { port } = liar.address() as AddressInfo;
  const lying = { ...settings, MINTMARK_URL: `http://127.0.0.1:${port}` };
  const [units, sword] = [assets.get("erc20") ?? "", assets.get("erc721") ?? ""];
  const { assetType } = await world.engine.assets.get(world.principal.applicationId, sword);
  const known = await world.engine.assets.get(world.principal.applicationId, units);
  const args = [
    "session",
    "authorize",
    key,
    "--until",
    "3h",
    "--limit",
    "1000",
    "--asset",
    units,
    "--wait",
  ];
  const nonces = () =>
    Promise.all(
      world.users.map(({ owner: { address } }) => ours.client.getTransactionCount({ address })),
    );
  const before = await nonces();
  for (const [changed, message] of [
    [
      (text: string) => text.replace(ours.settlement.address, friend.toLowerCase()),
      "the server is of",
    ],
    [
      (text: string) => text.replace(/"chainId":"\d+"(?=,"to")/, '"chainId":"1"'),
      "on chain 1, not of",
    ],
    [
      (text: string) => text.replace(known.contractAddress, friend.toLowerCase()),
      "cannot be transferred",
    ],
  ] as const) {
    lie = changed;
    const { code, stderr } = await mintmark(args, lying);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  }
  lie = (text) => text.replace(/"assetType":"0x[0-9a-f]{64}"/, `"assetType":"${assetType}"`);
  expect(await nonces()).toEqual(before);
  const { code, json } = await mintmark(
    [...args.filter((arg) => arg !== "--wait"), "--json"],
    lying,
  );
  expect([code, json().assetType]).toEqual([0, known.assetType]);
  // A unit of this token is 1,000 whole tokens.
  expect(await onL1(key)).toMatchObject({ assetType: known.assetType, limit: 1n });
});

test("wrong arguments are refused with what to give", async () => {
  const { key, privateKey } = await newKey();
  const bare = { ...settings, MINTMARK_API_KEY: "" };
  const poor = { ...settings, MINTMARK_OWNER_KEY: privateKey };
  const terms = (until: string, limit: string, ...more: string[]) => [
    "--until",
    until,
    "--limit-units",
    limit,
    ...more,
  ];
  for (const [args, message, given = settings] of [
    [["authorize", privateKey, ...terms("2h", "1")], "make another one"],
    [["authorize", NOBODY, ...terms("2h", "1")], "give the address of the key"],
    [["authorize", owner, ...terms("2h", "1")], "this is the owner"],
    [["authorize", key, ...terms("30m", "1")], "at least an hour"],
    [["authorize", key, ...terms("1893456000", "1")], "give a time such as"],
    [["authorize", key, ...terms("2h", "0")], "--limit-units: give a whole number"],
    [
      ["authorize", key, ...terms("2h", "9223372036854775808")],
      "--limit-units: give a whole number",
    ],
    [["authorize", key, "--until", "2h", "--limit", "1"], "--limit: needs --asset with an assetId"],
    [["authorize", key, "--until", "2h"], "give --limit or --limit-units"],
    [["authorize", key, ...terms("2h", "1", "--asset", "sword")], "--asset: give an assetId"],
    [["authorize", key, ...terms("2h", "1", "--wait")], "MINTMARK_API_KEY", bare],
    [["show", owner, key], "MINTMARK_API_KEY", bare],
  ] as const) {
    const { code, stderr } = await mintmark(["session", ...args], given);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(stderr).not.toContain(privateKey.slice(2));
  }
  expect(await onL1(key)).toMatchObject({ authorizedAt: 0n });
  const other = `0x${"0e".repeat(20)}`;
  const unpaid = await mintmark(["session", "authorize", other, ...terms("2h", "1")], poor);
  expect([unpaid.code, unpaid.stderr]).toEqual([
    1,
    expect.stringContaining("let another account pay"),
  ]);
  const { address: _, transfersCode: __, makingsCode: ___, ...config } = world.chain.settlement;
  const { address } = await deploySettlement(world.chain.by, { ...config, transfers: false });
  const without = ["session", "authorize", other, ...terms("2h", "1", "--contract", address)];
  const noSessions = await mintmark(without, settings);
  expect([noSessions.code, noSessions.stderr]).toEqual([
    1,
    expect.stringContaining("has no transfers"),
  ]);
});
