import { describe, expect } from "vitest";
import { transfersDigest } from "../../../core/protocol/transfer.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import { hashOf, OWNERS } from "./fixture.ts";
import { it } from "./it.ts";
import { committed, HOME, hear, holding, ownerAddress, signed, withdrawn } from "./l1-fixture.ts";
import { commits, signedTransfers, transferable } from "./transfers-fixture.ts";

describe("an event that a node left out", () => {
  it("is added later: a cancellation undoes a transfer that was committed after it", async () => {
    const made = await transferable();
    const { engine, tenant, units } = made;
    await using _ = engine;
    const to = OWNERS[1].address.toLowerCase() as `0x${string}`;
    const request = await signedTransfers(made, [{ vaultId: units, amount: 40n, to }]);
    const { transferId } = await engine.transfers.request(tenant.principal, request);
    await engine.operator.sealTransfers();
    const { countRollup } = engine.batches.state();
    const at = (engine.operator.portal(HOME).observed ?? 0n) + 2n;
    const commit = await committed(engine, "zk-rollup", countRollup - 1, at);
    const told = { ...commit, sequence: await commits(engine), committedAt: 1_000n + at };
    await hear(engine, told);
    const hasFailed = async () => {
      const { transfers } = await engine.transfers.get(tenant.applicationId, transferId);
      return transfers.some(({ failure }) => failure !== null);
    };
    expect(await hasFailed()).toBe(false);
    const digest = transfersDigest(engine.settlement, request);
    const cancelled = {
      type: "transfersCancelled",
      owner: ownerAddress,
      digest,
      cancelledAt: 1_000n + at - 1n,
      blockNumber: at - 1n,
      logIndex: 0,
      txHash: hashOf(77),
    } as const;
    const whole = { fromBlock: at - 1n };
    const record = (...events: Parameters<typeof engine.operator.recordEvents>[1][number][]) =>
      engine.operator.recordEvents(HOME, events, at, whole);
    await expect(record(cancelled)).rejects.toThrow("leaves out an event");
    expect(await hasFailed()).toBe(false);
    expect(await record(cancelled, told)).toBe(1);
    expect(await hasFailed()).toBe(true);
    expect(await record(cancelled, told)).toBe(0);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("of a final block is added too, and becomes final with the next final block", async () => {
    const fix = await holding();
    const { engine, tenant } = fix;
    await using _ = engine;
    await hear(engine, { ...(await committed(engine, "validium", 0, 7n)), sequence: 0n });
    const { withdrawalId } = await withdrawOne(engine, tenant.principal, await signed(fix, 30n));
    await engine.operator.recordEvents(HOME, [], 20n);
    await engine.operator.recordFinalized(HOME, 20n, { blockHash: hashOf(20) });
    const paid = withdrawn(0n, 30n, 30n, ownerAddress, 9n);
    const read = (fromBlock: bigint) =>
      engine.operator.recordEvents(HOME, [paid], 20n, { fromBlock });
    await expect(read(7n)).rejects.toThrow("event of block 7");
    expect(await read(8n)).toBe(1);
    expect(engine.operator.portal(HOME)).toMatchObject({ observed: 20n, finalized: 8n });
    const status = async () =>
      (await engine.withdrawals.get(tenant.applicationId, withdrawalId)).status;
    expect(await status()).toBe("settled");
    await engine.operator.recordFinalized(HOME, 20n);
    expect(await status()).toBe("finalized");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("is missed when a later event counts on it", async () => {
    const fix = await holding();
    const { engine } = fix;
    await using _ = engine;
    const commit = { ...(await committed(engine, "validium", 0, 7n)), sequence: 1n };
    const whole = { fromBlock: 0n };
    expect(await engine.operator.recordEvents(HOME, [commit], 9n, whole)).toBeNull();
    const second = withdrawn(0n, 10n, 30n, ownerAddress, 8n);
    expect(await engine.operator.recordEvents(HOME, [second], 9n, whole)).toBeNull();
    expect(engine.operator.portal(HOME).observed).toBeNull();
    const first = withdrawn(0n, 20n, 20n, ownerAddress, 7n, 1);
    expect(await engine.operator.recordEvents(HOME, [second, first], 9n, whole)).toBe(2);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
