import { type Hex, toHex } from "viem";
import { beforeEach, describe, it } from "vitest";
import { MAX_AMOUNT } from "../../core/model.ts";
import type { AssetId } from "../../core/ports.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { commitValidium, entry } from "./fixture/batches.ts";
import { assetOf, type Deployment, openChain } from "./fixture/deployment.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();

/** A hostile operator and committee can sign such a leaf. L1 first sees it at a withdrawal. */
describe("a validium leaf that breaks the rules", () => {
  let d: Deployment;
  beforeEach(async () => {
    d = await fresh();
  });

  const owner = () => d.actors.owner.account.address;
  const refuses = async (
    slot: VaultEntry,
    error: Parameters<Deployment["viem"]["assertions"]["revertWithCustomErrorWithArgs"]>[2],
    args: (vaultId: bigint) => unknown[],
    assets?: readonly AssetId[],
  ) => {
    const batch = await commitValidium(d, [slot], assets);
    await d.mature();
    const quantity = slot.amount === 0n ? 1n : slot.amount;
    await d.refuses(
      d.state.write.withdraw(withdrawArgs(request(batch, 0, { quantity })), d.by("owner")),
      error as never,
      args(request(batch, 0).vault.vaultId) as never,
    );
  };

  it("of no amount, or of too large a one", async () => {
    for (const asset of [d.assets.coin, d.assets.item]) {
      const mintingBlob = asset === d.assets.coin ? "" : "1";
      for (const amount of [0n, MAX_AMOUNT + 1n, 2n ** 64n - 1n]) {
        await refuses(entry(asset, owner(), mintingBlob, amount), "ProofInvalid", (id) => [id]);
      }
    }
  });

  it("of an ERC-721 more than once", async () => {
    const batch = await commitValidium(d, [entry(d.assets.card, owner(), "1", 2n)]);
    await d.mature();
    await d.refuses(
      d.state.write.withdraw(withdrawArgs(request(batch, 0, { quantity: 1n })), d.by("owner")),
      "AmountInvalid",
      [request(batch, 0).vault.vaultId, 2n],
    );
  });

  it("of an ERC-20 with a minting blob, or of another token without or with too long a one", async () => {
    const long = "x".repeat(256);
    await refuses(entry(d.assets.coin, owner(), "1"), "MintingBlobLengthInvalid", (id) => [id, 1n]);
    for (const asset of [d.assets.card, d.assets.item]) {
      await refuses(entry(asset, owner(), ""), "MintingBlobLengthInvalid", (id) => [id, 0n]);
      await refuses(entry(asset, owner(), long), "ProofInvalid", (id) => [id]);
    }
  });

  it("of an asset that nobody has registered", async () => {
    const { assetType, ...asset } = assetOf("erc20", d.assets.coin.token, 7n);
    const slot = entry({ ...asset, assetType }, owner(), "", 5n);
    await refuses(slot, "AssetNotRegistered", () => [31_337n, BigInt(assetType)], []);
  });

  it("of an asset that was registered after the batch", async () => {
    for (const standard of ["erc20", "erc721", "erc1155"] as const) {
      const { address } = await d.viem.deployContract("ImxToken", [d.state.address]);
      const asset = assetOf(standard, address);
      const planted = entry(asset, owner(), standard === "erc20" ? "" : "{7}:{}", 1n);
      const batch = await commitValidium(d, [planted], []);
      const since = batch.header.sequence + 1n;
      await d.register(standard, address);
      await d.mature();
      await d.refuses(
        d.state.write.withdraw(withdrawArgs(request(batch, 0)), d.by("owner")),
        "BatchBeforeRegistration",
        [request(batch, 0).vault.vaultId, since],
      );
      // The first batch from the registration on counts.
      if (standard !== "erc721") continue;
      const honest = await commitValidium(d, [planted]);
      await d.mature();
      await d.state.write.withdraw(withdrawArgs(request(honest, 0)), d.by("owner"));
    }
  });

  it("of a foreign token in a spelling that its scheme does not have, though the token itself would read it", async () => {
    const spellings = [
      "{007}:{}",
      "{ 7}:{}",
      "7:{}",
      "{7}:",
      "{7}:{",
      "{7a}:{}",
      "[7]:{}",
      "{}:{}",
      "{7};{}",
      "{",
    ];
    for (const spelling of spellings) {
      const mintingBlob: Hex = toHex(spelling);
      await refuses(entry(d.assets.imxCard, owner(), spelling), "MintingBlobInvalid", () => [
        mintingBlob,
      ]);
    }
  });
});
