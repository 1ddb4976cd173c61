import { createWalletClient, erc20Abi } from "viem";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { CommitteeMember } from "../../core/committee/member.ts";
import type { MemberClient } from "../../core/committee/member-service.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { withdrawalBatchArguments } from "../../core/l1/arguments.ts";
import { at, type Chain, createWorld, type Request, type World } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

describe("fees", () => {
  test("a stuck transaction is replaced at a higher fee up to the cap, and each hash is recorded", async () => {
    world = await createWorld();
    const { chain, engine, committee } = world;
    const cap = 6_000_000_000n;
    const l1 = await chain.connectOperator(chain.request, {
      replaceAfterMs: 30,
      maxFeePerGas: cap,
    });
    await world.mint("erc721", "validium", "1");
    await engine.operator.seal("validium");
    const submitted: (string | null)[] = [];
    engine.events.on("batch", ({ batch }) => submitted.push(batch.l1TxHash));
    await chain.rpc("evm_setAutomine", [false]);
    const settler = chain.newSettler({ engine, l1, committee });
    // Past the cap nothing more is offered, and the settler goes on with what else there is to do.
    await expect(settler.round()).rejects.toThrow(`the fee cap of ${cap} wei is reached`);
    expect(submitted.length).toBeGreaterThan(2);
    const offered = submitted.length;
    await expect(settler.round()).rejects.toThrow(`the fee cap of ${cap} wei is reached`);
    expect(new Set(submitted).size).toBe(offered);
    const [highest] = await chain.pendingHashes();
    expect(submitted).toContain(highest);
    await chain.mine(1);
    await settler.round();
    const batch = await engine.batches.get("validium", 0);
    expect(batch.status).toBe("settled");
    expect(submitted).toContain(batch.l1TxHash);
    const mined = await chain.client.getTransaction({ hash: batch.l1TxHash ?? "0x" });
    expect(mined.maxFeePerGas).toBeLessThanOrEqual(cap);
    expect(await chain.sentByOperator()).toBe(1);
  });
});

describe("an RPC that fails", () => {
  test("that is gone is told as l1_failed, and changes nothing", async () => {
    let gone = false;
    world = await createWorld({
      request: (chain) =>
        ((call: never) =>
          gone
            ? Promise.reject(Object.assign(new Error("gone"), { code: -32005 }))
            : chain.request(call)) as Request,
    });
    const { engine, settler, l1 } = world;
    await world.mint("erc20", "validium", "", 9);
    await engine.operator.seal("validium");
    gone = true;
    for (const ask of [
      () => settler.round(),
      () => l1.state(),
      () => l1.registration(1n, `0x${"00".repeat(32)}`),
    ]) {
      await expect(ask()).rejects.toMatchObject({ code: "l1_failed" });
    }
    expect((await engine.batches.get("validium", 0)).status).toBe("sealed");
    gone = false;
    await settler.round();
    expect((await engine.batches.get("validium", 0)).status).toBe("settled");
  });
});

describe("a committee that is gone", () => {
  test("holds up neither rollup batches nor withdrawals, and is tried again", async () => {
    let gone = false;
    const member = (it: CommitteeMember): MemberClient => ({
      address: it.address,
      sign: (batch, terms) =>
        gone ? Promise.reject(new Error("connection refused")) : it.sign(batch, terms),
    });
    world = await createWorld({ member });
    const { engine, settler, principal } = world;
    const points = await world.mint("erc20", "validium", "", 10);
    await settler.round();
    gone = true;
    await world.mint("erc20", "validium", "", 10);
    await world.mint("erc721", "zk-rollup", "1");
    const { withdrawalId } = await world.requestWithdrawal(points, 4n);
    await expect(settler.round()).rejects.toMatchObject({
      code: "l1_failed",
      message: expect.stringContaining("connection refused"),
    });
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
    expect((await engine.batches.get("validium", 1)).status).toBe("sealed");
    expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe(
      "settled",
    );

    gone = false;
    await settler.round();
    expect((await engine.batches.get("validium", 1)).status).toBe("settled");
  });
});

