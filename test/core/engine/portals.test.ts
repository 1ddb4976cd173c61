import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Uuid } from "../../../core/index.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import {
  all,
  type Fixture,
  fixture,
  hashOf,
  mintOf,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import {
  committed,
  HOME,
  imported,
  MIRROR,
  ownerAddress,
  signed,
  stranger,
  withdrawn,
} from "./l1-fixture.ts";

const FAR = MIRROR.chainId;

interface FarFixture extends Fixture {
  readonly far: Uuid;
}

/**
 * Vault 0 holds 100 units of a token of the settlement contract's chain, vault 1 as many of one of
 * another chain; both sealed.
 */
async function holdingOnTwo(): Promise<FarFixture> {
  const made = await fixture();
  const { engine, tenant, assets } = made;
  const contractAddress = `0x${"cc".repeat(20)}` as const;
  const { assetId: far } = await engine.assets.add({
    ...{ standard: "erc20", chainId: FAR, contractAddress, name: "far", symbol: "FAR" },
  });
  await engine.assets.whitelist(far);
  await engine.operator.recordRegistered(far);
  await engine.assets.enable(tenant.applicationId, far);
  await engine.mint(
    tenant.principal,
    requestOf(tenant.users[0], mintOf(assets.erc20, "", 100), mintOf(far, "", 100)),
  );
  await engine.operator.seal("validium");
  return { ...made, far };
}

const forMirror = (fix: Fixture, quantity: bigint, withdrawnBefore = 0n) =>
  signed(fix, quantity, { vaultId: 1n, portal: MIRROR, withdrawnBefore });

