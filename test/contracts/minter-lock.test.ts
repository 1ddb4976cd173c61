import { beforeEach, describe, expect, it } from "vitest";
import { type Deployment, openChain } from "./fixture/deployment.ts";

const { fresh } = await openChain();

describe("the lock on a token's minter role", () => {
  let d: Deployment;
  beforeEach(async () => {
    d = await fresh();
  });

  const admin = () => ({ account: d.actors.admin.account });
  const stranger = () => d.actors.stranger.account.address;

  it("leaves the settlement contract as the one minter for ever", async () => {
    for (const { address } of [d.tokens.coin, d.tokens.card, d.tokens.item]) {
      // The lock is the same in all three.
      const token = await d.viem.getContractAt("MintableERC20", address);
      const minter = await token.read.MINTER_ROLE();
      expect(await token.read.minterLocked()).toBe(false);
      await token.write.lockMinter(admin());
      expect(await token.read.minterLocked()).toBe(true);
      const { assertions } = d.viem;
      await assertions.revertWithCustomError(
        token.write.grantRole([minter, stranger()], admin()),
        token,
        "MinterIsLocked",
      );
      const revoked = token.write.revokeRole([minter, d.state.address], admin());
      await assertions.revertWithCustomError(revoked, token, "MinterIsLocked");
      expect(await token.read.hasRole([minter, d.state.address])).toBe(true);
    }
  });

  it("does not close while another account can mint, or none", async () => {
    const token = d.tokens.card;
    const minter = await token.read.MINTER_ROLE();
    const refuses = (minters: bigint) =>
      d.viem.assertions.revertWithCustomErrorWithArgs(token.write.lockMinter(admin()), token, "MinterNotAlone", [
        minters,
      ]);
    await token.write.grantRole([minter, stranger()], admin());
    await token.write.grantRole([minter, stranger()], admin());
    await refuses(2n);
    await token.write.revokeRole([minter, stranger()], admin());
    await token.write.revokeRole([minter, d.state.address], admin());
    await refuses(0n);
    await token.write.grantRole([minter, d.state.address], admin());
    await token.write.lockMinter(admin());
    expect(await token.read.minterLocked()).toBe(true);
  });

  it("is the administrator's to close", async () => {
    const refused = d.tokens.coin.write.lockMinter({ account: d.actors.stranger.account });
    await d.viem.assertions.revertWithCustomError(refused, d.tokens.coin, "AccessControlUnauthorizedAccount");
  });
});
