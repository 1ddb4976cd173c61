import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Engine, MODES, type Mode, openEngine, type VaultId } from "../../core/index.ts";
import { adoptFromL1, type Settler } from "../../core/settlement/index.ts";
import type { MirrorSettler } from "../../core/settlement/mirror-settler.ts";
import { sourceOf } from "../archive/fixture.ts";
import { copyOf } from "../settlement/fixture.ts";
import { CONFIRMATIONS, createMirrorWorld, type MirrorWorld, newMirrorSettler } from "./fixture.ts";

/** One of two operators whose stores were the same once. */
interface Operator {
  readonly engine: Engine;
  readonly settler: Settler;
  readonly far: MirrorSettler;
}

let world: MirrorWorld;
let winner: Operator;
let loser: Operator;
beforeEach(async () => {
  world = await createMirrorWorld();
  const far = await newMirrorSettler(world);
  winner = { engine: world.near.engine, settler: world.near.settler, far };
});
afterEach(async () => {
  await loser.engine.close();
  await world.close();
});

/** A second operator on a copy of the store as it is now. */
async function openCopy(): Promise<Operator> {
  const { near } = world;
  const store = await copyOf(near.engineStore);
  const engine = await openEngine({
    store,
    settlement: near.l1.settlement,
    environment: "sandbox",
    divergenceMs: 0,
  });
  engine.operator.placeInBlobs(world.mirror.settlement.chainId, true);
  const settler = near.chain.newSettler({ ...near, engine });
  return { engine, settler, far: await newMirrorSettler(world, { engine }) };
}

const mintFar = ({ engine }: Operator, mode: Mode, amount: number) =>
  ({ ...world.near, engine, assets: world.far.assets }).mint("erc20", mode, "", amount);
const mintSword = ({ engine }: Operator, mode: Mode, text: string) =>
  ({ ...world.near, engine, assets: world.far.assets }).mint("erc721", mode, text);
const requestFar = ({ engine }: Operator, vaultId: VaultId, quantity: bigint) =>
  ({ ...world.near, engine }).requestWithdrawal(
    vaultId,
    quantity,
    undefined,
    world.mirror.settlement,
  );
const statusOf = async (
  { engine }: Operator,
  { withdrawalId }: { readonly withdrawalId: string },
) => (await engine.withdrawals.get(world.near.principal.applicationId, withdrawalId)).status;

async function adopt({ engine }: Operator) {
  const { near } = world;
  const sources = near.members.map(sourceOf);
  return adoptFromL1({
    engine,
    l1: near.l1,
    fromBlock: near.chain.settlement.deployedAtBlock,
    sources,
  });
}

describe("withdrawals of another chain's tokens, when L1's history is adopted", () => {
  test("are paid if their vault stays, fail if it is lost, and those of L1's vaults are followed", async () => {
    const { near } = world;
    const { applicationId } = near.principal;
    const kept = await mintFar(winner, "validium", 5);
    await winner.settler.round();
    await near.chain.mine(Number(CONFIRMATIONS));
    await winner.settler.round();
    const shared = await mintFar(winner, "zk-rollup", 4);
    const ofKept = await requestFar(winner, kept, 1n);
    loser = await openCopy();

    const foreign = await mintFar(winner, "validium", 1);
    await mintSword(winner, "zk-rollup", "8");
    await winner.settler.round();
    const lost = await mintSword(loser, "validium", "7");
    expect(lost).toBe(foreign);
    for (const mode of MODES) await loser.engine.operator.seal(mode);
    const [ofLost, ofShared] = [
      await requestFar(loser, lost, 1n),
      await requestFar(loser, shared, 4n),
    ];
    await expect(loser.settler.round()).rejects.toMatchObject({ code: "history_diverged" });

    // A payment of the winner's vault on the mirror is not taken for one of the loser's vault of
    // that number.
    await near.chain.mine(Number(CONFIRMATIONS));
    const ofForeign = await requestFar(winner, foreign, 1n);
    expect(await winner.far.round()).toEqual({ imported: 2, withdrawn: 2 });
    expect(await statusOf(winner, ofForeign)).toBe("settled");
    await expect(loser.far.round()).rejects.toMatchObject({ code: "l1_failed" });
    expect(await statusOf(loser, ofLost)).toBe("accepted");

    expect(await adopt(loser)).toEqual({ batches: 2, lostVaults: 1 });
    expect(await loser.engine.withdrawals.get(applicationId, ofLost.withdrawalId)).toMatchObject({
      status: "failed",
      failure: expect.stringContaining("another history"),
    });
    await loser.settler.round();
    // The second pass withdraws what the first one has brought to the mirror.
    for (let pass = 0; pass < 2; pass++) await loser.far.round();
    expect(await Promise.all([ofKept, ofShared].map((asked) => statusOf(loser, asked)))).toEqual([
      "settled",
      "settled",
    ]);
    expect(await loser.engine.vaults.get(applicationId, kept)).toMatchObject({
      withdrawnBalance: 1n,
    });
    expect(await loser.engine.vaults.get(applicationId, shared)).toMatchObject({
      withdrawnBalance: 4n,
    });
    // Paid once each, by whichever operator.
    for (const [vaultId, paid] of [
      [kept, 1n],
      [shared, 4n],
      [foreign, 1n],
    ] as const) {
      expect(await world.mirror.withdrawn(vaultId, "erc20")).toBe(paid);
    }
    expect((await loser.engine.operator.verify()).problems).toEqual([]);
    const events = [];
    for await (const { type } of loser.engine.events.stream(applicationId)) events.push(type);
    expect(events).toEqual(expect.arrayContaining(["mint.failed", "withdrawal.failed"]));
  });

  test("keep whole records when their chain reorganised a batch away that the mirror has paid", async () => {
    const { near } = world;
    await mintFar(winner, "validium", 5);
    await winner.settler.round();
    await near.chain.mine(Number(CONFIRMATIONS));
    await winner.settler.round();
    loser = await openCopy();
    const before = await near.chain.rpc("evm_snapshot");
    const paid = await mintFar(loser, "zk-rollup", 4);
    await loser.settler.round();
    await near.chain.mine(Number(CONFIRMATIONS));
    await loser.settler.round();
    const asked = await requestFar(loser, paid, 4n);
    expect(await loser.far.round()).toEqual({ imported: 1, withdrawn: 1 });
    expect(await statusOf(loser, asked)).toBe("settled");

    await near.chain.rpc("evm_revert", [before]);
    await near.chain.mine(3);
    const foreign = await mintSword(winner, "zk-rollup", "8");
    expect(foreign).toBe(paid);
    await winner.settler.round();
    await near.chain.mine(2 * Number(CONFIRMATIONS));
    await expect(loser.settler.round()).rejects.toMatchObject({ code: "history_diverged" });
    await adopt(loser);
    expect((await loser.engine.operator.verify()).problems).toEqual([]);
    await loser.settler.round();
    // The mirror has paid, whatever the source says now.
    expect(await statusOf(loser, asked)).toBe("settled");
    expect(await loser.far.round()).toEqual({ imported: 0, withdrawn: 0 });
    expect((await loser.engine.operator.verify()).problems).toEqual([]);
  });
});
