import { createWalletClient, erc20Abi } from "viem";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { MemberClient } from "../../core/guards/committee/collector.ts";
import type { CommitteeMember } from "../../core/guards/committee/member.ts";
import type { Engine } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { provenVaultArguments, withdrawalBatchArguments } from "../../core/l1/arguments.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { dying } from "./campaign-faults.ts";
import {
  at,
  type Chain,
  connectOperator,
  createWorld,
  mine,
  mint,
  newSettler,
  passSeconds,
  type Request,
  requestWithdrawal,
  rpc,
  type World,
} from "./fixture.ts";

let world: World;
afterEach(() => world.close());

/** The engine of a process that dies when it would record what it has sent. */
const dyingEngine = (engine: Engine) => dying(engine, 1, /^recordSubmitted$/);

const transactionsOf = (chain: Chain) => chain.client.getTransactionCount({ address: OPERATOR.address });

/** The owner's own withdrawal, past engine and operator. */
async function withdrawAlone({ chain, engine, l1, users }: World, vaultId: bigint, quantity: bigint): Promise<void> {
  const { header, ...proof } = await engine.proofs.vault(vaultId);
  if (header === null) throw new Error("the batch is not committed");
  const { owner } = at(users, 0);
  const proven = provenVaultArguments({ ...proof, header });
  await createWalletClient({ transport: chain.transport, account: owner }).writeContract({
    abi: stateCommitmentAbi,
    address: l1.settlement.contract,
    functionName: "withdraw",
    args: [...proven, quantity, owner.address, { deadline: 0n, signature: "0x" }],
    chain: null,
  });
}

describe("a settler that was killed between sending and recording", () => {
  test("neither commits twice nor skips when the transaction was mined", async () => {
    world = await createWorld();
    const { chain, engine, l1, committee } = world;
    await mint(world, "erc721", "validium", "1");
    await engine.operator.seal("validium");
    await mint(world, "erc721", "validium", "2");
    await expect(newSettler({ engine: dyingEngine(engine), l1, committee }, chain).round()).rejects.toThrow("killed");
    expect((await engine.batches.get("validium", 0)).status).toBe("sealed");
    expect(await transactionsOf(chain)).toBe(1);

    await newSettler({ engine, l1: await connectOperator(chain), committee }, chain).round();
    expect(await transactionsOf(chain)).toBe(2);
    expect(await l1.state()).toEqual({ ...engine.batches.state(), history: engine.operator.history() });
    expect(await engine.batches.committedState()).toEqual(engine.batches.state());
  });

  test("waits for the transaction when it is still under way, and sends no second one", async () => {
    world = await createWorld();
    const { chain, engine, l1, committee } = world;
    await mint(world, "erc721", "zk-rollup", "1");
    await engine.operator.seal("zk-rollup");
    await rpc(chain, "evm_setAutomine", [false]);
    await expect(newSettler({ engine: dyingEngine(engine), l1, committee }, chain).round()).rejects.toThrow("killed");

    const round = newSettler({ engine, l1: await connectOperator(chain), committee }, chain).round();
    await new Promise((resolve) => setTimeout(resolve, 100));
    await mine(chain, 1);
    // What waited finds the batch committed and goes on from there.
    await round;
    await newSettler({ engine, l1, committee }, chain).round();
    expect(await transactionsOf(chain)).toBe(1);
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
  });

  test("replaces a transaction of the dead process that nobody mines", async () => {
    world = await createWorld();
    const { chain, engine, l1, committee } = world;
    await mint(world, "erc20", "validium", "", 3);
    await engine.operator.seal("validium");
    await rpc(chain, "evm_setAutomine", [false]);
    await expect(newSettler({ engine: dyingEngine(engine), l1, committee }, chain).round()).rejects.toThrow("killed");
    const [stuck] = await pendingHashes(chain);

    const impatient = await connectOperator(chain, chain.request, { replaceAfterMs: 50 });
    const round = newSettler({ engine, l1: impatient, committee }, chain).round();
    await expect.poll(async () => (await pendingHashes(chain)).includes(stuck ?? "")).toBe(false);
    await mine(chain, 1);
    await round;
    expect(await transactionsOf(chain)).toBe(1);
    expect((await engine.batches.get("validium", 0)).status).toBe("settled");
  });
});

