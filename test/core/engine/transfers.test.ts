import { describe, expect, it } from "vitest";
import { transfersTypedData } from "../../../core/protocol/transfer.ts";
import { all, mintOf, newTenant, OWNERS, refusal, requestOf } from "./fixture.ts";
import { hear, signed, withdrawn } from "./l1-fixture.ts";
import { commitAll, signedTransfers, transferable } from "./transfers-fixture.ts";

const friend = OWNERS[1].address.toLowerCase() as `0x${string}`;
const whole = (vaultId: bigint, to: `0x${string}` = friend) => ({ vaultId, amount: 0n, to });

async function noProblems(engine: Awaited<ReturnType<typeof transferable>>["engine"]): Promise<void> {
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
    await noProblems(engine);
    const batch = await engine.operator.sealTransfers();
    expect(batch).toMatchObject({ kind: "transfers", batchId: "zk-rollup-0", vaultCount: 4, mintCount: 0 });
    await noProblems(engine);
    const [giver, receiver] = tenant.users;
    const balances = await all(engine.vaults.balances(tenant.applicationId, receiver?.userId ?? ""));
    expect(balances.map(({ amount, available }) => [amount, available])).toEqual([
      [1n, 1n],
      [30n, 30n],
      [7n, 7n],
    ]);
    const left = await all(engine.vaults.balances(tenant.applicationId, giver?.userId ?? ""));
    expect(left.map(({ amount, available }) => [amount, available])).toEqual([[70n, 70n]]);
    const vaults = await all(engine.vaults.list(tenant.applicationId, { userId: receiver?.userId }));
    expect(vaults.map(({ amount, ownerAddress, status }) => [amount, ownerAddress, status])).toEqual([
      [1n, friend, "batched"],
      [30n, friend, "batched"],
      [7n, friend, "batched"],
    ]);
    await commitAll(engine, "zk-rollup", 0);
    const final = await engine.transfers.get(tenant.applicationId, list.transferId);
    expect(final.status).toBe("finalized");

    await noProblems(engine);
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
    await noProblems(engine);
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
    expect(await ask(made, [whole(token)], { signer: OWNERS[1] })).toMatchObject({ code: "signature_invalid" });
    expect(await ask(made, [whole(token)], { seconds: 60 })).toMatchObject({ code: "deadline_invalid" });
    expect(await ask(made, [whole(999n)])).toMatchObject({ code: "vault_not_found" });
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 2)));
    await engine.operator.seal("validium");
    expect(await ask(made, [whole(1n << 20n)])).toMatchObject({ code: "proof_not_ready" });
    await engine.withdrawals.request(tenant.principal, await signed(made, 10n, { vaultId: units }));
    await engine.transfers.request(tenant.principal, await signedTransfers(made, [whole(token)]));
    expect(await ask(made, [whole(units), whole(token, OWNERS[2].address), whole(items)])).toEqual({
      code: "withdrawal_pending",
      issues: { "/transfers/0": "withdrawal_pending", "/transfers/1": "vault_spent" },
    });
    const other = signed(made, 1n, { vaultId: token });
    expect(await refusal(engine.withdrawals.request(tenant.principal, await other))).toMatchObject({
      code: "vault_spent",
    });
    await noProblems(engine);
  });

  it("are prepared for the owner's signature, after every check of a request", async () => {
    const made = await transferable();
    const { engine, tenant, token, units } = made;
    const asked = [whole(token), { vaultId: units, amount: 30n, to: friend }];
    const prepared = await engine.transfers.prepare(tenant.principal, { transfers: asked });
    expect(prepared).toMatchObject({ owner: OWNERS[0].address.toLowerCase(), transfers: asked });
    const signature = await OWNERS[0].signTypedData(transfersTypedData(engine.settlement, prepared));
    const list = await engine.transfers.request(tenant.principal, { ...prepared, signature });
    expect([list.digest, list.deadline]).toEqual([prepared.digest, prepared.deadline]);
    const again = (more: object) =>
      refusal(engine.transfers.prepare(tenant.principal, { transfers: [whole(token)], ...more }));
    expect(await again({})).toMatchObject({ code: "vault_spent" });
    expect(await again({ deadline: 1n })).toMatchObject({ code: "deadline_invalid" });
    expect(await again({ transfers: [] })).toMatchObject({ code: "validation_failed" });
    expect(await again({ transfers: [whole(token), whole(token)] })).toMatchObject({ code: "validation_failed" });
    const { principal } = await newTenant(engine, []);
    expect(await refusal(engine.transfers.prepare(principal, { transfers: asked }))).toMatchObject({
      code: "vault_not_found",
    });
  });

  it("fail while they wait once their owner has withdrawn alone or their deadline is near, and can be signed anew", async () => {
    const made = await transferable();
    const { engine, tenant, token, units, clock } = made;
    const gone = await engine.transfers.request(tenant.principal, await signedTransfers(made, [whole(token)]));
    const request = await signedTransfers(made, [whole(units)]);
    const late = await engine.transfers.request(tenant.principal, request);
    await hear(engine, withdrawn(token, 1n, 1n, friend, 500n));
    clock.now += 7_000_000;
    expect(await engine.operator.sealTransfers()).toBeNull();
    for (const { transferId } of [gone, late])
      expect((await engine.transfers.get(tenant.applicationId, transferId)).status).toBe("failed");
    const again = await engine.transfers.request(tenant.principal, await signedTransfers(made, [whole(units)]));
    expect(again.status).toBe("accepted");
    await noProblems(engine);
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
    expect(emptied).toMatchObject({ kind: "calldata", vaultCount: 2, status: "sealed" });
    await noProblems(engine);
    expect((await engine.transfers.get(tenant.applicationId, transferId)).status).toBe("accepted");
    await engine.operator.sealTransfers();
    await commitAll(engine, "zk-rollup", 0);
    const { status, transfers } = await engine.transfers.get(tenant.applicationId, transferId);
    expect([status, transfers[0]?.newVaultId]).toEqual(["finalized", (1n << 63n) | (1n << 20n)]);
    await noProblems(engine);
  });

  it("can be transferred again once they are final, at most eight times", async () => {
    const made = await transferable();
    const { engine, tenant } = made;
    let vaultId = made.token;
    for (let hop = 0; hop < 8; hop++) {
      const [from, to] = [OWNERS[hop % 4], OWNERS[(hop + 1) % 4]] as const;
      const request = await signedTransfers(made, [whole(vaultId, to?.address.toLowerCase() as typeof friend)], {
        signer: from as (typeof OWNERS)[0],
      });
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
    await noProblems(engine);
  });
});
