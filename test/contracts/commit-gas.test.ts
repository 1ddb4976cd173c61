import fc from "fast-check";
import { type Address, bytesToHex, pad, toHex, zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, it } from "vitest";
import { MAX_AMOUNT } from "../../core/model.ts";
import { readColumns } from "../../core/protocol/batch-columns.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { encodeBatchData } from "../../core/protocol/batch-encoder.ts";
import { contentGas, contentOf } from "../../core/protocol/commit-gas.ts";
import { allOf, commitRollup, consentOf, entry } from "./fixture/batches.ts";
import type { Deployment, Member, TestAsset } from "./fixture/deployment.ts";
import { assetOf, openChain, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { registeredAssets } from "./fixture/differential.ts";
import { batches } from "./fixture/random-batches.ts";

type Slots = readonly (VaultEntry | null)[];

const { fresh } = await openChain();
const owner = (i: number): Address => toHex(BigInt(i + 1) ** 11n % 2n ** 160n, { size: 20 });
const many = (count: number, slot: (i: number) => VaultEntry | null): Slots =>
  Array.from({ length: count }, (_, i) => slot(i));
const decimals = (first: bigint, digits: number) => String(first).padStart(digits, "1");

describe("the gas bound of a rollup batch", () => {
  let d: Deployment;
  let assets: readonly TestAsset[];
  beforeAll(async () => {
    d = await fresh();
    assets = await registeredAssets(d);
  });

  /**
   * What the commit takes, and what the batch was counted as when it was open: with the vaults that
   * have become void since.
   */
  async function measured(
    slots: Slots,
    asMinted: Slots = slots,
  ): Promise<{ gas: number; bound: number }> {
    const [, count] = await d.state.read.batchCounts();
    const hash = await d.state.write.commitRollupBatch(
      [await d.state.read.history(), "0x", count, bytesToHex(encodeBatchData(slots, "gas"))],
      d.by("operator"),
    );
    const { gasUsed, status } = await d.publicClient.getTransactionReceipt({ hash });
    expect(status).toBe("success");
    return { gas: Number(gasUsed), bound: contentGas(contentOf(readColumns(asMinted))) };
  }

  const at = (i: number): TestAsset => {
    const asset = assets[i % assets.length];
    if (asset === undefined) throw new Error("there are no assets");
    return asset;
  };
  const alternating = (i: number) => {
    const asset = at(i);
    const blob = asset.standard === "erc20" ? "" : decimals(BigInt(i), 6);
    return entry(asset, owner(i), blob, asset.standard === "erc721" ? 1n : MAX_AMOUNT);
  };
  const pairs = (digits: number) => (i: number) =>
    entry(
      d.assets.card,
      owner(i >> 1),
      decimals(10n ** BigInt(digits - 1) + BigInt((i >> 1) * 7 + (i & 1)), digits),
    );
  const lengths = (i: number) =>
    entry(d.assets.card, owner(i), decimals(BigInt(i), i % 2 === 0 ? 31 : 32));
  const longest = (i: number) => entry(d.assets.card, owner(i), `${i}`.padStart(255, "x"));
  const widths = (i: number) =>
    entry(d.assets.coin, owner(i), "", i % 4 < 2 ? 1n : MAX_AMOUNT - BigInt(i));
  const everySecond = (slot: (i: number) => VaultEntry) => (i: number) =>
    i % 2 === 0 ? slot(i) : null;

  it.each([
    ["alternating assets, another owner each", 600, alternating],
    ["pairs of consecutive ids of 32 digits", 600, pairs(32)],
    ["pairs of consecutive ids of 8 digits", 600, pairs(8)],
    ["ids whose length alternates", 600, lengths],
    ["the longest blobs", 400, longest],
    ["amounts whose width alternates", 600, widths],
    ["coins of one owner each", 600, (i: number) => entry(d.assets.coin, owner(i), "", 5n)],
    ["one vault", 1, alternating],
  ])("holds for %s, and with every second slot void", async (_name, count, slot) => {
    const whole = await measured(many(count, slot));
    expect(whole.gas).toBeLessThanOrEqual(whole.bound);
    if (count === 1) return;
    const holed = await measured(many(count, everySecond(slot)), many(count, slot));
    expect(holed.gas).toBeLessThanOrEqual(holed.bound);
  });

  it("holds for a batch of many assets", async () => {
    const tokens: TestAsset[] = [];
    for (let i = 0; i < 60; i++) {
      const far = assetOf("erc20", owner(10_000 + i), 1n, 7n);
      await d.state.write.registerAsset([STANDARD.erc20, far.chainId, far.token, 1n, SCHEME.imx]);
      tokens.push(far);
    }
    const { gas, bound } = await measured(
      many(240, (i) => entry(tokens[i % tokens.length] as TestAsset, owner(i), "", 7n)),
    );
    expect(gas).toBeLessThanOrEqual(bound);
  });

  it("holds for assets whose issuers each consent", async () => {
    const issued: { asset: TestAsset; issuer: Member }[] = [];
    for (let i = 0; i < 12; i++) {
      const issuer = privateKeyToAccount(generatePrivateKey());
      const token = await d.viem.deployContract("IssuedToken", [pad(issuer.address), zeroAddress]);
      // The token's first asset holds the issuer, so that the second one takes more reads.
      await d.register("erc20", token.address, 1n);
      issued.push({ issuer, asset: await d.register("erc20", token.address, 2n) });
    }
    const { takeSnapshot } = d.connection.networkHelpers;
    const gasOf = async (some: typeof issued) => {
      const slots = some.map(({ asset }, i) => entry(asset, owner(i), "", 7n));
      const snapshot = await takeSnapshot();
      const consents = allOf(...some.map(({ issuer, asset }) => consentOf(d, issuer, [asset])));
      const { txHash, leftOut } = await commitRollup(d, slots, consents);
      expect(leftOut).toEqual([]);
      const { gasUsed } = await d.publicClient.getTransactionReceipt({ hash: txHash });
      await snapshot.restore();
      return { gas: Number(gasUsed), bound: contentGas(contentOf(readColumns(slots))) };
    };
    const [few, all] = [await gasOf(issued.slice(0, 1)), await gasOf(issued)];
    expect(all.gas).toBeLessThanOrEqual(all.bound);
    // Each further asset stays within its own share, so that as many as a batch can hold do.
    expect(all.gas - few.gas).toBeLessThanOrEqual(all.bound - few.bound);
  });

  it("holds for whatever is minted and becomes void", async () => {
    const property = fc.asyncProperty(
      batches(assets, { segments: 8, length: 40 }),
      fc.infiniteStream(fc.boolean()),
      async (slots, voids) => {
        const minted = slots.filter((slot) => slot !== null);
        if (minted.length < 2) return;
        const left = minted.map((slot) => (voids.next().value ? null : slot));
        for (const some of [minted, left]) {
          if (some.every((slot) => slot === null)) continue;
          const { gas, bound } = await measured(some, minted);
          expect(gas, JSON.stringify({ gas, bound })).toBeLessThanOrEqual(bound);
        }
      },
    );
    await fc.assert(property, { numRuns: 150 });
  });

  it("leaves ordinary batches their size: a thousand ids of as many owners count as less than two thousand gas each", () => {
    const ids = many(1_024, (i) => entry(d.assets.card, owner(i), decimals(BigInt(i * 7_919), 6)));
    const gasOf = (slots: Slots) => contentGas(contentOf(readColumns(slots)));
    expect((gasOf(ids) - gasOf(ids.slice(0, 1))) / (ids.length - 1)).toBeLessThan(2_000);
  });
});
