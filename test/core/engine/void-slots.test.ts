import { describe, expect, it } from "vitest";
import type { Hex, Mode } from "../../../core/index.ts";
import { decodeBatch, placeVaults } from "../../../core/protocol/batch-decoder.ts";
import { BatchTree } from "../../../core/protocol/batch-tree.ts";
import { bytesToHex } from "../../../core/protocol/hex.ts";
import { batchRoot, kindOf, manifestRoot } from "../../../core/protocol/manifest.ts";
import { withdrawalTypedData } from "../../../core/protocol/typed-data.ts";
import { vaultLeaves } from "../../../core/protocol/vault.ts";
import { all, type Fixture, fixture, hashOf, mintOf, OWNERS, refusal, requestOf } from "./fixture.ts";
import { HOME, hear } from "./l1-fixture.ts";

const REASON = "asset_not_registered: L1 does not know the asset";
const [owner] = OWNERS;

/** Two sealed batches and an open one; of the first, slot 1 will be void. */
async function threeBatches(mode: Mode): Promise<Fixture> {
  const made = await fixture();
  const { engine, tenant, assets } = made;
  const [user] = tenant.users;
  const first = [
    mintOf(assets.erc20, "", 5, mode),
    mintOf(assets.erc721, "7", 1, mode),
    mintOf(assets.erc1155, "3", 4, mode),
  ];
  await engine.mint(tenant.principal, requestOf(user, ...first));
  await engine.operator.seal(mode);
  await engine.mint(tenant.principal, requestOf(user, mintOf(assets.erc721, "8", 1, mode)));
  await engine.operator.seal(mode);
  await engine.mint(tenant.principal, requestOf(user, mintOf(assets.erc721, "9", 1, mode)));
  return made;
}

function idOf(mode: Mode, batchNumber: number, slot: number): bigint {
  return (mode === "validium" ? 0n : 1n << 63n) | (BigInt(batchNumber) << 20n) | BigInt(slot);
}

