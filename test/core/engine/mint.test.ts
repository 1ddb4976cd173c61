import { describe, expect } from "vitest";
import { assetType } from "../../../core/protocol/asset.ts";
import {
  all,
  knownAsset,
  mintingBlobOf,
  mintOf,
  newTenant,
  refusal,
  requestOf,
} from "./fixture.ts";
import { it } from "./it.ts";

const MAX = (1n << 63n) - 1n;

describe("a mint", () => {
  it("has 1 to 2^63 - 1 units, as an exact number or in decimal digits", async ({
    engine,
    tenant,
    assets,
  }) => {
    const mint = (amount: number | string) =>
      engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], mintOf(assets.erc1155, `${amount}`, amount)),
      );
    for (const amount of [1, Number.MAX_SAFE_INTEGER, "1", "9007199254740993", MAX.toString()]) {
      expect((await mint(amount)).vaults[0]?.amount).toBeGreaterThanOrEqual(BigInt(amount));
    }
    for (const amount of [0, "0", (MAX + 1n).toString(), (1n << 64n).toString()]) {
      expect((await refusal(mint(amount))).code).toBe("amount_out_of_range");
    }
    for (const amount of [1.5, Number.MAX_SAFE_INTEGER + 1, "1e3", "0x10", " 1", "01", "+1", ""]) {
      expect((await refusal(mint(amount))).code, `${amount}`).toBe("validation_failed");
    }
  });

  it("of a quantized ERC-20 counts units: its quantum is part of the asset's type, and its cap counts units", async ({
    engine,
    tenant,
  }) => {
    const token = {
      standard: "erc20",
      contractAddress: `0x${"e2".repeat(20)}`,
      name: "q",
      symbol: "Q",
    } as const;
    const quantum = 1_000_000n;
    for (const wrong of [0n, -1n, 1n << 128n]) {
      expect((await refusal(engine.assets.add({ ...token, quantum: wrong }))).code).toBe(
        "validation_failed",
      );
    }
    const card = { ...token, standard: "erc1155", quantum } as const;
    expect((await refusal(engine.assets.add(card))).code).toBe("validation_failed");
    const asset = await engine.assets.add({ ...token, quantum, supplyCap: 5n });
    expect(asset.assetType).toBe(assetType("erc20", token.contractAddress, quantum));
    await engine.assets.whitelist(asset.assetId);
    await engine.operator.recordRegistered(asset.assetId);
    await engine.assets.enable(tenant.applicationId, asset.assetId);
    const mint = (amount: number) =>
      engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(asset.assetId, "", amount)));
    expect((await mint(5)).vaults[0]).toMatchObject({ assetType: asset.assetType, amount: 5n });
    expect((await refusal(mint(1))).code).toBe("supply_cap_exceeded");
  });

  it("keeps a full batch within its bytes when its amounts grow", async ({ make }) => {
    const { engine, tenant, assets } = await make({
      limits: { rollupBytes: 2_000, validiumBytes: 2_000 },
    });
    const { applicationId } = tenant.principal;
    const users = await Promise.all(
      Array.from({ length: 64 }, (_, i) => {
        const ownerAddress = `0x${i.toString(16).padStart(40, "f")}` as const;
        return engine.users.create(applicationId, { ownerAddress });
      }),
    );
    for (const mode of ["validium", "zk-rollup"] as const) {
      // Owners and assets that take turns leave nothing to be written once for many.
      const mintAll = async (amount: string) => {
        for (const [i, user] of users.entries()) {
          const one =
            i % 2 === 0
              ? mintOf(assets.erc1155, "1", amount, mode)
              : mintOf(assets.erc20, "", amount, mode);
          await engine.mint(tenant.principal, requestOf(user, one));
        }
      };
      await mintAll("1");
      await mintAll(`${2n ** 60n}`);
      await engine.operator.seal(mode);
      const { data: batches } = await engine.batches.list({ mode });
      for (const { batchNumber, status } of batches) {
        if (status !== "open") {
          expect(
            (await engine.batches.getSealed(mode, batchNumber)).data.length,
          ).toBeLessThanOrEqual(2_000);
        }
      }
    }
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("keeps a validium batch within a committee member's limit, however long its identifiers are", async ({
    make,
  }) => {
    const { engine, tenant, assets } = await make({ limits: { validiumBytes: 4_000 } });
    const ids = Array.from({ length: 60 }, (_, i) =>
      mintOf(assets.erc721, `${"x".repeat(200)}${i}`),
    );
    await engine.mint(tenant.principal, requestOf(tenant.users[0], ...ids));
    const { data: batches } = await engine.batches.list({ mode: "validium" });
    expect(batches.length).toBeGreaterThan(3);
    for (const { batchNumber, status } of batches) {
      if (status === "open") continue;
      const { length } = (await engine.batches.getSealed("validium", batchNumber)).data;
      expect(length).toBeLessThanOrEqual(4_000);
      expect(length).toBeGreaterThan(2_000);
    }
  });
});

