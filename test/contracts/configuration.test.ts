import { beforeEach, describe, expect, it } from "vitest";
import { CHANGE_DELAY, type Deployment, MATURITY, openChain } from "./fixture/deployment.ts";

const { fresh } = await openChain();

describe("a fresh settlement contract", () => {
  let d: Deployment;
  beforeEach(async () => {
    d = await fresh();
  });

  it("states its engine version and the times it was deployed with", async () => {
    expect(await d.state.read.engineVersion()).toBe(5n);
    expect(await d.state.read.maturity()).toBe(MATURITY);
    expect(await d.state.read.changeDelay()).toBe(CHANGE_DELAY);
  });

  it("has one administrator, one guardian and one operator, and nobody is two of them", async () => {
    const { read } = d.state;
    const roles = [await read.DEFAULT_ADMIN_ROLE(), await read.GUARDIAN_ROLE(), await read.OPERATOR_ROLE()];
    const accounts = [d.config.admin, d.config.guardian, d.config.operator];
    for (const [i, role] of roles.entries()) {
      const held = await Promise.all(accounts.map((account) => read.hasRole([role, account])));
      expect(held).toEqual(accounts.map((_, j) => j === i));
    }
  });

  it("belongs to nobody who deployed it", async () => {
    const [deployer] = await d.viem.getWalletClients();
    const other = d.actors.stranger.account.address;
    const state = await d.viem.deployContract("StateCommitment", [{ ...d.config, admin: other }]);
    expect(await state.read.hasRole([await state.read.DEFAULT_ADMIN_ROLE(), deployer?.account.address ?? other])).toBe(
      false,
    );
  });

  it("is not deployed with a delay above 30 days", async () => {
    const longest = 30n * 86_400n;
    const deploy = (change: Partial<Deployment["config"]>) =>
      d.viem.deployContract("StateCommitment", [{ ...d.config, ...change }]);
    await deploy({ changeDelay: longest, maturity: longest });
    await expect(deploy({ changeDelay: longest + 1n })).rejects.toThrow("DelayTooLong");
    await expect(deploy({ maturity: longest + 1n })).rejects.toThrow("DelayTooLong");
  });
});
