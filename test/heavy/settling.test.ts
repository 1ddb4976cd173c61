import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPublicClient, http, toHex } from "viem";
import { describe, expect, test } from "vitest";
import { collectAttestations } from "../../core/committee/collector.ts";
import { type Mode, openEngine, type Standard, type VaultId } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/connect.ts";
import { Settler } from "../../core/settlement/settler.ts";
import { deploy } from "../../scripts/deploy/deploy.ts";
import { recordPath } from "../../scripts/deploy/record.ts";
import { ADMIN, COMMITTEE, GUARDIAN, OPERATOR, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import {
  at,
  createWorld,
  mine,
  mint,
  openMembers,
  requestWithdrawal,
  rpc,
  seed,
  TOKENS,
  type World,
} from "../settlement/fixture.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** Mints so many vaults of one unit for the first user. */
async function mintMany(
  { engine, principal, users, assets }: Pick<World, "engine" | "principal" | "users" | "assets">,
  standard: Standard,
  mode: Mode,
  count: number,
) {
  const vaults: VaultId[] = [];
  while (vaults.length < count) {
    const mints = Array.from({ length: Math.min(1_000, count - vaults.length) }, (_, i) => ({
      ...{ mintingBlob: toHex(`${vaults.length + i}`), assetId: assets.get(standard), amount: 1 },
      dataAvailabilityMode: mode,
    }));
    const minted = await engine.mint(principal, { users: [{ userId: at(users, 0).userId, mints }] });
    vaults.push(...minted.vaults.map(({ vaultId }) => vaultId));
  }
  return vaults;
}

describe("with 3,000 withdrawals that are ready", () => {
  test("each commit is in the next block but one at the latest", async () => {
    const world = await createWorld();
    const { chain, engine, l1, committee, settler } = world;
    const vaults = await mintMany(world, "erc1155", "validium", 3_000);
    await settler.round();
    for (const vaultId of vaults) await requestWithdrawal(world, vaultId);
    await rpc(chain, "evm_setAutomine", [false]);
    const stopping = new AbortController();
    const { deployedAtBlock: fromBlock } = chain.settlement;
    const loops = new Settler({ engine, l1, committee, fromBlock, lagMs: 0, intervalMs: 10, sealing: { maxAgeMs: 0 } });
    const run = loops.run(stopping.signal);
    const underWay = async () =>
      ((await rpc(chain, "eth_getBlockByNumber", ["pending", false])) as { transactions: unknown[] }).transactions
        .length;
    const delays: number[] = [];
    for (let batch = 0; batch < 20; batch++) {
      await expect.poll(underWay, { timeout: 60_000, interval: 5 }).toBeGreaterThan(0);
      await mint(world, "erc721", "zk-rollup", `${batch}`);
      await expect.poll(() => engine.batches.state().countRollup, { timeout: 20_000 }).toBe(batch + 1);
      let blocks = 0;
      for (; (await l1.state()).countRollup === batch; blocks++) {
        // A block of a real chain comes after seconds, in which everything is sent that can be.
        for (let before = -1; before !== (await underWay()); ) {
          before = await underWay();
          await new Promise((resolve) => setTimeout(resolve, 500));
        }
        await mine(chain, 1);
      }
      delays.push(blocks);
    }
    console.log(`blocks until each commit: ${delays.join(" ")}`);
    for (const blocks of delays) expect(blocks).toBeLessThanOrEqual(2);
    const unpaid = await Array.fromAsync(engine.operator.pendingWithdrawals(engine.settlement.chainId));
    expect(unpaid.length).toBeGreaterThan(0);
    stopping.abort();
    await run;
    await world.close();
  });
});

describe("with 20,000 withdrawals that have not matured", () => {
  test("the loops take less than 5 % of a core", async () => {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "mintmark-settling-"));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    // The chain is a process of its own, so that what it takes is not counted.
    const child = spawn(process.execPath, ["scripts/mintmark.ts", "chain", "--chain-port", "0"], { cwd: ROOT });
    stack.defer(async () => {
      child.kill();
      await once(child, "exit");
    });
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const rpcUrl = /http:\S+/.exec(line.toString())?.[0] ?? "";
    const transport = http(rpcUrl);
    const client = createPublicClient({ transport, pollingInterval: 20 });
    const by = { account: ADMIN, client, transport, chainId: await client.getChainId() };
    const { settlement, tokens } = await deploy(by, {
      record: recordPath(folder, by.chainId),
      tokens: TOKENS,
      settlement: {
        ...{ admin: ADMIN.address, guardian: GUARDIAN.address, operator: OPERATOR.address },
        ...{ committee: COMMITTEE.map(({ address }) => address), threshold: THRESHOLD },
        ...{ changeDelay: 60n, maturity: 1_000_000n },
      },
    });
    const l1 = await connectL1({
      rpc: rpcUrl,
      contract: settlement.address,
      account: OPERATOR,
      finality: { confirmations: 0n },
      pollingMs: 20,
    });
    const engine = await openEngine({
      store: join(folder, "store"),
      settlement: l1.settlement,
      environment: "sandbox",
      createIfMissing: true,
    });
    stack.defer(() => engine.close());
    const world = { engine, ...(await seed(engine, { tokens })) };
    const committee = collectAttestations({
      members: await openMembers(l1),
      threshold: THRESHOLD,
      l1,
      timeoutMs: 60_000,
    });
    const parts = { engine, l1, committee, fromBlock: settlement.deployedAtBlock };
    const vaults = await mintMany(world, "erc721", "validium", 20_000);
    await engine.operator.seal("validium");
    await new Settler(parts).round();
    /** Share of a core that the loops take at their usual pace. */
    const share = async () => {
      const settler = new Settler(parts);
      // The first pass reads each withdrawal once.
      await settler.round();
      const stopping = new AbortController();
      const run = settler.run(stopping.signal);
      const [cpu, from] = [process.cpuUsage(), performance.now()];
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      const { user, system } = process.cpuUsage(cpu);
      const passed = performance.now() - from;
      stopping.abort();
      await run;
      return (user + system) / 1_000 / passed;
    };
    const idle = await share();
    for (let first = 0; first < vaults.length; first += 500) {
      await Promise.all(vaults.slice(first, first + 500).map((vaultId) => requestWithdrawal(world, vaultId)));
    }
    const busy = await share();
    console.log(
      `share of a core: ${(idle * 100).toFixed(1)} % without a withdrawal, ${(busy * 100).toFixed(1)} % with them`,
    );
    expect(busy).toBeLessThan(0.05);
  });
});
