import { getAddress, type Hex, maxUint256, toFunctionSelector, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { commitValidium, entry } from "./fixture/batches.ts";
import { assetOf, type Deployment, openChain, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const HERE = 31_337n;
const ELSEWHERE = 424_242n;
const FOREIGN_TOKEN = "0x5da41d8b03b656ac0daac9f27b98feba461dfbad";

let d: Deployment;
beforeEach(async () => {
  d = await fresh();
});

/**
 * Changes of a registration that else says: a token of this chain, which counts in ones, and reads
 * its minting blobs as imx.
 */
interface Said {
  readonly chainId?: bigint;
  readonly quantum?: bigint;
  readonly scheme?: number;
  readonly by?: keyof Deployment["actors"];
  readonly gas?: bigint;
}
type AnyStandard = keyof typeof STANDARD;

const ask = (
  standard: AnyStandard,
  token: Hex,
  { chainId = HERE, quantum = 1n, scheme = SCHEME.imx, ...said }: Said = {},
) =>
  d.state.write.registerAsset([STANDARD[standard], chainId, token, quantum, scheme], {
    ...(said.by && d.by(said.by)),
    ...(said.gas !== undefined && { gas: said.gas }),
  });

/** The registry's record of an asset. */
async function kept({ assetType }: { readonly assetType: Hex }, chainId = HERE) {
  const [standard, token, quantum, scheme, since] = await d.state.read.asset([
    chainId,
    BigInt(assetType),
  ]);
  return { standard, token, quantum, scheme, since };
}

describe("the asset registry", () => {
  it("knows a registered token by the core's asset type", async () => {
    const { coin, card, item, imxCard } = d.assets;
    for (const [asset, quantum, scheme] of [
      [coin, 1_000n, SCHEME.mintmark],
      [card, 1n, SCHEME.mintmark],
      [item, 1n, SCHEME.mintmark],
      [imxCard, 1n, SCHEME.imx],
    ] as const) {
      const { token } = asset;
      expect(await kept(asset)).toEqual({
        standard: STANDARD[asset.standard],
        token,
        quantum,
        scheme,
        since: 0n,
      });
    }
  });

  it("is open to anyone, and tells of it", async () => {
    const quantum = 10n ** 9n;
    const { assetType, token } = assetOf("erc20", FOREIGN_TOKEN, quantum, ELSEWHERE);
    const told = [BigInt(assetType), ELSEWHERE, token, STANDARD.erc20, quantum, SCHEME.imx];
    const asked = ask("erc20", FOREIGN_TOKEN, { chainId: ELSEWHERE, quantum, by: "stranger" });
    await d.tells(asked, "AssetRegistered", told);
  });

  it("tells the minting blob scheme that it keeps, and asks no contract of this chain about another chain's token", async () => {
    for (const [chainId, scheme] of [
      [HERE, SCHEME.mintmark],
      [ELSEWHERE, SCHEME.imx],
    ] as const) {
      const { token, assetType } = assetOf("erc1155", (await d.mintable.erc1155()).address);
      const told = [BigInt(assetType), chainId, token, STANDARD.erc1155, 1n, scheme];
      await d.tells(ask("erc1155", token, { chainId, scheme }), "AssetRegistered", told);
    }
  });

  it("is keyed by chain: one token address on two chains is two assets", async () => {
    for (const chainId of [1n, 137n, 2n ** 64n - 1n]) {
      await ask("erc721", FOREIGN_TOKEN, { chainId });
      expect((await kept(assetOf("erc721", FOREIGN_TOKEN), chainId)).standard).toBe(
        STANDARD.erc721,
      );
    }
  });

  it("keeps the standard of a contract, and the quantum of one that states it, for ever", async () => {
    const { coin } = d.assets;
    for (const [standard, quantum] of [
      ["erc20", 1_000n],
      ["erc721", 1n],
      ["erc1155", 1n],
    ] as const) {
      const asked = ask(standard, coin.token, { quantum, scheme: SCHEME.mintmark });
      await d.refuses(asked, "AssetAlreadyRegistered", [HERE, coin.token, BigInt(coin.assetType)]);
    }
  });

  it.each([
    ["no standard", "none", ELSEWHERE, FOREIGN_TOKEN],
    ["no chain", "erc721", 0n, FOREIGN_TOKEN],
    ["no token", "erc721", ELSEWHERE, zeroAddress],
  ] as const)("refuses %s", async (_, standard, chainId, token) => {
    const said = [STANDARD[standard], chainId, assetOf("erc721", token).token];
    await d.refuses(ask(standard, token, { chainId }), "AssetInvalid", said);
  });

  it.each([
    ["erc20", 0n],
    ["erc20", 2n ** 128n],
    ["erc721", 0n],
    ["erc721", 2n],
    ["erc1155", 1_000n],
  ] as const)("refuses %s of quantum %s", async (standard, quantum) => {
    await d.refuses(
      ask(standard, FOREIGN_TOKEN, { chainId: ELSEWHERE, quantum }),
      "QuantumInvalid",
      [quantum],
    );
  });

  it("takes the largest quantum", async () => {
    const quantum = 2n ** 128n - 1n;
    await ask("erc20", FOREIGN_TOKEN, { chainId: ELSEWHERE, quantum });
    expect((await kept(assetOf("erc20", FOREIGN_TOKEN, quantum), ELSEWHERE)).quantum).toBe(quantum);
  });

  it("refuses a token of its own chain that has no code", async () => {
    const { token } = assetOf("erc721", d.actors.stranger.account.address);
    await d.refuses(ask("erc721", token), "TokenWithoutCode", [token]);
  });

  it("registers a token with ERC-165 only as the standard that it names", async () => {
    // The ERC-20 answers for IMintable alone, and is fungible by that.
    for (const own of ["erc721", "erc1155", "erc20"] as const) {
      const { token } = assetOf(own, (await d.mintable[own]()).address);
      for (const standard of ["erc20", "erc721", "erc1155"] as const) {
        if (standard === own) continue;
        const asked = ask(standard, token, { scheme: SCHEME.mintmark });
        await d.refuses(asked, "StandardMismatch", [token, STANDARD[standard]]);
      }
      await d.register(own, token);
    }
  });

  it("registers a token that states its quantum only by that, whoever is first", async () => {
    const { token } = assetOf("erc20", (await d.mintable.erc20({ quantum: 250n })).address);
    for (const quantum of [1n, 249n, 2n ** 128n - 1n]) {
      const asked = ask("erc20", token, { quantum, scheme: SCHEME.mintmark, by: "stranger" });
      await d.refuses(asked, "QuantumMismatch", [token, 250n]);
    }
    expect((await kept(await d.register("erc20", token, 250n))).quantum).toBe(250n);
  });

  it("takes several quanta of an ERC-20 without its own, so a stranger's registration blocks no other", async () => {
    const silent = await d.viem.deployContract("RevertingToken");
    await ask("erc20", silent.address, { quantum: 7n, by: "stranger" });
    const mine = await d.register("erc20", silent.address, 250n);
    const theirs = assetOf("erc20", silent.address, 7n);
    for (const [asset, quantum] of [
      [theirs, 7n],
      [mine, 250n],
    ] as const) {
      expect(await kept(asset)).toMatchObject({
        standard: STANDARD.erc20,
        token: mine.token,
        quantum,
      });
      const known = [HERE, mine.token, BigInt(asset.assetType)];
      await d.refuses(ask("erc20", silent.address, { quantum }), "AssetAlreadyRegistered", known);
    }
    // The standard stays one: an ERC-721's vaults must not mature as those of another standard.
    for (const standard of ["erc721", "erc1155"] as const) {
      const known = [HERE, mine.token, BigInt(theirs.assetType)];
      await d.refuses(ask(standard, silent.address), "AssetAlreadyRegistered", known);
    }
    const { token, assetType } = d.assets.card;
    const asked = ask("erc20", token, { scheme: SCHEME.mintmark });
    await d.refuses(asked, "AssetAlreadyRegistered", [HERE, token, BigInt(assetType)]);
  });

  it("registers a token that has decimals as an ERC-20 only, though it answers no ERC-165", async () => {
    const { token } = assetOf("erc20", (await d.viem.deployContract("PlainERC20")).address);
    for (const standard of ["erc721", "erc1155"] as const) {
      await d.refuses(ask(standard, token), "StandardMismatch", [token, STANDARD[standard]]);
    }
    await d.register("erc20", token);
  });

  it("takes whatever is said of another chain's token, since the registry there decides", async () => {
    for (const standard of ["erc721", "erc1155", "erc20"] as const) {
      await ask(standard, FOREIGN_TOKEN, { chainId: ELSEWHERE });
    }
  });

  it("tells from which batch on vaults of the asset count", async () => {
    const silent = await d.viem.deployContract("RevertingToken");
    const since = async () => (await kept(assetOf("erc20", silent.address))).since;
    for (let i = 0; i < 3; i++)
      await commitValidium(d, [entry(d.assets.coin, d.actors.owner.account.address, "", 1n)]);
    expect(await since()).toBe(0n);
    await d.register("erc20", silent.address);
    expect(await since()).toBe(3n);
  });

  it("keeps the minting blob scheme that a token names", async () => {
    const owner = d.actors.owner.account;
    const tokens = await Promise.all(
      [SCHEME.imx, SCHEME.mintmark].map((scheme) => d.mintable.erc721({ scheme })),
    );
    const [imx, own] = await Promise.all(
      tokens.map(({ address }) => d.register("erc721", address)),
    );
    if (!imx || !own) throw new Error("two tokens were registered");
    const batch = await commitValidium(d, [
      entry(imx, owner.address, "7"),
      entry(imx, owner.address, "{7}:{}"),
      entry(own, owner.address, "7"),
    ]);
    await d.mature();
    const withdraw = (slot: number) =>
      d.state.write.withdraw(withdrawArgs(request(batch, slot)), { account: owner });
    await d.refuses(withdraw(0), "MintingBlobInvalid");
    await withdraw(1);
    await withdraw(2);
    for (const token of tokens) {
      expect((await token.read.ownerOf([7n])).toLowerCase()).toBe(owner.address.toLowerCase());
    }
  });

  it("survives tokens that answer questions by burning gas or with a flood of bytes", async () => {
    const burner = await d.viem.deployContract("GasBurner", [maxUint256]);
    const bomb = await d.viem.deployContract("ReturnBomb", [1n << 20n, false]);
    for (const { address } of [burner, bomb]) {
      expect((await kept(await d.register("erc1155", address))).standard).toBe(STANDARD.erc1155);
    }
  });

  it("gives a token's answers their gas, so nobody registers it as something else by starving them", async () => {
    const deployCard = () => d.mintable.erc721();
    const coin = await d.mintable.erc20({ quantum: 250n });
    let card = await deployCard();
    let registered = 0;
    for (let gas = 30_000n; gas <= 160_000n; gas += 5_000n) {
      const registers = (standard: AnyStandard, { address }: { readonly address: Hex }) =>
        ask(standard, address, { scheme: SCHEME.mintmark, gas }).then(
          () => true,
          () => false,
        );
      for (const standard of ["erc20", "erc1155"] as const)
        expect(await registers(standard, card)).toBe(false);
      for (const standard of ["erc721", "erc20"] as const)
        expect(await registers(standard, coin)).toBe(false);
      if (!(await registers("erc721", card))) continue;
      expect((await kept(assetOf("erc721", card.address))).scheme).toBe(SCHEME.mintmark);
      registered++;
      card = await deployCard();
    }
    // Instrumented code takes more gas than the loop gives.
    if (process.env.HARDHAT_COVERAGE === undefined) expect(registered).toBeGreaterThan(0);
    expect(registered).toBeLessThan(20);
  });

  describe("of a token that does not say how it reads its minting blobs", () => {
    const register = (
      token: { readonly address: Hex },
      scheme: number,
      by: keyof Deployment["actors"],
    ) => ask("erc721", token.address, { scheme, by });
    const schemeOf = async ({ address }: { readonly address: Hex }) =>
      (await kept(assetOf("erc721", address))).scheme;

    it("lets only its owner register it, and choose the scheme", async () => {
      for (const scheme of Object.values(SCHEME)) {
        const token = await d.viem.deployContract("ImxAsset", [
          d.actors.owner.account.address,
          d.state.address,
        ]);
        for (const other of Object.values(SCHEME)) {
          await d.refuses(register(token, other, "stranger"), "NotTokenOwner", [
            assetOf("erc721", token.address).token,
            getAddress(d.actors.stranger.account.address),
          ]);
        }
        await register(token, scheme, "owner");
        expect(await schemeOf(token)).toBe(scheme);
      }
    });

    it("lets only who holds its AccessControl's admin role register it", async () => {
      const token = await d.viem.deployContract("AdministeredToken", [
        d.actors.owner.account.address,
      ]);
      await d.refuses(register(token, SCHEME.imx, "stranger"), "NotTokenOwner");
      await register(token, SCHEME.raw32, "owner");
      expect(await schemeOf(token)).toBe(SCHEME.raw32);
    });

    it("lets anyone register it as imx alone, if it has neither, or its owner is nobody", async () => {
      const silent = await d.viem.deployContract("ImxToken", [d.state.address]);
      const left = await d.viem.deployContract("ImxAsset", [
        d.actors.owner.account.address,
        d.state.address,
      ]);
      await left.write.renounceOwnership(d.by("owner"));
      for (const token of [silent, left]) {
        for (const scheme of [SCHEME.mintmark, SCHEME.raw32]) {
          await d.refuses(register(token, scheme, "stranger"), "SchemeMismatch", [
            assetOf("erc721", token.address).token,
            SCHEME.imx,
          ]);
        }
        await register(token, SCHEME.imx, "stranger");
        expect(await schemeOf(token)).toBe(SCHEME.imx);
      }
    });

    it("asks its owner() and hasRole() with enough gas, however little a stranger gives", async () => {
      const owned = await d.viem.deployContract("ImxAsset", [
        d.actors.owner.account.address,
        d.state.address,
      ]);
      const administered = await d.viem.deployContract("AdministeredToken", [
        d.actors.owner.account.address,
      ]);
      for (let gas = 40_000n; gas <= 160_000n; gas += 4_000n) {
        for (const token of [owned, administered]) {
          await expect(ask("erc721", token.address, { by: "stranger", gas })).rejects.toThrow();
        }
      }
      await register(owned, SCHEME.imx, "owner");
      await register(administered, SCHEME.imx, "owner");
    });
  });

  it("takes the scheme that a token states, and no other, and none for another chain's token", async () => {
    for (const stated of [SCHEME.imx, SCHEME.mintmark]) {
      const token = await d.mintable.erc1155({ scheme: stated });
      for (const scheme of Object.values(SCHEME)) {
        if (scheme === stated) continue;
        const asked = ask("erc1155", token.address, { scheme });
        await d.refuses(asked, "SchemeMismatch", [assetOf("erc1155", token.address).token, stated]);
      }
      await d.register("erc1155", token.address);
    }
    for (const scheme of [SCHEME.mintmark, SCHEME.raw32]) {
      await d.refuses(
        ask("erc721", FOREIGN_TOKEN, { chainId: ELSEWHERE, scheme }),
        "SchemeMismatch",
      );
    }
  });
});

describe("a token with answers that mean nothing", () => {
  /** A contract that answers calls that begin with these bytes, and reverts any other. */
  async function answering(call: Hex, answer: number): Promise<Hex> {
    const [size, width] = [
      call.length / 2 - 1,
      (push: number) => push.toString(16).padStart(2, "0"),
    ];
    const head = `${width(0x5f + size)}${call.slice(2)}5f3560${width(256 - 8 * size)}1c1460${width(size + 13)}57`;
    const address: Hex = `0x${"c0de".repeat(9)}${width(size)}${width(answer)}`;
    const code: Hex = `0x${head}5f5ffd5b60${width(answer)}5f5260205ff3`;
    await d.connection.provider.request({ method: "hardhat_setCode", params: [address, code] });
    return address;
  }

  it("reads the minting blobs of a scheme that nobody knows as imx", async () => {
    await ask("erc20", await answering(toFunctionSelector("mintingBlobScheme()"), 7));
  });

  it("of this project takes no raw ids", async () => {
    const { revertWithCustomError } = d.viem.assertions;
    const existing = await d.viem.getContractAt("MintableERC721", d.assets.card.token);
    await revertWithCustomError(
      d.mintable.erc721({ scheme: SCHEME.raw32 }),
      existing,
      "MintingBlobSchemeUnsupported",
    );
  });

  it("has no admin when it says neither yes nor no", async () => {
    await ask("erc20", await answering(toFunctionSelector("hasRole(bytes32,address)"), 2));
  });

  it("is fungible when it is mintable and states no other standard", async () => {
    const address = await answering("0x01ffc9a719ee6e3f", 1);
    await d.refuses(ask("erc1155", address), "StandardMismatch");
    await ask("erc20", address);
  });
});