describe("a mirror", () => {
  it("is added once a chain, permanently", async () => {
    const { engine, database } = await fixture();
    expect(engine.operator.portals()).toEqual([
      { ...portalOf(engine.settlement), observed: null, finalized: null },
    ]);
    await engine.operator.addMirror({ ...MIRROR, contract: `0x${"BB".repeat(20)}` });
    await engine.operator.addMirror(MIRROR);
    // A smaller id than the settlement chain's: which is first all the same.
    await engine.operator.addMirror({ ...MIRROR, chainId: 7n });
    expect(engine.operator.portals().map(({ chainId }) => chainId)).toEqual([HOME, FAR, 7n]);
    for (const other of [{ ...MIRROR, contract: stranger }, engine.settlement]) {
      expect((await refusal(engine.operator.addMirror(other))).code).toBe("store_mismatch");
    }
    for (const bad of [
      { ...MIRROR, chainId: 0n },
      { ...MIRROR, chainId: 1n << 64n },
      { chainId: 8n, contract: "0x1" },
    ]) {
      expect((await refusal(engine.operator.addMirror(bad as typeof MIRROR))).code).toBe(
        "validation_failed",
      );
    }
    expect((await engine.operator.verify()).problems).toEqual([]);
    await engine.close();
    await using again = await openTest(database);
    expect(again.operator.portals().map(({ chainId }) => chainId)).toEqual([HOME, 7n, FAR]);
    expect(again.operator.portal(FAR)).toMatchObject(MIRROR);
    expect(() => again.operator.portal(8n)).toThrow(
      expect.objectContaining({ code: "chain_not_supported" }),
    );
  });

  it("is what owners of that chain's tokens sign for; no other chain's contract", async () => {
    const fix = await holdingOnTwo();
    const { engine, tenant } = fix;
    await using _ = engine;
    const code = async (request: Awaited<ReturnType<typeof signed>>) =>
      (await refusal(withdrawOne(engine, tenant.principal, request))).code;
    expect(await code(await forMirror(fix, 1n))).toBe("chain_not_supported");
    await engine.operator.addMirror(MIRROR);
    // Signed for the settlement contract; for the mirror's address on the other chain; and the
    // mirror's for the settlement contract.
    expect(await code(await signed(fix, 1n, { vaultId: 1n }))).toBe("signature_invalid");
    const elsewhere = { ...MIRROR, chainId: HOME };
    expect(await code(await signed(fix, 1n, { vaultId: 1n, portal: elsewhere }))).toBe(
      "signature_invalid",
    );
    expect(await code(await signed(fix, 1n, { portal: MIRROR }))).toBe("signature_invalid");
    const accepted = await withdrawOne(engine, tenant.principal, await forMirror(fix, 1n));
    expect(accepted).toMatchObject({ status: "accepted", chainId: FAR });
  });

  it("gets a withdrawal once it has the batch, with its own header, and settles it by its own chain's events", async () => {
    const fix = await holdingOnTwo();
    const { engine, tenant } = fix;
    await using _ = engine;
    await engine.operator.addMirror(MIRROR);
    const { withdrawalId } = await withdrawOne(engine, tenant.principal, await forMirror(fix, 30n));
    const status = async () =>
      (await engine.withdrawals.get(tenant.applicationId, withdrawalId)).status;
    const pending = async (chainId: bigint) =>
      (await all(engine.operator.pendingWithdrawals(chainId))).map(({ header }) => header);
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 7n)], 7n);
    expect([await pending(HOME), await pending(FAR)]).toEqual([[], [null]]);
    await engine.operator.recordEvents(FAR, [await imported(engine, "validium", 0, 3n)], 3n);
    expect(await pending(HOME)).toEqual([]);
    expect(await pending(FAR)).toMatchObject([{ committedAt: 5003n, sequence: 0n, vaultCount: 2 }]);
    expect((await engine.proofs.vault(1n)).header).toMatchObject({ committedAt: 1007n });
    await engine.operator.recordEvents(FAR, [withdrawn(1n, 30n, 30n, ownerAddress, 4n)], 4n);
    expect(await status()).toBe("settled");
    expect(await engine.vaults.get(tenant.applicationId, 1n)).toMatchObject({
      withdrawnBalance: 30n,
      availableBalance: 70n,
    });
    await engine.operator.recordFinalized(HOME, 7n);
    expect([await status(), engine.operator.portal(FAR).finalized]).toEqual(["settled", null]);
    await engine.operator.recordFinalized(FAR, 4n);
    expect(await status()).toBe("finalized");
    expect(engine.operator.portal(HOME)).toMatchObject({ observed: 7n, finalized: 7n });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("reports no event of the settlement contract, no vault of another chain, and no foreign batch", async () => {
    const { engine } = await holdingOnTwo();
    await using _ = engine;
    await engine.operator.addMirror(MIRROR);
    const [commit, known] = [
      await committed(engine, "validium", 0, 7n),
      await imported(engine, "validium", 0, 7n),
    ];
    for (const [chainId, event] of [
      [FAR, commit],
      [HOME, known],
      [FAR, { ...known, batchRoot: hashOf(1) }],
      [FAR, { ...known, batchNumber: 1 }],
      [FAR, withdrawn(0n, 1n, 1n, stranger, 7n)],
      [HOME, withdrawn(1n, 1n, 1n, stranger, 7n)],
      [FAR, withdrawn(99n, 1n, 1n, stranger, 7n)],
    ] as const) {
      // A mirror's committee must not be able to stop what happens on other chains.
      const code = chainId === HOME ? "history_diverged" : "l1_failed";
      expect((await refusal(engine.operator.recordEvents(chainId, [event], 9n))).code).toBe(code);
      if (chainId === FAR)
        expect(engine.operator.divergence()?.detail ?? "").not.toMatch(`Chain ${FAR}`);
    }
    expect((await refusal(engine.operator.recordEvents(9n, [], 9n))).code).toBe(
      "chain_not_supported",
    );
    expect(engine.operator.portals().map(({ observed }) => observed)).toEqual([null, null]);
  });
});

function portalOf({ chainId, contract }: { readonly chainId: bigint; readonly contract: string }) {
  return { chainId, contract };
}

