import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Hex } from "viem";
import * as viem from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Role } from "../../core/index.ts";
import { readTokenCreation } from "../../core/l1/own-token.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { type Sandbox, startSandbox } from "../../scripts/sandbox/sandbox.ts";
import type { TokenCreation, TokenProgress } from "../../server/client/index.ts";
import type { ServerChain } from "../../server/service.ts";
import { type Answer, createWorld, refusal, SETTLEMENT, type World } from "./fixture.ts";

const [{ owner: admin }, { owner: other }] = USERS;
const FORM = { standard: "erc721", name: "Shields", symbol: "SHLD", admin: admin.address };

describe("new tokens of applications", () => {
  let folder: string;
  let sandbox: Sandbox;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-tokens-"));
    sandbox = await startSandbox({ folder, port: 0, chainPort: 0 });
  });
  afterAll(async () => {
    await sandbox?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Calls the console's routes as a person of an application. */
  async function person(role: Role, applicationId = sandbox.description.applicationId) {
    const { engine, description } = sandbox;
    const { link } = await engine.people.invite({ applicationId, role, name: role });
    const headers = { "mintmark-console": "1", "content-type": "application/json" };
    const opened = await fetch(`${description.api}/console/v1/sign-in`, {
      ...{ method: "POST", headers, body: JSON.stringify({ link }) },
    });
    const cookie = String(opened.headers.get("set-cookie")).split(";")[0] ?? "";
    return async <T>(
      method: string,
      path: string,
      body?: unknown,
    ): Promise<{ status: number; body: T }> => {
      const answer = await fetch(`${description.api}/console/v1/tokens${path}`, {
        ...{ method, headers: { ...headers, cookie } },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: (await answer.json()) as T };
    };
  }

  type Caller = Awaited<ReturnType<typeof person>>;

  const chainOf = (account = admin) =>
    viem
      .createWalletClient({ account, transport: viem.http(sandbox.description.rpcUrl) })
      .extend(viem.publicActions);

  async function send(
    transaction: { to?: Hex; data: Hex; gas?: bigint },
    account = admin,
  ): Promise<Hex> {
    const chain = chainOf(account);
    const hash = await chain.sendTransaction({ ...transaction, chain: null });
    await chain.waitForTransactionReceipt({ hash });
    return hash;
  }

  async function createdBy(data: Hex): Promise<[hash: Hex, contract: Hex]> {
    const hash = await send({ data });
    const { contractAddress } = await chainOf().getTransactionReceipt({ hash });
    return [hash, contractAddress as Hex];
  }

  async function create(by: Caller, form: object = FORM): Promise<TokenCreation & { data: Hex }> {
    const { status, body } = await by<TokenCreation>("POST", "", form);
    expect(status).toBe(200);
    return body as TokenCreation & { data: Hex };
  }

  async function progress(by: Caller, hash: Hex): Promise<TokenProgress> {
    return (await by<TokenProgress>("PUT", `/${hash}`)).body;
  }

  /** Sends what the token still needs. */
  async function ready(by: Caller, hash: Hex): Promise<void> {
    const { lock, register } = await progress(by, hash);
    for (const each of [lock, register])
      if (each !== null) await send(each as { to: Hex; data: Hex });
  }

  async function added(by: Caller, hash: Hex): Promise<TokenProgress> {
    const now = await progress(by, hash);
    return now.status === "added" ? now : added(by, hash);
  }

  test("an admin's wallet creates, locks and registers a token, and the asset is enabled", async () => {
    const by = await person("admin");
    const royalty = { receiver: other.address, percent: "2.5" };
    const { assetId, data } = await create(by, {
      ...FORM,
      standard: "erc1155",
      royalty,
      transferable: true,
    });
    expect(await progress(by, `0x${"12".repeat(32)}`)).toMatchObject({ status: "sent" });
    const hash = await send({ data });
    const made = await progress(by, hash);
    expect(made).toMatchObject({
      status: "created",
      asset: null,
      lock: { from: admin.address.toLowerCase() },
    });
    await send(made.lock as { to: Hex; data: Hex });
    expect((await progress(by, hash)).lock).toBeNull();
    // Anybody may register it, and who administers the token pays only for what it signs.
    await send(made.register as { to: Hex; data: Hex }, other);
    const { asset, contractAddress } = await added(by, hash);
    expect(asset).toMatchObject({
      ...{
        assetId,
        contractAddress,
        name: "Shields",
        symbol: "SHLD",
        standard: "erc1155",
        supplyCap: null,
      },
      ...{
        registered: true,
        enabled: true,
        minterLocked: true,
        transferable: true,
        mintingAvailable: true,
      },
    });
    expect((await progress(by, hash)).asset).toEqual(asset);
    const abi = viem.parseAbi([
      "function royaltyInfo(uint256,uint256) view returns (address,uint256)",
      "function uri(uint256) view returns (string)",
    ]);
    const read = { abi, address: contractAddress as Hex } as const;
    const chain = chainOf();
    expect(
      await chain.readContract({ ...read, functionName: "royaltyInfo", args: [1n, 1_000n] }),
    ).toEqual([other.address, 25n]);
    const uri = await chain.readContract({ ...read, functionName: "uri", args: [1n] });
    expect(uri).toBe(`${sandbox.description.api}/public/v1/metadata/${assetId}/{id}`);
  });

  test("an ERC-20 has 18 decimals, of which its amounts keep nine, and the cap that was asked for", async () => {
    const by = await person("admin");
    const { data } = await create(by, { ...FORM, standard: "erc20", cap: "1000000.5" });
    const hash = await send({ data });
    await ready(by, hash);
    expect((await added(by, hash)).asset).toMatchObject({
      ...{ decimals: 18, quantum: "1000000000", supplyCap: "1000000500000000", minterLocked: true },
    });
  });

  test("refuses what is not this application's, or not this package's", async () => {
    const by = await person("admin");
    const { applicationId } = await sandbox.engine.applications.create({ name: "Other" });
    const foreign = await person("admin", applicationId);
    const { data } = await create(by);
    const hash = await send({ data });
    const wrongOnes: Hex[] = [
      // Other arguments after the code, a shorter destination, other code, and a plain transfer of
      // nothing.
      await send({
        data: viem.concatHex([
          viem.slice(data, 0, -64),
          `0x${"00".repeat(31)}01`,
          viem.slice(data, -32),
        ]),
        gas: 9_000_000n,
      }),
      await send({ data: viem.slice(data, 0, -1) }),
      await send({ data: "0x600160005360016000f3" }),
      await send({ to: other.address, data: "0x" }),
    ];
    const refused = { status: 400, body: { code: "validation_failed" } };
    for (const each of wrongOnes) expect(await by("PUT", `/${each}`)).toMatchObject(refused);
    expect(await foreign("PUT", `/${hash}`)).toMatchObject(refused);
    expect(await by("PUT", "/0x12")).toMatchObject(refused);
    await ready(by, hash);
    expect(await foreign("PUT", `/${hash}`)).toMatchObject(refused);
    const { asset } = await added(by, hash);
    // A second contract of the same transaction's input has the same asset, which is taken.
    const again = await send({ data });
    await ready(by, again);
    const taken = async (): Promise<unknown> => {
      const answer = await by<TokenProgress>("PUT", `/${again}`);
      return answer.body.status === "registered" ? taken() : answer;
    };
    expect(await taken()).toMatchObject({ status: 409, body: { code: "asset_exists" } });
    expect((await progress(by, hash)).asset).toEqual(asset);
    // Another application that copies the salt gets an asset of its own.
    const copied = viem.concatHex([
      viem.slice(data, 0, -32),
      `0x${applicationId.replaceAll("-", "")}`,
      viem.slice(data, -16),
    ]);
    const copy = await send({ data: copied });
    await ready(foreign, copy);
    expect((await added(foreign, copy)).asset?.assetId).not.toBe(asset?.assetId);
    // A token that its admin mints instead of the settlement contract.
    const { data: own } = await create(by);
    const [stolen, address] = await createdBy(own);
    const abi = viem.parseAbi([
      "function grantRole(bytes32,address)",
      "function revokeRole(bytes32,address)",
    ]);
    const role = viem.keccak256(viem.toHex("MINTER"));
    const roleOf = (functionName: "grantRole" | "revokeRole", account: Hex) =>
      send({
        to: address,
        data: viem.encodeFunctionData({ abi, functionName, args: [role, account] }),
      });
    await roleOf("grantRole", admin.address);
    await roleOf("revokeRole", sandbox.engine.settlement.contract);
    expect(await by("PUT", `/${stolen}`)).toMatchObject(refused);
    const bad = [
      { cap: "5" },
      { standard: "erc20", uri: "ipfs://x/" },
      { name: "a\u202eb" },
      { admin: `0x${"0".repeat(40)}` },
    ];
    for (const each of bad)
      expect(await by("POST", "", { ...FORM, ...each })).toMatchObject(refused);
    for (const role of ["viewer", "developer"] as const) {
      const who = await person(role);
      expect(await who("POST", "", FORM)).toMatchObject({
        status: 403,
        body: { code: "role_missing" },
      });
      expect(await who("PUT", `/${hash}`)).toMatchObject({
        status: 403,
        body: { code: "role_missing" },
      });
    }
  });

  test("a creation is read only as it was made, whatever byte is another", async () => {
    const { data } = await create(await person("admin"), { ...FORM, name: "x".repeat(40) });
    const minter = sandbox.engine.settlement.contract;
    const made = readTokenCreation(minter, data);
    expect(made).toMatchObject({ name: "x".repeat(40), standard: "erc721" });
    expect(readTokenCreation(admin.address, data)).toBeNull();
    for (let at = 2; at < data.length; at += 61) {
      const digit = (Number.parseInt(data[at] as string, 16) ^ 1).toString(16);
      const read = readTokenCreation(
        minter,
        `${data.slice(0, at)}${digit}${data.slice(at + 1)}` as Hex,
      );
      // The arguments and the destination come after the code.
      if (at < data.length - 2_000) expect(read).toBeNull();
      expect(read).not.toEqual(made);
    }
  });
});

test("an application has at most 1,000 assets of its own", async () => {
  await using world = await createWorld();
  const { applicationId, engine } = world;
  const add = (i: number) =>
    engine.assets.add({
      ...{ standard: "erc721", name: "A", symbol: "A", applicationId },
      contractAddress: `0x${(i + 1).toString(16).padStart(40, "0")}`,
    });
  const before = (await Array.fromAsync(engine.assets.list(applicationId))).length;
  for (
    let i = 0;
    i < 1_000 &&
    (await add(i).then(
      () => true,
      () => false,
    ));
    i++
  );
  expect(await Array.fromAsync(engine.assets.list(applicationId))).toHaveLength(before + 1_000);
  await expect(add(2_000)).rejects.toThrow("at most 1000 assets of its own");
});

/** Calls the console's routes as an admin of a world's application. */
async function adminOf(world: World) {
  const { link } = await world.engine.people.invite({
    applicationId: world.applicationId,
    role: "admin",
    name: "A",
  });
  const headers = { "mintmark-console": "1", host: "localhost" };
  const { headers: got } = await world.send("POST", "/console/v1/sign-in", {
    key: null,
    body: { link },
    headers,
  });
  const cookie = String(got["set-cookie"]).split(";")[0] ?? "";
  return (method: "POST" | "PUT" | "GET", path: string, body?: object) =>
    world.send(method, `/console/v1${path}`, {
      key: null,
      headers: { ...headers, cookie },
      ...(body && { body }),
    });
}

test("an operator who adds tokens itself says so", async () => {
  await using world = await createWorld();
  const by = await adminOf(world);
  expect(refusal(await by("POST", "/tokens", FORM))).toMatchObject({ code: "new_tokens_off" });
});

/** A chain that a new token is registered on, and that tells which questions it was asked. */
function tokenChain() {
  const token = `0x${"ab".repeat(20)}` as const;
  const asked: string[] = [];
  const created: { input: Hex | null } = { input: null };
  const answering =
    <T>(name: string, answer: () => T) =>
    async () => {
      asked.push(name);
      return answer();
    };
  const chain = {
    creation: answering("creation", () => {
      const { input } = created;
      return input && { contract: token, input, blockNumber: 1n };
    }),
    isMinter: answering("isMinter", () => true),
    token: answering("token", () => ({ minterLocked: true })),
    registration: answering("registration", () => ({})),
    finalizedBlockNumber: answering("finalizedBlockNumber", () => 2n),
    isTransferable: answering("isTransferable", () => false),
  };
  return { asked, created, chain: chain as unknown as ServerChain };
}

/** A world of new tokens, in which nothing of the rate comes back. */
const worldOfTokens = (chain: ServerChain, units: number) =>
  createWorld({
    newTokens: true,
    chains: new Map([[SETTLEMENT.chainId, async () => chain]]),
    rateLimits: { key: { units, windowSeconds: 1_000_000_000 } },
  });

test("a new token's asset waits until every question about it is paid for", async () => {
  const { asked, created, chain } = tokenChain();
  await using world = await worldOfTokens(chain, 7 * 500);
  const by = await adminOf(world);
  const { body } = await by("POST", "/tokens", FORM);
  created.input = body.data;
  expect(refusal(await by("PUT", `/tokens/0x${"12".repeat(32)}`)).code).toBe("rate_limited");
  expect(asked).toHaveLength(6);
  await expect(world.engine.assets.get(world.applicationId, body.assetId)).rejects.toMatchObject({
    code: "asset_not_found",
  });
});

test("each question to a node about a new token costs 500 units, and none comes without them", async () => {
  const units = 10_000;
  const { asked, created, chain } = tokenChain();
  await using world = await worldOfTokens(chain, units);
  const by = await adminOf(world);
  const left = ({ headers }: Answer) => Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
  const path = `/tokens/0x${"12".repeat(32)}`;

  const made = await by("POST", "/tokens", FORM);
  const unknown = await by("PUT", path);
  expect(unknown.body).toMatchObject({ status: "sent" });
  expect([asked.length, left(made) - left(unknown)]).toEqual([1, 500]);

  created.input = made.body.data;
  const added = await by("PUT", path);
  expect(added.body).toMatchObject({ status: "added" });
  expect([asked.length, left(unknown) - left(added)]).toEqual([1 + 7, 7 * 500]);

  created.input = null;
  for (let i = 0; i < units / 500; i++) await by("PUT", path);
  expect(refusal(await by("PUT", path)).code).toBe("rate_limited");
  expect(asked.length).toBeLessThan(units / 500);
});
