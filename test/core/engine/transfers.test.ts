import { setTimeout } from "node:timers/promises";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it, vi } from "vitest";
import type { L1Event } from "../../../core/index.ts";
import { readLimits } from "../../../core/ledger/options.ts";
import {
  type Transfer,
  transfersDigest,
  transfersTypedData,
} from "../../../core/protocol/transfer.ts";
import { LevelStore } from "../../../core/store/level-store.ts";
import { BatchLoad } from "../../../core/transfers/transfer-batch.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import {
  all,
  type Fixture,
  hashOf,
  mintOf,
  newTenant,
  OWNERS,
  refusal,
  requestOf,
} from "./fixture.ts";
import { committed, HOME, hear, signed, type Told, withdrawn } from "./l1-fixture.ts";
import { commitAll, commits, signedTransfers, transferable } from "./transfers-fixture.ts";

const friend = OWNERS[1].address.toLowerCase() as `0x${string}`;
const whole = (vaultId: bigint, to: `0x${string}` = friend): Transfer => ({
  vaultId,
  amount: 0n,
  to,
});

async function noProblems({ engine }: Pick<Fixture, "engine">): Promise<void> {
  expect((await engine.operator.verify()).problems).toEqual([]);
}

describe("transfers", () => {
  it("hold a vault at once, and give its receiver a vault with the next rollup batch", async () => {
    const made = await transferable();
    const { engine, tenant, token, units, items } = made;
    const request = await signedTransfers(made, [
      whole(token),
      { vaultId: units, amount: 30n, to: friend },
      whole(items),
    ]);
    const list = await engine.transfers.request(tenant.principal, request);
    expect(list).toMatchObject({ status: "accepted", transfers: [{}, {}, { isChange: true }, {}] });
    expect((await engine.vaults.get(tenant.applicationId, token)).availableBalance).toBe(0n);
    await noProblems({ engine });
    const batch = await engine.operator.sealTransfers();
    expect(batch).toMatchObject({
      kind: "transfers",
      batchId: "zk-rollup-0",
      vaultCount: 4,
      mintCount: 0,
    });
    await noProblems({ engine });
    const [giver, receiver] = tenant.users;
    const balances = await all(
      engine.vaults.balances(tenant.applicationId, receiver?.userId ?? ""),
    );
    expect(balances.map(({ amount, available }) => [amount, available])).toEqual([
      [1n, 1n],
      [30n, 30n],
      [7n, 7n],
    ]);
    const left = await all(engine.vaults.balances(tenant.applicationId, giver?.userId ?? ""));
    expect(left.map(({ amount, available }) => [amount, available])).toEqual([[70n, 70n]]);
    const vaults = await all(
      engine.vaults.list(tenant.applicationId, { userId: receiver?.userId }),
    );
    expect(
      vaults.map(({ amount, ownerAddress, status }) => [amount, ownerAddress, status]),
    ).toEqual([
      [1n, friend, "batched"],
      [30n, friend, "batched"],
      [7n, friend, "batched"],
    ]);
    await commitAll(engine, "zk-rollup", 0);
    const final = await engine.transfers.get(tenant.applicationId, list.transferId);
    expect(final.status).toBe("finalized");

    await noProblems({ engine });
  });

  it("that were signed twice are one list", async () => {
    const made = await transferable();
    const { engine, tenant, token } = made;
    const request = await signedTransfers(made, [whole(token)]);
    const both = await Promise.all([
      engine.transfers.request(tenant.principal, request),
      engine.transfers.request(tenant.principal, request),
    ]);
    expect(both[0].transferId).toBe(both[1].transferId);
    await engine.operator.sealTransfers();
    expect((await engine.transfers.request(tenant.principal, request)).status).toBe("batched");
    await noProblems({ engine });
  });

  it("are refused as a whole, with every vault that cannot be transferred", async () => {
    const made = await transferable();
    const { engine, tenant, token, units, items, assets } = made;
    const ask = async (...args: Parameters<typeof signedTransfers>) =>
      refusal(engine.transfers.request(tenant.principal, await signedTransfers(...args)));
    expect(
      await ask(made, [
        { vaultId: token, amount: 1n, to: friend },
        { vaultId: units, amount: 100n, to: friend },
      ]),
    ).toEqual({
      code: "amount_out_of_range",
      issues: { "/transfers/0": "amount_out_of_range", "/transfers/1": "amount_out_of_range" },
    });
    expect(await ask(made, [whole(token)], { signer: OWNERS[1] })).toMatchObject({
      code: "signature_invalid",
    });
    expect(await ask(made, [whole(token)], { seconds: 60 })).toMatchObject({
      code: "deadline_invalid",
    });
    expect(await ask(made, [whole(999n)])).toMatchObject({ code: "vault_not_found" });
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 2)));
    await engine.operator.seal("validium");
    expect(await ask(made, [whole(1n << 20n)])).toMatchObject({ code: "proof_not_ready" });
    await withdrawOne(engine, tenant.principal, await signed(made, 10n, { vaultId: units }));
    await engine.transfers.request(tenant.principal, await signedTransfers(made, [whole(token)]));
    expect(await ask(made, [whole(units), whole(token, OWNERS[2].address), whole(items)])).toEqual({
      code: "withdrawal_pending",
      issues: { "/transfers/0": "withdrawal_pending", "/transfers/1": "vault_spent" },
    });
    const other = signed(made, 1n, { vaultId: token });
    expect(await refusal(withdrawOne(engine, tenant.principal, await other))).toMatchObject({
      code: "vault_spent",
    });
    await noProblems({ engine });
  });

  it("are prepared for the owner's signature, after every check of a request", async () => {
    const made = await transferable();
    const { engine, tenant, token, units } = made;
    const asked = [whole(token), { vaultId: units, amount: 30n, to: friend }];
    const prepared = await engine.transfers.prepare(tenant.principal, { transfers: asked });
    expect(prepared).toMatchObject({ owner: OWNERS[0].address.toLowerCase(), transfers: asked });
    const signature = await OWNERS[0].signTypedData(
      transfersTypedData(engine.settlement, prepared),
    );
    const list = await engine.transfers.request(tenant.principal, { ...prepared, signature });
    expect([list.digest, list.deadline]).toEqual([prepared.digest, prepared.deadline]);
    const again = (more: object) =>
      refusal(engine.transfers.prepare(tenant.principal, { transfers: [whole(token)], ...more }));
    expect(await again({})).toMatchObject({ code: "vault_spent" });
    expect(await again({ deadline: 1n })).toMatchObject({ code: "deadline_invalid" });
    expect(await again({ transfers: [] })).toMatchObject({ code: "validation_failed" });
    expect(await again({ transfers: [whole(token), whole(token)] })).toMatchObject({
      code: "validation_failed",
    });
    const { principal } = await newTenant(engine, []);
    expect(await refusal(engine.transfers.prepare(principal, { transfers: asked }))).toMatchObject({
      code: "vault_not_found",
    });
  });

  it("fail while they wait once their owner has withdrawn alone or their deadline is near, and can be signed anew", async () => {
    const made = await transferable();
    const { engine, tenant, token, units, clock } = made;
    const gone = await engine.transfers.request(
      tenant.principal,
      await signedTransfers(made, [whole(token)]),
    );
    const request = await signedTransfers(made, [whole(units)]);
    const late = await engine.transfers.request(tenant.principal, request);
    await hear(engine, withdrawn(token, 1n, 1n, friend, 500n));
    clock.now += 7_000_000;
    expect(await engine.operator.sealTransfers()).toBeNull();
    for (const { transferId } of [gone, late])
      expect((await engine.transfers.get(tenant.applicationId, transferId)).status).toBe("failed");
    const again = await engine.transfers.request(
      tenant.principal,
      await signedTransfers(made, [whole(units)]),
    );
    expect(again.status).toBe("accepted");
    await noProblems({ engine });
  });

  it("that L1 does not take go into a later batch, and their number is committed with void slots", async () => {
    const made = await transferable();
    const { engine, tenant, token } = made;
    const { transferId } = await engine.transfers.request(
      tenant.principal,
      await signedTransfers(made, [whole(token)]),
    );
    await engine.operator.sealTransfers();
    const emptied = await engine.operator.takeBackTransfers(0, "the deadline is too near");
    expect(emptied).toMatchObject({ kind: "calldata", vaultCount: 1, status: "sealed" });
    await noProblems({ engine });
    expect((await engine.transfers.get(tenant.applicationId, transferId)).status).toBe("accepted");
    await engine.operator.sealTransfers();
    await commitAll(engine, "zk-rollup", 0);
    const { status, transfers } = await engine.transfers.get(tenant.applicationId, transferId);
    expect([status, transfers[0]?.newVaultId]).toEqual(["finalized", (1n << 63n) | (1n << 20n)]);
    await noProblems({ engine });
  });

  it("can be transferred again once they are final, at most eight times", async () => {
    const made = await transferable();
    const { engine, tenant } = made;
    let vaultId = made.token;
    for (let hop = 0; hop < 8; hop++) {
      const [from, to] = [OWNERS[hop % 4], OWNERS[(hop + 1) % 4]] as const;
      const request = await signedTransfers(
        made,
        [whole(vaultId, to?.address.toLowerCase() as typeof friend)],
        {
          signer: from as (typeof OWNERS)[0],
        },
      );
      const { transferId } = await engine.transfers.request(tenant.principal, request);
      await engine.operator.sealTransfers();
      await commitAll(engine, "zk-rollup", hop);
      const { transfers } = await engine.transfers.get(tenant.applicationId, transferId);
      expect(transfers[0]?.hops).toBe(hop + 1);
      vaultId = transfers[0]?.newVaultId ?? 0n;
    }
    const ninth = await signedTransfers(made, [whole(vaultId)]);
    expect(await refusal(engine.transfers.request(tenant.principal, ninth))).toMatchObject({
      code: "transfer_too_deep",
    });
    await noProblems({ engine });
  });
});

