import { erc721Abi } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exportExitKit } from "../../core/exit/index.ts";
import type { VaultId } from "../../core/index.ts";
import { KzgThread } from "../../core/kzg/kzg.ts";
import { verifyVaultProof } from "../../core/protocol/proof.ts";
import {
  at,
  createWorld,
  MATURITY,
  mine,
  mint,
  passSeconds,
  requestList,
  requestWithdrawal,
  rpc,
  transactionStatus,
  type World,
} from "./fixture.ts";

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

  test("goes to L1 by a blob transaction, and what does not fit by calldata behind it", async () => {
    const { settler, engine, l1, chain } = world;
    vaults.sword = await mint(world, "erc721", MODE, "77");
    vaults.points = await mint(world, "erc20", MODE, "", 500);
    vaults.long = await mint(world, "erc1155", MODE, LONG, 3);
    vaults.potions = await mint(world, "erc1155", MODE, "5", 3);
    expect(await settler.round()).toMatchObject({ sealed: 1, committed: 2 });
    expect(await l1.state()).toEqual({ ...engine.batches.state(), history: engine.operator.history() });
    const [first, second] = [await engine.batches.get(MODE, 0), await engine.batches.get(MODE, 1)];
    expect([first.kind, first.vaultCount, second.kind, second.vaultCount]).toEqual(["blobs", 3, "calldata", 1]);
    const sent = await chain.client.getTransaction({ hash: first.l1TxHash ?? "0x" });
    expect(sent).toMatchObject({ type: "eip4844" });
    expect(sent.blobVersionedHashes).toHaveLength(1);
    await mine(chain, 30);
    await settler.round();
    expect(await transactionStatus(world, vaults.sword)).toBe("finalized");
  });

  test("pays by the relay, single and by a list, and proves what anyone can check", async () => {
    const { settler, engine, chain, users } = world;
    await requestWithdrawal(world, vaults.points as VaultId, 200n);
    await requestWithdrawal(world, vaults.long as VaultId, 2n);
    await passSeconds(chain, MATURITY);
    await requestList(world, [vaults.sword as VaultId]);
    expect((await settler.round()).withdrawn).toBe(3);
    const ownerOf = { abi: erc721Abi, functionName: "ownerOf", args: [77n] } as const;
    const token = at(chain.tokens, 1).address;
    expect(await chain.client.readContract({ ...ownerOf, address: token })).toBe(at(users, 0).owner.address);
    const proof = await engine.proofs.vault(vaults.potions as VaultId);
    expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);
    expect(verifyVaultProof(proof.batchRoot, { ...proof, vault: { ...proof.vault, amount: 4n } })).toBe(false);
    await expect(engine.proofs.vaults([vaults.potions as VaultId])).rejects.toThrow("no common proof");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("pays the owner alone by an exit kit", async () => {
    const { engine, l1 } = world;
    const kit = await exportExitKit(await engine.proofs.exit(vaults.potions as VaultId), l1);
    expect(kit.vault.vaultId).toBe(vaults.potions);
  });

  test("is sealed anew without a refused slot, before L1 has it", async () => {
    const { settler, engine, l1 } = world;
    const kept = await mint(world, "erc20", MODE, "", 7);
    const gone = await mint(world, "erc721", MODE, "99");
    const sealed = await engine.operator.seal(MODE);
    const before = sealed?.content;
    const { batchNumber = 0 } = sealed ?? {};
    const resealed = await engine.operator.voidSlots(MODE, batchNumber, [{ firstSlot: 1, count: 1, failure: "no" }]);
    expect(resealed).toMatchObject({ kind: "blobs", vaultCount: 2 });
    expect(resealed.content).not.toBe(before);
    await settler.round();
    expect(await l1.state()).toEqual({ ...engine.batches.state(), history: engine.operator.history() });
    expect(await transactionStatus(world, kept)).toBe("settled");
    await expect(engine.proofs.vault(gone)).rejects.toMatchObject({ code: "vault_void" });
    const proof = await engine.proofs.vault(kept);
    expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);
  });

  test("is committed again after a reorganisation", async () => {
    const { settler, engine, l1, chain } = world;
    await mine(chain, 30);
    await settler.round();
    const snapshot = await rpc(chain, "evm_snapshot");
    const vault = await mint(world, "erc721", MODE, "101");
    await settler.round();
    expect(await transactionStatus(world, vault)).toBe("settled");
    await rpc(chain, "evm_revert", [snapshot]);
    await mine(chain, 3);
    for (let i = 0; i < 4; i++) await settler.round();
    expect(await l1.state()).toEqual({ ...engine.batches.state(), history: engine.operator.history() });
    expect(await transactionStatus(world, vault)).toBe("settled");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
