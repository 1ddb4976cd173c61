import { describe, expect } from "vitest";
import type { Fixture } from "./fixture.ts";
import {
  all,
  fixture,
  knownAsset,
  memory,
  mintOf,
  newTenant,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import { it } from "./it.ts";

const CONTRACT = `0x${"ca".repeat(20)}` as const;

/**
 * An asset that somebody added wrongly: whitelisted, registered and enabled, but nothing minted of
 * it.
 */
async function wrong(made: Fixture) {
  const assetId = await knownAsset(made.engine, "erc1155", { mintingBlobScheme: "imx" });
  await made.engine.assets.enable(made.tenant.applicationId, assetId);
  return assetId;
}

const mint = ({ engine, tenant }: Fixture, ...mints: Parameters<typeof requestOf>[1][]) =>
  engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));

describe("an asset without mints", () => {
  it("changes under its id, and mints use the change, even after a restart", async () => {
    const store = memory();
    const made = await fixture({ store });
    const { engine, tenant } = made;
    const assetId = await wrong(made);
    const { contractAddress } = await engine.assets.get(tenant.applicationId, assetId);
    await engine.assets.change(assetId, { mintingBlobScheme: "mintmark" });
    expect(await engine.assets.get(tenant.applicationId, assetId)).toMatchObject({
      standard: "erc1155",
      mintingBlobScheme: "mintmark",
      contractAddress,
      whitelisted: true,
      registered: true,
      minterLocked: true,
      enabled: true,
      mintingAvailable: true,
    });
    const changed = await engine.assets.change(assetId, {
      standard: "erc721",
      contractAddress: CONTRACT,
      name: "Mended",
    });
    expect(changed).toMatchObject({
      assetId,
      standard: "erc721",
      contractAddress: CONTRACT,
      name: "Mended",
    });
    // Another token on L1, so it is registered there anew.
    expect(await engine.assets.get(tenant.applicationId, assetId)).toMatchObject({
      enabled: true,
      registered: false,
      unavailableReason: "the asset is not registered on L1",
    });
    await engine.operator.recordRegistered(assetId);
    const { vaults } = await mint(made, mintOf(assetId, "17"));
    expect(vaults).toMatchObject([{ assetId, tokenId: 17n }]);
    const types = (await all(engine.events.stream(tenant.applicationId))).map(({ type }) => type);
    const [disabled, enabled] = ["asset.disabled", "asset.enabled"] as const;
    expect(types.slice(-5)).toEqual([disabled, enabled, disabled, enabled, "mint.accepted"]);
    expect((await engine.operator.verify()).problems).toEqual([]);
    await engine.close();
    await using again = await openTest(store);
    expect(await again.assets.get(tenant.applicationId, assetId)).toMatchObject({
      standard: "erc721",
      minted: 1n,
    });
    expect(
      (await all(again.operator.assets())).filter((asset) => asset.assetId === assetId),
    ).toHaveLength(1);
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("is removed, and its contract and its id can be added again", async () => {
    const store = memory();
    const made = await fixture({ store });
    const { engine, tenant } = made;
    const assetId = await wrong(made);
    const { contractAddress } = await engine.assets.get(tenant.applicationId, assetId);
    await engine.assets.remove(assetId);
    const gone = { code: "asset_not_found", issues: {} };
    expect(await refusal(engine.assets.get(tenant.applicationId, assetId))).toEqual(gone);
    expect(await refusal(engine.assets.remove(assetId))).toEqual(gone);
    expect(await refusal(engine.assets.enable(tenant.applicationId, assetId))).toEqual(gone);
    expect((await refusal(mint(made, mintOf(assetId, "{1}:{}")))).code).toBe("asset_not_found");
    for (const list of [engine.assets.list(tenant.applicationId), engine.operator.assets()]) {
      expect((await all(list)).map((asset) => asset.assetId)).not.toContain(assetId);
    }
    await engine.close();
    await using again = await openTest(store);
    expect(await refusal(again.assets.get(tenant.applicationId, assetId))).toEqual(gone);
    const names = { name: "Again", symbol: "AGN", applicationId: tenant.applicationId };
    await again.assets.add({ assetId, standard: "erc721", contractAddress, ...names });
    await again.operator.recordRegistered(assetId);
    expect(
      (await again.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assetId, "1")))).vaults,
    ).toHaveLength(1);
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("keeps its application, and is numbered or not", async ({ engine, tenant }) => {
    const other = await newTenant(engine, []);
    const names = { name: "Own", symbol: "OWN", applicationId: tenant.applicationId };
    const { assetId } = await engine.assets.add({
      standard: "erc721",
      contractAddress: CONTRACT,
      ...names,
    });
    await engine.operator.recordRegistered(assetId);
    expect((await engine.assets.change(assetId, { firstTokenId: 10n })).nextTokenId).toBe(10n);
    expect((await refusal(engine.assets.get(other.applicationId, assetId))).code).toBe(
      "asset_not_found",
    );
    const users = [
      {
        userId: tenant.users[0]?.userId,
        mints: [{ assetId, quantity: 2, dataAvailabilityMode: "validium" }],
      },
    ];
    expect(
      (await engine.mint(tenant.principal, { users } as unknown)).vaults.map(
        ({ tokenId }) => tokenId,
      ),
    ).toEqual([10n, 11n]);
  });

  it("refuses an invalid change, and another asset's contract", async ({
    engine,
    assets,
    made,
  }) => {
    const assetId = await wrong(made);
    const [first] = await all(engine.operator.assets());
    const taken = { contractAddress: first?.contractAddress ?? "0x" } as const;
    expect((await refusal(engine.assets.change(assetId, taken))).code).toBe("asset_exists");
    expect((await refusal(engine.assets.change(assetId, { quantum: 7n }))).code).toBe(
      "validation_failed",
    );
    expect((await refusal(engine.assets.change(assetId, { decimals: -1 }))).code).toBe(
      "validation_failed",
    );
    expect(
      (await refusal(engine.assets.change("00000000-0000-4000-8000-000000000000", {}))).code,
    ).toBe("asset_not_found");
    expect((await engine.assets.change(assets.erc20, {})).assetId).toBe(assets.erc20);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

describe("an asset with mints", () => {
  it("can change only its default mode and rawMintingBlobs", async ({ engine, assets, made }) => {
    await mint(made, mintOf(assets.erc721, "1"));
    for (const changes of [
      { standard: "erc1155" },
      { mintingBlobScheme: "imx" },
      { name: "Other" },
      { supplyCap: 5n },
    ] as const) {
      expect((await refusal(engine.assets.change(assets.erc721, changes))).code).toBe(
        "asset_minted",
      );
    }
    expect((await refusal(engine.assets.remove(assets.erc721))).code).toBe("asset_minted");
    const changes = { rawMintingBlobs: true, dataAvailabilityMode: "validium" } as const;
    expect(await engine.assets.change(assets.erc721, changes)).toMatchObject({
      ...changes,
      minted: 1n,
    });
  });

  it("is unchanged for a mint that began before the change", async ({ engine, tenant, made }) => {
    for (let round = 0; round < 10; round++) {
      const assetId = await wrong(made);
      const outcomes = await Promise.allSettled([
        mint(made, mintOf(assetId, `{${round}}:{}`)),
        engine.assets.change(assetId, { standard: "erc721" }),
        mint(made, mintOf(assetId, `{1${round}}:{}`)),
      ]);
      const asset = await engine.assets.get(tenant.applicationId, assetId);
      const [first, changed, second] = outcomes.map(({ status }) => status);
      expect([changed, asset.standard]).toEqual(
        first === "fulfilled" ? ["rejected", "erc1155"] : ["fulfilled", "erc721"],
      );
      expect(second).toBe(first);
    }
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
