import { encodeAbiParameters, type Hex, keccak256, pad, toHex } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MintmarkError, type VaultId } from "../../core/index.ts";
import type { Settler } from "../../core/settlement/index.ts";
import { at, type Chain, createWorld, type Request, refusing, type World } from "./fixture.ts";
import { flippingWallets } from "./flipping-wallets.ts";

/** Code of tokens, whatever they are asked. */
const LOOPS = "0x5b600056";
const IS_NO_CODE = "0xfe";
/** Reverts when it is given less than 700,000 gas. */
const IS_GREEDY = "0x620aae605a10600a57005b600080fd";
/** Reverts when somebody pays for the gas, as nobody does for a trial. */
const PRETENDS = "0x3a600557005b600080fd";
/** Takes every mint, for little gas. */
const IS_CHEAP = "0x00";

/** Tells, as the contract would, that the withdrawal of another vault has failed. */
function slandering(vaultId: VaultId): Hex {
  const topic = keccak256(toHex("WithdrawalFailed(uint64,bytes)"));
  const data = encodeAbiParameters([{ type: "bytes" }], ["0x"]);
  expect(data).toBe(`0x${"20".padStart(64, "0")}${"".padStart(64, "0")}`);
  return `0x6020600052${"7f"}${pad(toHex(vaultId)).slice(2)}7f${topic.slice(2)}60406000a200`;
}

/** Does something just before the chain gets a transaction, and something once it has mined it. */
function onSending(
  { request }: Chain,
  before: (transaction: string) => Promise<unknown>,
  after: () => Promise<unknown> = async () => {},
) {
  return (async (call: { readonly method: string; readonly params: readonly string[] }) => {
    if (call.method !== "eth_sendRawTransaction") return request(call as never);
    await before(call.params[0] ?? "");
    return request(call as never).finally(after);
  }) as Request;
}

describe("withdrawals beside those of a hostile token", () => {
  let world: World;
  let settler: Settler;
  let later = 0;
  let vaults: Record<"points" | "potions", VaultId>;

  beforeEach(async () => {
    world = await createWorld();
    const { engine, l1, committee, chain } = world;
    settler = chain.newSettler({ engine, l1, committee, clock: () => Date.now() + later });
    vaults = {
      points: await world.mint("erc20", "validium", "", 10),
      potions: await world.mint("erc1155", "zk-rollup", "5", 3),
    };
    await settler.round();
  });
  afterEach(() => world.close());

  const become = (code: Hex) =>
    world.chain.rpc("hardhat_setCode", [at(world.chain.tokens, 2).address, code]);
  const read = (id: string) => world.engine.withdrawals.get(world.principal.applicationId, id);
  const sent = () => world.chain.sentByOperator();

  test.each([
    ["loops for ever", LOOPS, "TokenRefused"],
    ["is no code", IS_NO_CODE, "TokenRefused"],
    ["needs more gas than an item of a batch has", IS_GREEDY, "more gas than an item"],
    [
      "says more than anybody reads, over many lines",
      refusing("No.\n\u0000".repeat(2_000)),
      "TokenRefused",
    ],
  ] as const)(
    "are paid though it %s, which is found out without paying for it",
    async (_, code, reason) => {
      await become(code);
      const bad = await world.requestWithdrawal(vaults.potions);
      const good = await world.requestWithdrawal(vaults.points, 10n);
      expect((await settler.round()).withdrawn).toBe(1);
      expect((await read(good.withdrawalId)).status).toBe("settled");
      expect(await read(bad.withdrawalId)).toMatchObject({
        status: "accepted",
        failure: expect.stringContaining(reason),
      });
    },
  );

  test("cost the operator little when the token passes every trial and refuses every transaction", async () => {
    await become(PRETENDS);
    const { withdrawalId } = await world.requestWithdrawal(vaults.potions);
    const before = await sent();
    await settler.round();
    expect((await read(withdrawalId)).failure).toContain("refused");
    expect((await sent()) - before).toBe(1);
    // In a day of rounds, a minute after one another.
    for (let minute = 0; minute < 1_440; minute += 7) {
      later += 7 * 60_000;
      await settler.round();
    }
    expect((await sent()) - before).toBeLessThanOrEqual(10);
  });

  test("are paid though it turns expensive after the trial", async () => {
    const { chain, engine, committee } = world;
    await become(IS_CHEAP);
    const bad = await world.requestWithdrawal(vaults.potions);
    const good = await world.requestWithdrawal(vaults.points, 10n);
    // Its owner is quicker than the operator: the token burns all its gas when the transaction is
    // mined.
    const l1 = await chain.connectOperator(onSending(chain, () => become(IS_NO_CODE)));
    const impatient = chain.newSettler({ engine, l1, committee });
    const before = await sent();
    await impatient.round();
    expect((await read(good.withdrawalId)).status).toBe("settled");
    expect(await read(bad.withdrawalId)).toMatchObject({
      status: "submitted",
      failure: expect.stringContaining("0x"),
    });
    // It waits by itself.
    await become(IS_CHEAP);
    await impatient.round();
    expect((await sent()) - before).toBe(1);
  });

  test("are paid though one makes the whole transaction revert, for the price of a few more transactions", async () => {
    const { chain, engine, committee } = world;
    const poisoned = await world.mint("erc1155", "validium", "987654321", 1);
    const good: VaultId[] = [];
    for (let i = 0; i < 15; i++) {
      good.push(await world.mint("erc1155", "validium", `${i}`, 1));
      await engine.operator.seal("validium");
    }
    await settler.round();
    const bad = await world.requestWithdrawal(poisoned);
    const asked = [];
    for (const vaultId of good) asked.push(await world.requestWithdrawal(vaultId));
    // The contract refuses each whole transaction that carries this vault, as no trial and no
    // estimate shows.
    const { address } = chain.settlement;
    const code = (await chain.client.getCode({ address })) ?? "0x";
    const poison = toHex("987654321").slice(2);
    const setCode = (it: Hex) => chain.rpc("hardhat_setCode", [address, it]);
    const refuse = async (transaction: string) => {
      if (transaction.includes(poison)) await setCode("0x600080fd");
    };
    const l1 = await chain.connectOperator(onSending(chain, refuse, () => setCode(code)));
    const before = await sent();
    await chain.newSettler({ engine, l1, committee }).round();
    for (const { withdrawalId } of asked)
      expect(await read(withdrawalId)).toMatchObject({ status: "settled" });
    expect((await read(bad.withdrawalId)).failure).toContain("reverted");
    // With it 10, 5, 3, 2 and 1 revert, without it 5, 2, 1, 1 and the other 6 succeed.
    expect((await sent()) - before).toBe(10);
  });

  test("are paid though a node gives up on estimating what they take together", async () => {
    const { chain, engine, committee } = world;
    const asked = [
      await world.requestWithdrawal(vaults.potions),
      await world.requestWithdrawal(vaults.points, 10n),
    ];
    const request = (async (call: Parameters<Request>[0]) => {
      if (call.method === "eth_estimateGas")
        throw Object.assign(new Error("execution timeout"), { code: -32000 });
      return chain.request(call as never);
    }) as Request;
    const l1 = await chain.connectOperator(request);
    await chain.newSettler({ engine, l1, committee }).round();
    for (const { withdrawalId } of asked) expect((await read(withdrawalId)).status).toBe("settled");
  });

  test("are paid though a node cannot try its own", async () => {
    const { l1 } = world;
    const bad = await world.requestWithdrawal(vaults.potions);
    const good = await world.requestWithdrawal(vaults.points, 10n);
    const timeout = new MintmarkError("l1_failed", "execution aborted (timeout = 5s)");
    const honest = l1.checkWithdrawal.bind(l1);
    const checkWithdrawal: typeof honest = (call) =>
      call.vault.vaultId === vaults.potions ? Promise.reject(timeout) : honest(call);
    Object.assign(l1, { checkWithdrawal });
    expect((await settler.round()).withdrawn).toBe(1);
    expect((await read(good.withdrawalId)).status).toBe("settled");
    expect(await read(bad.withdrawalId)).toMatchObject({
      status: "accepted",
      failure: expect.stringContaining("could not be tried: execution aborted"),
    });
  });

  test("are not taken to have failed on its word", async () => {
    await become(slandering(vaults.points));
    const asked = [
      await world.requestWithdrawal(vaults.potions),
      await world.requestWithdrawal(vaults.points, 10n),
    ];
    expect((await settler.round()).withdrawn).toBe(2);
    for (const { withdrawalId } of asked) {
      expect(await read(withdrawalId)).toMatchObject({ status: "settled", failure: null });
    }
  });
});

