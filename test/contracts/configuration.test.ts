import { getAddress, toFunctionSelector, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import {
  assetOf,
  CHANGE_DELAY,
  type Deployment,
  MATURITY,
  openChain,
  SCHEME,
  STANDARD,
} from "./fixture/deployment.ts";

const { fresh } = await openChain();

/**
 * A failing constructor's error, which Hardhat names only in code that it measures for coverage.
 */
const errorOf = (signature: string) =>
  new RegExp(`${toFunctionSelector(signature)}|${signature.split("(")[0]}`);
const NO_CODE = errorOf("NoCode(address)");
const DELAY_TOO_LONG = errorOf("DelayTooLong(uint64)");

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
    const roles = [
      await read.DEFAULT_ADMIN_ROLE(),
      await read.GUARDIAN_ROLE(),
      await read.OPERATOR_ROLE(),
    ];
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
    expect(
      await state.read.hasRole([
        await state.read.DEFAULT_ADMIN_ROLE(),
        deployer?.account.address ?? other,
      ]),
    ).toBe(false);
  });

  it("has transfers where it is deployed with their code, and none where it is not", async () => {
    const { state, config, viem } = d;
    expect(await state.read.transfersCode()).toBe(getAddress(config.transfersCode));
    const without = await viem.deployContract("StateCommitment", [
      { ...config, transfersCode: zeroAddress },
    ]);
    expect(await without.read.transfersCode()).toBe(zeroAddress);
    await expect(without.read.isSpent([1n])).rejects.toThrow("reverted");
    const token = await viem.deployContract("TransferableToken", [
      STANDARD.erc721,
      0,
      without.address,
      zeroAddress,
    ]);
    const { assetType } = assetOf("erc721", token.address);
    for (const [contract, expected] of [
      [without, false],
      [state, true],
    ] as const) {
      await contract.write.registerAsset([
        STANDARD.erc721,
        31_337n,
        token.address,
        1n,
        SCHEME.mintmark,
      ]);
      expect(await contract.read.isTransferable([31_337n, BigInt(assetType)])).toBe(expected);
    }
  });

  it("makes vaults where it is deployed with their code, and none where it is not", async () => {
    const { state, config, viem } = d;
    expect(await state.read.makingsCode()).toBe(getAddress(config.makingsCode));
    expect(await state.read.makings()).toBe(0n);
    const without = await viem.deployContract("StateCommitment", [
      { ...config, makingsCode: zeroAddress },
    ]);
    expect(await without.read.makingsCode()).toBe(zeroAddress);
    expect(await without.read.isSpent([1n])).toBe(false);
    const token = await d.mintable.erc20({}, without.address);
    await token.write.lockMinter(d.by("admin"));
    const registration = [STANDARD.erc20, 31_337n, token.address, 1n, SCHEME.mintmark] as const;
    await without.write.registerAsset(registration);
    await expect(token.write.enter([config.admin, 0n], d.by("admin"))).rejects.toThrow("reverted");
  });

  it.each(["transfersCode", "makingsCode"] as const)(
    "borrows no code as %s from an account that has none, or that delegates to some",
    async (piece) => {
      const { config, viem, connection } = d;
      const deploy = () =>
        viem.deployContract("StateCommitment", [{ ...config, [piece]: config.admin }]);
      await expect(deploy()).rejects.toThrow(NO_CODE);
      const delegation = `0xef0100${config[piece].slice(2)}` as const;
      await connection.provider.request({
        method: "hardhat_setCode",
        params: [config.admin, delegation],
      });
      await expect(deploy()).rejects.toThrow(NO_CODE);
    },
  );

  it("is not deployed with a delay above 30 days", async () => {
    const longest = 30n * 86_400n;
    const deploy = (change: Partial<Deployment["config"]>) =>
      d.viem.deployContract("StateCommitment", [{ ...d.config, ...change }]);
    await deploy({ changeDelay: longest, maturity: longest });
    await expect(deploy({ changeDelay: longest + 1n })).rejects.toThrow(DELAY_TOO_LONG);
    await expect(deploy({ maturity: longest + 1n })).rejects.toThrow(DELAY_TOO_LONG);
  });
});
