import { erc20Abi } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ExitKit, exitWithKit, exportExitKit, renewWithKits } from "../../core/exit/index.ts";
import { MAX_AMOUNT, type VaultId } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/index.ts";
import { at, createWorld, expectOneHistory, MATURITY, TOKENS, type World } from "./fixture.ts";
import {
  becomeFinal,
  createTransferWorld,
  friendOf,
  give,
  listOf,
  type TransferWorld,
  whole,
} from "./transfers-fixture.ts";

type Seen = Pick<World, "engine" | "l1" | "chain" | "users">;

const userOf = ({ users }: Seen, i: number) => at(users, i).owner;
const addressOf = (world: Seen, i: number) =>
  userOf(world, i).address.toLowerCase() as `0x${string}`;
const kitOf = async ({ engine, l1 }: Seen, vaultId: VaultId) =>
  exportExitKit(await engine.proofs.exit(vaultId), l1);
const kitsOf = (world: Seen, vaultIds: readonly VaultId[]) =>
  Promise.all(vaultIds.map((vaultId) => kitOf(world, vaultId)));

/** Renews by an account of the world, by default its first user's. */
async function renew(world: Seen, kits: readonly ExitKit[], by = 0, more: object = {}) {
  const { transport, settlement } = world.chain;
  const account = userOf(world, by);
  const contract = settlement.address;
  const l1 = await connectL1({ rpc: transport, contract, account, pollingMs: 5 });
  return renewWithKits({ kits, l1, account: account.address, ...more });
}

/** Mints units in a batch of their own, because those of one batch are one vault. */
async function mintApart(world: World, amount: number | bigint, by = 0): Promise<VaultId> {
  const { engine, principal, assets } = world;
  const entry = {
    assetId: assets.get("erc20"),
    amount: `${amount}`,
    dataAvailabilityMode: "validium",
  };
  const users = [{ userId: at(world.users, by).userId, mints: [entry] }];
  const { vaults } = await engine.mint(principal, { users } as unknown);
  await engine.operator.seal("validium");
  return at(vaults, 0).vaultId;
}

/** Expects a refusal for which nobody has paid. */
async function expectRefused(
  world: Seen,
  renewal: () => Promise<unknown>,
  refusal: { readonly code: string; readonly message?: unknown },
  by = 0,
) {
  const { address } = userOf(world, by);
  const before = await world.chain.client.getTransactionCount({ address });
  await expect(renewal()).rejects.toMatchObject(refusal);
  expect(await world.chain.client.getTransactionCount({ address })).toBe(before);
}

