import { type Address, encodeFunctionData, type Hex, toFunctionSelector } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import {
  type CommittedBatch,
  commitRollup,
  entry,
  proofOf,
  provenArgs,
} from "./fixture/batches.ts";
import {
  COIN_QUANTUM,
  type Deployment,
  openChain,
  STANDARD,
  type TestAsset,
} from "./fixture/deployment.ts";
import {
  batchArgs,
  type Request,
  request,
  SOME_TERMS,
  signed,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const REENTRANT = toFunctionSelector("ReentrancyGuardReentrantCall()");

describe("a token that calls back while it mints", () => {
  let d: Deployment;
  let owner: Address;
  let asset: TestAsset;
  let token: Awaited<ReturnType<typeof deployToken>>;
  const deployToken = () => d.viem.deployContract("ReentrantToken");
  beforeEach(async () => {
    d = await fresh();
    owner = d.actors.owner.account.address;
    token = await deployToken();
    asset = await d.register("erc1155", token.address);
  });

  const withdraw = (asked: Request) => d.state.write.withdraw(withdrawArgs(asked), d.by("owner"));
  const arm = (payload: Hex) => token.write.arm([d.state.address, payload]);

  it("cannot withdraw, singly or in a batch, the same vault or another", async () => {
    const batch = await commitRollup(d, [
      entry(asset, owner, "1", 10n),
      entry(d.assets.coin, owner, "", 10n),
    ]);
    const again = await signed(d, d.actors.owner, request(batch, 0, { quantity: 1n }), {
      withdrawnBefore: 1n,
    });
    const other = await signed(d, d.actors.owner, request(batch, 1));
    const { abi } = d.state;
    const payloads = [
      ...[again, other].map((asked) =>
        encodeFunctionData({ abi, functionName: "withdraw", args: withdrawArgs(asked) }),
      ),
      encodeFunctionData({ abi, functionName: "withdrawBatch", args: batchArgs([again, other]) }),
    ];
    for (const [turn, payload] of payloads.entries()) {
      await arm(payload);
      await withdraw(request(batch, 0, { quantity: 1n }));
      expect(await token.read.callSucceeded()).toBe(false);
      expect(await token.read.callAnswer()).toBe(REENTRANT);
      expect(await token.read.minted()).toBe(BigInt(turn + 1));
    }
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(0n);
    expect(await d.state.read.withdrawn([proofOf(batch, 0).vault.vaultId, STANDARD.erc1155])).toBe(
      3n,
    );
  });

  it("cannot withdraw from within a batch, and its neighbours are paid", async () => {
    const batch = await commitRollup(d, [
      entry(asset, owner, "1", 10n),
      entry(d.assets.coin, owner, "", 10n),
    ]);
    const inner = await signed(d, d.actors.owner, request(batch, 1));
    await arm(
      encodeFunctionData({ abi: d.state.abi, functionName: "withdraw", args: withdrawArgs(inner) }),
    );
    await d.state.write.withdrawBatch(
      batchArgs([request(batch, 0), request(batch, 1)]),
      d.by("owner"),
    );
    expect(await token.read.callAnswer()).toBe(REENTRANT);
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(10n * COIN_QUANTUM);
  });

  it("cannot pass itself off as the contract's own item", async () => {
    const batch = await commitRollup(d, [entry(asset, owner, "1", 10n)]);
    const functionName = "withdrawItem";
    const { vault } = request(batch, 0);
    const args = [SOME_TERMS, vault.vaultId, vault.assetType, BigInt(owner)] as const;
    await arm(encodeFunctionData({ abi: d.state.abi, functionName, args }));
    await withdraw(request(batch, 0, { quantity: 1n }));
    expect(await token.read.callAnswer()).toBe(toFunctionSelector("NotSelf()"));
  });

  /**
   * Vaults 0 and 1 share a storage word with those that are voided; the token mints 0 while it
   * voids the others.
   */
  it("can void duplicates, which share a word with the vault it mints, and loses no bit of it", async () => {
    const cards = await d.register(
      "erc721",
      (await d.viem.deployContract("ReentrantToken")).address,
    );
    const hostile = await d.viem.getContractAt("ReentrantToken", cards.token);
    // This scheme is imx, as for every token that does not say.
    const slots = ["{1}:{}", "{2}:{}", "{2}:{x}"].map((mintingBlob) =>
      entry(cards, owner, mintingBlob),
    );
    const batch = await commitRollup(d, slots);
    await d.mature();
    await hostile.write.arm([d.state.address, voiding(batch, 1, 2)]);
    await withdraw(request(batch, 0));
    expect(await hostile.read.callSucceeded()).toBe(true);
    const taken = await Promise.all(
      [0, 1, 2].map((slot) =>
        d.state.read.withdrawn([proofOf(batch, slot).vault.vaultId, STANDARD.erc721]),
      ),
    );
    expect(taken).toEqual([1n, 0n, 1n]);
  });

  it("finds its own vault exhausted already", async () => {
    const cards = await d.register(
      "erc721",
      (await d.viem.deployContract("ReentrantToken")).address,
    );
    const hostile = await d.viem.getContractAt("ReentrantToken", cards.token);
    const batch = await commitRollup(d, [
      entry(cards, owner, "{1}:{}"),
      entry(cards, owner, "{1}:{x}"),
    ]);
    await d.mature();
    await hostile.write.arm([d.state.address, voiding(batch, 0, 1)]);
    await withdraw(request(batch, 1));
    expect(await hostile.read.callSucceeded()).toBe(false);
    expect((await hostile.read.callAnswer()).slice(0, 10)).toBe(
      toFunctionSelector("VaultExhausted(uint64)"),
    );
  });

  it("finds, in the hands of an ERC-1155 recipient, the withdrawal already counted", async () => {
    const recipient = await d.viem.deployContract("Recipient");
    const batch = await commitRollup(d, [entry(d.assets.item, owner, "1", 10n)]);
    const again = await signed(d, d.actors.owner, request(batch, 0, { quantity: 10n }));
    await recipient.write.arm([
      d.state.address,
      encodeFunctionData({ abi: d.state.abi, functionName: "withdraw", args: withdrawArgs(again) }),
    ]);
    await withdraw(request(batch, 0, { recipient: recipient.address }));
    expect(await recipient.read.callAnswer()).toBe(REENTRANT);
    expect(await d.tokens.item.read.balanceOf([recipient.address, 1n])).toBe(10n);
  });

  const voiding = (batch: CommittedBatch, first: number, second: number): Hex => {
    const [a, b] = [proofOf(batch, first), proofOf(batch, second)];
    const args = [...provenArgs(a), ...provenArgs(b)] as const;
    return encodeFunctionData({ abi: d.state.abi, functionName: "voidDuplicate", args });
  };
});
