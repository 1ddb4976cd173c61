import { custom } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rebuild } from "../../core/archive/index.ts";
import type { ExitKit } from "../../core/exit/index.ts";
import {
  exitKitToJson,
  exitWithKit,
  exportExitKit,
  parseExitKit,
  proveFromL1,
} from "../../core/exit/index.ts";
import type { VaultId } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/connect.ts";
import { exitKitText } from "../../scripts/commands/exit.ts";
import { at, createWorld, MATURITY, type World } from "../settlement/fixture.ts";
import { chainOf, openArchive, sourceOf } from "./fixture.ts";

describe("an exit kit", () => {
  let world: World;
  let kits: { readonly sword: ExitKit; readonly points: ExitKit; readonly potion: ExitKit };
  let ids: readonly VaultId[];

  beforeAll(async () => {
    world = await createWorld();
    ids = [
      await world.mint("erc721", "validium", "sword"),
      await world.mint("erc20", "zk-rollup", "", 9),
      await world.mint("erc1155", "zk-rollup", "potion", 3),
    ];
    await world.engine.operator.seal("validium");
    await expect(kitOf(at(ids, 0))).rejects.toMatchObject({ code: "proof_not_ready" });
    await world.settler.round();
    const [sword, points, potion] = await Promise.all(ids.map(kitOf));
    if (!sword || !points || !potion) throw new Error("three kits");
    kits = { sword, points, potion };
  });
  afterAll(() => world.close());

  const kitOf = async (vaultId: VaultId) =>
    exportExitKit(await world.engine.proofs.vault(vaultId), world.l1);
  const owner = () => at(world.users, 0).owner;
  const asOwner = () => {
    const { request, settlement } = world.chain;
    return connectL1({
      rpc: custom({ request }),
      contract: settlement.address,
      account: owner(),
      pollingMs: 5,
    });
  };

  test("is the same from engine, archive, and L1 with a member", async () => {
    const sources = [sourceOf(at(world.members, 0))];
    const { fromBlock } = await chainOf(world);
    const archive = await openArchive(world);
    await rebuild({ archive, ...(await chainOf(world)), sources });
    for (const kit of Object.values(kits)) {
      const { vaultId } = kit.vault;
      expect(await exportExitKit(await archive.vaultProof(vaultId), world.l1)).toEqual(kit);
      expect(
        await exportExitKit(
          await proveFromL1(vaultId, { l1: world.l1, fromBlock, sources }),
          world.l1,
        ),
      ).toEqual(kit);
    }
    const { vaultId } = kits.sword.vault;
    const lies = [{ name: "liar", batchData: async () => new Uint8Array([1]) }];
    await expect(proveFromL1(vaultId, { l1: world.l1, fromBlock, sources: lies })).rejects.toThrow(
      "liar",
    );
    const never = proveFromL1(vaultId + (5n << 20n), { l1: world.l1, fromBlock, sources });
    await expect(never).rejects.toMatchObject({ code: "batch_not_found" });
  });

  test("survives its file", () => {
    for (const kit of Object.values(kits)) expect(parseExitKit(exitKitText(kit))).toEqual(kit);
    expect(kits.sword.maturesAt).toBe(kits.sword.header.committedAt + MATURITY);
    expect(kits.points).toMatchObject({
      maturesAt: null,
      token: { quantum: 1_000n, tokenId: null },
    });
  });

  test("is refused with the position of a format fault", () => {
    const json = exitKitToJson(kits.sword);
    const bad: [object, string][] = [
      [{ ...json, version: 4, more: 1 }, "it has version 4; this version of Mintmark reads 1."],
      [{ ...json, version: "1" }, "version must be 1"],
      [{ ...json, tip: undefined }, "tip"],
      [{ ...json, more: 1 }, "more"],
      [{ ...json, contract: "0x12" }, "contract"],
      [{ ...json, chainId: 31337 }, "chainId"],
      [{ ...json, siblings: Array(21).fill(json.header.batchRoot) }, "siblings"],
      [{ ...json, assetPath: { ...json.assetPath, index: 255 } }, "assetPath"],
      [
        { ...json, assetPath: { index: 0, siblings: Array(9).fill(json.header.batchRoot) } },
        "assetPath",
      ],
      [{ ...json, vault: { ...json.vault, mintingBlob: "0x0" } }, "mintingBlob"],
      [{ ...json, token: { ...json.token, standard: "erc404" } }, "standard"],
    ];
    for (const [kit, place] of bad)
      expect(() => parseExitKit(JSON.stringify(kit)), place).toThrow(place);
    expect(() => parseExitKit("{")).toThrow("not JSON");
  });

  test("changed in any one place is refused before anything is sent", async () => {
    const l1 = await asOwner();
    const exit = (kit: ExitKit) => exitWithKit({ kit, l1, account: owner().address });
    const flipped = (hex: `0x${string}`): `0x${string}` => {
      return `0x${hex.endsWith("0") ? `${hex.slice(2, -1)}1` : `${hex.slice(2, -1)}0`}`;
    };
    const { points: kit } = kits;
    const { vault, header, token, siblings, assetPath } = kit;
    const changes: ExitKit[] = [
      { ...kit, vault: { ...vault, amount: vault.amount + 1n } },
      { ...kit, tip: { ...kit.tip, amount: 0n } },
      { ...kit, tip: { ...kit.tip, amount: vault.amount - 1n } },
      { ...kit, vault: { ...vault, vaultId: vault.vaultId + 1n } },
      { ...kit, vault: { ...vault, assetType: flipped(vault.assetType) } },
      { ...kit, vault: { ...vault, chainId: vault.chainId + 1n } },
      { ...kit, vault: { ...vault, mintingBlob: "0x00" } },
      { ...kit, header: { ...header, batchRoot: flipped(header.batchRoot) } },
      { ...kit, header: { ...header, sequence: header.sequence + 1n } },
      { ...kit, header: { ...header, committedAt: header.committedAt - 1n } },
      { ...kit, header: { ...header, vaultCount: header.vaultCount + 1 } },
      { ...kit, siblings: siblings.map(flipped) },
      { ...kit, siblings: [...siblings, header.batchRoot] },
      { ...kit, assetPath: { ...assetPath, index: assetPath.index + 1 } },
      { ...kit, assetPath: { ...assetPath, siblings: [...assetPath.siblings, header.batchRoot] } },
      { ...kit, token: { ...token, quantum: token.quantum + 1n } },
      { ...kit, token: { ...token, address: flipped(token.address) } },
      { ...kit, token: { ...token, standard: "erc1155" } },
      { ...kit, token: { ...token, tokenId: 1n } },
      { ...kit, settlement: { ...kit.settlement, contract: flipped(kit.settlement.contract) } },
    ];
    for (const [place, change] of changes.entries()) {
      await expect(exit(change), `change ${place}`).rejects.toMatchObject({
        name: "MintmarkError",
      });
    }
    expect(await world.l1.withdrawn(vault.vaultId, "erc20")).toBe(0n);
  });

  test("lets its owner out, in part and whole, once the vault is mature", async () => {
    const l1 = await asOwner();
    const account = owner().address;
    const stranger = at(world.users, 1).owner.address;
    const exit = (kit: ExitKit, more: object = {}) =>
      exitWithKit({ kit, l1, account, pollingMs: 5, ...more });
    await expect(exit(kits.sword)).rejects.toMatchObject({ code: "proof_not_ready" });
    await expect(exit(kits.potion, { quantity: 4n })).rejects.toMatchObject({
      code: "insufficient_balance",
    });
    await expect(exit(kits.potion, { account: stranger })).rejects.toMatchObject({
      code: "validation_failed",
    });

    expect(await exit(kits.potion, { quantity: 1n })).toMatchObject({
      heldBefore: 0n,
      held: 1n,
      withdrawnBefore: 0n,
    });
    const rest = await exit(kits.potion, { recipient: stranger });
    expect(rest).toMatchObject({ quantity: 2n, recipient: stranger, heldBefore: 0n, held: 2n });
    await expect(exit(kits.potion)).rejects.toMatchObject({ code: "insufficient_balance" });
    expect(await exit(kits.points)).toMatchObject({ baseUnits: 9_000n, held: 9_000n });

    const waited: bigint[] = [];
    const waiting = exit(kits.sword, {
      immature: "wait",
      onWait(seconds: bigint) {
        if (waited.push(seconds) === 1) void world.chain.passSeconds(MATURITY + 1n);
      },
    });
    expect(await waiting).toMatchObject({ quantity: 1n, heldBefore: 0n, held: 1n });
    expect(waited.length).toBeGreaterThan(0);
  });
});