describe("an owner's renewal by exit kits", () => {
  let world: TransferWorld;
  const small: VaultId[] = [];
  let whales: readonly VaultId[] = [];
  beforeAll(async () => {
    world = await createTransferWorld({}, async (empty) => {
      await empty.engine.operator.seal("validium");
      for (let i = 1; i <= 20; i++) small.push(await mintApart(empty, i));
      whales = [await mintApart(empty, MAX_AMOUNT, 2), await mintApart(empty, 1, 2)];
    });
  });
  afterAll(() => world.close());

  const balanceOf = async (userIndex: number) => {
    const { engine, principal, users, assets } = world;
    const list = engine.vaults.balances(principal.applicationId, at(users, userIndex).userId);
    const all = await Array.fromAsync(list);
    return all.filter(({ assetId }) => assetId === assets.get("erc20"));
  };

  /** Commits transfers until they are final. Returns the vaults that they make. */
  const moved = async (transfers: Parameters<typeof give>[1], by = 0) => {
    const list = await give(world, transfers, userOf(world, by));
    await world.settler.round();
    await becomeFinal(world);
    return (await listOf(world, list)).transfers.map(({ newVaultId }) => newVaultId ?? 0n);
  };

  test("makes one vault of twenty, which is one balance, moves on and is paid", async () => {
    const { engine, chain, principal, vaults, settler } = world;
    const kits = await kitsOf(world, [...small, vaults.units]);
    const sent: string[] = [];
    const onSent = (txHash: string) => sent.push(txHash);
    const { txHash, vaults: made } = await renew(world, kits, 0, { onSent });
    expect(sent).toEqual([txHash]);
    expect(made).toMatchObject([{ owner: addressOf(world, 0), amount: 310n, mintingBlob: "0x" }]);
    const { vaultId } = at(made, 0);
    await settler.round();
    await becomeFinal(world);
    expect(await balanceOf(0)).toMatchObject([{ available: 310n }]);
    expect(await engine.vaults.get(principal.applicationId, vaultId)).toMatchObject({
      amount: 310n,
      availableBalance: 310n,
      status: "finalized",
    });
    const owned = await Array.fromAsync(engine.vaults.owned(addressOf(world, 0)));
    expect(owned.find((each) => each.vaultId === at(small, 4))?.standing).toBe("renewed");
    const byMode = engine.vaults.list(principal.applicationId, { dataAvailabilityMode: "made" });
    expect((await Array.fromAsync(byMode)).map((each) => each.vaultId)).toEqual([vaultId]);
    expect(await engine.vaults.get(principal.applicationId, at(small, 4))).toMatchObject({
      availableBalance: 0n,
    });
    await expectRefused(world, () => renew(world, kits), {
      code: "insufficient_balance",
      message: expect.stringContaining(`vault ${small[0]}: All of this vault`),
    });

    await moved([{ vaultId, amount: 300n, to: friendOf(world) }]);
    expect(await balanceOf(1)).toMatchObject([{ available: 300n }]);
    const rest = (await Array.fromAsync(engine.vaults.owned(addressOf(world, 0)))).find(
      ({ standing, amount }) => standing === "held" && amount === 10n,
    );
    await world.requestWithdrawal(rest?.vaultId ?? 0n, 10n);
    expect((await settler.round()).withdrawn).toBe(1);
    const token = at(chain.tokens, 0).address;
    const read = { abi: erc20Abi, address: token, functionName: "balanceOf" } as const;
    const args = [addressOf(world, 0)] as const;
    expect(await chain.client.readContract({ ...read, args })).toBe(10_000n);
  });

  test("lets a vault at its eighth transfer begin anew", async () => {
    let vaultId = world.vaults.items;
    for (let hop = 0; hop < 8; hop++)
      [vaultId = 0n] = await moved(
        [whole(world, vaultId, addressOf(world, (hop + 1) % 2))],
        hop % 2,
      );
    await expect(moved([whole(world, vaultId)])).rejects.toMatchObject({
      issues: [{ code: "transfer_too_deep" }],
    });
    const { vaults } = await renew(world, [await kitOf(world, vaultId)]);
    await world.settler.round();
    await becomeFinal(world);
    const [friends = 0n] = await moved([whole(world, at(vaults, 0).vaultId)]);
    const { transport, settlement } = world.chain;
    const account = userOf(world, 1);
    const place = { rpc: transport, contract: settlement.address, pollingMs: 5 };
    const l1 = await connectL1({ ...place, account });
    const kit = await kitOf(world, friends);
    expect(await exitWithKit({ kit, l1, account: account.address })).toMatchObject({
      quantity: 7n,
      held: 7n,
    });
  });

  test("is refused before anybody pays", async () => {
    const { token } = world.vaults;
    await world.mint("erc721", "validium", "9");
    await world.settler.round();
    const fresh = await world.mint("erc721", "validium", "10");
    await world.settler.round();
    const kit = await kitOf(world, fresh);
    await expectRefused(world, () => renew(world, [kit]), {
      code: "proof_not_ready",
      message: expect.stringMatching(
        new RegExp(`^Not mature yet: vault ${fresh}, .* of L1's clock`),
      ),
    });
    const twin = { ...kit, tip: { ...kit.tip, vaultId: token } };
    const refusals: readonly (readonly [readonly ExitKit[], object, string])[] = [
      [[], {}, "A renewal takes 1 to 256 vaults, not 0"],
      [Array<ExitKit>(257).fill(kit), {}, "A renewal takes 1 to 256 vaults, not 257"],
      [[kit, kit], {}, "Two of the kits are of one vault"],
      [[kit, twin], {}, "both of ERC-721 id 10"],
      [[kit], { recipient: `0x${"00".repeat(20)}` }, "redeem them"],
    ];
    for (const [kits, more, sentence] of refusals)
      await expectRefused(world, () => renew(world, kits, 0, more), {
        code: "validation_failed",
        message: expect.stringContaining(sentence),
      });
    await expectRefused(world, () => renew(world, [kit], 1), { code: "validation_failed" }, 1);
    const rich = await kitsOf(world, whales);
    await expectRefused(
      world,
      () => renew(world, rich, 2),
      { code: "validation_failed", message: expect.stringContaining(`at most ${MAX_AMOUNT}`) },
      2,
    );

    await world.chain.passSeconds(MATURITY + 1n);
    const { vaults } = await renew(world, [kit], 0, { recipient: userOf(world, 1).address });
    expect(vaults).toMatchObject([{ owner: addressOf(world, 1), amount: 1n }]);
    await world.settler.round();
    await becomeFinal(world);
    await expectOneHistory(world);
    expect((await world.engine.operator.verify()).problems).toEqual([]);
  });
});

test("vaults that cannot be given away are renewed for their owner alone", async () => {
  const world = await createWorld({ config: { transfers: true }, tokens: TOKENS });
  const minted = [await mintApart(world, 3), await mintApart(world, 4)];
  await world.settler.round();
  await becomeFinal(world);
  const kits = await kitsOf(world, minted);
  await expectRefused(world, () => renew(world, kits, 0, { recipient: userOf(world, 1).address }), {
    code: "validation_failed",
    message: expect.stringContaining("for their owner alone"),
  });
  const { vaults } = await renew(world, kits);
  expect(vaults).toMatchObject([{ owner: addressOf(world, 0), amount: 7n }]);
  await world.close();
});

test("a contract without makings renews nothing, and says what to do", async () => {
  const world = await createWorld();
  const minted = await world.mint("erc20", "validium", "", 3);
  await world.settler.round();
  const kits = await kitsOf(world, [minted]);
  await expectRefused(world, () => renew(world, kits), {
    code: "validation_failed",
    message: expect.stringContaining("makes no vaults, so none can be renewed. Withdraw them."),
  });
  await world.close();
});
