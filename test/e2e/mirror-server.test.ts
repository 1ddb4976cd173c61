import { join } from "node:path";
import { createPublicClient, erc20Abi, http, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PortalIdentity, Uuid, VaultId } from "../../core/index.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { readRecord, recordPath } from "../../scripts/deploy/record.ts";
import { ADMIN, COMMITTEE, USERS } from "../../scripts/sandbox/accounts.ts";
import { type LocalChain, startChain } from "../../scripts/sandbox/chain.ts";
import { openTest } from "../core/engine/fixture.ts";
import { FaultyNode } from "../faulty-node.ts";
import { listOfOne } from "../one-withdrawal.ts";
import { at, readyAsset, seed } from "../settlement/fixture.ts";
import { type MembersWorld, operatorOf, startMembersWorld } from "./member-world.ts";
import { OperatorProcess } from "./operator-process.ts";
import { run } from "./script.ts";

const { userId, owner } = USERS[0];
const LONG = { interval: 200 };

describe("a server whose application has tokens on two chains", () => {
  let world: MembersWorld;
  let far: LocalChain;
  let gate: FaultyNode;
  let server: OperatorProcess;
  let key: string;
  let mirror: PortalIdentity;
  const assets: Record<"near" | "far", Uuid> = { near: "", far: "" };
  const tokens: Record<"near" | "far", `0x${string}`> = { near: "0x", far: "0x" };
  const vaults: Record<"near" | "far", VaultId> = { near: 0n, far: 0n };

  beforeAll(async () => {
    world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
    far = await startChain("other", 0);
    gate = new FaultyNode(http(far.rpcUrl, { retryCount: 0 })({}) as never);
    const gateUrl = await gate.listen();
    const deployed = await run("deploy", ["--json"], {
      MINTMARK_RPC_URL: world.rpcUrl,
      MINTMARK_DEPLOYER_KEY: toHex(ADMIN.getHdKey().privateKey ?? new Uint8Array()),
      MINTMARK_COMMITTEE: at(COMMITTEE, 0).address,
      MINTMARK_THRESHOLD: "1",
      MINTMARK_DEPLOYMENTS: world.folder,
      MINTMARK_MIRROR_RPC_URL: far.rpcUrl,
      MINTMARK_MIRROR_TOKEN: JSON.stringify({
        standard: "erc20",
        name: "Far points",
        symbol: "FPTS",
        quantum: "10",
      }),
    });
    expect(deployed).toMatchObject({ code: 0 });
    const recorded = at((await readRecord(recordPath(world.folder, 31_337)))?.mirrors ?? [], 0);
    mirror = { chainId: BigInt(recorded.chainId), contract: recorded.address };
    const token = at(recorded.tokens, 0);
    tokens.far = token.address;
    tokens.near = at(world.tokens, 0).address;
    const store = join(world.folder, "operator");
    {
      await using engine = await openTest(store, { settlement: world.l1.settlement });
      const { principal, assets: near } = await seed(engine, world);
      key = (await engine.keys.issue(principal.applicationId)).secret;
      const { standard, quantum, name, symbol } = token;
      const place = { chainId: mirror.chainId, contractAddress: token.address };
      const far = await readyAsset(engine, principal.applicationId, {
        ...place,
        standard,
        quantum,
        name,
        symbol,
      });
      Object.assign(assets, { near: near.get("erc20") ?? "", far });
    }
    server = await OperatorProcess.start({
      ...operatorOf(world, store),
      settings: {
        MINTMARK_THRESHOLD: "1",
        MINTMARK_CONFIRMATIONS: "0",
        MINTMARK_MIRRORS: JSON.stringify([
          {
            chainId: 31_338,
            contract: mirror.contract,
            rpcUrl: gateUrl,
            fromBlock: recorded.deployedAtBlock.toString(),
            confirmations: 0,
          },
        ]),
      },
    });
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    await world?.close();
    await gate?.close();
    await far?.stop();
  });

  async function send(
    path: string,
    body?: unknown,
    headers = {},
    // biome-ignore lint/suspicious/noExplicitAny: whatever the server answered.
  ): Promise<{ status: number; body: any }> {
    const reply = await fetch(`${server.url}${path}`, {
      headers: {
        "x-api-key": key,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
    return { status: reply.status, body: await reply.json() };
  }
  const vaultOf = async (name: "near" | "far") =>
    (await send(`/api/v1/vaults/${vaults[name]}`)).body;
  async function withdraw(name: "near" | "far", quantity: bigint, portal: PortalIdentity) {
    const withdrawnBefore = BigInt((await vaultOf(name)).withdrawnBalance);
    const deadline = BigInt(Math.floor(Date.now() / 1000) + 86_400);
    const message = {
      vaultId: vaults[name],
      withdrawnBefore,
      quantity,
      recipient: owner.address,
      deadline,
    };
    const signature = await owner.signTypedData(
      withdrawalListTypedData(portal, listOfOne(message)),
    );
    const asked = {
      vaults: [
        {
          vaultId: `${vaults[name]}`,
          withdrawnBefore: `${withdrawnBefore}`,
          quantity: `${quantity}`,
        },
      ],
      deadline: `${deadline}`,
      signature,
    };
    const { status, body } = await send("/api/v1/withdrawals", asked);
    return { status, body: status === 202 ? body.vaults[0].withdrawal : body };
  }
  const statusOf = async (withdrawalId: string) =>
    (await send(`/api/v1/withdrawals/${withdrawalId}`)).body.status;
  const heldOn = (name: "near" | "far") =>
    createPublicClient({
      transport: http(name === "near" ? world.rpcUrl : far.rpcUrl),
    }).readContract({
      ...{ abi: erc20Abi, address: tokens[name], functionName: "balanceOf", args: [owner.address] },
    });

  test("names what pays withdrawals on each chain, and takes no signature for one as good on the other", async () => {
    const mints = [assets.near, assets.far].map((assetId) => ({
      ...{ mintingBlob: "", assetId, amount: 9, dataAvailabilityMode: "validium" },
    }));
    const { body } = await send("/api/v1/mint", { users: [{ userId, mints }] });
    for (const { vaultId, assetId } of body.vaults)
      vaults[assetId === assets.far ? "far" : "near"] = BigInt(vaultId);
    await expect.poll(async () => (await vaultOf("far")).status, LONG).toBe("finalized");
    const { chainId, contract } = world.l1.settlement;
    const portals = async () => (await send("/public/v1/state")).body.portals;
    await expect.poll(portals, LONG).toEqual([
      { chainId: `${chainId}`, contract },
      { chainId: `${mirror.chainId}`, contract: mirror.contract },
    ]);
    for (const [name, portal] of [
      ["far", world.l1.settlement],
      ["near", mirror],
    ] as const) {
      expect(await withdraw(name, 1n, portal)).toMatchObject({
        status: 422,
        body: { code: "signature_invalid" },
      });
    }
  });

  test("goes on at home while the other chain is down, and sends there what was asked for when it is back", async () => {
    gate.faults = { down: true };
    const [there, here] = [
      await withdraw("far", 4n, mirror),
      await withdraw("near", 4n, world.l1.settlement),
    ];
    expect(there).toMatchObject({ status: 202, body: { chainId: "31338", status: "accepted" } });
    expect(here.status).toBe(202);
    await expect.poll(() => statusOf(here.body.withdrawalId), LONG).toBe("finalized");
    const ready = async () => (await send("/readyz")).body.checks["mirror-31338"];
    await expect.poll(ready, LONG).toContain("not up to date");
    expect(await statusOf(there.body.withdrawalId)).toBe("accepted");
    gate.heal();
    await expect.poll(() => statusOf(there.body.withdrawalId), LONG).toBe("finalized");
    expect([await heldOn("near"), await heldOn("far")]).toEqual([4_000n, 40n]);
    expect(await vaultOf("far")).toMatchObject({ withdrawnBalance: "4", availableBalance: "5" });
    const { data } = (await send("/api/v1/transactions?type=withdrawal")).body;
    expect(data.map(({ status }: { status: string }) => status)).toEqual([
      "finalized",
      "finalized",
    ]);
    await expect.poll(ready, LONG).toContain("in step: ");
  });
});