describe.each(["validium", "zk-rollup"] as const)("void slots of a %s batch", (mode) => {
  it("become zero leaves; the batch and later state roots equal those without these vaults", async () => {
    const { engine, tenant, assets } = await threeBatches(mode);
    await using _ = engine;
    const before = engine.batches.state();
    const told: unknown[] = [];
    engine.events.on("slotsVoided", ({ batch, slots }) => told.push([batch.batchId, slots]));
    const batch = await engine.operator.voidSlots(mode, 0, [{ firstSlot: 1, count: 1, failure: REASON }]);
    expect(batch.status).toBe("sealed");
    expect(told).toEqual([[`${mode}-0`, [{ firstSlot: 1, count: 1, failure: REASON }]]]);
    const sealed = await engine.batches.getSealed(mode, 0);
    const { slots: entries, assets: named } = decodeBatch(sealed.data);
    const slots = placeVaults(entries, mode, 0);
    expect(slots.map((slot) => slot?.vaultId ?? null)).toEqual([idOf(mode, 0, 0), null, idOf(mode, 0, 2)]);
    const content = bytesToHex(new BatchTree(vaultLeaves(slots)).root);
    expect(sealed).toMatchObject({ content, assets: named });
    expect(sealed.batchRoot).toBe(batchRoot(kindOf(mode), manifestRoot(named), content));
    expect(engine.batches.state().commitment).not.toBe(before.commitment);
    expect((await engine.batches.get(mode, 1)).stateRoot).toBe(
      mode === "validium" ? engine.batches.state().rootValidium : engine.batches.state().rootRollup,
    );
    expect(await engine.proofs.vault(idOf(mode, 0, 2))).toMatchObject({ batchRoot: sealed.batchRoot });
    expect((await refusal(engine.proofs.vault(idOf(mode, 0, 1)))).code).toBe("vault_void");
    expect((await refusal(engine.vaults.content(idOf(mode, 0, 1)))).code).toBe("vault_void");

    const events = (await all(engine.events.stream(tenant.applicationId))).filter(({ type }) => type === "mint.failed");
    expect(events).toMatchObject([{ data: { firstVaultId: idOf(mode, 0, 1), vaults: 1, failure: REASON } }]);
    const list = await engine.transactions.list(tenant.applicationId, { status: "failed" });
    expect(list.data).toMatchObject([{ vaultId: idOf(mode, 0, 1), failure: REASON, l1TxHash: null }]);
    expect(Object.keys(list.data[0]?.timestamps ?? {})).toEqual(["accepted", "batched", "failed"]);
    expect(await engine.vaults.get(tenant.applicationId, idOf(mode, 0, 1))).toMatchObject({
      status: "failed",
      availableBalance: 0n,
    });
    const balances = await all(engine.vaults.balances(tenant.applicationId, tenant.users[0]?.userId ?? ""));
    const swords = balances.filter(({ assetId }) => assetId === assets.erc721).map(({ tokenId }) => tokenId);
    expect(swords).toEqual([8n, 9n]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("leave a batch of nothing but one void slot with a root that L1 takes", async () => {
    const { engine } = await threeBatches(mode);
    await using _ = engine;
    const { vaultCount, content } = await engine.operator.voidSlots(mode, 1, [
      { firstSlot: 0, count: 1, failure: REASON },
    ]);
    expect(vaultCount).toBe(2);
    expect(content).toBe(bytesToHex(new BatchTree(new Uint8Array(64)).root));
    const { data } = await engine.batches.getSealed(mode, 1);
    expect(decodeBatch(data)).toEqual({ slots: [null, null], assets: [] });
    const place = { txHash: hashOf(1), blockNumber: 7n, logIndex: 0, committedAt: 1n, sequence: 0n };
    const first = await engine.batches.getSealed(mode, 0);
    await hear(engine, { type: "batchCommitted", ...first, ...place });
    const second = await engine.batches.getSealed(mode, 1);
    await hear(engine, { type: "batchCommitted", ...second, ...place, blockNumber: 8n });
    expect((await engine.batches.get(mode, 1)).status).toBe("settled");
    expect((await refusal(engine.proofs.vault(idOf(mode, 1, 1)))).code).toBe("vault_not_found");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("cannot be in a batch that L1 has, in an open one, or outside the batch", async () => {
    const { engine } = await threeBatches(mode);
    await using _ = engine;
    const place = { txHash: hashOf(1), blockNumber: 7n, logIndex: 0, committedAt: 1n, sequence: 0n };
    await hear(engine, { type: "batchCommitted", ...(await engine.batches.getSealed(mode, 0)), ...place });
    const slot = { firstSlot: 0, count: 1, failure: REASON };
    const codes = await Promise.all(
      [
        engine.operator.voidSlots(mode, 0, [slot]),
        engine.operator.voidSlots(mode, 2, [slot]),
        engine.operator.voidSlots(mode, 9, [slot]),
        engine.operator.voidSlots(mode, 1, [{ ...slot, firstSlot: 1 }]),
        engine.operator.voidSlots(mode, 1, [{ ...slot, count: 0 }]),
        engine.operator.voidSlots(mode, 1, [{ ...slot, failure: "" }]),
      ].map(async (attempt) => (await refusal(attempt)).code),
    );
    expect(codes).toEqual([
      "batch_committed",
      "proof_not_ready",
      "batch_not_found",
      "validation_failed",
      "validation_failed",
      "validation_failed",
    ]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("fail the withdrawals that wait for them, and take no new ones", async () => {
    const { engine, tenant, clock } = await threeBatches(mode);
    await using _ = engine;
    const vaultId = idOf(mode, 0, 2);
    const message = {
      vaultId,
      withdrawnBefore: 0n,
      quantity: 2n,
      recipient: owner.address.toLowerCase() as Hex,
      deadline: BigInt(clock.now / 1000 + 3600),
    };
    const signature = await owner.signTypedData(withdrawalTypedData(engine.settlement, message));
    const { withdrawalId } = await engine.withdrawals.request(tenant.principal, { ...message, signature });
    await engine.operator.voidSlots(mode, 0, [{ firstSlot: 2, count: 1, failure: REASON }]);
    const failed = await engine.withdrawals.get(tenant.applicationId, withdrawalId);
    expect(failed).toMatchObject({ status: "failed", failure: expect.stringContaining(REASON) });
    expect(await engine.withdrawals.request(tenant.principal, { ...message, signature })).toEqual(failed);
    const later = { ...message, deadline: message.deadline + 1n };
    const again = await owner.signTypedData(withdrawalTypedData(engine.settlement, later));
    const fresh = engine.withdrawals.request(tenant.principal, { ...later, signature: again });
    expect((await refusal(fresh)).code).toBe("vault_void");
    expect(await all(engine.operator.pendingWithdrawals(HOME))).toEqual([]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
