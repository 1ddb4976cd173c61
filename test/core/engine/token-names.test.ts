import { describe, expect } from "vitest";
import type { Engine, Uuid } from "../../../core/index.ts";
import {
  type Fixture,
  knownAsset,
  mintingBlobOf,
  mintOf,
  refusal,
  requestOf,
  type TestTenant,
} from "./fixture.ts";
import { it } from "./it.ts";

const MAX_ID = (1n << 256n) - 1n;

/** Mints one entry of these fields. */
function mintFields({ engine, tenant }: Fixture, fields: object, options = {}) {
  const entry = { amount: 1, dataAvailabilityMode: "validium", ...fields };
  return engine.mint(
    tenant.principal,
    { users: [{ userId: tenant.users[0]?.userId, mints: [entry] }] } as unknown,
    options,
  );
}

async function enabledAsset(
  engine: Engine,
  tenant: TestTenant,
  ...asset: Parameters<typeof knownAsset> extends [Engine, ...infer R] ? R : never
): Promise<Uuid> {
  const assetId = await knownAsset(engine, ...asset);
  await engine.assets.enable(tenant.applicationId, assetId);
  return assetId;
}

describe("a token named by its id", () => {
  it("equals the token whose minting blob spells the id, for ERC-721 and ERC-1155, in every scheme", async ({
    made,
  }) => {
    const { engine, tenant, assets } = made;
    const imx = await enabledAsset(engine, tenant, "erc1155", { mintingBlobScheme: "imx" });
    for (const [assetId, tokenId, text] of [
      [assets.erc721, "1001", "1001"],
      [assets.erc721, "0", "0"],
      [assets.erc721, 17, "17"],
      [assets.erc721, String(MAX_ID), String(MAX_ID)],
      [assets.erc1155, "1001", "1001"],
      [imx, "1001", "{1001}:{}"],
    ] as const) {
      const { vaults } = await mintFields(made, { assetId, tokenId });
      expect(vaults).toMatchObject([
        { tokenId: BigInt(tokenId), mintingBlob: mintingBlobOf(text) },
      ]);
    }
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("equals the token of that id's minting blob, and errors point at the field in use", async ({
    made,
  }) => {
    const { engine, tenant, assets } = made;
    const { erc721: assetId } = assets;
    const imx = await enabledAsset(engine, tenant, "erc1155", { mintingBlobScheme: "imx" });
    await mintFields(made, { assetId: imx, mintingBlob: mintingBlobOf("{5}:{red}") });
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assetId, "1001")));
    const named = (code: string, field = "tokenId") => ({
      code,
      issues: { [`/users/0/mints/0/${field}`]: code },
    });
    expect(await refusal(mintFields(made, { assetId, tokenId: "1001" }))).toEqual(
      named("token_already_minted"),
    );
    expect(await refusal(mintFields(made, { assetId: imx, tokenId: "5" }))).toEqual(
      named("token_id_conflict"),
    );
    const twice = { amount: 1, dataAvailabilityMode: "validium", assetId };
    const both = [
      { ...twice, mintingBlob: mintingBlobOf(7) },
      { ...twice, tokenId: "7" },
    ];
    const userId = tenant.users[0]?.userId;
    expect(
      await refusal(engine.mint(tenant.principal, { users: [{ userId, mints: both }] } as unknown)),
    ).toEqual({
      code: "duplicate_mint",
      issues: { "/users/0/mints/1/tokenId": "duplicate_mint" },
    });
  });

  it("repeats with its idempotency key, and is found by the slow check too", async ({
    assets,
    made,
  }) => {
    const fields = { assetId: assets.erc721.toUpperCase(), tokenId: "44" };
    const options = { idempotencyKey: "order" };
    const first = await mintFields(made, fields, options);
    const again = await mintFields(made, fields, options);
    expect(again).toMatchObject({ replayed: true, mintId: first.mintId });
    expect((await refusal(mintFields(made, { ...fields, tokenId: "45" }, options))).code).toBe(
      "idempotency_key_reused",
    );
  });

  it.for([
    ["1001a", "erc721", "validation_failed", "tokenId"],
    ["01", "erc721", "validation_failed", "tokenId"],
    ["-1", "erc721", "validation_failed", "tokenId"],
    ["", "erc721", "validation_failed", "tokenId"],
    [1.5, "erc721", "validation_failed", "tokenId"],
    [-1, "erc721", "validation_failed", "tokenId"],
    [2 ** 53, "erc721", "validation_failed", "tokenId"],
    [String(MAX_ID + 1n), "erc721", "validation_failed", "tokenId"],
    [null, "erc721", "validation_failed", "tokenId"],
    ["1", "erc20", "validation_failed", "tokenId"],
    [undefined, "erc721", "validation_failed", "tokenId"],
    [undefined, "erc1155", "validation_failed", "tokenId"],
  ] as const)("%s of %s is refused", async ([tokenId, standard, code, field], { made }) => {
    const fields = { assetId: made.assets[standard], ...(tokenId !== undefined && { tokenId }) };
    expect(await refusal(mintFields(made, fields))).toEqual({
      code,
      issues: { [`/users/0/mints/0/${field}`]: code },
    });
  });

  it("is refused together with a minting blob; ERC-20 needs neither", async ({ assets, made }) => {
    const both = { assetId: assets.erc721, tokenId: "1", mintingBlob: mintingBlobOf(1) };
    expect(await refusal(mintFields(made, both))).toEqual({
      code: "validation_failed",
      issues: { "/users/0/mints/0/tokenId": "validation_failed" },
    });
    const { vaults } = await mintFields(made, { assetId: assets.erc20, amount: "5" });
    expect(vaults).toMatchObject([{ mintingBlob: "0x", tokenId: null, amount: 5n }]);
  });
});

describe("a minting blob that is not text", () => {
  const notText = ["1001", "00", "7f", "c285", "ff", "c3", "31300a", "e2808e00"];

  it.for(notText)("is refused: %s", async (mintingBlob, { made, assets }) => {
    for (const assetId of [assets.erc721, assets.erc1155]) {
      expect(await refusal(mintFields(made, { assetId, mintingBlob }))).toEqual({
        code: "minting_blob_invalid",
        issues: { "/users/0/mints/0/mintingBlob": "minting_blob_invalid" },
      });
    }
    expect(made.engine.batches.getOpen("validium").vaultCount).toBe(0);
  });

  it("is refused with the entry that was probably intended", async ({ made }) => {
    await expect(
      mintFields(made, { assetId: made.assets.erc721, mintingBlob: "1001" }),
    ).rejects.toThrow('"tokenId": "1001"');
  });

  it("is accepted for an asset with rawMintingBlobs, even after a restart", async ({
    engine,
    tenant,
    made,
  }) => {
    const raw = await enabledAsset(engine, tenant, "erc721", { rawMintingBlobs: true });
    for (const mintingBlob of notText)
      expect((await mintFields(made, { assetId: raw, mintingBlob })).vaults).toHaveLength(1);
    expect((await engine.assets.get(tenant.applicationId, raw)).rawMintingBlobs).toBe(true);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("is distinguished from text of any script", async ({ made }) => {
    for (const text of ["sword of dawn", "Schwert Ä", "剣", "🗡", "{1}:{a, b}", "007"]) {
      const fields = { assetId: made.assets.erc721, mintingBlob: mintingBlobOf(text) };
      expect((await mintFields(made, fields)).vaults).toHaveLength(1);
    }
  });
});
