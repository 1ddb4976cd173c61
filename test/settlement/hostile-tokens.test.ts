import { encodeAbiParameters, type Hex, keccak256, pad, toHex } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MintmarkError, type VaultId } from "../../core/index.ts";
import type { Settler } from "../../core/settlement/index.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { at, createWorld, mint, newSettler, refusing, requestWithdrawal, rpc, type World } from "./fixture.ts";

/** Code of tokens, whatever they are asked. */
const LOOPS = "0x5b600056";
const IS_NO_CODE = "0xfe";
/** Reverts when it is given less than 700,000 gas. */
const IS_GREEDY = "0x620aae605a10600a57005b600080fd";
/** Reverts when somebody pays for the gas, as nobody does for a trial. */
const PRETENDS = "0x3a600557005b600080fd";

/** Tells, as the contract would, that the withdrawal of another vault has failed. */
function slandering(vaultId: VaultId): Hex {
  const topic = keccak256(toHex("WithdrawalFailed(uint64,bytes)"));
  const data = encodeAbiParameters([{ type: "bytes" }], ["0x"]);
  expect(data).toBe(`0x${"20".padStart(64, "0")}${"".padStart(64, "0")}`);
  return `0x6020600052${"7f"}${pad(toHex(vaultId)).slice(2)}7f${topic.slice(2)}60406000a200`;
}

describe("withdrawals beside those of a hostile token", () => {
  let world: World;
  let settler: Settler;
  let later = 0;
  let vaults: Record<"points" | "potions", VaultId>;

  beforeEach(async () => {
    world = await createWorld();
    const { engine, l1, committee, chain } = world;
    settler = newSettler({ engine, l1, committee, clock: () => Date.now() + later }, chain);
    vaults = {
      points: await mint(world, "erc20", "validium", "", 10),
      potions: await mint(world, "erc1155", "zk-rollup", "5", 3),
    };
    await settler.round();
  });
  afterEach(() => world.close());

  const become = (code: Hex) => rpc(world.chain, "hardhat_setCode", [at(world.chain.tokens, 2).address, code]);
  const read = (id: string) => world.engine.withdrawal(world.principal.applicationId, id);
  const sent = () => world.chain.client.getTransactionCount({ address: OPERATOR.address });

  test.each([
    ["loops for ever", LOOPS, "TokenRefused"],
    ["is no code", IS_NO_CODE, "TokenRefused"],
    ["needs more gas than an item of a batch has", IS_GREEDY, "more gas than an item"],
    ["says more than anybody reads, over many lines", refusing("No.\n\u0000".repeat(2_000)), "TokenRefused"],
  ] as const)("are paid though it %s, which is found out without paying for it", async (_, code, reason) => {
    await become(code);
    const bad = await requestWithdrawal(world, vaults.potions);
    const good = await requestWithdrawal(world, vaults.points, 10n);
    expect((await settler.round()).withdrawn).toBe(1);
    expect((await read(good.withdrawalId)).status).toBe("settled");
    expect(await read(bad.withdrawalId)).toMatchObject({
      status: "accepted",
      failure: expect.stringContaining(reason),
    });
  });

  test("cost the operator little though it takes every trial and refuses every transaction", async () => {
    await become(PRETENDS);
    const { withdrawalId } = await requestWithdrawal(world, vaults.potions);
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

  test("are paid though a node cannot try its own", async () => {
    const { l1 } = world;
    const bad = await requestWithdrawal(world, vaults.potions);
    const good = await requestWithdrawal(world, vaults.points, 10n);
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
    const asked = [await requestWithdrawal(world, vaults.potions), await requestWithdrawal(world, vaults.points, 10n)];
    expect((await settler.round()).withdrawn).toBe(2);
    for (const { withdrawalId } of asked) {
      expect(await read(withdrawalId)).toMatchObject({ status: "settled", failure: null });
    }
  });
});