describe("uniqueness", () => {
  it("holds across applications, modes, open and sealed batches, and spellings", async ({
    engine,
    tenant,
    assets,
  }) => {
    const other = await newTenant(engine, [assets.erc721]);
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 17)));
    const taken = {
      code: "token_already_minted",
      issues: { "/users/0/mints/0/mintingBlob": "token_already_minted" },
    };
    const elsewhere = requestOf(other.users[1], mintOf(assets.erc721, 17, 1, "zk-rollup"));
    expect(await refusal(engine.mint(other.principal, elsewhere))).toEqual(taken);
    await engine.operator.seal("validium");
    expect(await refusal(engine.mint(other.principal, elsewhere))).toEqual(taken);
    const shouted = {
      ...mintOf(assets.erc721, 17),
      mintingBlob: mintingBlobOf(17).slice(2).toUpperCase(),
    };
    expect(
      await refusal(engine.mint(tenant.principal, requestOf(tenant.users[0], shouted))),
    ).toEqual(taken);
  });

  it("holds between concurrent requests, and refuses only the later ones", async ({
    engine,
    tenant,
    assets,
  }) => {
    const request = requestOf(tenant.users[0], mintOf(assets.erc721, 5));
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, () => engine.mint(tenant.principal, request)),
    );
    expect(outcomes.map(({ status }) => status)).toEqual([
      "fulfilled",
      ...Array(19).fill("rejected"),
    ]);
  });

  it("binds an ERC-1155 id to its first minting blob", async ({ engine, tenant }) => {
    const imx = await knownAsset(engine, "erc1155", { mintingBlobScheme: "imx" });
    await engine.assets.enable(tenant.applicationId, imx);
    const mint = (text: string) =>
      engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(imx, text, 2)));
    await mint("{1}:{red}");
    await mint("{1}:{red}");
    expect((await refusal(mint("{1}:{blue}"))).code).toBe("token_id_conflict");
    const both = requestOf(tenant.users[0], mintOf(imx, "{2}:{red}"), mintOf(imx, "{2}:{blue}"));
    expect(await refusal(engine.mint(tenant.principal, both))).toEqual({
      code: "token_id_conflict",
      issues: { "/users/0/mints/1/mintingBlob": "token_id_conflict" },
    });
  });
});

describe("an impossible mint", () => {
  it("exceeds a supply cap, counting the request itself", async ({ engine, tenant }) => {
    const capped = await knownAsset(engine, "erc20", { supplyCap: 10n });
    await engine.assets.enable(tenant.applicationId, capped);
    const mint = (...amounts: number[]) =>
      engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], ...amounts.map((amount) => mintOf(capped, "", amount))),
      );
    await mint(4);
    expect(await refusal(mint(3, 3, 1))).toEqual({
      code: "supply_cap_exceeded",
      issues: { "/users/0/mints/2/amount": "supply_cap_exceeded" },
    });
    await mint(3, 3);
    expect(await engine.assets.get(tenant.applicationId, capped)).toMatchObject({
      minted: 10n,
      mintingAvailable: false,
    });
    expect((await refusal(mint(1))).code).toBe("supply_cap_exceeded");
  });

  it("is what exceeds the key's quota", async ({ engine, assets }) => {
    const { principal, users } = await newTenant(engine, [assets.erc20], { mintQuota: 3n });
    const mint = (count: number) =>
      engine.mint(
        principal,
        requestOf(users[0], ...Array.from({ length: count }, () => mintOf(assets.erc20, "", 1))),
      );
    await mint(2);
    expect(await refusal(mint(2))).toEqual({
      code: "quota_exceeded",
      issues: { "": "quota_exceeded" },
    });
    await mint(1);
    expect((await all(engine.keys.list(principal.applicationId)))[0]).toMatchObject({
      mintsUsed: 3n,
      mintQuota: 3n,
    });
  });
});

describe("an idempotency key", () => {
  const fixed = { idempotencyKey: "order-1" };

  it("refuses another request, and belongs to one application", async ({
    engine,
    tenant,
    assets,
  }) => {
    const other = await newTenant(engine, [assets.erc20]);
    const request = (amount: number, user = tenant.users[0]) =>
      requestOf(user, mintOf(assets.erc20, "", amount));
    await engine.mint(tenant.principal, request(5), fixed);
    expect((await refusal(engine.mint(tenant.principal, request(6), fixed))).code).toBe(
      "idempotency_key_reused",
    );
    expect((await engine.mint(other.principal, request(6, other.users[0]), fixed)).replayed).toBe(
      false,
    );
  });

  it("is not spent by a refused request, and reports one in progress", async ({
    engine,
    tenant,
    assets,
  }) => {
    const wrong = requestOf(tenant.users[0], mintOf(assets.erc20, "", 0));
    expect((await refusal(engine.mint(tenant.principal, wrong, fixed))).code).toBe(
      "amount_out_of_range",
    );
    const right = requestOf(tenant.users[0], mintOf(assets.erc20, "", 1));
    const first = engine.mint(tenant.principal, right, fixed);
    expect((await refusal(engine.mint(tenant.principal, right, fixed))).code).toBe(
      "idempotency_in_progress",
    );
    expect((await first).replayed).toBe(false);
  });
});