const [owner] = OWNERS;
const ownerAddress = owner.address.toLowerCase() as `0x${string}`;
const gameKey = privateKeyToAccount(`0x${"77".repeat(32)}`);
const ANY_ASSET = `0x${"00".repeat(32)}` as const;

type Made = Awaited<ReturnType<typeof transferable>>;

/** L1 tells of one event in a block, and of nothing else up to it. */
async function tell({ engine }: Made, event: Told, blockNumber: bigint): Promise<void> {
  const at = { txHash: hashOf(Number(blockNumber)), blockNumber, logIndex: 3 };
  await engine.operator.recordEvents(HOME, [{ ...event, ...at } as L1Event], blockNumber);
}

async function commit(
  { engine }: Made,
  batchNumber: number,
  blockNumber: bigint,
  committedAt?: bigint,
): Promise<void> {
  const event = await committed(engine, "zk-rollup", batchNumber, blockNumber);
  const sequence = await commits(engine);
  const told = { ...event, sequence, ...(committedAt !== undefined && { committedAt }) };
  await engine.operator.recordEvents(HOME, [told], blockNumber);
}

async function asked(
  made: Made,
  transfers: readonly Transfer[],
  options?: Parameters<typeof signedTransfers>[2],
) {
  const { engine, tenant } = made;
  const { transferId } = await engine.transfers.request(
    tenant.principal,
    await signedTransfers(made, transfers, options),
  );
  return { transferId, read: () => engine.transfers.get(tenant.applicationId, transferId) };
}

