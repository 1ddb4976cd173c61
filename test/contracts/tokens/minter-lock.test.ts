import { type Address, keccak256, toHex, zeroHash } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { SCHEME } from "../fixture/deployment.ts";
import { openTokens, type TokenDeployment } from "./fixture.ts";

const { viem, fresh } = await openTokens();
const MINTER = keccak256(toHex("MINTER"));

describe.each(["coin", "card", "item"] as const)("the minter lock of a %s", (kind) => {
  let d: TokenDeployment;
  let token: TokenDeployment["coin"];
  let minter: Address;
  let stranger: Address;
  beforeEach(async () => {
    d = await fresh();
    // All three tokens have the same lock; one type stands for them.
    token = (await viem.getContractAt("MintableERC20", d[kind].address)) as TokenDeployment["coin"];
    minter = d.actors.minter.account.address;
    stranger = d.actors.stranger.account.address;
  });

  const locked = (call: Promise<`0x${string}`>) => d.refuses(call, token, "MinterIsLocked");

  it("is open at first: the admin can add and revoke minters", async () => {
    expect(await token.read.MINTER_ROLE()).toBe(MINTER);
    expect(await token.read.minterLocked()).toBe(false);
    await token.write.grantRole([MINTER, stranger], d.by("admin"));
    await token.write.revokeRole([MINTER, minter], d.by("admin"));
    expect(await token.read.hasRole([MINTER, stranger])).toBe(true);
    expect(await token.read.hasRole([MINTER, minter])).toBe(false);
  });

  it("is the admin's to close", async () => {
    for (const actor of ["minter", "stranger"] as const) {
      await d.refuses(
        token.write.lockMinter(d.by(actor)),
        token,
        "AccessControlUnauthorizedAccount",
      );
    }
    await viem.assertions.emit(token.write.lockMinter(d.by("admin")), token, "MinterLocked");
    expect(await token.read.minterLocked()).toBe(true);
  });

  it("does not close while more than one can mint, or none", async () => {
    const notAlone = (minters: bigint) =>
      d.refuses(token.write.lockMinter(d.by("admin")), token, "MinterNotAlone", [minters]);
    // Granting twice, or revoking twice, counts once.
    for (let i = 0; i < 2; i++) await token.write.grantRole([MINTER, stranger], d.by("admin"));
    await notAlone(2n);
    for (const account of [stranger, stranger, minter])
      await token.write.revokeRole([MINTER, account], d.by("admin"));
    await notAlone(0n);
    await token.write.grantRole([MINTER, minter], d.by("admin"));
    await token.write.lockMinter(d.by("admin"));
  });

  it("once closed lets nobody in, and nobody out, for ever", async () => {
    await token.write.lockMinter(d.by("admin"));
    await locked(token.write.grantRole([MINTER, stranger], d.by("admin")));
    await locked(token.write.revokeRole([MINTER, minter], d.by("admin")));
    await locked(token.write.renounceRole([MINTER, minter], d.by("minter")));
    // Another admin cannot either, and the first may leave.
    await token.write.grantRole([zeroHash, stranger], d.by("admin"));
    await token.write.renounceRole([zeroHash, d.actors.admin.account.address], d.by("admin"));
    await locked(token.write.revokeRole([MINTER, minter], d.by("stranger")));
    expect(await token.read.hasRole([MINTER, minter])).toBe(true);
  });

  it("leaves minting as it was", async () => {
    await token.write.lockMinter(d.by("admin"));
    const mintingBlob = kind === "coin" ? "0x" : toHex("7");
    await token.write.mintFor([stranger, 1n, mintingBlob], d.by("minter"));
    expect(await d[kind].read.mintingBlobScheme()).toBe(SCHEME.mintmark);
  });
});

it("a token says which scheme it reads", async () => {
  const d = await fresh();
  expect(await d.imxCard.read.mintingBlobScheme()).toBe(SCHEME.imx);
  expect(await d.imxItem.read.mintingBlobScheme()).toBe(SCHEME.imx);
});
