import { getAddress, maxUint256, toHex, zeroAddress, zeroHash } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { openTokens, supported, type TokenDeployment } from "./fixture.ts";

const { viem, fresh } = await openTokens();
const ALL: [bigint, bigint] = [0n, maxUint256];

let d: TokenDeployment;
beforeEach(async () => {
  d = await fresh();
});

describe.each(["coin", "card", "item"] as const)("the contract metadata of a %s", (kind) => {
  // All tokens have this part; one type stands for them.
  const open = async () =>
    (await viem.getContractAt("MintableERC20", d[kind].address)) as TokenDeployment["coin"];

  it("is the admin's to set, ERC-7572", async () => {
    const token = await open();
    expect(await token.read.contractURI()).toBe("");
    await viem.assertions.emit(
      token.write.setContractURI(["ipfs://about"], d.by("admin")),
      token,
      "ContractURIUpdated",
    );
    expect(await token.read.contractURI()).toBe("ipfs://about");
    for (const actor of ["minter", "stranger"] as const) {
      const set = token.write.setContractURI(["ipfs://other"], d.by(actor));
      await d.refuses(set, token, "AccessControlUnauthorizedAccount");
    }
  });

  it("names a present admin as owner, and nobody once there is none", async () => {
    const token = await open();
    const [admin, friend] = [d.actors.admin, d.actors.friend].map(
      ({ account }) => account.address,
    ) as [`0x${string}`, `0x${string}`];
    expect(await token.read.owner()).toBe(getAddress(admin));
    await token.write.grantRole([zeroHash, friend], d.by("admin"));
    expect(await token.read.owner()).toBe(getAddress(admin));
    await token.write.renounceRole([zeroHash, admin], d.by("admin"));
    expect(await token.read.owner()).toBe(getAddress(friend));
    await token.write.renounceRole([zeroHash, friend], d.by("friend"));
    expect(await token.read.owner()).toBe(zeroAddress);
  });
});

describe.each(["card", "item"] as const)("the token metadata of a %s", (kind) => {
  const open = async () =>
    (await viem.getContractAt("MintableERC721", d[kind].address)) as TokenDeployment["card"];
  const uriOf = async (id: bigint) =>
    kind === "card" ? d.card.read.tokenURI([id]) : d.item.read.uri([id]);
  const place =
    kind === "card" ? "https://drop.example/metadata/" : "https://drop.example/metadata/{id}";
  const moved = kind === "card" ? `${place}7` : place;
  beforeEach(async () => {
    const token = await open();
    await token.write.mintFor([d.actors.owner.account.address, 1n, toHex("7")], d.by("minter"));
  });

  it("moves with its base, and says so by ERC-4906", async () => {
    const token = await open();
    const move = token.write.setBaseURI([place], d.by("admin"));
    await viem.assertions.emitWithArgs(move, token, "BatchMetadataUpdate", ALL);
    expect(await uriOf(7n)).toBe(moved);
    expect(await supported(token)).toEqual(
      kind === "card" ? expect.arrayContaining(["erc4906"]) : expect.anything(),
    );
  });

  it("stays for ever once its base is locked", async () => {
    const token = await open();
    await token.write.setBaseURI([place], d.by("admin"));
    expect(await token.read.baseURILocked()).toBe(false);
    await viem.assertions.emit(token.write.lockBaseURI(d.by("admin")), token, "BaseURILocked");
    expect(await token.read.baseURILocked()).toBe(true);
    const move = token.write.setBaseURI(["ipfs://other/"], d.by("admin"));
    await d.refuses(move, token, "BaseURIIsLocked");
    expect(await uriOf(7n)).toBe(moved);
    // The metadata of the contract is not part of the promise.
    await token.write.setContractURI(["ipfs://about"], d.by("admin"));
  });

  it("is read again when the admin says so, locked or not", async () => {
    const token = await open();
    await token.write.lockBaseURI(d.by("admin"));
    const refresh = token.write.refreshMetadata([3n, 9n], d.by("admin"));
    await viem.assertions.emitWithArgs(refresh, token, "BatchMetadataUpdate", [3n, 9n]);
  });

  it("is the admin's alone", async () => {
    const token = await open();
    for (const actor of ["minter", "owner", "stranger"] as const) {
      for (const call of [
        () => token.write.setBaseURI(["ipfs://mine/"], d.by(actor)),
        () => token.write.lockBaseURI(d.by(actor)),
        () => token.write.refreshMetadata([0n, 1n], d.by(actor)),
      ])
        await d.refuses(call(), token, "AccessControlUnauthorizedAccount");
    }
  });
});