const amounts = ({ transfers }: Awaited<ReturnType<Made["engine"]["transfers"]["get"]>>) =>
  transfers.map(({ amount }) => amount);

async function balances({ engine, tenant }: Made, user: number) {
  const found = await all(
    engine.vaults.balances(tenant.applicationId, tenant.users[user]?.userId ?? ""),
  );
  return found.map(({ amount, available }) => [amount, available]);
}

describe("L1 decides transfers at the commit:", () => {
  it("a withdrawal of what the receiver no longer gets fails", async () => {
    const made = await transferable();
    const { engine, tenant, units } = made;
    const list = await asked(made, [whole(units)]);
    await engine.operator.sealTransfers();
    const vaultId = (await list.read()).transfers[0]?.newVaultId ?? 0n;
    const request = await signed(made, 100n, {
      vaultId,
      signer: OWNERS[1] as never,
      recipient: friend,
    });
    const { withdrawalId } = await withdrawOne(engine, tenant.principal, request);
    await engine.operator.recordEvents(
      HOME,
      [withdrawn(units, 30n, 30n, ownerAddress, 900n)],
      900n,
    );
    await commit(made, 0, 901n);
    const { status, failure } = await engine.withdrawals.get(tenant.applicationId, withdrawalId);
    expect([status, failure]).toEqual(["failed", expect.stringContaining("given this vault less")]);
    expect(await balances(made, 1)).toEqual([[70n, 70n]]);
    await noProblems(made);
  });

  describe("a duplicate that is voided after an exit through transfers", () => {
    /** A token that its owner gave to a friend, who gave it on to a third owner. */
    async function given() {
      const made = await transferable();
      const { engine, tenant, token } = made;
      const first = await asked(made, [whole(token)]);
      await engine.operator.sealTransfers();
      await commit(made, 0, 900n);
      await engine.operator.recordFinalized(HOME, 900n);
      const lent = (await first.read()).transfers[0]?.newVaultId ?? 0n;
      const third = OWNERS[2].address.toLowerCase() as typeof friend;
      const second = await asked(made, [whole(lent, third)], { signer: OWNERS[1] as never });
      await engine.operator.sealTransfers();
      await commit(made, 1, 901n);
      const tip = (await second.read()).transfers[0]?.newVaultId ?? 0n;
      const paid = withdrawn(tip, 1n, 1n, third, 902n);
      const voided = {
        type: "duplicateVoided",
        earlierVaultId: 1n << 40n,
        laterVaultId: token,
        blockNumber: 903n,
        logIndex: 0,
        txHash: hashOf(903),
      } as const;
      const seen = async () => {
        const ids = [token, lent, tip];
        const { applicationId } = tenant;
        const found = await Promise.all(
          ids.map((id) => engine.vaults.get(applicationId, id).catch(() => null)),
        );
        const lists = await Promise.all([first.read(), second.read()]);
        return {
          vaults: found.map(
            (vault) =>
              vault && [
                vault.amount,
                vault.withdrawnBalance,
                vault.transferredBalance,
                vault.availableBalance,
              ],
          ),
          failures: lists.map(({ transfers }) => transfers[0]?.failure),
          events: (await all(engine.events.stream(applicationId, { after: 0 }))).filter(
            ({ type }) => type === "transfer.failed",
          ),
        };
      };
      return { made, paid, voided, seen };
    }
    const PAID = {
      vaults: [
        [1n, 0n, 1n, 0n],
        [1n, 0n, 1n, 0n],
        [1n, 1n, 0n, 0n],
      ],
      failures: [null, null],
    };

    it("leaves what was paid with whom it was paid to, also after reorganisations", async () => {
      const { made, paid, voided, seen } = await given();
      const { operator } = made.engine;
      await operator.recordEvents(HOME, [paid, voided], 903n);
      expect(await seen()).toEqual({ ...PAID, events: [] });
      await noProblems(made);
      await operator.recordReorg(HOME, 903n);
      expect(await seen()).toEqual({ ...PAID, events: [] });
      await operator.recordReorg(HOME, 902n);
      expect((await seen()).vaults[2]).toEqual([1n, 0n, 0n, 1n]);
      await noProblems(made);
      await operator.recordEvents(HOME, [paid, voided], 904n);
      expect(await seen()).toEqual({ ...PAID, events: [] });
      await noProblems(made);
    });

    it("does so when the node told of the exit late", async () => {
      const { made, paid, voided, seen } = await given();
      await made.engine.operator.recordEvents(HOME, [voided], 903n);
      expect((await seen()).vaults).toEqual([[1n, 1n, 0n, 0n], null, null]);
      await noProblems(made);
      const whole = { fromBlock: 902n };
      expect(await made.engine.operator.recordEvents(HOME, [paid, voided], 903n, whole)).toBe(1);
      expect(await seen()).toMatchObject(PAID);
      await noProblems(made);
    });
  });

  it("a commit behind the deadline moves nothing, and the engine tells it", async () => {
    const made = await transferable();
    const { engine, tenant, units } = made;
    const list = await asked(made, [whole(units)]);
    const { deadline } = await list.read();
    await engine.operator.sealTransfers();
    await commit(made, 0, 901n, deadline + 1n);
    const { status, transfers } = await list.read();
    expect([status, transfers[0]?.amount]).toEqual(["settled", 0n]);
    expect(transfers[0]?.failure).toContain("after the deadline");
    expect(await balances(made, 0)).toContainEqual([100n, 0n]);
    const [transaction] = await all(
      engine.transactions.list(tenant.applicationId, { type: "transfer" }),
    );
    expect(transaction).toMatchObject({ status: "failed", failure: transfers[0]?.failure });
    const events = await all(engine.events.stream(tenant.applicationId, { after: 0 }));
    expect(events.at(-1)).toMatchObject({
      type: "transfer.failed",
      data: { failure: transfers[0]?.failure },
    });
    await noProblems(made);
  });
});

