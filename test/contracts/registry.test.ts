import { getAddress, type Hex, maxUint256, toFunctionSelector, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { commitValidium, entry } from "./fixture/batches.ts";
import { assetOf, type Deployment, openChain, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const HERE = 31_337n;
const ELSEWHERE = 424_242n;
const FOREIGN_TOKEN = "0x5da41d8b03b656ac0daac9f27b98feba461dfbad";

describe("the asset registry", () => {
  let d: Deployment;
  beforeEach(async () => {
    d = await fresh();
  });

  it("knows a registered token by the core's asset type", async () => {
    const { coin, card, item, imxCard } = d.assets;
    for (const [asset, quantum, scheme] of [
      [coin, 1_000n, SCHEME.mintmark],
      [card, 1n, SCHEME.mintmark],
      [item, 1n, SCHEME.mintmark],
      [imxCard, 1n, SCHEME.imx],
    ] as const) {
      const found = await d.state.read.asset([HERE, BigInt(asset.assetType)]);
      expect(found).toEqual([STANDARD[asset.standard], asset.token, quantum, scheme, 0n]);
    }
  });

  it("is open to anyone, and tells of it", async () => {
    const quantum = 10n ** 9n;
    const { assetType, token } = assetOf("erc20", FOREIGN_TOKEN, quantum, ELSEWHERE);
    await d.tells(
      d.state.write.registerAsset([STANDARD.erc20, ELSEWHERE, FOREIGN_TOKEN, quantum, SCHEME.imx], d.by("stranger")),
      "AssetRegistered",
      [BigInt(assetType), ELSEWHERE, token, STANDARD.erc20, quantum, SCHEME.imx],
    );
  });

  it("tells the blob scheme that it keeps, and asks no contract of this chain about another chain's token", async () => {
    const deploy = () => d.mintable.erc1155();
    for (const [chainId, scheme] of [
      [HERE, SCHEME.mintmark],
      [ELSEWHERE, SCHEME.imx],
    ] as const) {
      const { token, assetType } = assetOf("erc1155", (await deploy()).address);
      await d.tells(d.state.write.registerAsset([STANDARD.erc1155, chainId, token, 1n, scheme]), "AssetRegistered", [
        BigInt(assetType),
        chainId,
        token,
        STANDARD.erc1155,
        1n,
        scheme,
      ]);
    }
  });

  it("is keyed by chain: one token address on two chains is two assets", async () => {
    for (const chainId of [1n, 137n, 2n ** 64n - 1n]) {
      await d.state.write.registerAsset([STANDARD.erc721, chainId, FOREIGN_TOKEN, 1n, SCHEME.imx]);
      const { assetType } = assetOf("erc721", FOREIGN_TOKEN);
      expect((await d.state.read.asset([chainId, BigInt(assetType)]))[0]).toBe(STANDARD.erc721);
    }
  });

  it("keeps the standard of a contract, and the quantum of one that states it, for ever", async () => {
    const { coin } = d.assets;
    const known: [bigint, `0x${string}`, bigint] = [HERE, coin.token, BigInt(coin.assetType)];
    for (const [standard, quantum] of [
      [STANDARD.erc20, 1_000n],
      [STANDARD.erc721, 1n],
      [STANDARD.erc1155, 1n],
    ] as const) {
      await d.refuses(
        d.state.write.registerAsset([standard, HERE, coin.token, quantum, SCHEME.mintmark]),
        "AssetAlreadyRegistered",
        known,
      );
    }
  });

  it.each([
    ["no standard", STANDARD.none, ELSEWHERE, FOREIGN_TOKEN],
    ["no chain", STANDARD.erc721, 0n, FOREIGN_TOKEN],
    ["no token", STANDARD.erc721, ELSEWHERE, zeroAddress],
  ] as const)("refuses %s", async (_, standard, chainId, token) => {
    const { token: checksummed } = assetOf("erc721", token);
    await d.refuses(d.state.write.registerAsset([standard, chainId, token, 1n, SCHEME.imx]), "AssetInvalid", [
      standard,
      chainId,
      checksummed,
    ]);
  });

  it.each([
    ["erc20", 0n],
    ["erc20", 2n ** 128n],
    ["erc721", 0n],
    ["erc721", 2n],
    ["erc1155", 1_000n],
  ] as const)("refuses %s of quantum %s", async (standard, quantum) => {
    await d.refuses(
      d.state.write.registerAsset([STANDARD[standard], ELSEWHERE, FOREIGN_TOKEN, quantum, SCHEME.imx]),
      "QuantumInvalid",
      [quantum],
    );
  });

  it("takes the largest quantum", async () => {
    const quantum = 2n ** 128n - 1n;
    await d.state.write.registerAsset([STANDARD.erc20, ELSEWHERE, FOREIGN_TOKEN, quantum, SCHEME.imx]);
    const { assetType } = assetOf("erc20", FOREIGN_TOKEN, quantum);
    expect((await d.state.read.asset([ELSEWHERE, BigInt(assetType)]))[2]).toBe(quantum);
  });

  it("refuses a token of its own chain that has no code", async () => {
    await d.refuses(
      d.state.write.registerAsset([STANDARD.erc721, HERE, d.actors.stranger.account.address, 1n, SCHEME.imx]),
      "TokenWithoutCode",
      [assetOf("erc721", d.actors.stranger.account.address).token],
    );
  });

  it("registers a token with ERC-165 only as the standard that it names", async () => {
    const card = await d.mintable.erc721();
    const item = await d.mintable.erc1155();
    // Answers for IMintable alone, and is fungible by that.
    const coin = await d.mintable.erc20();
    for (const [token, own] of [
      [card, "erc721"],
      [item, "erc1155"],
      [coin, "erc20"],
    ] as const) {
      for (const standard of ["erc20", "erc721", "erc1155"] as const) {
        if (standard === own) continue;
        await d.refuses(
          d.state.write.registerAsset([STANDARD[standard], HERE, token.address, 1n, SCHEME.mintmark]),
          "StandardMismatch",
          [assetOf(own, token.address).token, STANDARD[standard]],
        );
      }
      await d.register(own, token.address);
    }
  });

  it("registers a token that states its quantum only by that, whoever is first", async () => {
    const coin = await d.mintable.erc20({ quantum: 250n });
    for (const quantum of [1n, 249n, 2n ** 128n - 1n]) {
      await d.refuses(
        d.state.write.registerAsset([STANDARD.erc20, HERE, coin.address, quantum, SCHEME.mintmark], d.by("stranger")),
        "QuantumMismatch",
        [assetOf("erc20", coin.address).token, 250n],
      );
    }
    const { assetType } = await d.register("erc20", coin.address, 250n);
    expect((await d.state.read.asset([HERE, BigInt(assetType)]))[2]).toBe(250n);
  });

  it("takes several quanta of an ERC-20 without its own, so a stranger's registration blocks no other", async () => {
    const silent = await d.viem.deployContract("RevertingToken");
    const stranger = d.by("stranger");
    await d.state.write.registerAsset([STANDARD.erc20, HERE, silent.address, 7n, SCHEME.imx], stranger);
    const mine = await d.register("erc20", silent.address, 250n);
    const theirs = assetOf("erc20", silent.address, 7n);
    for (const [{ assetType }, quantum] of [
      [theirs, 7n],
      [mine, 250n],
    ] as const) {
      const found = await d.state.read.asset([HERE, BigInt(assetType)]);
      expect(found.slice(0, 3)).toEqual([STANDARD.erc20, mine.token, quantum]);
      await d.refuses(
        d.state.write.registerAsset([STANDARD.erc20, HERE, silent.address, quantum, SCHEME.imx]),
        "AssetAlreadyRegistered",
        [HERE, mine.token, BigInt(assetType)],
      );
    }
    // The standard stays one: an ERC-721's vaults must not mature as those of another standard.
    for (const standard of [STANDARD.erc721, STANDARD.erc1155]) {
      await d.refuses(
        d.state.write.registerAsset([standard, HERE, silent.address, 1n, SCHEME.imx]),
        "AssetAlreadyRegistered",
        [HERE, mine.token, BigInt(theirs.assetType)],
      );
    }
    const { card } = d.assets;
    await d.refuses(
      d.state.write.registerAsset([STANDARD.erc20, HERE, card.token, 1n, SCHEME.mintmark]),
      "AssetAlreadyRegistered",
      [HERE, card.token, BigInt(card.assetType)],
    );
  });

  it("registers a token that has decimals as an ERC-20 only, though it answers no ERC-165", async () => {
    const plain = await d.viem.deployContract("PlainERC20");
    for (const standard of [STANDARD.erc721, STANDARD.erc1155]) {
      await d.refuses(
        d.state.write.registerAsset([standard, HERE, plain.address, 1n, SCHEME.imx]),
        "StandardMismatch",
        [assetOf("erc20", plain.address).token, standard],
      );
    }
    await d.register("erc20", plain.address);
  });

  it("takes whatever is said of another chain's token, since the registry there decides", async () => {
    for (const standard of [STANDARD.erc721, STANDARD.erc1155, STANDARD.erc20]) {
      await d.state.write.registerAsset([standard, ELSEWHERE, FOREIGN_TOKEN, 1n, SCHEME.imx]);
    }
  });

  it("tells from which batch on vaults of the asset count", async () => {
    const silent = await d.viem.deployContract("RevertingToken");
    const since = async () => (await d.state.read.asset([HERE, BigInt(assetOf("erc20", silent.address).assetType)]))[4];
    for (let i = 0; i < 3; i++) await commitValidium(d, [entry(d.assets.coin, d.actors.owner.account.address, "", 1n)]);
    expect(await since()).toBe(0n);
    await d.register("erc20", silent.address);
    expect(await since()).toBe(3n);
  });

  it("keeps the blob scheme that a token names", async () => {
    const owner = d.actors.owner.account;
    const tokens = await Promise.all([SCHEME.imx, SCHEME.mintmark].map((scheme) => d.mintable.erc721({ scheme })));
    const [imx, own] = await Promise.all(tokens.map(({ address }) => d.register("erc721", address)));
    if (!imx || !own) throw new Error("two tokens were registered");
    const batch = await commitValidium(d, [
      entry(imx, owner.address, "7"),
      entry(imx, owner.address, "{7}:{}"),
      entry(own, owner.address, "7"),
    ]);
    await d.mature();
    const withdraw = (slot: number) => d.state.write.withdraw(withdrawArgs(request(batch, slot)), { account: owner });
    await d.refuses(withdraw(0), "BlobInvalid");
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
      const { assetType } = await d.register("erc1155", address);
      expect((await d.state.read.asset([HERE, BigInt(assetType)]))[0]).toBe(STANDARD.erc1155);
    }
  });

  it("gives a token's answers their gas, so nobody registers it as something else by starving them", async () => {
    const deployCard = () => d.mintable.erc721();
    const coin = await d.mintable.erc20({ quantum: 250n });
    let card = await deployCard();
    let registered = 0;
    for (let gas = 30_000n; gas <= 160_000n; gas += 5_000n) {
      const register = (standard: number, { address }: { readonly address: Hex }, quantum: bigint) =>
        d.state.write.registerAsset([standard, HERE, address, quantum, SCHEME.mintmark], { gas }).then(
          () => true,
          () => false,
        );
      for (const standard of [STANDARD.erc20, STANDARD.erc1155]) expect(await register(standard, card, 1n)).toBe(false);
      expect(await register(STANDARD.erc721, coin, 1n)).toBe(false);
      expect(await register(STANDARD.erc20, coin, 1n)).toBe(false);
      if (!(await register(STANDARD.erc721, card, 1n))) continue;
      const { assetType } = assetOf("erc721", card.address);
      expect((await d.state.read.asset([HERE, BigInt(assetType)]))[3]).toBe(SCHEME.mintmark);
      registered++;
      card = await deployCard();
    }
    // Instrumented code takes more gas than the loop gives.
    if (process.env.HARDHAT_COVERAGE === undefined) expect(registered).toBeGreaterThan(0);
    expect(registered).toBeLessThan(20);
  });

  describe("of a token that does not say how it reads its blobs", () => {
    const as = (actor: keyof Deployment["actors"]) => d.by(actor);
    const register = (token: { readonly address: Hex }, scheme: number, actor: keyof Deployment["actors"]) =>
      d.state.write.registerAsset([STANDARD.erc721, HERE, token.address, 1n, scheme], as(actor));
    const schemeOf = async ({ address }: { readonly address: Hex }) =>
      (await d.state.read.asset([HERE, BigInt(assetOf("erc721", address).assetType)]))[3];

    it("lets only its owner register it, and choose the scheme", async () => {
      for (const scheme of Object.values(SCHEME)) {
        const token = await d.viem.deployContract("ImxAsset", [d.actors.owner.account.address, d.state.address]);
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
      const token = await d.viem.deployContract("AdministeredToken", [d.actors.owner.account.address]);
      await d.refuses(register(token, SCHEME.imx, "stranger"), "NotTokenOwner");
      await register(token, SCHEME.raw32, "owner");
      expect(await schemeOf(token)).toBe(SCHEME.raw32);
    });

    it("lets anyone register it as imx alone, if it has neither, or its owner is nobody", async () => {
      const silent = await d.viem.deployContract("ImxToken", [d.state.address]);
      const left = await d.viem.deployContract("ImxAsset", [d.actors.owner.account.address, d.state.address]);
      await left.write.renounceOwnership(as("owner"));
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
      const owned = await d.viem.deployContract("ImxAsset", [d.actors.owner.account.address, d.state.address]);
      const administered = await d.viem.deployContract("AdministeredToken", [d.actors.owner.account.address]);
      for (let gas = 40_000n; gas <= 160_000n; gas += 4_000n) {
        for (const token of [owned, administered]) {
          const args = [STANDARD.erc721, HERE, token.address, 1n, SCHEME.imx] as const;
          const done = d.state.write.registerAsset(args, { ...as("stranger"), gas });
          await expect(done).rejects.toThrow();
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
        await d.refuses(
          d.state.write.registerAsset([STANDARD.erc1155, HERE, token.address, 1n, scheme]),
          "SchemeMismatch",
          [assetOf("erc1155", token.address).token, stated],
        );
      }
      await d.register("erc1155", token.address);
    }
    for (const scheme of [SCHEME.mintmark, SCHEME.raw32]) {
      await d.refuses(
        d.state.write.registerAsset([STANDARD.erc721, ELSEWHERE, FOREIGN_TOKEN, 1n, scheme]),
        "SchemeMismatch",
      );
    }
  });
});

describe("a token with answers that mean nothing", () => {
  let d: Deployment;
  beforeEach(async () => {
    d = await fresh();
  });

  /** A contract that answers calls that begin with these bytes, and reverts any other. */
  async function answering(call: Hex, answer: number): Promise<Hex> {
    const [size, width] = [call.length / 2 - 1, (push: number) => push.toString(16).padStart(2, "0")];
    const head = `${width(0x5f + size)}${call.slice(2)}5f3560${width(256 - 8 * size)}1c1460${width(size + 13)}57`;
    const address: Hex = `0x${"c0de".repeat(9)}${width(size)}${width(answer)}`;
    const code: Hex = `0x${head}5f5ffd5b60${width(answer)}5f5260205ff3`;
    await d.connection.provider.request({ method: "hardhat_setCode", params: [address, code] });
    return address;
  }
  const register = (standard: number, address: Hex) =>
    d.state.write.registerAsset([standard, HERE, address, 1n, SCHEME.imx]);

  it("reads the blobs of a scheme that nobody knows as imx", async () => {
    await register(STANDARD.erc20, await answering(toFunctionSelector("blobScheme()"), 7));
  });

  it("of this project takes no raw ids", async () => {
    const { revertWithCustomError } = d.viem.assertions;
    const existing = await d.viem.getContractAt("MintableERC721", d.assets.card.token);
    await revertWithCustomError(d.mintable.erc721({ scheme: SCHEME.raw32 }), existing, "BlobSchemeUnsupported");
  });

  it("has no admin when it says neither yes nor no", async () => {
    await register(STANDARD.erc20, await answering(toFunctionSelector("hasRole(bytes32,address)"), 2));
  });

  it("is fungible when it is mintable and states no other standard", async () => {
    const address = await answering("0x01ffc9a719ee6e3f", 1);
    await d.refuses(register(STANDARD.erc1155, address), "StandardMismatch");
    await register(STANDARD.erc20, address);
  });
});
