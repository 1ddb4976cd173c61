import { custom, encodeFunctionData, erc20Abi, erc721Abi, type Hex, parseEventLogs } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rebuild } from "../../core/archive/index.ts";
import { contextOf } from "../../core/engine.ts";
import { exitWithKit, exportExitKit, parseExitKit, proveFromL1 } from "../../core/exit/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { readArtifact } from "../../core/l1/artifact.ts";
import { connectL1 } from "../../core/l1/index.ts";
import { verifyVaultProof } from "../../core/protocol/proof.ts";
import { restoreStore } from "../../core/verify/restore.ts";
import { exitKitText } from "../../scripts/commands/exit.ts";
import { chainOf, openArchive } from "../archive/fixture.ts";
import { openTest } from "../core/engine/fixture.ts";
import { NaiveJournal } from "../core/naive/naive-store.ts";
import { FaultyNode, type NodeFaults } from "../faulty-node.ts";
import { at, codeOf, copyOf, expectOneHistory } from "./fixture.ts";
import {
  becomeFinal,
  createTransferWorld,
  friendOf,
  give,
  served,
  type TransferWorld,
  whole,
} from "./transfers-fixture.ts";

const STRANGER: Hex = `0x${"57".repeat(20)}`;

type Tail<T extends readonly unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

/** A call of an account to a contract of the chain. */
async function call(
  { chain }: Pick<TransferWorld, "chain">,
  abi: ReturnType<typeof readArtifact>["abi"],
  { address, functionName, args }: { address: Hex; functionName: string; args: readonly unknown[] },
  from: Hex,
) {
  const data = encodeFunctionData({ abi, functionName, args });
  await chain.rpc("hardhat_impersonateAccount", [from]);
  const hash = (await chain.rpc("eth_sendTransaction", [{ from, to: address, data }])) as Hex;
  return chain.client.waitForTransactionReceipt({ hash });
}

/** An account, by default the first user's, enters a token for an owner. Returns the vault's id. */
async function entered(
  world: Pick<TransferWorld, "chain" | "users">,
  index: 0 | 1 | 2,
  args: readonly unknown[],
  owner: Hex,
  from: Hex = at(world.users, 0).owner.address,
) {
  const { chain } = world;
  const token = at(chain.tokens, index);
  const { address } = token;
  const { abi } = readArtifact(
    (["MintableERC20", "MintableERC721", "MintableERC1155"] as const)[index],
  );
  if (!token.minterLocked) {
    const locking = { address, functionName: "lockMinter", args: [] };
    await call(world, abi, locking, chain.by.account.address);
    Object.assign(token, { minterLocked: true });
  }
  const entry = { address, functionName: "enter", args: [owner, ...args] };
  const { logs } = await call(world, abi, entry, from);
  const [made] = parseEventLogs({ abi: stateCommitmentAbi, eventName: "VaultMade", logs });
  if (made === undefined) throw new Error("the entry made no vault");
  return made.args.vaultId;
}