describe("a list is authorized by", () => {
  const HOUR = 3_600n;
  const session = (
    made: Made,
    more: Partial<Extract<Told, { type: "sessionAuthorized" }>> = {},
  ) => ({
    type: "sessionAuthorized" as const,
    owner: owner.address,
    key: gameKey.address,
    until: BigInt(made.clock.now) / 1000n + 10n * HOUR,
    limit: 40n,
    assetType: ANY_ASSET,
    authorizedAt: 1_850n,
    ...more,
  });
  const part = (vaultId: bigint, amount: bigint) => ({ vaultId, amount, to: friend });
  const byKey = { signer: gameKey };

  it("a key whose session is final, and covers asset, amount and deadline", async () => {
    const made = await transferable();
    const { engine, tenant, units, items } = made;
    const ask = async (transfers: readonly Transfer[], seconds = 7_200) =>
      refusal(
        engine.transfers.request(
          tenant.principal,
          await signedTransfers(made, transfers, { ...byKey, seconds }),
        ),
      );
    const invalid = { code: "signature_invalid" };
    expect(await ask([part(units, 40n)])).toMatchObject(invalid);
    const { assetType } = (await engine.vaults.get(tenant.applicationId, units)) ?? {};
    await tell(made, session(made, { assetType }), 900n);
    expect(await ask([part(units, 40n)])).toMatchObject(invalid);
    const known = () => engine.transfers.session(owner.address, gameKey.address);
    expect(await known()).toMatchObject({ limit: 40n, revokedAt: 0n, isFinal: false });
    await engine.operator.recordFinalized(HOME, 900n);
    expect([
      (await known())?.isFinal,
      await engine.transfers.session(friend, gameKey.address),
    ]).toEqual([true, null]);
    expect(await ask([part(units, 41n)])).toMatchObject(invalid);
    expect(await ask([whole(units)])).toMatchObject(invalid);
    expect(await ask([part(items, 2n)])).toMatchObject(invalid);
    expect(await ask([part(units, 40n)], 11 * 3_600)).toMatchObject(invalid);
    const list = await asked(made, [part(units, 40n)], byKey);
    await noProblems(made);
    await engine.operator.sealTransfers();
    await commit(made, 0, 901n);
    expect(amounts(await list.read())).toEqual([40n, 60n]);
    await noProblems(made);
  });

  it("a key that splits a vault below four others, and gives it away below eight", async () => {
    const made = await transferable();
    const { engine, tenant, units } = made;
    await tell(made, session(made, { limit: 100n }), 900n);
    await engine.operator.recordFinalized(HOME, 900n);
    let vaultId = units;
    const give = async (amount: bigint, options: Parameters<typeof signedTransfers>[2] = byKey) => {
      const list = await asked(made, [{ ...part(vaultId, amount), to: ownerAddress }], options);
      await engine.operator.sealTransfers();
      const batchNumber = engine.batches.state().countRollup - 1;
      const block = 901n + BigInt(batchNumber);
      await commit(made, batchNumber, block);
      await engine.operator.recordFinalized(HOME, block);
      vaultId = (await list.read()).transfers.at(-1)?.newVaultId ?? 0n;
    };
    for (let i = 0; i < 4; i++) await give(1n);
    const fifth = await signedTransfers(made, [part(vaultId, 1n)], byKey);
    const refused = await refusal(engine.transfers.request(tenant.principal, fifth));
    expect(refused).toMatchObject({
      code: "transfer_too_deep",
      issues: { "/transfers/0": "transfer_too_deep" },
    });
    await give(1n, {});
    for (let i = 0; i < 3; i++) await give(0n);
    expect(await engine.vaults.get(tenant.applicationId, vaultId)).toMatchObject({ amount: 95n });
    await noProblems(made);
  });

  it("the owner's approval on L1, without a signature", async () => {
    const made = await transferable();
    const { engine, tenant, units } = made;
    const { signature: _, ...message } = await signedTransfers(made, [whole(units)]);
    const request = { ...message, signature: "0x" as const };
    const digest = transfersDigest(engine.settlement, message);
    const ask = () => engine.transfers.request(tenant.principal, request);
    expect(await refusal(ask())).toMatchObject({ code: "signature_invalid" });
    await tell(
      made,
      { type: "transfersApproved", owner: owner.address, digest, approvedAt: 1_850n },
      900n,
    );
    expect(await refusal(ask())).toMatchObject({ code: "signature_invalid" });
    await engine.operator.recordFinalized(HOME, 900n);
    const { transferId } = await ask();
    await engine.operator.sealTransfers();
    await commit(made, 0, 901n);
    expect(amounts(await engine.transfers.get(tenant.applicationId, transferId))).toEqual([100n]);
    await noProblems(made);
  });
});

