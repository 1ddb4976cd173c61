import { join } from "node:path";
import { createPublicClient, erc20Abi, erc721Abi, http, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deriveBatch } from "../../core/archive/derive.ts";
import type { Standard, Uuid, VaultId } from "../../core/index.ts";
import { readMirror } from "../../core/l1/index.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { packVaultId, unpackBatchVaultId } from "../../core/protocol/vault.ts";
import { readExitKit } from "../../scripts/commands/exit.ts";
import { type Deployment, readRecord, recordPath } from "../../scripts/deploy/record.ts";
import { ADMIN, COMMITTEE, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { type LocalChain, startChain } from "../../scripts/sandbox/chain.ts";
import { Npm } from "../npm.ts";
import { at, readyAsset } from "../settlement/fixture.ts";
import { type MembersWorld, startMembersWorld } from "./member-world.ts";
import { run } from "./script.ts";

const keyOf = (account: typeof ADMIN) => toHex(account.getHdKey().privateKey ?? new Uint8Array());

describe("tokens of another chain, by commands alone", () => {
  let world: MembersWorld;
  let far: LocalChain;
  let mirror: Deployment["mirrors"][number];
  /** Relays and a watcher. */
  const stack = new AsyncDisposableStack();
  const vaults: Record<"sword" | "points", VaultId> = { sword: 0n, points: 0n };

  beforeAll(async () => {
    world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
    far = await startChain("other", 0);
  });
  afterAll(async () => {
    await stack.disposeAsync();
    await world.close();
    await far.stop();
  });

  const file = (name: string) => join(world.folder, name);
  const chain = () => ({
    MINTMARK_RPC_URL: world.rpcUrl,
    MINTMARK_CONTRACT: world.settlement.address,
  });
  const there = () => ({ MINTMARK_MIRROR_RPC_URL: far.rpcUrl, MINTMARK_MIRROR: mirror.address });
  const reader = () => readMirror({ rpc: far.rpcUrl, contract: mirror.address });

  test("one command deploys the mirror and a token there, and records them; again, it verifies them", async () => {
    const deploying = (token: object) =>
      run("deploy", ["--json"], {
        MINTMARK_RPC_URL: world.rpcUrl,
        MINTMARK_DEPLOYER_KEY: keyOf(ADMIN),
        MINTMARK_COMMITTEE: at(COMMITTEE, 0).address,
        MINTMARK_THRESHOLD: "1",
        MINTMARK_DEPLOYMENTS: world.folder,
        MINTMARK_MIRROR_RPC_URL: far.rpcUrl,
        MINTMARK_MIRROR_TOKEN: JSON.stringify(token),
      });
    const first = await deploying({
      standard: "erc20",
      name: "Far points",
      symbol: "FPTS",
      quantum: "10",
    });
    expect(first.stderr).toContain("deploying StateMirror on chain 31338");
    const second = await deploying({ standard: "erc721", name: "Far swords", symbol: "FSWRD" });
    expect(second.stderr).toContain("verifying StateMirror");
    const record = await readRecord(recordPath(world.folder, 31_337));
    mirror = at(record?.mirrors ?? [], 0);
    expect(record?.mirrors).toHaveLength(1);
    expect(mirror).toMatchObject({
      chainId: 31_338,
      threshold: 1,
      maturity: world.settlement.maturity,
    });
    expect(mirror.tokens.map(({ symbol, minterLocked }) => [symbol, minterLocked])).toEqual([
      ["FPTS", true],
      ["FSWRD", true],
    ]);
    expect((JSON.parse(second.stdout) as Deployment).mirrors[0]?.address).toBe(mirror.address);
  });

  test("the relay, killed in between and started again, makes every batch known there", async () => {
    const { engine, principal } = world;
    const assets = new Map<Standard, Uuid>();
    for (const { standard, address, quantum, name, symbol } of mirror.tokens) {
      const token = { standard, chainId: 31_338n, contractAddress: address, quantum, name, symbol };
      assets.set(standard, await readyAsset(engine, principal.applicationId, token));
    }
    // A settler of the mirror would ask the chain for the precompile, which Hardhat has.
    engine.operator.placeInBlobs(31_338n, true);
    vaults.sword = await { ...world, assets }.mint("erc721", "validium", "7");
    vaults.points = await { ...world, assets }.mint("erc20", "zk-rollup", "", 5);
    expect((await world.settlerOver().settler.round()).committed).toBe(2);
    const killed = startRelay();
    await expect.poll(async () => (await reader()).stepCount()).toBeGreaterThan(0);
    await killed[Symbol.asyncDispose]();
    const relay = startRelay();
    for (const vaultId of Object.values(vaults)) {
      const { mode, batchNumber } = unpackBatchVaultId(vaultId);
      await expect
        .poll(async () => (await reader()).isImported(mode, batchNumber), { interval: 250 })
        .toBe(true);
    }
    expect(await (await reader()).stepCount()).toBe(2);
    await relay.interrupt();
  });

  test("a kit is made with the mirror named, and none without it", async () => {
    const member = { ...chain(), MINTMARK_PEERS: at(world.processes, 0).url };
    const written = (name: keyof typeof vaults) =>
      run("exit-kit", [`${vaults[name]}`, "--out", file(`${name}.json`)], {
        ...member,
        ...there(),
      });
    const [near, ...kits] = await Promise.all([
      run("exit-kit", [`${vaults.sword}`], member),
      written("sword"),
      written("points"),
    ]);
    // The settlement contract cannot pay it, so there is no kit for it.
    expect(near).toMatchObject({ code: 1, stdout: "" });
    for (const kit of kits) expect(kit).toMatchObject({ code: 0, stdout: "" });
  });

  test("anyone's watch command voids there what the operator mints again", async () => {
    const { vault } = await readExitKit(file("sword.json"));
    const data = encodeBatchData([
      { ...vault, owner: at(COMMITTEE, 1).address.toLowerCase() as `0x${string}` },
    ]);
    const batch = {
      mode: "zk-rollup",
      batchNumber: 1,
      data,
      ...deriveBatch("zk-rollup", 1, data),
    } as const;
    await world.l1.commit(batch, (await world.l1.state()).history, "0x");
    const later = packVaultId({ mode: "zk-rollup", batchNumber: 1, slot: 0 });
    const relay = startRelay();
    const mirrors = [{ chainId: "31338", contract: mirror.address, rpcUrl: far.rpcUrl }];
    const settings = {
      MINTMARK_PEERS: at(world.processes, 0).url,
      MINTMARK_STORE: file("watcher"),
      MINTMARK_MIRRORS: JSON.stringify(mirrors),
    };
    const watch = start("watch", settings, keyOf(ADMIN));
    await watch.says(
      new RegExp(`chain 31338: voided vault ${later}, a duplicate of ${vaults.sword}`),
    );
    await Promise.all([relay.interrupt(), watch.interrupt()]);
    expect(watch.said).not.toContain(keyOf(ADMIN).slice(2));
  });

  const exit = (name: string, rpcUrl: string) =>
    run(
      "exit",
      [file(`${name}.json`), "--wait"],
      { MINTMARK_RPC_URL: rpcUrl },
      keyOf(at(world.users, 0).owner),
    );

  test("an owner exits there with a kit and nothing else: engine, member and relay are gone", async () => {
    await world.engine.close();
    await at(world.processes, 0).stop();
    expect(await exit("sword", far.rpcUrl)).toMatchObject({ code: 0 });
    expect(await exit("points", far.rpcUrl)).toMatchObject({ code: 0 });
    const { address } = at(world.users, 0).owner;
    const client = createPublicClient({ transport: http(far.rpcUrl) });
    const [points = "0x", swords = "0x"] = mirror.tokens.map((token) => token.address);
    const balance = {
      abi: erc20Abi,
      address: points,
      functionName: "balanceOf",
      args: [address],
    } as const;
    expect(await client.readContract(balance)).toBe(50n);
    const owned = { abi: erc721Abi, address: swords, functionName: "ownerOf", args: [7n] } as const;
    expect(await client.readContract(owned)).toBe(address);
  });

  test("nothing is paid twice there, nor on the source's chain", async () => {
    const [again, elsewhere] = await Promise.all([
      exit("points", far.rpcUrl),
      exit("sword", world.rpcUrl),
    ]);
    expect(again).toMatchObject({ code: 1, stdout: "" });
    expect(again.stderr).toContain("All of this vault has been withdrawn");
    expect(elsewhere).toMatchObject({ code: 3, stdout: "" });
    expect(elsewhere.stderr).toContain("the RPC serves chain 31337, not 31338");
  });

  const start = (
    script: "relay" | "watch",
    settings: Readonly<Record<string, string>>,
    key: string,
  ) =>
    stack.use(
      new Npm(
        ["exec", "--", "mintmark", script],
        {
          ...{ ...chain(), ...settings, MINTMARK_CONFIRMATIONS: "0", MINTMARK_POLL_MS: "200" },
          MINTMARK_FROM_BLOCK: `${world.settlement.deployedAtBlock}`,
        },
        key,
      ),
    );
  const startRelay = () =>
    start(
      "relay",
      {
        ...there(),
        MINTMARK_MEMBERS: `${at(COMMITTEE, 0).address}=${at(world.processes, 0).url}`,
        MINTMARK_THRESHOLD: "1",
      },
      keyOf(OPERATOR),
    );
});