async function pendingHashes(chain: Chain): Promise<string[]> {
  const block = (await rpc(chain, "eth_getBlockByNumber", ["pending", false])) as { transactions: string[] };
  return block.transactions;
}

describe("fees", () => {
  test("a stuck transaction is replaced at a higher fee up to the cap, and each hash is recorded", async () => {
    world = await createWorld();
    const { chain, engine, committee } = world;
    const cap = 6_000_000_000n;
    const l1 = await connectOperator(chain, chain.request, { replaceAfterMs: 30, maxFeePerGas: cap });
    await mint(world, "erc721", "validium", "1");
    await engine.operator.seal("validium");
    const submitted: (string | null)[] = [];
    engine.events.on("batchSubmitted", ({ l1TxHash }) => submitted.push(l1TxHash));
    await rpc(chain, "evm_setAutomine", [false]);
    const settler = newSettler({ engine, l1, committee }, chain);
    // Past the cap nothing more is offered, and the settler goes on with what else there is to do.
    await expect(settler.round()).rejects.toThrow(`the fee cap of ${cap} wei is reached`);
    expect(submitted.length).toBeGreaterThan(2);
    const offered = submitted.length;
    await expect(settler.round()).rejects.toThrow(`the fee cap of ${cap} wei is reached`);
    expect(new Set(submitted).size).toBe(offered);
    const [highest] = await pendingHashes(chain);
    expect(submitted).toContain(highest);
    await mine(chain, 1);
    await settler.round();
    const batch = await engine.batches.get("validium", 0);
    expect(batch.status).toBe("settled");
    expect(submitted).toContain(batch.l1TxHash);
    const mined = await chain.client.getTransaction({ hash: batch.l1TxHash ?? "0x" });
    expect(mined.maxFeePerGas).toBeLessThanOrEqual(cap);
    expect(await transactionsOf(chain)).toBe(1);
  });
});

describe("an operator's key that is used elsewhere at the same time", () => {
  const elsewhere = ({ transport }: Chain) =>
    createWalletClient({ transport, account: OPERATOR }).sendTransaction({ to: OPERATOR.address, chain: null });

  test("between rounds costs nothing", async () => {
    world = await createWorld();
    const { chain, engine, settler, l1 } = world;
    for (const text of ["1", "2", "3"]) {
      await mint(world, "erc721", "validium", text);
      await settler.round();
      await elsewhere(chain);
    }
    expect(await l1.state()).toEqual({ ...engine.batches.state(), history: engine.operator.history() });
    expect(await engine.batches.committedState()).toEqual(engine.batches.state());
    expect(await transactionsOf(chain)).toBe(6);
  });

  test("while a commit is under way takes its nonce: the round says so, and the next one commits", async () => {
    let taken = false;
    const request =
      (chain: Chain): Request =>
      async (call: Parameters<Request>[0]) => {
        if (call.method === "eth_sendRawTransaction" && !taken) {
          taken = true;
          await elsewhere(chain);
        }
        return chain.request(call as never);
      };
    world = await createWorld({ request: request as (chain: Chain) => Request });
    const { chain, engine, settler, l1 } = world;
    await mint(world, "erc721", "zk-rollup", "1");
    await expect(settler.round()).rejects.toThrow(`another transaction of ${OPERATOR.address} took nonce 0`);
    await settler.round();
    expect(await l1.state()).toEqual({ ...engine.batches.state(), history: engine.operator.history() });
    expect(await transactionsOf(chain)).toBe(2);
  });
});

/** Every n-th request of some kinds fails as a busy node fails. */
function flaky(every: number): (chain: Chain) => Request {
  let count = 0;
  return (chain) =>
    (async (call: Parameters<Request>[0]) => {
      if (++count % every === 0) {
        // Half of the lost answers are of requests that the node has carried out.
        if (count % (2 * every) === 0) await chain.request(call as never).catch(() => {});
        throw Object.assign(new Error("rate limited"), { code: -32005 });
      }
      return chain.request(call as never);
    }) as Request;
}

