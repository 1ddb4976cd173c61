import { custom, erc721Abi } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BatchSource } from "../../core/archive/sources.ts";
import { exitWithKit, exitWithKits, exportExitKit } from "../../core/exit/index.ts";
import { openEngine, type VaultId } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/connect.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { verifyVaultProof } from "../../core/protocol/proof.ts";
import { adoptFromL1 } from "../../core/settlement/index.ts";
import { at, copyOf, createWorld, expectOneHistory, MATURITY, type World } from "./fixture.ts";

const MODE = "zk-rollup";
/** An ERC-1155 id whose minting blob is long and no number, so that no field element holds it. */
const LONG = `{7}:{${"x".repeat(70)}}`;

describe("a rollup in blobs", () => {
  const kzg = new KzgThread();
  let world: World;
  const vaults: Record<string, VaultId> = {};
  beforeAll(async () => {
    world = await createWorld({ fees: { kzg } });
    await world.settler.chooseRollupData();
  });
  afterAll(async () => {
    await world.close();
    await kzg.close();
  });

  test("goes to L1 by a blob transaction, with a text of several elements", async () => {
    const { settler, engine, chain } = world;
    vaults.sword = await world.mint("erc721", MODE, "77");
    vaults.points = await world.mint("erc20", MODE, "", 500);
    vaults.long = await world.mint("erc1155", MODE, LONG, 3);
    vaults.potions = await world.mint("erc1155", MODE, "5", 3);
    expect(await settler.round()).toMatchObject({ sealed: 1, committed: 1 });
    await expectOneHistory(world);
    const first = await engine.batches.get(MODE, 0);
    expect(first).toMatchObject({ kind: "blobs", vaultCount: 4 });
    const sent = await chain.client.getTransaction({ hash: first.l1TxHash ?? "0x" });
    expect(sent).toMatchObject({ type: "eip4844" });
    expect(sent.blobVersionedHashes).toHaveLength(1);
    await chain.mine(30);
    await settler.round();
    expect(await world.transactionStatus(vaults.sword)).toBe("finalized");
  });

  test("pays by the relay, and proves what anyone can check", async () => {
    const { settler, engine, chain, users } = world;
    await world.requestWithdrawal(vaults.points as VaultId, 200n);
    await world.requestWithdrawal(vaults.long as VaultId, 2n);
    await chain.passSeconds(MATURITY);
    await world.requestList([vaults.sword as VaultId]);
    expect((await settler.round()).withdrawn).toBe(3);
    const ownerOf = { abi: erc721Abi, functionName: "ownerOf", args: [77n] } as const;
    const token = at(chain.tokens, 1).address;
    expect(await chain.client.readContract({ ...ownerOf, address: token })).toBe(
      at(users, 0).owner.address,
    );
    const proof = await engine.proofs.vault(vaults.potions as VaultId);
    expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);
    expect(
      verifyVaultProof(proof.batchRoot, { ...proof, vault: { ...proof.vault, amount: 4n } }),
    ).toBe(false);
    await expect(engine.proofs.vaults([vaults.potions as VaultId])).rejects.toThrow(
      "no common proof",
    );
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("pays the owner alone by exit kits, in part, and two vaults in one transaction", async () => {
    const { engine, chain, users, l1 } = world;
    const { owner } = at(users, 0);
    const rpc = custom({ request: chain.request });
    const own = await connectL1({
      rpc,
      contract: chain.settlement.address,
      account: owner,
      pollingMs: 5,
    });
    const account = owner.address;
    const kitOf = async (vaultId: VaultId) => exportExitKit(await engine.proofs.exit(vaultId), l1);
    const [points, potions] = [
      await kitOf(vaults.points as VaultId),
      await kitOf(vaults.potions as VaultId),
    ];
    const part = await exitWithKit({ kit: points, l1: own, account, quantity: 100n });
    expect(part).toMatchObject({ withdrawnBefore: 200n, heldBefore: 200_000n, held: 300_000n });
    const other = { ...potions, siblings: points.siblings };
    await expect(exitWithKit({ kit: other, l1: own, account })).rejects.toMatchObject({
      code: "validation_failed",
    });
    const exits = await exitWithKits({ kits: [points, potions], l1: own, account });
    expect(exits.map(({ refusal, plan }) => [refusal, plan?.quantity])).toEqual([
      [null, 200n],
      [null, 3n],
    ]);
    expect(new Set(exits.map(({ txHash }) => txHash)).size).toBe(1);
    expect(await l1.withdrawn(vaults.potions as VaultId, "erc1155")).toBe(3n);
  });

  test("is sealed anew without a refused slot, before L1 has it", async () => {
    const { settler, engine } = world;
    const kept = await world.mint("erc20", MODE, "", 7);
    const gone = await world.mint("erc721", MODE, "99");
    const sealed = await engine.operator.seal(MODE);
    const before = sealed?.content;
    const { batchNumber = 0 } = sealed ?? {};
    const resealed = await engine.operator.voidSlots(MODE, batchNumber, [
      { firstSlot: 1, count: 1, failure: "no" },
    ]);
    expect(resealed).toMatchObject({ kind: "blobs", vaultCount: 2 });
    expect(resealed.content).not.toBe(before);
    await settler.round();
    await expectOneHistory(world);
    expect(await world.transactionStatus(kept)).toBe("settled");
    await expect(engine.proofs.vault(gone)).rejects.toMatchObject({ code: "vault_void" });
    const proof = await engine.proofs.vault(kept);
    expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);
  });

  test("is committed again after a reorganisation", async () => {
    const { settler, chain } = world;
    await chain.mine(30);
    await settler.round();
    const snapshot = await chain.rpc("evm_snapshot");
    const vault = await world.mint("erc721", MODE, "101");
    await settler.round();
    expect(await world.transactionStatus(vault)).toBe("settled");
    await chain.rpc("evm_revert", [snapshot]);
    await chain.mine(3);
    for (let i = 0; i < 4; i++) await settler.round();
    await expectOneHistory(world);
    expect(await world.transactionStatus(vault)).toBe("settled");
  });

  test("is adopted by a diverged store from the first peer whose blobs are L1's, of several that lie", async () => {
    const { settler, engine, engineStore, l1, chain, committee } = world;
    const store = await copyOf(engineStore);
    const loser = await openEngine({
      store,
      settlement: l1.settlement,
      environment: "sandbox",
      divergenceMs: 0,
      kzg,
    });
    const settling = chain.newSettler({ engine: loser, l1, committee });
    await settling.chooseRollupData();
    const vault = await world.mint("erc721", MODE, "201");
    await { ...world, engine: loser }.mint("erc721", MODE, "202");
    await settler.round();
    await expect(settling.round()).rejects.toMatchObject({ code: "history_diverged" });
    await chain.mine(30);

    const asked: string[] = [];
    const peer = (name: string, change: (data: Uint8Array) => Uint8Array): BatchSource => ({
      name,
      async batchData(mode, batchNumber) {
        asked.push(name);
        // A buffer of the store: a liar changes its own copy.
        return change(Uint8Array.from((await engine.batches.getSealed(mode, batchNumber)).data));
      },
    });
    // The frame alone makes L1's root: only the commitments tell that an owner, an order or a blob
    // is another.
    const firstOwner = (data: Uint8Array) => data.length - 131_072 + 2;
    const liars = [
      peer("another owner", (data) => data.fill(0xbb, firstOwner(data), firstOwner(data) + 20)),
      peer("out of the field", (data) =>
        data.fill(0xff, firstOwner(data) - 2, firstOwner(data) + 30),
      ),
      peer("one blob more", (data) => Buffer.concat([data, data.subarray(-131_072)])),
      peer("too short", (data) => data.subarray(0, -1)),
    ];
    const fromBlock = chain.settlement.deployedAtBlock;
    const options = { engine: loser, l1, fromBlock, kzg };
    await expect(adoptFromL1({ ...options, sources: liars })).rejects.toMatchObject({
      code: "l1_failed",
    });
    expect(loser.operator.divergence()).not.toBeNull();
    asked.length = 0;
    const honest = peer("honest", (data) => data);
    expect(await adoptFromL1({ ...options, sources: [...liars, honest] })).toEqual({
      batches: 1,
      lostVaults: 1,
    });
    expect(asked).toEqual([...liars, honest].map(({ name }) => name));
    expect((await loser.operator.verify()).problems).toEqual([]);
    await settling.round();
    await expectOneHistory({ engine: loser, l1 });
    expect((await loser.proofs.vault(vault)).vault).toEqual(
      (await engine.proofs.vault(vault)).vault,
    );
    await loser.close();
  });
});