describe("withdrawals", () => {
  test("a token that refuses does not block the others, and says why", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal, users } = world;
    const points = await world.mint("erc20", "validium", "", 10);
    const potions = await world.mint("erc1155", "zk-rollup", "5", 3);
    await settler.round();
    await stopMinting(chain);
    const refused = await world.requestWithdrawal(potions, 1n);
    const good = await world.requestWithdrawal(points, 10n);
    expect((await settler.round()).withdrawn).toBe(1);
    const { applicationId } = principal;
    expect((await engine.withdrawals.get(applicationId, good.withdrawalId)).status).toBe("settled");
    const waiting = await engine.withdrawals.get(applicationId, refused.withdrawalId);
    expect(waiting.status).toBe("accepted");
    expect(waiting.failure).toContain("TokenRefused");
    expect((await engine.vaults.get(applicationId, potions)).availableBalance).toBe(2n);
    const balance = {
      abi: erc20Abi,
      functionName: "balanceOf",
      args: [at(users, 0).owner.address],
    } as const;
    expect(
      await chain.client.readContract({ ...balance, address: at(chain.tokens, 0).address }),
    ).toBe(10_000n);
  });

  test("one that was refused is tried again in its time, though the clock is set back", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal } = world;
    const potions = await world.mint("erc1155", "zk-rollup", "5", 3);
    await settler.round();
    const code = await chain.client.getCode({ address: at(chain.tokens, 2).address });
    await stopMinting(chain);
    const { withdrawalId } = await world.requestWithdrawal(potions, 1n);
    await settler.round();
    await chain.rpc("hardhat_setCode", [at(chain.tokens, 2).address, code]);
    const [wall, passed] = [Date.now() - 3_600_000, performance.now() + 10_000];
    vi.spyOn(Date, "now").mockImplementation(() => wall);
    vi.spyOn(performance, "now").mockImplementation(() => passed);
    await settler.round().finally(() => vi.restoreAllMocks());
    expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe(
      "settled",
    );
  });

  test("an authorization that expired is given up only when a final block is past it, and the reservation is released", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal } = world;
    const points = await world.mint("erc20", "validium", "", 10);
    await settler.round();
    const now = (await world.l1.block("latest"))?.timestamp ?? 0n;
    const { withdrawalId } = await world.requestWithdrawal(points, 10n, now + 1_000n);
    await chain.passSeconds(2_000n);
    await settler.round();
    const { applicationId } = principal;
    expect((await engine.withdrawals.get(applicationId, withdrawalId)).status).not.toBe("failed");
    await chain.mine(30);
    await settler.round();
    expect((await engine.withdrawals.get(applicationId, withdrawalId)).status).toBe("failed");
    expect((await engine.vaults.get(applicationId, points)).availableBalance).toBe(10n);
  });

  test("a stranger who makes the contract report a failure changes nothing of another's request", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal, l1 } = world;
    const sword = await world.mint("erc721", "validium", "7");
    await settler.round();
    const { withdrawalId } = await world.requestWithdrawal(sword);
    const { vault, header, siblings, assetPath } = await engine.proofs.vault(sword);
    if (header === null) throw new Error("the batch is not committed");
    const stranger = at(world.users, 1).owner;
    const request = {
      ...{ vault, header, siblings, assetPath, quantity: 1n },
      ...{ recipient: stranger.address, authorization: null },
    };
    const address = l1.settlement.contract;
    const args = withdrawalBatchArguments([request], 650_000n);
    const call = { abi: stateCommitmentAbi, address, functionName: "withdrawBatch", args } as const;
    await createWalletClient({ transport: chain.transport, account: stranger }).writeContract({
      ...call,
      chain: null,
    });
    const reported = await chain.client.getContractEvents({
      ...{ abi: stateCommitmentAbi, address, eventName: "WithdrawalFailed", fromBlock: 0n },
    });
    expect(reported.map(({ args }) => args.vaultId)).toEqual([sword]);
    await settler.round();
    expect(await engine.withdrawals.get(principal.applicationId, withdrawalId)).toMatchObject({
      status: "accepted",
      failure: null,
    });
  });

  test("a request that the owner overtook on L1 fails, and what is left can be asked for again", async () => {
    world = await createWorld();
    const { engine, settler, principal } = world;
    const points = await world.mint("erc20", "zk-rollup", "", 10);
    await settler.round();
    const overtaken = await world.requestWithdrawal(points, 6n);
    await world.withdrawAlone(points, 5n);
    await settler.round();
    const { applicationId } = principal;
    expect((await engine.withdrawals.get(applicationId, overtaken.withdrawalId)).status).toBe(
      "failed",
    );
    expect(await engine.vaults.get(applicationId, points)).toMatchObject({
      withdrawnBalance: 5n,
      availableBalance: 5n,
    });
    const again = await world.requestWithdrawal(points, 5n);
    await settler.round();
    expect((await engine.withdrawals.get(applicationId, again.withdrawalId)).status).toBe(
      "settled",
    );
  });
});

/** Puts code in the ERC-1155 token's place that refuses everything. */
async function stopMinting(chain: Chain): Promise<void> {
  const { address } = at(chain.tokens, 2);
  await chain.rpc("hardhat_setCode", [address, "0x60006000fd"]);
}