describe("any sequence of two chains' events", () => {
  it("ends in each chain's final state, and neither affects the other", async () => {
    const chain = fc.constantFrom(HOME, FAR);
    const step = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({
          kind: fc.constant("block" as const),
          chain,
          units: fc.nat(3),
          tells: fc.boolean(),
        }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("ask" as const), chain }) },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant("reorg" as const),
          chain,
          depth: fc.integer({ min: 1, max: 4 }),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant("finalize" as const), chain, behind: fc.nat(3) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("reopen" as const), chain }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const fix = await holdingOnTwo();
        let { engine } = fix;
        await engine.operator.addMirror(MIRROR);
        /**
         * The standing blocks of each chain: units that its vault's owner withdrew there, and
         * whether the batch became known.
         */
        const standing = new Map<bigint, { units: bigint; tells: boolean }[]>(
          [HOME, FAR].map((id) => [id, []]),
        );
        const final = new Map<bigint, bigint>([HOME, FAR].map((id) => [id, 0n]));
        const blocksOf = (id: bigint) => standing.get(id) ?? [];
        const total = (id: bigint) => blocksOf(id).reduce((sum, { units }) => sum + units, 0n);
        const isKnown = (id: bigint) => blocksOf(id).some(({ tells }) => tells);
        for (const one of steps) {
          const blocks = blocksOf(one.chain);
          const number = BigInt(blocks.length) + 1n;
          const vaultId = one.chain === HOME ? 0n : 1n;
          if (one.kind === "block") {
            const tell = one.chain === HOME ? committed : imported;
            const tells = one.tells && !isKnown(one.chain);
            const events = tells ? [await tell(engine, "validium", 0, number)] : [];
            const units = tells || isKnown(one.chain) ? BigInt(one.units) : 0n;
            const after = total(one.chain) + units;
            const spent =
              units === 0n ? [] : [withdrawn(vaultId, units, after, ownerAddress, number, 1)];
            blocks.push({ units, tells });
            await engine.operator.recordEvents(one.chain, [...events, ...spent], number);
          } else if (one.kind === "ask") {
            const portal = one.chain === HOME ? engine.settlement : MIRROR;
            const asked = await signed(fix, 1n, {
              vaultId,
              portal,
              withdrawnBefore: total(one.chain),
            });
            await withdrawOne(engine, fix.tenant.principal, asked).catch((error) => {
              if (error.code !== "withdrawal_pending") throw error;
            });
          } else if (one.kind === "reorg") {
            const least = (final.get(one.chain) ?? 0n) + 1n;
            const from = number - BigInt(one.depth) > least ? number - BigInt(one.depth) : least;
            blocks.length = Math.min(blocks.length, Number(from) - 1);
            await engine.operator.recordReorg(one.chain, from);
          } else if (one.kind === "finalize") {
            const upTo = number - 1n - BigInt(one.behind);
            if (upTo > (final.get(one.chain) ?? 0n)) final.set(one.chain, upTo);
            await engine.operator.recordFinalized(one.chain, upTo > 0n ? upTo : 0n);
          } else {
            await engine.close();
            engine = await openTest(fix.database, { clock: fix.clock.read });
            Object.assign(fix, { engine });
          }
        }
        const { status } = await engine.batches.get("validium", 0);
        expect(["settled", "finalized"].includes(status)).toBe(isKnown(HOME));
        for (const [vaultId, chainId] of [HOME, FAR].entries()) {
          const vault = await engine.vaults.get(fix.tenant.applicationId, BigInt(vaultId));
          expect(vault.withdrawnBalance).toBe(total(chainId));
          const pending = await all(engine.operator.pendingWithdrawals(chainId));
          expect(pending.length > 0).toBe(vault.availableBalance < 100n - vault.withdrawnBalance);
          for (const { header } of pending)
            expect(header !== null).toBe(isKnown(HOME) && isKnown(chainId));
          const observed = engine.operator.portal(chainId).observed;
          expect(observed ?? 0n).toBe(BigInt(blocksOf(chainId).length));
        }
        expect((await engine.operator.verify()).problems).toEqual([]);
        await engine.close();
      }),
      { numRuns: 60 },
    );
  });
});
