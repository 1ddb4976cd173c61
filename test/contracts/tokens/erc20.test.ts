import { type Address, getAddress, maxUint256, parseSignature, zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { CAP, openTokens, supported, type TokenDeployment } from "./fixture.ts";

const { viem, fresh } = await openTokens();

describe("MintableERC20", () => {
  let d: TokenDeployment;
  let owner: Address;
  let friend: Address;
  beforeEach(async () => {
    d = await fresh();
    owner = getAddress(d.actors.owner.account.address);
    friend = getAddress(d.actors.friend.account.address);
  });

  const by = (actor: keyof TokenDeployment["actors"]) => ({ account: d.actors[actor].account });
  const mint = (to: Address, quantity: bigint, blob: `0x${string}` = "0x") =>
    d.coin.write.mintFor([to, quantity, blob], by("minter"));

  it("says what it is", async () => {
    expect(await d.coin.read.name()).toBe("Coin");
    expect(await d.coin.read.symbol()).toBe("COIN");
    expect(await d.coin.read.decimals()).toBe(18);
    expect(await supported(d.coin)).toEqual(["erc165", "mintable", "accessControl"]);
  });

  it("mints base units for the minter, and for nobody else", async () => {
    await viem.assertions.emitWithArgs(mint(owner, 700n), d.coin, "Transfer", [zeroAddress, owner, 700n]);
    expect(await d.coin.read.balanceOf([owner])).toBe(700n);
    expect(await d.coin.read.totalSupply()).toBe(700n);
    for (const actor of ["admin", "owner", "stranger"] as const) {
      await viem.assertions.revertWithCustomError(
        d.coin.write.mintFor([owner, 1n, "0x"], by(actor)),
        d.coin,
        "AccessControlUnauthorizedAccount",
      );
    }
  });

  it("refuses a quantum of 0: no unit at the engine would be worth anything", async () => {
    await viem.assertions.revertWithCustomError(
      viem.deployContract("MintableERC20", ["Coin", "COIN", CAP, 0n, owner, owner, zeroAddress, false]),
      d.coin,
      "QuantumZero",
    );
  });

  it("refuses a minting blob: its units are all alike", async () => {
    await viem.assertions.revertWithCustomErrorWithArgs(mint(owner, 1n, "0x31"), d.coin, "BlobNotEmpty", ["0x31"]);
  });

  it("keeps to its cap, to the unit, and has none when it is the largest number", async () => {
    await mint(owner, CAP - 1n);
    await viem.assertions.revertWithCustomErrorWithArgs(mint(owner, 2n), d.coin, "ERC20ExceededCap", [CAP + 1n, CAP]);
    await mint(owner, 1n);
    await viem.assertions.revertWithCustomError(mint(friend, 1n), d.coin, "ERC20ExceededCap");
    await d.uncapped.write.mintFor([owner, maxUint256, "0x"], by("minter"));
    expect(await d.uncapped.read.totalSupply()).toBe(maxUint256);
  });

  it("transfers what there is, and no more", async () => {
    await mint(owner, 100n);
    await viem.assertions.emitWithArgs(d.coin.write.transfer([friend, 30n], by("owner")), d.coin, "Transfer", [
      owner,
      friend,
      30n,
    ]);
    expect(await d.coin.read.balanceOf([owner])).toBe(70n);
    expect(await d.coin.read.balanceOf([friend])).toBe(30n);
    await viem.assertions.revertWithCustomErrorWithArgs(
      d.coin.write.transfer([friend, 71n], by("owner")),
      d.coin,
      "ERC20InsufficientBalance",
      [owner, 70n, 71n],
    );
    await viem.assertions.revertWithCustomError(
      d.coin.write.transfer([zeroAddress, 1n], by("owner")),
      d.coin,
      "ERC20InvalidReceiver",
    );
    await d.coin.write.transfer([friend, 0n], by("owner"));
    expect(await d.coin.read.totalSupply()).toBe(100n);
  });

  it("lets an approved spender transfer, within the allowance", async () => {
    await mint(owner, 100n);
    await viem.assertions.emitWithArgs(d.coin.write.approve([friend, 50n], by("owner")), d.coin, "Approval", [
      owner,
      friend,
      50n,
    ]);
    await d.coin.write.transferFrom([owner, friend, 20n], by("friend"));
    expect(await d.coin.read.allowance([owner, friend])).toBe(30n);
    await viem.assertions.revertWithCustomErrorWithArgs(
      d.coin.write.transferFrom([owner, friend, 31n], by("friend")),
      d.coin,
      "ERC20InsufficientAllowance",
      [friend, 30n, 31n],
    );
    await d.coin.write.approve([friend, maxUint256], by("owner"));
    await d.coin.write.transferFrom([owner, friend, 31n], by("friend"));
    expect(await d.coin.read.allowance([owner, friend])).toBe(maxUint256);
  });

  describe("permits, EIP-2612:", () => {
    const holder = privateKeyToAccount(generatePrivateKey());
    const types = {
      Permit: [
        { name: "owner", type: "address" },
        { name: "spender", type: "address" },
        { name: "value", type: "uint256" },
        { name: "nonce", type: "uint256" },
        { name: "deadline", type: "uint256" },
      ],
    } as const;
    const permit = async (
      change: { nonce?: bigint; chainId?: bigint; deadline?: bigint; signer?: typeof holder } = {},
    ) => {
      const { nonce = 0n, chainId = 31_337n, deadline = maxUint256, signer = holder } = change;
      const domain = { name: "Coin", version: "1", chainId, verifyingContract: d.coin.address };
      const message = { owner: holder.address, spender: friend, value: 40n, nonce, deadline };
      const { r, s, yParity } = parseSignature(
        await signer.signTypedData({ domain, types, primaryType: "Permit", message }),
      );
      return d.coin.write.permit([holder.address, friend, 40n, deadline, 27 + yParity, r, s], by("stranger"));
    };

    it("anyone may submit the holder's, once", async () => {
      await mint(holder.address, 100n);
      await permit();
      expect(await d.coin.read.allowance([holder.address, friend])).toBe(40n);
      expect(await d.coin.read.nonces([holder.address])).toBe(1n);
      await d.coin.write.transferFrom([holder.address, friend, 40n], by("friend"));
      await viem.assertions.revertWithCustomError(permit(), d.coin, "ERC2612InvalidSigner");
      await permit({ nonce: 1n });
    });

    it("refuses one of another signer, chain, nonce, or time", async () => {
      const signer = privateKeyToAccount(generatePrivateKey());
      await viem.assertions.revertWithCustomError(permit({ signer }), d.coin, "ERC2612InvalidSigner");
      await viem.assertions.revertWithCustomError(permit({ chainId: 1n }), d.coin, "ERC2612InvalidSigner");
      await viem.assertions.revertWithCustomError(permit({ nonce: 1n }), d.coin, "ERC2612InvalidSigner");
      await viem.assertions.revertWithCustomErrorWithArgs(permit({ deadline: 1n }), d.coin, "ERC2612ExpiredSignature", [
        1n,
      ]);
    });
  });
});
