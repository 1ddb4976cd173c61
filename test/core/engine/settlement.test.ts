import { describe, expect, vi } from "vitest";
import { WITHDRAWAL_EVENTS } from "../../../core/model.ts";
import { withdrawalListDigest } from "../../../core/protocol/typed-data.ts";
import { Group, Table } from "../../../core/store/group.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import { all, type Fixture, hashOf, mintOf, OWNERS, refusal, requestOf } from "./fixture.ts";
import { it } from "./it.ts";
import {
  committed,
  HOME,
  hear,
  holding,
  ownerAddress,
  signed,
  stranger,
  withdrawn,
} from "./l1-fixture.ts";

describe("the life of a batch", () => {
  it("goes through sealed, submitted, settled and finalized, with its mints", async () => {
    const { engine, tenant, clock } = await holding();
    await using _ = engine;
    const statuses: string[] = [];
    engine.events.on("batch", ({ batch }) => statuses.push(batch.status));
    const mintStatus = async () =>
      (await engine.transactions.list(tenant.applicationId)).data[0]?.status;
    expect(await mintStatus()).toBe("batched");
    clock.now += 1000;
    await engine.operator.recordSubmitted("validium", 0, hashOf(1));
    expect(await mintStatus()).toBe("submitted");
    clock.now += 1000;
    await hear(engine, await committed(engine, "validium", 0, 7n));
    expect(await engine.batches.get("validium", 0)).toMatchObject({
      status: "settled",
      l1BlockNumber: 7n,
      committedAt: 1007n,
      l1TxHash: hashOf(7),
    });
    clock.now += 1000;
    await engine.operator.recordFinalized(HOME, 7n);
    const [mint] = (await engine.transactions.list(tenant.applicationId)).data;
    expect(mint?.status).toBe("finalized");
    expect(Object.keys(mint?.timestamps ?? {})).toEqual([
      "accepted",
      "batched",
      "submitted",
      "settled",
      "finalized",
    ]);
    expect(statuses).toEqual(["submitted", "settled", "finalized"]);
    expect(await engine.batches.committedState()).toEqual(engine.batches.state());
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("reads only the newest batches when blocks become final or are replaced", async ({
    engine,
    tenant,
    assets,
  }) => {
    const BATCHES = 60;
    const put = vi.spyOn(Table.prototype, "put");
    for (let i = 0; i < BATCHES; i++) {
      await engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], mintOf(assets.erc721, 8_000 + i)),
      );
      await engine.operator.seal("validium");
      await hear(engine, await committed(engine, "validium", i, BigInt(i)));
    }
    const views = [...new Set(put.mock.contexts as Table<number, object>[])].flatMap((table) => [
      table.view(new Group()),
      table.durable,
    ]);
    const read = async (change: () => Promise<void>) => {
      const asked = views.map((view) => vi.spyOn(view, "get"));
      const listed = views.map((view) => vi.spyOn(view, "values"));
      await change();
      const calls = asked.reduce((sum, { mock }) => sum + mock.calls.length, 0);
      for (const all of listed) expect(all).not.toHaveBeenCalled();
      vi.restoreAllMocks();
      return calls;
    };
    const statuses = async () =>
      (await all(engine.batches.list({ mode: "validium" }))).reverse().map(({ status }) => status);
    await engine.operator.recordFinalized(HOME, 56n);
    // A change of a batch reads some tables for itself: the bound is far below one read of each
    // batch.
    expect(await read(() => engine.operator.recordFinalized(HOME, 57n))).toBeLessThan(30);
    expect(await statuses()).toEqual([...Array(58).fill("finalized"), "settled", "settled"]);
    expect(await read(() => engine.operator.recordReorg(HOME, 59n))).toBeLessThan(30);
    expect(await statuses()).toEqual([...Array(58).fill("finalized"), "settled", "submitted"]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("does not change with a repeated event", async () => {
    const { engine } = await holding();
    await using _ = engine;
    await engine.operator.recordSubmitted("validium", 0, hashOf(1));
    const event = await committed(engine, "validium", 0, 7n);
    await hear(engine, event);
    const first = await engine.batches.get("validium", 0);
    const entries = (await engine.operator.verify()).journalEntries;
    await hear(engine, event);
    expect(await engine.batches.get("validium", 0)).toEqual(first);
    expect(await engine.operator.recordSubmitted("validium", 0, hashOf(1))).toEqual(first);
    expect((await engine.operator.verify()).journalEntries).toBe(entries);
  });

  it("refuses a foreign batch, and then applies nothing of the same blocks", async () => {
    const { engine } = await holding();
    await using _ = engine;
    const event = await committed(engine, "validium", 0, 7n);
    for (const wrong of [
      { batchRoot: hashOf(1) },
      { dataHash: hashOf(1) },
      { vaultCount: 2 },
      { batchNumber: 1 },
    ]) {
      expect((await refusal(hear(engine, { ...event, ...wrong }))).code).toBe("history_diverged");
    }
    const unknown = withdrawn(99n, 1n, 1n, stranger, 7n, 1);
    expect((await refusal(engine.operator.recordEvents(HOME, [event, unknown], 9n))).code).toBe(
      "history_diverged",
    );
    expect((await engine.batches.get("validium", 0)).status).toBe("sealed");
    expect(engine.operator.portal(HOME).observed).toBeNull();
  });

  it("returns to submitted in a reorganisation and settles again, but never reverts a final state", async () => {
    const fix = await holding();
    const { engine } = fix;
    await using _ = engine;
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 7n)], 8n);
    expect(engine.operator.portal(HOME).observed).toBe(8n);
    const reverted: string[] = [];
    engine.events.on(
      "batch.reverted",
      ({
        event: {
          data: { batchId },
        },
      }) => reverted.push(batchId),
    );
    await engine.operator.recordReorg(HOME, 6n);
    expect(await engine.batches.get("validium", 0)).toMatchObject({
      status: "submitted",
      l1BlockNumber: null,
      committedAt: null,
    });
    expect(engine.operator.portal(HOME).observed).toBe(5n);
    expect(reverted).toEqual(["validium-0"]);
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 9n)], 10n);
    expect((await engine.proofs.vault(0n)).header).toMatchObject({ committedAt: 1009n });
    await engine.operator.recordFinalized(HOME, 1000n);
    expect((await refusal(engine.operator.recordReorg(HOME, 10n))).code).toBe("l1_failed");
    await engine.operator.recordReorg(HOME, 11n);
    expect((await engine.batches.get("validium", 0)).status).toBe("finalized");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