/** Lists of this length that one commit carries, of vaults so far apart. */
function carried(length: number, distance: bigint, amount = 0n): number {
  const load = new BatchLoad(readLimits());
  let next = 0n;
  for (let lists = 0; ; lists++) {
    const transfers = Array.from({ length }, () => ({
      vaultId: distance * next++,
      amount,
      to: `0x${"11".repeat(20)}` as const,
    }));
    if (!load.take(transfers)) return lists;
  }
}

it("a commit carries as many transfers as its bytes hold, unless their vaults lie far apart", () => {
  const { rollupBytes, rollupGas } = readLimits();
  expect(carried(1, 1n)).toBe(Math.floor((rollupBytes - 1) / 100));
  expect(carried(64, 1n, 1n)).toBe(Math.floor((rollupBytes - 1) / (79 + 64 * 31)));
  // Each vault pays for a word of its own.
  expect(carried(1, 256n)).toBe(Math.floor((rollupGas - 300_000) / 28_000));
});

it("a disk that fails as a batch of transfers closes behind a long one fails the engine alone", async () => {
  const made = await transferable({
    limits: { batchVaults: { validium: 4_096, "zk-rollup": 4_096 } },
  });
  const { engine, assets, tenant, units } = made;
  const transfers = [{ vaultId: units, amount: 40n, to: OWNERS[1].address }];
  await engine.transfers.request(tenant.principal, await signedTransfers(made, transfers));
  // So many are sealed on the thread.
  const long = Array.from({ length: 2_000 }, (_, i) =>
    mintOf(assets.erc721, 1_000 + i, 1, "zk-rollup"),
  );
  await engine.mint(tenant.principal, requestOf(tenant.users[0], ...long));
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", note);
  const write = vi.spyOn(LevelStore.prototype, "write").mockRejectedValue(new Error("no disk"));
  try {
    await expect(engine.operator.sealTransfers()).rejects.toMatchObject({ code: "store_failed" });
    await engine.close().catch(() => {});
    await setTimeout(500);
  } finally {
    write.mockRestore();
    process.off("unhandledRejection", note);
  }
  expect(unhandled).toEqual([]);
});
