import { afterEach, describe, expect, it, vi } from "vitest";
import type { Hex, Mode } from "../../../core/index.ts";
import {
  batchLeaves,
  decodeBatch,
  placeVaults,
  wordBatch,
} from "../../../core/protocol/batch-data.ts";
import { BatchTree } from "../../../core/protocol/batch-tree.ts";
import { bytesToHex } from "../../../core/protocol/hex.ts";
import { batchRoot, kindOf, manifestRoot } from "../../../core/protocol/manifest.ts";
import { verifyVaultProof } from "../../../core/protocol/proof.ts";
import { withdrawalListTypedData } from "../../../core/protocol/typed-data.ts";
import { SealingThread } from "../../../core/sealing/sealing-thread.ts";
import { listOfOne, withdrawOne } from "../../one-withdrawal.ts";
import {
  all,
  type Fixture,
  fixture,
  hashOf,
  mintOf,
  OWNERS,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import { committed, HOME, hear } from "./l1-fixture.ts";

const REASON = "asset_not_registered: L1 does not know the asset";
const [owner] = OWNERS;

afterEach(() => {
  vi.restoreAllMocks();
});

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
  it("become void words; the batch and later state roots equal those without these vaults", async () => {
    const { engine, tenant, assets } = await threeBatches(mode);
    await using _ = engine;
    const before = engine.batches.state();
    const told: unknown[] = [];
    engine.events.on("mint.failed", ({ event: { data } }) => told.push(data));
    const batch = await engine.operator.voidSlots(mode, 0, [
      { firstSlot: 1, count: 1, failure: REASON },
    ]);
    expect(batch.status).toBe("sealed");
    expect(told).toEqual([{ firstVaultId: idOf(mode, 0, 1), vaults: 1, failure: REASON }]);
    const sealed = await engine.batches.getSealed(mode, 0);
    const { slots: entries, assets: named, words } = decodeBatch(sealed.data);
    const slots = placeVaults(entries, mode, 0);
    expect(slots.map((slot) => slot?.vaultId ?? null)).toEqual([
      idOf(mode, 0, 0),
      null,
      idOf(mode, 0, 2),
    ]);
    const content = bytesToHex(new BatchTree(batchLeaves({ words }, mode, 0)).root);
    expect(sealed).toMatchObject({ content, assets: named });
    expect(sealed.batchRoot).toBe(batchRoot(kindOf(mode), manifestRoot(named), content));
    expect(engine.batches.state().commitment).not.toBe(before.commitment);
    expect((await engine.batches.get(mode, 1)).stateRoot).toBe(
      mode === "validium" ? engine.batches.state().rootValidium : engine.batches.state().rootRollup,
    );
    expect(await engine.proofs.vault(idOf(mode, 0, 2))).toMatchObject({
      batchRoot: sealed.batchRoot,
    });
    expect((await refusal(engine.proofs.vault(idOf(mode, 0, 1)))).code).toBe("vault_void");
    expect((await refusal(engine.vaults.content(idOf(mode, 0, 1)))).code).toBe("vault_void");

    const events = (await all(engine.events.stream(tenant.applicationId))).filter(
      ({ type }) => type === "mint.failed",
    );
    expect(events).toMatchObject([
      { data: { firstVaultId: idOf(mode, 0, 1), vaults: 1, failure: REASON } },
    ]);
    const list = await engine.transactions.list(tenant.applicationId, { status: "failed" });
    expect(list.data).toMatchObject([
      { vaultId: idOf(mode, 0, 1), failure: REASON, l1TxHash: null },
    ]);
    expect(Object.keys(list.data[0]?.timestamps ?? {})).toEqual(["accepted", "batched", "failed"]);
    expect(await engine.vaults.get(tenant.applicationId, idOf(mode, 0, 1))).toMatchObject({
      status: "failed",
      availableBalance: 0n,
    });
    const balances = await all(
      engine.vaults.balances(tenant.applicationId, tenant.users[0]?.userId ?? ""),
    );
    const swords = balances
      .filter(({ assetId }) => assetId === assets.erc721)
      .map(({ tokenId }) => tokenId);
    expect(swords).toEqual([8n, 9n]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("leave a batch of nothing but one void slot with a root that L1 takes", async () => {
    const { engine } = await threeBatches(mode);
    await using _ = engine;
    const { vaultCount, content } = await engine.operator.voidSlots(mode, 1, [
      { firstSlot: 0, count: 1, failure: REASON },
    ]);
    expect(vaultCount).toBe(1);
    expect(content).toBe(bytesToHex(batchLeaves(wordBatch([null]), mode, 1)));
    const { data } = await engine.batches.getSealed(mode, 1);
    expect(decodeBatch(data)).toMatchObject({ slots: [null], assets: [] });
    const place = {
      txHash: hashOf(1),
      blockNumber: 7n,
      logIndex: 0,
      committedAt: 1n,
      sequence: 0n,
    };
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
    const place = {
      txHash: hashOf(1),
      blockNumber: 7n,
      logIndex: 0,
      committedAt: 1n,
      sequence: 0n,
    };
    await hear(engine, {
      type: "batchCommitted",
      ...(await engine.batches.getSealed(mode, 0)),
      ...place,
    });
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
    const signature = await owner.signTypedData(
      withdrawalListTypedData(engine.settlement, listOfOne(message)),
    );
    const request = { ...listOfOne(message), signature };
    const { withdrawalId } = await withdrawOne(engine, tenant.principal, request);
    await engine.operator.voidSlots(mode, 0, [{ firstSlot: 2, count: 1, failure: REASON }]);
    const failed = await engine.withdrawals.get(tenant.applicationId, withdrawalId);
    expect(failed).toMatchObject({ status: "failed", failure: expect.stringContaining(REASON) });
    expect(await withdrawOne(engine, tenant.principal, request)).toEqual(failed);
    const later = { ...message, deadline: message.deadline + 1n };
    const again = await owner.signTypedData(
      withdrawalListTypedData(engine.settlement, listOfOne(later)),
    );
    const fresh = withdrawOne(engine, tenant.principal, { ...listOfOne(later), signature: again });
    expect((await refusal(fresh)).code).toBe("vault_void");
    expect(await all(engine.operator.pendingWithdrawals(HOME))).toEqual([]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

const NO_CONSENT = "the issuer did not consent: not_allowed";

/** A sealed batch with a vault of each standard, and a second one. */
async function twoBatches(mode: Mode): Promise<Fixture> {
  const made = await fixture();
  const { engine, tenant, assets } = made;
  const [user] = tenant.users;
  const mints = [
    mintOf(assets.erc20, "", 5, mode),
    mintOf(assets.erc721, "7", 1, mode),
    mintOf(assets.erc1155, "3", 4, mode),
  ];
  await engine.mint(tenant.principal, requestOf(user, ...mints));
  await engine.operator.seal(mode);
  await engine.mint(tenant.principal, requestOf(user, mintOf(assets.erc721, "8", 1, mode)));
  await engine.operator.seal(mode);
  return made;
}

/** An asset as manifests name it. */
async function idOfAsset({ engine, tenant, assets }: Fixture, standard: "erc20" | "erc721") {
  const { chainId, assetType } = await engine.assets.get(tenant.applicationId, assets[standard]);
  return { chainId, assetType };
}

/** L1 takes the first batch without the asset, whatever the engine expects. */
async function takenWithout(
  made: Fixture,
  mode: Mode,
  standard: "erc20" | "erc721",
  block: bigint,
) {
  const { engine } = made;
  const { assetType } = await idOfAsset(made, standard);
  const { assets, content } = await engine.batches.getSealed(mode, 0);
  const leftOut = [assets.findIndex((asset) => asset.assetType === assetType)];
  const root = batchRoot(kindOf(mode), manifestRoot(assets, leftOut), content);
  return { ...(await committed(engine, mode, 0, block)), batchRoot: root, leftOut };
}

describe.each(["validium", "zk-rollup"] as const)(
  "an asset that L1 leaves out of a %s batch",
  (mode) => {
    it("pays nobody once L1 has the batch; its mints fail when that is final, and free what they took", async () => {
      const made = await twoBatches(mode);
      const { engine, tenant, assets, database } = made;
      const sword = await idOfAsset(made, "erc721");
      const before = await engine.batches.getSealed(mode, 0);
      await engine.operator.leaveOut(mode, 0, [{ ...sword, failure: NO_CONSENT }]);
      const after = await engine.batches.getSealed(mode, 0);
      expect([after.content, after.dataHash]).toEqual([before.content, before.dataHash]);
      expect([after.batchRoot, before.rootOnL1]).toEqual([before.batchRoot, before.batchRoot]);
      expect(after.rootOnL1).not.toBe(before.rootOnL1);
      const place = before.assets.findIndex(({ assetType }) => assetType === sword.assetType);
      expect((await engine.batches.get(mode, 0)).leftOut).toEqual([
        { asset: place, failure: NO_CONSENT },
      ]);

      await hear(engine, {
        ...(await committed(engine, mode, 0, 7n)),
        batchRoot: after.rootOnL1,
        leftOut: [place],
      });
      const statusOf = async (slot: number) =>
        (await engine.vaults.get(tenant.applicationId, idOf(mode, 0, slot))).status;
      expect([await statusOf(0), await statusOf(1)]).toEqual(["settled", "settled"]);
      const settled = await engine.transactions.list(tenant.applicationId, { status: "settled" });
      expect(
        settled.data.map(({ failure }) => failure).filter((failure) => failure !== null),
      ).toEqual([NO_CONSENT]);
      expect(await refusal(engine.proofs.vault(idOf(mode, 0, 1)))).toMatchObject({
        code: "vault_void",
      });
      const kept = await engine.proofs.vault(idOf(mode, 0, 0));
      expect(verifyVaultProof(after.rootOnL1, kept)).toBe(true);
      const again = requestOf(tenant.users[1], mintOf(assets.erc721, "7", 1, mode));
      expect((await refusal(engine.mint(tenant.principal, again))).code).toBe(
        "token_already_minted",
      );

      await engine.operator.recordFinalized(HOME, 7n);
      expect([await statusOf(0), await statusOf(1), await statusOf(2)]).toEqual([
        "finalized",
        "failed",
        "finalized",
      ]);
      const failed = await engine.transactions.list(tenant.applicationId, { status: "failed" });
      expect(failed.data).toMatchObject([{ vaultId: idOf(mode, 0, 1), failure: NO_CONSENT }]);
      const told = (await all(engine.events.stream(tenant.applicationId))).filter(
        ({ type }) => type === "mint.failed",
      );
      expect(told).toMatchObject([
        { data: { firstVaultId: idOf(mode, 0, 1), vaults: 1, failure: NO_CONSENT } },
      ]);
      expect((await engine.assets.get(tenant.applicationId, assets.erc721)).minted).toBe(1n);
      expect(verifyVaultProof(after.rootOnL1, await engine.proofs.vault(idOf(mode, 0, 2)))).toBe(
        true,
      );
      await engine.mint(tenant.principal, again);
      expect((await engine.operator.verify()).problems).toEqual([]);

      const state = engine.batches.state();
      await engine.close();
      await using reopened = await openTest(database);
      expect(reopened.batches.state()).toEqual(state);
      expect((await refusal(reopened.mint(tenant.principal, again))).code).toBe(
        "token_already_minted",
      );
      expect((await refusal(reopened.proofs.vault(idOf(mode, 0, 1)))).code).toBe("vault_void");
      expect((await reopened.operator.verify()).problems).toEqual([]);
    });

    it("follows L1, whatever was expected", async () => {
      const made = await twoBatches(mode);
      const { engine, tenant } = made;
      await using _ = engine;
      await engine.operator.leaveOut(mode, 0, [
        { ...(await idOfAsset(made, "erc721")), failure: NO_CONSENT },
      ]);
      const event = await takenWithout(made, mode, "erc20", 7n);
      // L1's state says another root before its events are read: that alone is no divergence.
      const there = {
        ...engine.batches.state(),
        commitment: `0x${"11".repeat(32)}` as Hex,
        history: event.txHash,
      };
      expect(await engine.operator.compareState(there)).toBe(false);
      expect(engine.operator.divergence()).toBeNull();
      await hear(engine, event);
      await engine.operator.recordFinalized(HOME, 7n);
      expect((await engine.batches.getSealed(mode, 0)).rootOnL1).toBe(event.batchRoot);
      const { data } = await engine.transactions.list(tenant.applicationId, { status: "failed" });
      expect(data).toMatchObject([
        { vaultId: idOf(mode, 0, 0), failure: expect.stringContaining("no consent") },
      ]);
      expect((await engine.operator.verify()).problems).toEqual([]);
    });

    it("returns to the batch when L1 takes it with all consents after a reorganisation", async () => {
      const made = await twoBatches(mode);
      const { engine, tenant } = made;
      await using _ = engine;
      await hear(engine, await takenWithout(made, mode, "erc721", 7n));
      await engine.operator.recordReorg(HOME, 7n);
      await engine.operator.leaveOut(mode, 0, []);
      await hear(engine, await committed(engine, mode, 0, 8n));
      await engine.operator.recordFinalized(HOME, 8n);
      expect((await engine.batches.get(mode, 0)).leftOut).toBeNull();
      expect(await engine.proofs.vault(idOf(mode, 0, 1))).toMatchObject({
        header: expect.anything(),
      });
      expect(
        (await engine.transactions.list(tenant.applicationId, { status: "failed" })).data,
      ).toEqual([]);
      expect((await engine.operator.verify()).problems).toEqual([]);
    });

    it("fails the withdrawals that wait for it, and takes no new ones", async () => {
      const made = await twoBatches(mode);
      const { engine, tenant, clock } = made;
      await using _ = engine;
      const vaultId = idOf(mode, 0, 0);
      const request = async (deadline: bigint) => {
        const recipient = owner.address.toLowerCase() as Hex;
        const message = { vaultId, withdrawnBefore: 0n, quantity: 2n, recipient, deadline };
        const signature = await owner.signTypedData(
          withdrawalListTypedData(engine.settlement, listOfOne(message)),
        );
        return withdrawOne(engine, tenant.principal, { ...listOfOne(message), signature });
      };
      const deadline = BigInt(clock.now / 1000 + 3600);
      const { withdrawalId } = await request(deadline);
      await hear(engine, await takenWithout(made, mode, "erc20", 7n));
      expect((await refusal(request(deadline + 1n))).code).toBe("vault_void");
      await engine.operator.recordFinalized(HOME, 7n);
      expect(await engine.withdrawals.get(tenant.applicationId, withdrawalId)).toMatchObject({
        status: "failed",
      });
      expect(await all(engine.operator.pendingWithdrawals(HOME))).toEqual([]);
      expect((await engine.operator.verify()).problems).toEqual([]);
    });

    it("must be in the batch, and cannot be named once L1 has the batch", async () => {
      const made = await twoBatches(mode);
      const { engine } = made;
      await using _ = engine;
      const sword = { ...(await idOfAsset(made, "erc721")), failure: NO_CONSENT };
      const unknown = { ...sword, assetType: `0x${"0f".repeat(32)}` as const };
      expect((await refusal(engine.operator.leaveOut(mode, 0, [unknown]))).code).toBe(
        "validation_failed",
      );
      expect((await refusal(engine.operator.leaveOut(mode, 2, [sword]))).code).toBe(
        "batch_not_found",
      );
      await hear(engine, await committed(engine, mode, 0, 7n));
      expect((await refusal(engine.operator.leaveOut(mode, 0, [sword]))).code).toBe(
        "batch_committed",
      );
      const beyond = { ...(await committed(engine, mode, 1, 8n)), leftOut: [9] };
      await expect(hear(engine, beyond)).rejects.toMatchObject({ code: "history_diverged" });
    });

    it("leaves with the slots that become void before L1 has the batch", async () => {
      const made = await twoBatches(mode);
      const { engine } = made;
      await using _ = engine;
      await engine.operator.leaveOut(mode, 0, [
        { ...(await idOfAsset(made, "erc20")), failure: NO_CONSENT },
      ]);
      await engine.operator.voidSlots(mode, 0, [{ firstSlot: 1, count: 1, failure: "void" }]);
      expect((await engine.batches.get(mode, 0)).leftOut).toBeNull();
      await engine.operator.leaveOut(mode, 0, [
        { ...(await idOfAsset(made, "erc20")), failure: NO_CONSENT },
      ]);
      await hear(engine, await takenWithout(made, mode, "erc20", 7n));
      await engine.operator.recordFinalized(HOME, 7n);
      expect((await engine.batches.get(mode, 1)).stateRoot).toBe(
        mode === "validium"
          ? engine.batches.state().rootValidium
          : engine.batches.state().rootRollup,
      );
      expect((await engine.operator.verify()).problems).toEqual([]);
    });
  },
);

describe("void slots of a large batch in a tree", () => {
  /** A sealed batch, whose derivations without void slots wait until they are let on. */
  async function large() {
    const made = await fixture();
    const { engine, tenant, assets } = made;
    const mints = Array.from({ length: 1_100 }, (_, id) => mintOf(assets.erc721, id));
    await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
    await engine.operator.seal("validium");
    const { derive } = SealingThread.prototype;
    const begun: (() => void)[] = [];
    vi.spyOn(SealingThread.prototype, "derive").mockImplementation(async function (
      this: SealingThread,
      ...args
    ) {
      await new Promise<void>((resolve) => begun.push(resolve));
      return derive.apply(this, args);
    });
    return { ...made, begun };
  }
  const run = (firstSlot: number) => [{ firstSlot, count: 1, failure: REASON }];

  it("are derived on the thread, while mints go on", async () => {
    const { engine, tenant, assets, begun } = await large();
    await using _ = engine;
    const voiding = engine.operator.voidSlots("validium", 0, run(7));
    await vi.waitFor(() => expect(begun).toHaveLength(1));
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 5)));
    begun[0]?.();
    await voiding;
    expect(begun).toHaveLength(1);
    const { slots } = decodeBatch((await engine.batches.getSealed("validium", 0)).data);
    expect(slots.flatMap((slot, i) => (slot === null ? [i] : []))).toEqual([7]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("are derived once more when others became void meanwhile, or the batch was sent", async () => {
    const { engine, begun } = await large();
    await using _ = engine;
    const first = engine.operator.voidSlots("validium", 0, run(7));
    await vi.waitFor(() => expect(begun).toHaveLength(1));
    const second = engine.operator.voidSlots("validium", 0, run(9));
    await vi.waitFor(() => expect(begun).toHaveLength(2));
    begun[1]?.();
    await second;
    begun[0]?.();
    await vi.waitFor(() => expect(begun).toHaveLength(3));
    begun[2]?.();
    await first;
    const { slots } = decodeBatch((await engine.batches.getSealed("validium", 0)).data);
    expect(slots.flatMap((slot, i) => (slot === null ? [i] : []))).toEqual([7, 9]);
    const third = engine.operator.voidSlots("validium", 0, run(11));
    await vi.waitFor(() => expect(begun).toHaveLength(4));
    await engine.operator.recordSubmitted("validium", 0, hashOf(1));
    begun[3]?.();
    await vi.waitFor(() => expect(begun).toHaveLength(5));
    begun[4]?.();
    expect(await third).toMatchObject({ status: "sealed", l1TxHash: null });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