describe("tokens that come back from L1", () => {
  let world: TransferWorld;
  beforeAll(async () => {
    world = await createTransferWorld();
  });
  afterAll(() => world.close());

  /** Enters a token for an owner. Returns the vault's id. */
  const enter = (...entry: Tail<Parameters<typeof entered>>) => entered(world, ...entry);

  /** The world in which the second user signs. */
  const asFriend = () => ({ ...world, users: [at(world.users, 1)] });

  const balanceOf = async (userIndex: 0 | 1, standard: "erc20" | "erc721") => {
    const { engine, principal, users } = world;
    const list = engine.vaults.balances(principal.applicationId, at(users, userIndex).userId);
    const { data: assets } = await engine.assets.list(principal.applicationId);
    const asset = assets.find((each) => each.standard === standard);
    return (await Array.fromAsync(list)).find(({ assetId }) => assetId === asset?.assetId);
  };

  test("are one number with what was minted, once they are final; then they move on and out", async () => {
    const { engine, settler, chain, vaults, principal, users } = world;
    const owner = at(users, 0).owner.address;
    await world.withdrawAlone(vaults.units, 60n);
    await settler.round();
    const events = engine.events.stream(principal.applicationId);
    const before = (await Array.fromAsync(events)).length;
    const vaultId = await enter(0, [60_000n], owner);
    await settler.round();
    // It is on L1, and not final.
    expect(await codeOf(engine.vaults.get(principal.applicationId, vaultId))).toBe(
      "vault_not_found",
    );
    expect((await balanceOf(0, "erc20"))?.available).toBe(40n);
    await becomeFinal(world);

    expect(await engine.vaults.get(principal.applicationId, vaultId)).toMatchObject({
      amount: 60n,
      availableBalance: 60n,
      status: "finalized",
      batchId: "made-1",
      dataAvailabilityMode: "made",
    });
    expect(await balanceOf(0, "erc20")).toMatchObject({ amount: 160n, available: 100n });
    const { data } = await engine.deposits.list(principal.applicationId);
    expect(data).toMatchObject([
      { vaultId, userId: at(users, 0).userId, ownerAddress: owner.toLowerCase(), amount: 60n },
    ]);
    const told = (await Array.fromAsync(engine.events.stream(principal.applicationId))).slice(
      before,
    );
    expect(told.filter(({ type }) => type === "deposit.credited")).toMatchObject([
      { data: { vaultId, amount: 60n, userId: at(users, 0).userId, tokenId: null } },
    ]);
    expect(await engine.transactions.get(principal.applicationId, `${vaultId}`)).toMatchObject({
      type: "deposit",
      vaultId,
      amount: 60n,
      status: "finalized",
    });
    const proof = await engine.proofs.exit(vaultId);
    expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);

    const list = await give(world, [{ vaultId, amount: 25n, to: friendOf(world) }]);
    await settler.round();
    await becomeFinal(world);
    expect((await engine.transfers.get(principal.applicationId, list.transferId)).status).toBe(
      "finalized",
    );
    expect((await balanceOf(1, "erc20"))?.amount).toBe(25n);
    const [given] = (await engine.transfers.get(principal.applicationId, list.transferId))
      .transfers;
    const tip = given?.newVaultId ?? 0n;
    await asFriend().requestWithdrawal(tip, 25n);
    expect((await settler.round()).withdrawn).toBe(1);
    const address = at(chain.tokens, 0).address;
    const read = { abi: erc20Abi, address, functionName: "balanceOf" } as const;
    expect(await chain.client.readContract({ ...read, args: [friendOf(world)] })).toBe(25_000n);
  });

  test("are withdrawn by the engine without a wait, and by the owner alone before they are final", async () => {
    const { engine, settler, chain, principal, users, vaults } = world;
    const owner = at(users, 0).owner.address;
    await world.withdrawAlone(vaults.units, 40n);
    const mine = await enter(0, [10_000n], owner);
    const alone = await enter(0, [20_000n], owner);
    await becomeFinal(world);
    const { withdrawalId } = await world.requestWithdrawal(mine, 10n);
    expect((await settler.round()).withdrawn).toBe(1);
    expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe(
      "settled",
    );
    await world.withdrawAlone(alone, 5n);
    await settler.round();
    expect(await engine.vaults.get(principal.applicationId, alone)).toMatchObject({
      withdrawnBalance: 5n,
      availableBalance: 15n,
    });
    // Another one is entered and withdrawn from before the engine has seen it as final.
    const quick = await enter(0, [5_000n], owner);
    const receipt = { vaultId: quick, chainId: BigInt(chain.by.chainId), owner };
    const [made] = parseEventLogs({
      abi: stateCommitmentAbi,
      eventName: "Made",
      logs: (await chain.client.getLogs({
        address: chain.settlement.address,
        fromBlock: 0n,
      })) as never,
    }).slice(-1);
    if (made === undefined) throw new Error("no making");
    const { batchRoot, vaultCount, sequence } = made.args;
    const asset = (await engine.assets.list(principal.applicationId)).data[0];
    const args = [
      { ...receipt, assetType: BigInt(asset?.assetType ?? "0x0"), amount: 5n, mintingBlob: "0x" },
      { batchRoot, vaultCount, committedAt: 0n, sequence },
      { siblings: [], assetIndex: 0, assetSiblings: [] },
      2n,
      owner,
    ];
    const { address } = chain.settlement;
    await call(world, stateCommitmentAbi, { address, functionName: "withdraw", args }, owner);
    await settler.round();
    await becomeFinal(world);
    expect(await engine.vaults.get(principal.applicationId, quick)).toMatchObject({
      amount: 5n,
      withdrawnBalance: 2n,
    });
    await expectOneHistory(world);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("of an address without a user are nobody's until it is one; then they are told", async () => {
    const { engine, principal, users } = world;
    const { applicationId } = principal;
    const before = (await Array.fromAsync(engine.events.stream(applicationId))).length;
    const dust = await enter(0, [1_000n], STRANGER);
    await becomeFinal(world);
    expect((await engine.users.list(applicationId)).data).toHaveLength(users.length);
    const isDeposit = ({ type }: { readonly type: string }) => type === "deposit.credited";
    const told = async () =>
      (await Array.fromAsync(engine.events.stream(applicationId))).slice(before).filter(isDeposit);
    expect(await told()).toEqual([]);
    expect(await codeOf(engine.vaults.get(applicationId, dust))).toBe("vault_not_found");
    // The owner can withdraw all the same: the proof is public.
    const proof = await engine.proofs.exit(dust);
    expect(proof).toMatchObject({ vault: { owner: STRANGER, amount: 1n } });
    expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);
    expect((await engine.operator.verify()).problems).toEqual([]);

    const { userId } = await engine.users.create(applicationId, { ownerAddress: STRANGER });
    await expect.poll(told).toMatchObject([{ data: { vaultId: dust, userId, amount: 1n } }]);
    expect(await engine.vaults.get(applicationId, dust)).toMatchObject({ userId, amount: 1n });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("as dust of strangers, beside their calls of settle, stop no commit and fill nothing", async () => {
    const { engine, settler, principal, chain } = world;
    const { applicationId } = principal;
    const seen = async () => ({
      users: (await engine.users.list(applicationId, { limit: 100 })).data.length,
      deposits: (await Array.fromAsync(engine.deposits.list(applicationId))).length,
      told: (await Array.fromAsync(engine.events.stream(applicationId))).filter(
        ({ type }) => type === "deposit.credited",
      ).length,
      fills: contextOf(engine).ledger.trades.durable.size,
    });
    const before = await seen();
    const makings = () => contextOf(engine).ledger.batches.makings.count(null);
    const known = makings();
    const { abi, address } = { abi: stateCommitmentAbi, address: chain.settlement.address };
    const junk = [[], `0x${"5e".repeat(700)}`, 1_000_000n] as const;
    const data = encodeFunctionData({ abi, functionName: "settle", args: junk as never });
    for (let i = 0; i < 16; i++) {
      await enter(0, [1_000n], `0x${(0xd057_0000 + i).toString(16).padStart(40, "0")}`);
      const transaction = { from: at(world.users, 1).owner.address, to: address, data };
      await chain.rpc("eth_sendTransaction", [{ ...transaction, gas: "0x2dc6c0" }]).catch(() => {});
      if (i % 5 !== 0) continue;
      const vaultId = await world.mint("erc1155", "validium", "7");
      await engine.operator.seal("validium");
      await settler.round();
      const vault = await engine.vaults.get(applicationId, vaultId);
      expect(vault.status).toMatch(/settled|finalized/);
    }
    await becomeFinal(world);
    expect(makings()).toBe(known + 16);
    expect(await seen()).toEqual(before);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("and an ERC-721 id that came back cannot be minted, and is found by its id", async () => {
    const { engine, settler, chain, principal, users, vaults } = world;
    const owner = at(users, 0).owner.address;
    await chain.passSeconds(1_000n);
    await world.withdrawAlone(vaults.token, 1n);
    await settler.round();
    const vaultId = await enter(1, [1n], owner);
    await becomeFinal(world);
    await expect(world.mint("erc721", "validium", "1")).rejects.toMatchObject({
      issues: [{ code: "token_already_minted" }],
    });
    const { data } = await engine.vaults.list(principal.applicationId, { tokenId: 1n });
    expect(data.map((vault) => vault.vaultId)).toContain(vaultId);
    await give(world, [whole(world, vaultId)]);
    await settler.round();
    await becomeFinal(world);
    expect(await balanceOf(1, "erc721")).toMatchObject({ tokenId: 1n, available: 1n });
    const friend = await Array.fromAsync(engine.vaults.owned(friendOf(world)));
    const tip = friend.find(({ tokenId }) => tokenId === 1n)?.vaultId ?? 0n;
    await asFriend().requestWithdrawal(tip, 1n);
    expect((await settler.round()).withdrawn).toBe(1);
    const token = at(chain.tokens, 1).address;
    const read = { abi: erc721Abi, address: token, functionName: "ownerOf", args: [1n] } as const;
    expect((await chain.client.readContract(read)).toLowerCase()).toBe(friendOf(world));
  });

  test("have exit kits, the same from the engine, from L1 and from a rebuilt archive", async () => {
    const { engine, settler, l1, chain, principal, users, vaults } = world;
    const friend = friendOf(world);
    await world.withdrawAlone(vaults.items, 7n);
    const items = await enter(2, [5n, 7n], at(users, 0).owner.address);
    const token = await enter(1, [1n], friend, friend);
    const given = await enter(0, [3_000n], at(users, 0).owner.address);
    await becomeFinal(world);
    const { transferId } = await give(world, [whole(world, given)]);
    await settler.round();
    await becomeFinal(world);
    const [moved] = (await engine.transfers.get(principal.applicationId, transferId)).transfers;
    const tip = moved?.newVaultId ?? 0n;

    const sources = [served(world)];
    const archive = await openArchive(world);
    const places = await chainOf(world);
    expect(await rebuild({ archive, ...places, sources })).toMatchObject({ missing: [] });
    const rpc = custom({ request: chain.request });
    const { address: contract } = chain.settlement;
    for (const [vaultId, index, units] of [
      [items, 0, 7n],
      [token, 1, 1n],
      [tip, 1, 3_000n],
    ] as const) {
      const kit = await exportExitKit(await engine.proofs.exit(vaultId), l1);
      expect(kit).toMatchObject({ maturesAt: null, tip: { vaultId } });
      expect(parseExitKit(exitKitText(kit))).toEqual(kit);
      const fromL1 = await proveFromL1(vaultId, { ...places, sources });
      expect(await exportExitKit(fromL1, l1)).toEqual(kit);
      expect(await exportExitKit(await archive.vaultProof(vaultId), l1)).toEqual(kit);
      const { owner: account } = at(users, index);
      const alone = await connectL1({ rpc, contract, account, pollingMs: 5 });
      const { held, heldBefore } = await exitWithKit({ kit, l1: alone, account: account.address });
      expect(held - heldBefore).toBe(units);
    }
    const never = proveFromL1(token + (99n << 20n), { ...places, sources });
    await expect(never).rejects.toMatchObject({ code: "vault_not_found" });
  });

  test("are there after a restart and in a store restored from the journal", async () => {
    const { engine, engineStore, principal } = world;
    const { applicationId } = principal;
    const seen = async (opened: typeof engine) => ({
      deposits: await Array.fromAsync(opened.deposits.list(applicationId)),
      vaults: await Array.fromAsync(opened.vaults.list(applicationId)),
    });
    const before = await seen(engine);
    const copy = await copyOf(engineStore);
    const again = await openTest(copy, { settlement: engine.settlement });
    expect(await seen(again)).toEqual(before);
    await again.close();
    const restored = await copyOf(engineStore);
    await restored.clear();
    const journal = new NaiveJournal();
    await engine.operator.backup(journal);
    await restoreStore(journal, restored);
    const third = await openTest(restored, { settlement: engine.settlement });
    expect(await seen(third)).toEqual(before);
    expect((await third.operator.verify()).problems).toEqual([]);
    await third.close();
  });
});

/** Faults of a node behind which entries come late, and not at all until it has them. */
const FAULTS: readonly (readonly [string, NodeFaults])[] = [
  ["leaves out all logs", { emptyLogs: true }],
  ["answers 504 for logs of many blocks", { logs: { blocks: 5, wider: "gateway" } }],
  ["cuts answers of logs of many blocks", { logs: { blocks: 5, wider: "half" } }],
  ["is some blocks behind", { lag: 3 }],
  ["keeps the state of few blocks", { pruned: 8 }],
  ["has no receipts", { nullReceipts: true }],
  ["answers nothing", { down: true }],
];

test("tokens that come back behind a faulty node are credited once, whatever it left out", async () => {
  const nodes: FaultyNode[] = [];
  const request = (chain: ConstructorParameters<typeof FaultyNode>[0]) => {
    const node = new FaultyNode(chain);
    nodes.push(node);
    return node.request;
  };
  const world = await createTransferWorld({ request });
  const { engine, principal, settler, vaults, users } = world;
  const owner = at(users, 0).owner.address;
  await world.withdrawAlone(vaults.units, 60n);
  await settler.round();
  const expected: bigint[] = [];
  for (const [what, faults] of FAULTS) {
    for (const node of nodes) node.faults = faults;
    expected.push(await entered(world, 0, [1_000n], owner));
    await world.chain.mine(12);
    for (let i = 0; i < 3; i++) await settler.round().catch(() => {});
    for (const node of nodes) node.heal();
    await becomeFinal(world);
    const deposits = await Array.fromAsync(engine.deposits.list(principal.applicationId));
    expect(deposits.map(({ vaultId }) => vaultId).reverse(), what).toEqual(expected);
  }
  const told = await Array.fromAsync(engine.events.stream(principal.applicationId));
  const credited = told.filter(({ type }) => type === "deposit.credited");
  expect(credited).toHaveLength(FAULTS.length);
  expect((await engine.operator.verify()).problems).toEqual([]);
  await world.close();
});