describe("an RPC that fails", () => {
  test.each([2, 3, 7])("every %i. request loses nothing and repeats nothing", async (every) => {
    world = await createWorld({ request: flaky(every) });
    const { chain, engine, settler, l1 } = world;
    const points = await mint(world, "erc20", "validium", "", 9);
    await mint(world, "erc721", "zk-rollup", "1");
    for (
      let attempt = 0;
      attempt < 20 && engine.batches.state().countRollup + engine.batches.state().countValidium < 2;
      attempt++
    ) {
      await settler.round().catch(() => {});
    }
    await retry(async () => {
      await settler.round();
      expect(await engine.batches.committedState()).toEqual(engine.batches.state());
    });
    const { withdrawalId } = await requestWithdrawal(world, points, 4n);
    await retry(async () => {
      await settler.round();
      expect((await engine.withdrawals.get(world.principal.applicationId, withdrawalId)).status).toBe("settled");
    });
    expect(await transactionsOf(chain)).toBe(3);
    expect((await l1.state()).countValidium).toBe(1);
  });

  test("that is gone is told as l1_failed, and changes nothing", async () => {
    let gone = false;
    world = await createWorld({
      request: (chain) =>
        ((call: never) =>
          gone ? Promise.reject(Object.assign(new Error("gone"), { code: -32005 })) : chain.request(call)) as Request,
    });
    const { engine, settler, l1 } = world;
    await mint(world, "erc20", "validium", "", 9);
    await engine.operator.seal("validium");
    gone = true;
    for (const ask of [() => settler.round(), () => l1.state(), () => l1.registration(1n, `0x${"00".repeat(32)}`)]) {
      await expect(ask()).rejects.toMatchObject({ code: "l1_failed" });
    }
    expect((await engine.batches.get("validium", 0)).status).toBe("sealed");
    gone = false;
    await settler.round();
    expect((await engine.batches.get("validium", 0)).status).toBe("settled");
  });
});

