import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Engine, Principal } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { openTest } from "../core/engine/fixture.ts";
import { requireOnce } from "../e2e/kill-campaign.ts";
import { type MembersWorld, operatorOf, startMembersWorld } from "../e2e/member-world.ts";
import { OperatorProcess } from "../e2e/operator-process.ts";
import { controlsOf, seed } from "../settlement/fixture.ts";
import { signTransfers, TRANSFERABLE, whole } from "../settlement/transfers-fixture.ts";

const VAULTS = 6;
const KILLS = 5;

function openStore(store: string, { l1 }: MembersWorld): Promise<Engine> {
  return openTest(store, { settlement: l1.settlement });
}

const blocks = ({ client }: MembersWorld, count: number) =>
  controlsOf(client.request as never).mine(count);

/** Mines until the condition holds, over HTTP or on L1. */
async function mineUntil(world: MembersWorld, holds: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 120_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error("it did not come about within two minutes");
    await blocks(world, 1);
    await sleep(200);
  }
}

async function statusOf({ url }: OperatorProcess, key: string, vaultId: bigint): Promise<string> {
  const reply = await fetch(`${url}/api/v1/vaults/${vaultId}`, { headers: { "x-api-key": key } });
  return ((await reply.json()) as { status: string }).status;
}

test("a server that is killed again and again brings each transfer to L1, once", async () => {
  const world = await startMembersWorld({ config: { transfers: true }, tokens: TRANSFERABLE });
  const store = join(world.folder, "operator");
  try {
    const filled = await openStore(store, world);
    const seeded = await seed(filled, world);
    const { secret } = await filled.keys.issue(seeded.principal.applicationId);
    const minted: bigint[] = [];
    for (let i = 0; i < VAULTS; i++) {
      const mode = i % 2 === 0 ? "validium" : "zk-rollup";
      minted.push(await { ...seeded, engine: filled }.mint("erc1155", mode, `${i}`, 7));
    }
    await filled.close();

    // The members have no beacon node that would give them blobs.
    const settings = { MINTMARK_ROLLUP_DATA: "calldata" };
    const start = { ...operatorOf(world, store), settings };
    let server = await OperatorProcess.start(start);
    for (const vaultId of minted)
      await mineUntil(world, async () => (await statusOf(server, secret, vaultId)) === "finalized");
    await server.stop();

    const lists: string[] = [];
    let principal: Principal = seeded.principal;
    {
      await using engine = await openStore(store, world);
      principal = await engine.keys.authenticate(secret);
      for (const vaultId of minted) {
        const signed = await signTransfers({ ...seeded, engine }, [
          { ...whole(seeded, vaultId), amount: 3n },
        ]);
        lists.push((await engine.transfers.request(principal, signed)).transferId);
      }
    }
    for (let kill = 0; kill < KILLS; kill++) {
      server = await OperatorProcess.start(start);
      await blocks(world, 1);
      await sleep(kill * 500);
      await server.kill();
    }
    server = await OperatorProcess.start(start);
    const address = world.settlement.address;
    await mineUntil(world, async () => {
      const read = (vaultId: bigint) =>
        world.client.readContract({
          abi: stateCommitmentAbi,
          address,
          functionName: "isSpent",
          args: [vaultId],
        });
      return (await Promise.all(minted.map(read))).every(Boolean);
    });
    await mineUntil(
      world,
      async () => (await statusOf(server, secret, minted[0] ?? 0n)) === "finalized",
    );
    await blocks(world, 5);
    await sleep(3_000);
    await server.stop();

    expect(await requireOnce(store, world)).toMatchObject({ transfers: expect.any(Number) });
    await using engine = await openStore(store, world);
    for (const transferId of lists) {
      const { status, transfers } = await engine.transfers.get(principal.applicationId, transferId);
      expect(["settled", "finalized"]).toContain(status);
      expect(transfers.map(({ amount }) => amount)).toEqual([3n, 4n]);
    }
  } finally {
    await world.close();
  }
});
