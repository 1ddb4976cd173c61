import { type Hex, keccak256, maxUint256, toHex, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { type Deployment, openChain, SCHEME } from "./fixture/deployment.ts";

const { fresh } = await openChain();
const IMINTABLE = "0x19ee6e3f";
const ERC165 = "0x01ffc9a7";

describe("this project's tokens", () => {
  let d: Deployment;
  /** The account that may mint: these tests play the settlement contract. */
  let minter: { account: Deployment["actors"]["relayer"]["account"] };
  let owner: Hex;
  beforeEach(async () => {
    d = await fresh();
    minter = { account: d.actors.relayer.account };
    owner = d.actors.owner.account.address;
  });

  const roles = () => [d.config.admin, minter.account.address] as const;
  const coin = (cap = maxUint256) => d.viem.deployContract("MintableERC20", ["Coin", "COIN", cap, ...roles()]);
  const card = (scheme: 0 | 1 = SCHEME.mintmark, royalty = { receiver: zeroAddress as Hex, fraction: 0n }) =>
    d.viem.deployContract("MintableERC721", ["Card", "CARD", "ipfs://cards/", scheme, royalty, ...roles()]);
  const item = (scheme: 0 | 1 = SCHEME.mintmark) =>
    d.viem.deployContract("MintableERC1155", ["Item", "ITEM", "ipfs://items/{id}", scheme, ...roles()]);

  it("say by ERC-165 that they are mintable, and what else they are", async () => {
    const interfaces = [
      [await coin(), []],
      [await card(), ["0x80ac58cd", "0x5b5e139f", "0x2a55205a"]],
      [await item(), ["0xd9b67a26", "0x0e89341c"]],
    ] as const;
    for (const [{ address }, standards] of interfaces) {
      const token = await d.viem.getContractAt("MintableERC20", address);
      const accessControl = "0x7965db0b" as const;
      for (const id of [ERC165, IMINTABLE, accessControl, ...standards] as const) {
        expect(await token.read.supportsInterface([id]), id).toBe(true);
      }
      for (const id of ["0xffffffff", "0x12345678"] as const) {
        expect(await token.read.supportsInterface([id]), id).toBe(false);
      }
    }
  });

  it("are minted by their minter and by nobody else", async () => {
    for (const { address } of [await coin(), await card(), await item()]) {
      const token = await d.viem.getContractAt("MintableERC20", address);
      for (const { account } of [d.actors.admin, d.actors.stranger, d.actors.owner]) {
        await d.viem.assertions.revertWithCustomErrorWithArgs(
          token.write.mintFor([owner, 1n, "0x31"], { account }),
          token,
          "AccessControlUnauthorizedAccount",
          [account.address, await token.read.MINTER_ROLE()],
        );
      }
    }
  });

  it("name the scheme of their blobs", async () => {
    expect(await (await coin()).read.blobScheme()).toBe(SCHEME.mintmark);
    for (const scheme of [SCHEME.imx, SCHEME.mintmark] as const) {
      expect(await (await card(scheme)).read.blobScheme()).toBe(scheme);
      expect(await (await item(scheme)).read.blobScheme()).toBe(scheme);
    }
  });

  describe("the ERC-20", () => {
    it("mints base units, and takes no blob", async () => {
      const token = await coin();
      await token.write.mintFor([owner, 5n, "0x"], minter);
      expect(await token.read.balanceOf([owner])).toBe(5n);
      await d.viem.assertions.revertWithCustomErrorWithArgs(
        token.write.mintFor([owner, 5n, "0x31"], minter),
        token,
        "BlobNotEmpty",
        ["0x31"],
      );
    });

    it("never exceeds its cap", async () => {
      const token = await coin(10n);
      await token.write.mintFor([owner, 10n, "0x"], minter);
      await d.viem.assertions.revertWithCustomErrorWithArgs(
        token.write.mintFor([owner, 1n, "0x"], minter),
        token,
        "ERC20ExceededCap",
        [11n, 10n],
      );
      expect(await token.read.cap()).toBe(10n);
    });

    it("takes a holder's permit once", async () => {
      const token = await coin();
      const spender = d.actors.stranger.account.address;
      const message = { owner, spender, value: 7n, nonce: 0n, deadline: maxUint256 };
      const signature = await d.actors.owner.signTypedData({
        domain: { name: "Coin", version: "1", chainId: 31_337, verifyingContract: token.address },
        types: {
          Permit: [
            { name: "owner", type: "address" },
            { name: "spender", type: "address" },
            { name: "value", type: "uint256" },
            { name: "nonce", type: "uint256" },
            { name: "deadline", type: "uint256" },
          ],
        },
        primaryType: "Permit",
        message,
      });
      const [r, s, v]: [Hex, Hex, number] = [
        `0x${signature.slice(2, 66)}`,
        `0x${signature.slice(66, 130)}`,
        Number.parseInt(signature.slice(130), 16),
      ];
      const permit = () => token.write.permit([owner, spender, 7n, maxUint256, v, r, s], minter);
      await permit();
      expect(await token.read.allowance([owner, spender])).toBe(7n);
      await d.viem.assertions.revertWithCustomError(permit(), token, "ERC2612InvalidSigner");
    });
  });

  describe("the ERC-721", () => {
    it("reads a decimal as the token's id and hashes any other text", async () => {
      const token = await card();
      await token.write.mintFor([owner, 1n, toHex("42")], minter);
      await token.write.mintFor([owner, 1n, toHex("sword")], minter);
      const hashed = BigInt(keccak256(toHex("sword")));
      for (const id of [42n, hashed]) expect((await token.read.ownerOf([id])).toLowerCase()).toBe(owner);
      expect(await token.read.tokenURI([42n])).toBe("ipfs://cards/42");
    });

    it("reads an id between braces and keeps the blueprint", async () => {
      const token = await card(SCHEME.imx);
      await token.write.mintFor([owner, 1n, toHex("{7}:{a blueprint: {with} braces}")], minter);
      await token.write.mintFor([owner, 1n, toHex("{8}:{}")], minter);
      expect(await token.read.blueprints([7n])).toBe(toHex("a blueprint: {with} braces"));
      expect(await token.read.blueprints([8n])).toBe("0x");
      for (const id of [7n, 8n]) expect((await token.read.ownerOf([id])).toLowerCase()).toBe(owner);
    });

    it("refuses text that is not of its scheme", async () => {
      const token = await card(SCHEME.imx);
      for (const text of ["7", "{07}:{}", "{7}{}", "{7}:{", "{}:{}", "{-7}:{}", ""]) {
        await d.viem.assertions.revertWithCustomErrorWithArgs(
          token.write.mintFor([owner, 1n, toHex(text)], minter),
          token,
          "BlobInvalid",
          [toHex(text)],
        );
      }
    });

    it("mints one of each, once", async () => {
      const token = await card();
      for (const quantity of [0n, 2n]) {
        await d.viem.assertions.revertWithCustomErrorWithArgs(
          token.write.mintFor([owner, quantity, toHex("1")], minter),
          token,
          "QuantityNotOne",
          [quantity],
        );
      }
      await token.write.mintFor([owner, 1n, toHex("1")], minter);
      await d.viem.assertions.revertWithCustomError(
        token.write.mintFor([owner, 1n, toHex("1")], minter),
        token,
        "ERC721InvalidSender",
      );
    });

    it("tells the royalty that it was deployed with, if any", async () => {
      const receiver = d.actors.stranger.account.address;
      const paying = await card(SCHEME.mintmark, { receiver, fraction: 250n });
      const [to, amount] = await paying.read.royaltyInfo([1n, 10_000n]);
      expect([to.toLowerCase(), amount]).toEqual([receiver, 250n]);
      expect((await (await card()).read.royaltyInfo([1n, 10_000n]))[1]).toBe(0n);
    });
  });

  describe("the ERC-1155", () => {
    it("counts the supply of each id", async () => {
      const token = await item();
      await token.write.mintFor([owner, 3n, toHex("1")], minter);
      await token.write.mintFor([owner, 4n, toHex("1")], minter);
      await token.write.mintFor([owner, 5n, toHex("2")], minter);
      expect(await token.read.totalSupply([1n])).toBe(7n);
      expect(await token.read.balanceOf([owner, 2n])).toBe(5n);
      expect(await token.read.totalSupply()).toBe(12n);
      expect([await token.read.name(), await token.read.symbol()]).toEqual(["Item", "ITEM"]);
      expect(await token.read.uri([1n])).toBe("ipfs://items/{id}");
    });

    it("reads an id between braces", async () => {
      const token = await item(SCHEME.imx);
      await token.write.mintFor([owner, 3n, toHex("{9}:{blueprint}")], minter);
      expect(await token.read.balanceOf([owner, 9n])).toBe(3n);
    });

    it("is not handed to a contract that does not take it", async () => {
      const token = await item();
      await d.viem.assertions.revertWithCustomErrorWithArgs(
        token.write.mintFor([d.state.address, 1n, toHex("1")], minter),
        token,
        "ERC1155InvalidReceiver",
        [d.state.address],
      );
      const recipient = await d.viem.deployContract("Recipient");
      await token.write.mintFor([recipient.address, 1n, toHex("1")], minter);
      expect(await token.read.balanceOf([recipient.address, 1n])).toBe(1n);
    });
  });
});