describe("a withdrawal", () => {
  it("reserves, reaches the settlement layer once its batch is on L1, and settles", async () => {
    const fix = await holding();
    const { engine, tenant } = fix;
    await using _ = engine;
    const told: string[] = [];
    engine.events.on(WITHDRAWAL_EVENTS, ({ event }) => told.push(event.type));
    const request = await signed(fix, 30n);
    const accepted = await withdrawOne(engine, tenant.principal, request);
    expect(accepted).toMatchObject({
      status: "accepted",
      withdrawnBefore: 0n,
      recipient: ownerAddress,
    });
    const vault = () => engine.vaults.get(tenant.applicationId, 0n);
    expect(await vault()).toMatchObject({
      amount: 100n,
      availableBalance: 70n,
      withdrawnBalance: 0n,
    });
    expect(await all(engine.operator.pendingWithdrawals(HOME))).toMatchObject([
      { withdrawal: accepted, header: null },
    ]);
    await hear(engine, await committed(engine, "validium", 0, 7n));
    const [pending] = await all(engine.operator.pendingWithdrawals(HOME));
    expect(pending).toMatchObject({
      withdrawal: accepted,
      standard: "erc20",
      header: { sequence: 0n },
    });
    await engine.operator.recordWithdrawalSubmitted(accepted.withdrawalId, hashOf(8));
    await hear(engine, withdrawn(0n, 30n, 30n, ownerAddress, 8n));
    const settled = await engine.withdrawals.get(tenant.applicationId, accepted.withdrawalId);
    expect(settled).toMatchObject({ status: "settled", l1BlockNumber: 8n });
    expect(await vault()).toMatchObject({
      amount: 100n,
      availableBalance: 70n,
      withdrawnBalance: 30n,
    });
    expect(await all(engine.operator.pendingWithdrawals(HOME))).toEqual([]);
    await engine.operator.recordFinalized(HOME, 8n);
    const [transaction] = (
      await engine.transactions.list(tenant.applicationId, { type: "withdrawal" })
    ).data;
    expect(transaction).toMatchObject({
      transactionId: accepted.withdrawalId,
      status: "finalized",
      amount: 30n,
    });
    expect(await engine.transactions.get(tenant.applicationId, accepted.withdrawalId)).toEqual(
      transaction,
    );
    const repeated = await withdrawOne(engine, tenant.principal, request);
    expect(repeated).toMatchObject({
      withdrawalId: accepted.withdrawalId,
      status: "finalized",
      l1BlockNumber: 8n,
    });
    expect(await vault()).toMatchObject({ availableBalance: 70n, withdrawnBalance: 30n });
    expect(told).toEqual([
      "withdrawal.accepted",
      "withdrawal.submitted",
      "withdrawal.settled",
      "withdrawal.finalized",
    ]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("is refused without the owner's signature over exactly this", async () => {
    const fix = await holding();
    const { engine, tenant } = fix;
    await using _ = engine;
    const good = await signed(fix, 30n);
    const code = async (change: object) =>
      (await refusal(withdrawOne(engine, tenant.principal, { ...good, ...change }))).code;
    const listing = (change: object) => code({ vaults: [{ ...good.vaults[0], ...change }] });
    expect(await listing({ quantity: 31n })).toBe("signature_invalid");
    expect(await code({ recipient: stranger })).toBe("signature_invalid");
    expect(await code({ deadline: good.deadline + 1n })).toBe("signature_invalid");
    expect(await code(await signed(fix, 30n, { withdrawnBefore: 1n }))).toBe("signature_invalid");
    expect(await code(await signed(fix, 30n, { signer: OWNERS[1] }))).toBe("signature_invalid");
    expect(await code({ signature: "0x1234" })).toBe("signature_invalid");
    expect(await code({ signature: `${good.signature.slice(0, 66)}${"f".repeat(64)}1b` })).toBe(
      "signature_invalid",
    );
    expect(await listing({ vaultId: 1n })).toBe("vault_not_found");
    expect(await listing({ vaultId: 1n << 60n })).toBe("vault_not_found");
    expect(await listing({ quantity: 0n })).toBe("validation_failed");
    const early = { ...fix, clock: { ...fix.clock, now: fix.clock.now - 3_600_000 } };
    expect(await code(await signed(early as Fixture, 30n))).toBe("deadline_invalid");
    expect(await code(await signed(fix, 101n))).toBe("insufficient_balance");
    expect((await engine.vaults.get(tenant.applicationId, 0n)).availableBalance).toBe(100n);
  });

  it("verifies a wallet contract's signature on L1", async () => {
    const asked: unknown[] = [];
    const fix = await holding({
      verifySignature: async (...parts) => asked.push(parts) > 0 && parts[3] === "0x1234",
    });
    const { engine, tenant } = fix;
    await using _ = engine;
    const request = { ...(await signed(fix, 30n)), signature: "0x1234" as const };
    expect((await withdrawOne(engine, tenant.principal, request)).status).toBe("accepted");
    expect(asked).toEqual([
      [HOME, ownerAddress, expect.stringMatching(/^0x[0-9a-f]{64}$/), "0x1234"],
    ]);
  });

  it("waits for its batch's seal and for the previous withdrawal, and belongs to its application", async () => {
    const fix = await holding();
    const { engine, tenant, assets } = fix;
    await using _ = engine;
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 5)));
    const open = await signed(fix, 1n, { vaultId: 1n << 20n });
    expect((await refusal(withdrawOne(engine, tenant.principal, open))).code).toBe(
      "proof_not_ready",
    );
    const request = await signed(fix, 30n);
    const outcomes = await Promise.allSettled(
      [1, 2].map(() => withdrawOne(engine, tenant.principal, request)),
    );
    const ids = outcomes.map((outcome) =>
      outcome.status === "fulfilled" ? outcome.value.withdrawalId : "refused",
    );
    expect(new Set(ids).size, "the same signed request is the same withdrawal").toBe(1);
    const next = await signed(fix, 29n);
    expect((await refusal(withdrawOne(engine, tenant.principal, next))).code).toBe(
      "withdrawal_pending",
    );
    const { applicationId } = await engine.applications.create({ name: "other" });
    const { principal } = {
      principal: await engine.keys.authenticate((await engine.keys.issue(applicationId)).secret),
    };
    expect((await refusal(withdrawOne(engine, principal, request))).code).toBe("vault_not_found");
  });

  it("fails and is released only when the owner withdrew alone, cancelled, or let it expire", async () => {
    const fix = await holding();
    const { engine, tenant } = fix;
    await using _ = engine;
    const status = async (id: string) =>
      (await engine.withdrawals.get(tenant.applicationId, id)).status;
    const vault = () => engine.vaults.get(tenant.applicationId, 0n);
    const first = await withdrawOne(engine, tenant.principal, await signed(fix, 30n));
    await hear(engine, withdrawn(0n, 10n, 10n, stranger, 8n));
    expect(await status(first.withdrawalId)).toBe("failed");
    expect(await vault()).toMatchObject({ availableBalance: 90n, withdrawnBalance: 10n });

    const second = await withdrawOne(
      engine,
      tenant.principal,
      await signed(fix, 5n, { withdrawnBefore: 10n }),
    );
    await engine.operator.recordWithdrawalAttempt(second.withdrawalId, "the token reverts");
    expect(await engine.withdrawals.get(tenant.applicationId, second.withdrawalId)).toMatchObject({
      status: "accepted",
      failure: "the token reverts",
    });
    const early = engine.operator.recordWithdrawalFailed(
      second.withdrawalId,
      "gave up",
      second.deadline,
    );
    expect((await refusal(early)).code).toBe("withdrawal_pending");
    await engine.operator.recordWithdrawalFailed(
      second.withdrawalId,
      "gave up",
      second.deadline + 1n,
    );
    expect(await vault()).toMatchObject({ availableBalance: 90n });

    const third = await withdrawOne(
      engine,
      tenant.principal,
      await signed(fix, 6n, { withdrawnBefore: 10n }),
    );
    const { vaultId, withdrawnBefore, quantity, recipient, deadline } = third;
    const cancel = {
      type: "authorizationCancelled",
      id: withdrawalListDigest(engine.settlement, {
        vaults: [{ vaultId, withdrawnBefore, quantity }],
        recipient,
        deadline,
      }),
      txHash: hashOf(9),
      blockNumber: 9n,
      logIndex: 0,
    } as const;
    await engine.operator.recordEvents(HOME, [{ ...cancel, signer: stranger }], 9n);
    expect(await status(third.withdrawalId)).toBe("accepted");
    await engine.operator.recordEvents(
      HOME,
      [{ ...cancel, blockNumber: 10n, signer: ownerAddress }],
      10n,
    );
    expect(await status(third.withdrawalId)).toBe("failed");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("waits through a reorganisation for earlier signed ones", async () => {
    const fix = await holding();
    const { engine, tenant } = fix;
    await using _ = engine;
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 7n)], 7n);
    const asked: string[] = [];
    const payments = [10n, 20n, 30n].map((total, i) =>
      withdrawn(0n, 10n, total, ownerAddress, 8n + BigInt(i)),
    );
    for (const [i, payment] of payments.entries()) {
      const request = await signed(fix, 10n, { withdrawnBefore: BigInt(i) * 10n });
      asked.push((await withdrawOne(engine, tenant.principal, request)).withdrawalId);
      if (i < 2) await engine.operator.recordEvents(HOME, [payment], payment.blockNumber);
    }
    await engine.operator.recordReorg(HOME, 8n);
    const last = asked.at(-1) ?? "";
    expect((await refusal(engine.operator.recordWithdrawalFailed(last, "gave up", 0n))).code).toBe(
      "withdrawal_pending",
    );
    for (const payment of payments)
      await engine.operator.recordEvents(HOME, [payment], payment.blockNumber);
    for (const id of asked) {
      expect((await engine.withdrawals.get(tenant.applicationId, id)).status).toBe("settled");
    }
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("exhausts a voided duplicate", async ({ engine, tenant, assets }) => {
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 1)));
    await engine.operator.seal("validium");
    const place = { txHash: hashOf(3), blockNumber: 3n, logIndex: 0 };
    await engine.operator.recordEvents(
      HOME,
      [{ type: "duplicateVoided", earlierVaultId: 1n << 63n, laterVaultId: 0n, ...place }],
      3n,
    );
    expect(await engine.vaults.get(tenant.applicationId, 0n)).toMatchObject({
      availableBalance: 0n,
      withdrawnBalance: 1n,
    });
  });
});
