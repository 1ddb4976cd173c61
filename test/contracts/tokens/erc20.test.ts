import { type Address, getAddress, maxUint256, zeroAddress } from "viem";
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

  const mint = (to: Address, quantity: bigint, blob: `0x${string}` = "0x") =>
    d.coin.write.mintFor([to, quantity, blob], d.by("minter"));

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
      await d.refuses(d.coin.write.mintFor([owner, 1n, "0x"], d.by(actor)), d.coin, "AccessControlUnauthorizedAccount");
    }
  });

  it("refuses a quantum of 0: no unit at the engine would be worth anything", async () => {
    await d.refuses(
      viem.deployContract("MintableERC20", ["Coin", "COIN", CAP, 0n, owner, owner, zeroAddress, false]),
      d.coin,
      "QuantumZero",
    );
  });

  it("refuses a minting blob: its units are all alike", async () => {
    await d.refuses(mint(owner, 1n, "0x31"), d.coin, "BlobNotEmpty", ["0x31"]);
  });

  it("keeps to its cap, to the unit, and has none when it is the largest number", async () => {
    await mint(owner, CAP - 1n);
    await d.refuses(mint(owner, 2n), d.coin, "ERC20ExceededCap", [CAP + 1n, CAP]);
    await mint(owner, 1n);
    await d.refuses(mint(friend, 1n), d.coin, "ERC20ExceededCap");
    await d.uncapped.write.mintFor([owner, maxUint256, "0x"], d.by("minter"));
    expect(await d.uncapped.read.totalSupply()).toBe(maxUint256);
  });
});
