import { zeroAddress } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rebuild } from "../../core/archive/index.ts";
import type { ExitKit } from "../../core/exit/index.ts";
import {
  exitWithKit,
  exitWithKits,
  exportExitKit,
  parseExitKit,
  proveFromL1,
} from "../../core/exit/index.ts";
import type { VaultId } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/index.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { packVaultId, unpackBatchVaultId } from "../../core/protocol/vault.ts";
import { exitKitText } from "../../scripts/commands/exit.ts";
import { chainOf, openArchive } from "../archive/fixture.ts";
import { listOfOne, withdrawOne } from "../one-withdrawal.ts";
import { at, commitUnseen, MATURITY } from "../settlement/fixture.ts";
import {
  becomeFinal,
  claimed,
  createTransferWorld,
  give,
  listOf,
  served,
  signTransfers,
  type TransferWorld,
  whole,
} from "../settlement/transfers-fixture.ts";

describe("the exit of a transferred vault", () => {
  const kzg = new KzgThread();
  let world: TransferWorld;
  let [shield, helmet, crown, gem]: VaultId[] = [];

  beforeAll(async () => {
    world = await createTransferWorld({ fees: { kzg }, attestMs: 60_000 }, async (empty) => {
      // Mints from before go into calldata, those from now on into blobs.
      await empty.engine.operator.seal("zk-rollup");
      await empty.settler.chooseRollupData();
      shield = await empty.mint("erc721", "zk-rollup", "2");
      helmet = await empty.mint("erc721", "validium", "3");
      crown = await empty.mint("erc721", "validium", "4");
      gem = await empty.mint("erc721", "zk-rollup", "5");
    });
  });
  afterAll(async () => {
    await world.close();
    await kzg.close();
  });

  const user = (i: number) => at(world.users, i).owner;
  const address = (i: number) => user(i).address.toLowerCase() as `0x${string}`;
  const portal = (i: number) => {
    const { transport, settlement } = world.chain;
    return connectL1({
      rpc: transport,
      contract: settlement.address,
      account: user(i),
      pollingMs: 5,
    });
  };
  const kitOf = async (vaultId: VaultId) =>
    exportExitKit(await world.engine.proofs.exit(vaultId), world.l1);
  const exit = async (kit: ExitKit, i: number, more: object = {}) =>
    exitWithKit({ kit, l1: await portal(i), account: user(i).address, pollingMs: 5, ...more });

  /** The units that came of each kit; null for one that L1 has not paid. */
  async function allOf(kits: readonly ExitKit[], i: number) {
    const exits = await exitWithKits({ kits, l1: await portal(i), account: user(i).address });
    return exits.map(({ plan, txHash }) => (txHash === null ? null : plan?.quantity));
  }

  /** Committed and final transfers, and the vaults that they make. */
  async function moved(transfers: Parameters<typeof give>[1], by = 0): Promise<VaultId[]> {
    const list = await give(world, transfers, user(by));
    await world.settler.round();
    await becomeFinal(world);
    return (await listOf(world, list)).transfers.map(({ newVaultId }) => newVaultId ?? 0n);
  }

  test("needs the last owner's kit alone, whatever it went through", async () => {
    const { units, token } = world.vaults;
    const old = await kitOf(token);
    const [given, part, rest, lucky] = await moved([
      whole(world, token),
      { vaultId: units, amount: 30n, to: address(1) },
      whole(world, gem ?? 0n),
    ]);
    const [last, less] = await moved(
      [whole(world, given ?? 0n, address(2)), { vaultId: part ?? 0n, amount: 10n, to: address(2) }],
      1,
    );
    const kits = await Promise.all([last, less, rest, lucky].map((id) => kitOf(id ?? 0n)));
    const [sword, points, change, jewel] = kits as [ExitKit, ExitKit, ExitKit, ExitKit];
    expect(
      kits.map(({ tip, hops = [] }) => [tip.vaultId, tip.owner, tip.amount, hops.length]),
    ).toEqual([
      [last, address(2), 1n, 2],
      [less, address(2), 10n, 2],
      [rest, address(0), 70n, 1],
      [lucky, address(1), 1n, 1],
    ]);
    const kinds = [gem ?? 0n, token, units].map(async (id) => {
      const { mode, batchNumber } = unpackBatchVaultId(id);
      return (await world.engine.batches.get(mode, batchNumber)).kind;
    });
    expect(await Promise.all(kinds)).toEqual(["blobs", "calldata", "validium"]);
    for (const kit of kits) expect(parseExitKit(exitKitText(kit))).toEqual(kit);

    const { fromBlock } = await chainOf(world);
    const sources = [served(world)];
    const archive = await openArchive(world);
    await rebuild({ archive, ...(await chainOf(world)), sources });
    for (const kit of kits) {
      const { vaultId } = kit.tip;
      const alone = await proveFromL1(vaultId, { l1: world.l1, fromBlock, sources, kzg });
      expect(await exportExitKit(alone, world.l1)).toEqual(kit);
      expect(await exportExitKit(await archive.vaultProof(vaultId), world.l1)).toEqual(kit);
    }

    await world.chain.passSeconds(MATURITY + 1n);
    await expect(exit(old, 0)).rejects.toMatchObject({
      code: "vault_spent",
      message: expect.stringMatching(new RegExp(`gave vault .* to ${address(1)}`)),
    });
    await expect(exit(sword, 1)).rejects.toMatchObject({ code: "validation_failed" });
    expect(await exit(sword, 2)).toMatchObject({ quantity: 1n, baseUnits: 1n });
    await expect(exit(sword, 2)).rejects.toMatchObject({ code: "insufficient_balance" });
    expect(await allOf([points, sword], 2)).toEqual([10n, null]);
    expect(await allOf([change, old], 0)).toEqual([70n, null]);
    expect(await allOf([jewel], 1)).toEqual([1n]);
  });

  test("works after eight transfers, by the operator's relay", async () => {
    let vaultId = helmet ?? 0n;
    for (let hop = 0; hop < 8; hop++) {
      [vaultId = 0n] = await moved([whole(world, vaultId, address((hop + 1) % 3))], hop % 3);
    }
    expect((await kitOf(vaultId)).hops?.length).toBe(8);
    await world.chain.passSeconds(MATURITY + 1n);
    const deadline = BigInt(Math.floor(Date.now() / 1000) + 86_400);
    const message = { vaultId, withdrawnBefore: 0n, quantity: 1n, recipient: address(2), deadline };
    const signature = await user(2).signTypedData(
      withdrawalListTypedData(world.engine.settlement, listOfOne(message)),
    );
    const { withdrawalId } = await withdrawOne(world.engine, world.principal, {
      ...listOfOne(message),
      signature,
    });
    await world.settler.round();
    const { status } = await world.engine.withdrawals.get(
      world.principal.applicationId,
      withdrawalId,
    );
    expect([status, await world.l1.withdrawn(vaultId, "erc721")]).toEqual(["settled", 1n]);
  });

  test("refuses the exit of a redeemed vault, and says why", async () => {
    const kit = await kitOf(world.vaults.items);
    const [, rest] = await moved([{ vaultId: world.vaults.items, amount: 2n, to: zeroAddress }]);
    await expect(exit(kit, 0)).rejects.toMatchObject({
      code: "vault_spent",
      message: expect.stringMatching(new RegExp(`redeemed 2 units.*rest is in vault ${rest}`)),
    });
    expect(await allOf([await kitOf(rest ?? 0n)], 0)).toEqual([5n]);
  });

  test("refutes what a hostile operator with enough members commits over it", async () => {
    const { engine, l1 } = world;
    const plain = await kitOf(shield ?? 0n);
    const [given] = await moved([whole(world, crown ?? 0n)]);
    const chained = await kitOf(given ?? 0n);
    // Records that neither owner has signed, in favour of a thief.
    const stolen = [plain, chained].map(({ tip }) => whole(world, tip.vaultId, address(2)));
    const { countRollup } = engine.batches.state();
    // A record of a vault that does not exist yet would take it when it is minted. The contract
    // refuses it.
    const { countValidium } = engine.batches.state();
    const unborn = packVaultId({ mode: "validium", batchNumber: countValidium, slot: 0 });
    const early = await signTransfers(world, [whole(world, unborn, address(2))], user(2));
    await expect(commitUnseen(l1, claimed([early], countRollup))).rejects.toThrow("BatchUnknown(");
    const bogus = claimed([await signTransfers(world, stolen, user(2))], countRollup);
    await commitUnseen(l1, bogus);
    await world.chain.passSeconds(MATURITY + 1n);

    const { fromBlock } = await chainOf(world);
    const sources = [served(world)];
    const loot = await proveFromL1(
      packVaultId({ mode: "zk-rollup", batchNumber: countRollup, slot: 0 }),
      {
        l1,
        fromBlock,
        sources,
        kzg,
      },
    );
    await expect(exportExitKit(loot, l1)).rejects.toThrow("TransferInvalid(");
    for (const [kit, owner] of [[plain, 0] as const, [chained, 1] as const]) {
      const proof = await proveFromL1(kit.tip.vaultId, { l1, fromBlock, sources, kzg });
      await expect(exportExitKit(proof, l1)).rejects.toMatchObject({ code: "vault_spent" });
      const refuted = await exportExitKit(proof, l1, { fromBlock });
      expect(refuted).toMatchObject({
        ...kit,
        refutation: { to: address(2), header: { batchRoot: bogus.batchRoot } },
      });
      expect(parseExitKit(exitKitText(refuted))).toEqual(refuted);
      // The kit from before the attack is enough.
      expect(await exit(kit, owner)).toMatchObject({
        quantity: 1n,
        kit: { refutation: refuted.refutation },
      });
      expect(await l1.withdrawn(kit.tip.vaultId, "erc721")).toBe(1n);
    }
  });
});
