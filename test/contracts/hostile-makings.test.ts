import { type Address, type Hex, maxUint256, numberToHex, toHex, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import type { Standard } from "../../core/model.ts";
import { commitRollup, commitValidium, entry, proofOf, provenArgs } from "./fixture/batches.ts";
import { assetOf, MATURITY, SCHEME, STANDARD, type TestAsset } from "./fixture/deployment.ts";
import { madeId, madeIn } from "./fixture/makings.ts";
import { outcomeOf } from "./fixture/outcomes.ts";
import {
  commitTransfers,
  exitArgs,
  give,
  hopOf,
  openTransferChain,
  signedGroup,
  type TransferDeployment,
} from "./fixture/transfers.ts";
import { batchArgs, request, withdrawArgs } from "./fixture/withdrawals.ts";

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;
const MOST_UNITS = 2n ** 63n - 1n;

describe("a token that makes whatever vaults it is asked for", () => {
  let d: TransferDeployment;
  let ann: Address;
  beforeEach(async () => {
    d = await fresh();
    ann = d.keys[0]?.address as Address;
  });

  async function deploy(
    standard: Standard,
    scheme: keyof typeof SCHEME = "mintmark",
    only = 0n,
    quantum = 1n,
  ) {
    const args = [STANDARD[standard], SCHEME[scheme], only, d.state.address] as const;
    const token = await d.viem.deployContract("MakingToken", args);
    const asset = await d.register(standard, token.address, quantum);
    const make = (amount: bigint, mintingBlob: Hex, owner: Address = ann, of: TestAsset = asset) =>
      token.write.make([BigInt(of.assetType), owner, amount, mintingBlob]);
    return { token, asset, make };
  }
  const withdraw = (batch: Parameters<typeof request>[0], slot = 0) =>
    d.state.write.withdraw(withdrawArgs(request(batch, slot)), { account: ann });

  it("makes none that nobody could withdraw", async () => {
    const coin = await deploy("erc20", "mintmark", 0n, 1_000n);
    const unpayable = async (call: Promise<unknown>) => d.refuses(call, "VaultUnpayable");
    for (const amount of [0n, MOST_UNITS * 1_000n + 1_000n, 2n ** 64n * 1_000n + 1_000n])
      await unpayable(coin.make(amount, "0x"));
    await unpayable(coin.make(1_000n, "0x", zeroAddress));
    await d.refuses(coin.make(maxUint256, "0x"), "AmountIndivisible");
    await d.refuses(coin.make(1_000n, "0x31"), "MintingBlobLengthInvalid");
    await withdraw(await madeIn(d, coin.make(MOST_UNITS * 1_000n, "0x")));
    expect(await coin.token.read.held([ann])).toBe(MOST_UNITS * 1_000n);

    const card = await deploy("erc721");
    await d.refuses(card.make(1n, "0x"), "MintingBlobLengthInvalid");
    await d.refuses(card.make(2n, "0x31"), "AmountInvalid");
    await unpayable(card.make(1n, numberToHex(0, { size: 256 })));
    await withdraw(await madeIn(d, card.make(1n, numberToHex(1, { size: 255 }))));

    const spells = [
      ["imx", toHex("{7}:{}"), toHex("7")],
      ["raw32", numberToHex(7, { size: 32 }), toHex("7")],
    ] as const;
    for (const standard of ["erc721", "erc1155"] as const)
      for (const [scheme, good, bad] of spells) {
        const { make } = await deploy(standard, scheme);
        await d.refuses(make(1n, bad), "MintingBlobInvalid");
        await withdraw(await madeIn(d, make(1n, good)));
      }
    const item = await deploy("erc1155");
    await unpayable(item.make(0n, "0x31"));
    await unpayable(item.make(MOST_UNITS + 1n, "0x31"));
    await withdraw(await madeIn(d, item.make(MOST_UNITS, "0x31")));
  });

  it("makes none of another token's asset", async () => {
    const { make } = await deploy("erc20");
    await d.refuses(make(1n, "0x", ann, d.assets.coin), "NotToken");
    await d.refuses(make(1n, "0x", ann, assetOf("erc20", d.state.address)), "NotToken");
    // Its own asset, which somebody has registered as another chain's.
    const own = await d.viem.deployContract("MakingToken", [1, 1, 0n, d.state.address]);
    await d.state.write.registerAsset([STANDARD.erc20, 137n, own.address, 1n, SCHEME.imx]);
    const args = [BigInt(assetOf("erc20", own.address).assetType), ann, 1n, "0x"] as const;
    await d.refuses(own.write.make(args), "NotToken");
  });

  it("makes none while a withdrawal pays it, and the withdrawal fails alone", async () => {
    const { token, asset } = await deploy("erc1155");
    const other = await deploy("erc1155");
    const batch = await commitRollup(d, [
      entry(asset, ann, "5", 2n),
      entry(other.asset, ann, "5", 1n),
    ]);
    await token.write.arm([BigInt(asset.assetType)]);
    const alone = d.state.write.withdraw(withdrawArgs(request(batch, 0)), { account: ann });
    await d.refuses(alone, "TokenRefused");
    const args = batchArgs([request(batch, 0), request(batch, 1)]);
    const hash = await d.state.write.withdrawBatch(args, { account: ann });
    const { failed, withdrawn } = await outcomeOf(d, hash);
    expect(failed.map(({ error }) => error)).toEqual(["TokenRefused"]);
    expect(withdrawn).toEqual([2n ** 63n + 1n]);
    expect(await d.state.read.makings()).toBe(0n);
  });

  it("can say once that only such vaults count, and then no operator mints it", async () => {
    const { token, asset, make } = await deploy("erc20", "mintmark", 1n);
    const card = await deploy("erc721", "mintmark", 1n);
    const id = BigInt(asset.assetType);
    expect(await d.state.read.isMadeOnly([31_337n, id])).toBe(true);
    const [bob, key] = [d.keys[1]?.address as Address, d.keys[0] as never];
    const slots = [
      entry(asset, ann, "", 5n),
      entry(card.asset, ann, "7"),
      entry(asset, ann, "", 9n),
    ];
    for (const batch of [await commitRollup(d, slots), await commitValidium(d, slots)]) {
      const moved = await commitTransfers(d, [
        await signedGroup(d, key, [give(batch.vaults[2]?.vaultId as bigint, bob)]),
      ]);
      await time.increase(MATURITY);
      for (const slot of [0, 1]) {
        const { vaultId } = request(batch, slot).vault;
        await d.refuses(withdraw(batch, slot), "VaultNotMade", [vaultId]);
        const verified = d.state.read.verifyVault(provenArgs(proofOf(batch, slot)));
        await d.refuses(verified, "VaultNotMade");
      }
      // A tip of a transfer is a batch's vault too; what counts is where it comes from.
      const exit = exitArgs(batch, 2, { hops: [hopOf(moved, 0)], recipient: bob });
      await d.refuses(d.state.write.withdrawTransferred(exit, { account: bob }), "VaultNotMade");
      const items = batchArgs([request(batch, 0), request(batch, 1)]);
      const hash = await d.state.write.withdrawBatch(items, { account: ann });
      const { failed } = await outcomeOf(d, hash);
      expect(failed.map(({ error }) => error)).toEqual(["VaultNotMade", "VaultNotMade"]);
    }
    const made = await madeIn(d, make(5n, "0x"));
    const moved = await commitTransfers(d, [await signedGroup(d, key, [give(madeId(1), bob, 2n)])]);
    const exit = exitArgs(made, 0, { hops: [hopOf(moved, 0)], recipient: bob, quantity: 2n });
    await d.state.write.withdrawTransferred(exit, { account: bob });
    expect(await token.read.held([bob])).toBe(2n);
    await withdraw(await madeIn(d, card.make(1n, toHex("7"))));
  });

  it("that answers anything but yes is a token as all are", async () => {
    for (const only of [0n, 2n, maxUint256]) {
      const { asset } = await deploy("erc20", "mintmark", only);
      expect(await d.state.read.isMadeOnly([31_337n, BigInt(asset.assetType)])).toBe(false);
      const batch = await commitRollup(d, [entry(asset, ann, "", 5n)]);
      await withdraw(batch);
    }
  });

  it("tells of it at registration", async () => {
    const args = [STANDARD.erc20, SCHEME.mintmark, 1n, d.state.address] as const;
    const { address } = await d.viem.deployContract("MakingToken", args);
    const { assetType } = assetOf("erc20", address);
    await d.tells(
      d.state.write.registerAsset([STANDARD.erc20, 31_337n, address, 1n, SCHEME.mintmark]),
      "AssetMadeOnly",
      [BigInt(assetType), 31_337n],
    );
  });
});