describe("withdrawals beside those of wallets that change their minds", () => {
  test("are paid in the same transaction, even if each other item burns all its gas", async () => {
    const world = await createWorld({ verifySignature: async () => true });
    const { chain, engine, committee, principal, settler } = world;
    const wallets = await flippingWallets(world, 9);
    const points = await world.mint("erc20", "validium", "", 10);
    await settler.round();
    const bad = await wallets.ask();
    const good = await world.requestWithdrawal(points, 10n);
    const l1 = await chain.connectOperator(wallets.request);
    const sent = () => chain.sentByOperator();
    const before = await sent();
    const impatient = chain.newSettler({ engine, l1, committee });
    expect((await impatient.round()).withdrawn).toBe(10);
    const read = (id: string) => engine.withdrawals.get(principal.applicationId, id);
    const paid = await read(good.withdrawalId);
    expect(paid.status).toBe("settled");
    expect(await l1.gasUsed(paid.l1TxHash ?? "0x")).toBeGreaterThan(9n * 490_000n);
    for (const id of bad)
      expect(await read(id)).toMatchObject({ status: "submitted", failure: expect.any(String) });
    // The next time costs nothing before ten minutes have passed.
    await wallets.turnBack();
    expect((await impatient.round()).withdrawn).toBe(0);
    expect((await sent()) - before).toBe(1);
    await world.close();
  });

  test("cost the operator no gas more often when they sign anew each time", async () => {
    const world = await createWorld({ verifySignature: async () => true });
    const { chain, engine, committee, settler } = world;
    const wallets = await flippingWallets(world, 2);
    await settler.round();
    const l1 = await chain.connectOperator(wallets.request);
    const sent = () => chain.sentByOperator();
    const before = await sent();
    let later = 0;
    const impatient = chain.newSettler({ engine, l1, committee, clock: () => Date.now() + later });
    // In half a day, an authorization each hour; the one before is given up when its end is final.
    for (let hour = 0; hour < 12; hour++) {
      const now = (await l1.block("latest"))?.timestamp ?? 0n;
      await wallets.ask(now + 900n);
      await impatient.round();
      await chain.passSeconds(3_600n);
      await chain.mine(20);
      later += 3_600_000;
      await impatient.round();
    }
    expect((await sent()) - before).toBeLessThanOrEqual(6);
    await world.close();
  });
});