async function retry(attempt: () => Promise<void>): Promise<void> {
  for (let left = 20; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

describe("a committee that is gone", () => {
  test("holds up neither rollup batches nor withdrawals, and is tried again", async () => {
    let gone = false;
    const member = (it: CommitteeMember): MemberClient => ({
      address: it.address,
      sign: (batch, terms) => (gone ? Promise.reject(new Error("connection refused")) : it.sign(batch, terms)),
    });
    world = await createWorld({ member });
    const { engine, settler, principal } = world;
    const points = await mint(world, "erc20", "validium", "", 10);
    await settler.round();
    gone = true;
    await mint(world, "erc20", "validium", "", 10);
    await mint(world, "erc721", "zk-rollup", "1");
    const { withdrawalId } = await requestWithdrawal(world, points, 4n);
    await expect(settler.round()).rejects.toMatchObject({
      code: "l1_failed",
      message: expect.stringContaining("connection refused"),
    });
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
    expect((await engine.batches.get("validium", 1)).status).toBe("sealed");
    expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe("settled");

    gone = false;
    await settler.round();
    expect((await engine.batches.get("validium", 1)).status).toBe("settled");
  });
});

describe("withdrawals", () => {
  test("a token that refuses does not block the others, and says why", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal, users } = world;
    const points = await mint(world, "erc20", "validium", "", 10);
    const potions = await mint(world, "erc1155", "zk-rollup", "5", 3);
    await settler.round();
    await stopMinting(chain);
    const refused = await requestWithdrawal(world, potions, 1n);
    const good = await requestWithdrawal(world, points, 10n);
    expect((await settler.round()).withdrawn).toBe(1);
    const { applicationId } = principal;
    expect((await engine.withdrawals.get(applicationId, good.withdrawalId)).status).toBe("settled");
    const waiting = await engine.withdrawals.get(applicationId, refused.withdrawalId);
    expect(waiting.status).toBe("accepted");
    expect(waiting.failure).toContain("TokenRefused");
    expect((await engine.vaults.get(applicationId, potions)).availableBalance).toBe(2n);
    const balance = { abi: erc20Abi, functionName: "balanceOf", args: [at(users, 0).owner.address] } as const;
    expect(await chain.client.readContract({ ...balance, address: at(chain.tokens, 0).address })).toBe(10_000n);
  });

  test("one that was refused is tried again in its time, though the clock is set back", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal } = world;
    const potions = await mint(world, "erc1155", "zk-rollup", "5", 3);
    await settler.round();
    const code = await chain.client.getCode({ address: at(chain.tokens, 2).address });
    await stopMinting(chain);
    const { withdrawalId } = await requestWithdrawal(world, potions, 1n);
    await settler.round();
    await rpc(chain, "hardhat_setCode", [at(chain.tokens, 2).address, code]);
    const [wall, passed] = [Date.now() - 3_600_000, performance.now() + 10_000];
    vi.spyOn(Date, "now").mockImplementation(() => wall);
    vi.spyOn(performance, "now").mockImplementation(() => passed);
    await settler.round().finally(() => vi.restoreAllMocks());
    expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe("settled");
  });

  test("an authorization that expired is given up only when a final block is past it, and the reservation is released", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal } = world;
    const points = await mint(world, "erc20", "validium", "", 10);
    await settler.round();
    const now = (await world.l1.block("latest"))?.timestamp ?? 0n;
    const { withdrawalId } = await requestWithdrawal(world, points, 10n, now + 1_000n);
    await passSeconds(chain, 2_000n);
    await settler.round();
    const { applicationId } = principal;
    expect((await engine.withdrawals.get(applicationId, withdrawalId)).status).not.toBe("failed");
    await mine(chain, 30);
    await settler.round();
    expect((await engine.withdrawals.get(applicationId, withdrawalId)).status).toBe("failed");
    expect((await engine.vaults.get(applicationId, points)).availableBalance).toBe(10n);
  });

  test("a stranger who makes the contract report a failure changes nothing of another's request", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal, l1 } = world;
    const sword = await mint(world, "erc721", "validium", "7");
    await settler.round();
    const { withdrawalId } = await requestWithdrawal(world, sword);
    const { vault, header, siblings, assetPath } = await engine.proofs.vault(sword);
    if (header === null) throw new Error("the batch is not committed");
    const stranger = at(world.users, 1).owner;
    const request = {
      ...{ vault, header, siblings, assetPath, quantity: 1n },
      ...{ recipient: stranger.address, authorization: { deadline: 0n, signature: "0x" as const } },
    };
    const address = l1.settlement.contract;
    const args = withdrawalBatchArguments([request], 500_000n);
    const call = { abi: stateCommitmentAbi, address, functionName: "withdrawBatch", args } as const;
    await createWalletClient({ transport: chain.transport, account: stranger }).writeContract({ ...call, chain: null });
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
    const points = await mint(world, "erc20", "zk-rollup", "", 10);
    await settler.round();
    const overtaken = await requestWithdrawal(world, points, 6n);
    await withdrawAlone(world, points, 5n);
    await settler.round();
    const { applicationId } = principal;
    expect((await engine.withdrawals.get(applicationId, overtaken.withdrawalId)).status).toBe("failed");
    expect(await engine.vaults.get(applicationId, points)).toMatchObject({
      withdrawnBalance: 5n,
      availableBalance: 5n,
    });
    const again = await requestWithdrawal(world, points, 5n);
    await settler.round();
    expect((await engine.withdrawals.get(applicationId, again.withdrawalId)).status).toBe("settled");
  });

  test("many at once go in few transactions", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal } = world;
    const vaults: bigint[] = [];
    for (let id = 0; id < 25; id++) vaults.push(await mint(world, "erc1155", "validium", `${id}`, 2));
    await settler.round();
    const before = await transactionsOf(chain);
    const asked = [];
    for (const vaultId of vaults) asked.push(await requestWithdrawal(world, vaultId));
    const { withdrawn } = await settler.round();
    expect(withdrawn).toBe(25);
    expect((await transactionsOf(chain)) - before).toBe(2);
    for (const { withdrawalId } of asked) {
      expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe("settled");
    }
  });
});

/** Puts code in the ERC-1155 token's place that refuses everything. */
async function stopMinting(chain: Chain): Promise<void> {
  const { address } = at(chain.tokens, 2);
  await rpc(chain, "hardhat_setCode", [address, "0x60006000fd"]);
}
