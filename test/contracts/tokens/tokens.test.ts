import { type Address, getAddress, maxUint256, toHex, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import {
  CAP,
  hashedId,
  openTokens,
  ROYALTY_FRACTION,
  supported,
  type TokenDeployment,
} from "./fixture.ts";

const { viem, fresh } = await openTokens();

let d: TokenDeployment;
let owner: Address;
let friend: Address;
beforeEach(async () => {
  d = await fresh();
  owner = getAddress(d.actors.owner.account.address);
  friend = getAddress(d.actors.friend.account.address);
});

describe("MintableERC20", () => {
  const mint = (to: Address, quantity: bigint, mintingBlob: `0x${string}` = "0x") =>
    d.coin.write.mintFor([to, quantity, mintingBlob], d.by("minter"));

  it("says what it is", async () => {
    expect(await d.coin.read.name()).toBe("Coin");
    expect(await d.coin.read.symbol()).toBe("COIN");
    expect(await d.coin.read.decimals()).toBe(18);
    expect(await supported(d.coin)).toEqual(["erc165", "mintable", "accessControl"]);
  });

  it("mints base units for the minter, and for nobody else", async () => {
    await viem.assertions.emitWithArgs(mint(owner, 700n), d.coin, "Transfer", [
      zeroAddress,
      owner,
      700n,
    ]);
    expect(await d.coin.read.balanceOf([owner])).toBe(700n);
    expect(await d.coin.read.totalSupply()).toBe(700n);
    for (const actor of ["admin", "owner", "stranger"] as const) {
      await d.refuses(
        d.coin.write.mintFor([owner, 1n, "0x"], d.by(actor)),
        d.coin,
        "AccessControlUnauthorizedAccount",
      );
    }
  });

  it("refuses a quantum of 0: no unit at the engine would be worth anything", async () => {
    await d.refuses(
      viem.deployContract("MintableERC20", [
        "Coin",
        "COIN",
        CAP,
        0n,
        owner,
        owner,
        zeroAddress,
        false,
      ]),
      d.coin,
      "QuantumZero",
    );
  });

  it("refuses a minting blob: its units are all alike", async () => {
    await d.refuses(mint(owner, 1n, "0x31"), d.coin, "MintingBlobNotEmpty", ["0x31"]);
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

describe("MintableERC721", () => {
  const mint = (mintingBlob: string, quantity = 1n) =>
    d.card.write.mintFor([owner, quantity, toHex(mintingBlob)], d.by("minter"));
  const mintImx = (mintingBlob: string) =>
    d.imxCard.write.mintFor([owner, 1n, toHex(mintingBlob)], d.by("minter"));

  it("says what it is", async () => {
    expect(await d.card.read.name()).toBe("Card");
    expect(await d.card.read.symbol()).toBe("CARD");
    const all = [
      "erc165",
      "mintable",
      "accessControl",
      "erc721",
      "erc721Metadata",
      "erc2981",
      "erc4906",
    ];
    expect(await supported(d.card)).toEqual(all);
  });

  it("mints for the minter, and for nobody else", async () => {
    await viem.assertions.emitWithArgs(mint("7"), d.card, "Transfer", [zeroAddress, owner, 7n]);
    expect(await d.card.read.ownerOf([7n])).toBe(owner);
    for (const actor of ["admin", "owner", "stranger"] as const) {
      await d.refuses(
        d.card.write.mintFor([owner, 1n, toHex("8")], d.by(actor)),
        d.card,
        "AccessControlUnauthorizedAccount",
      );
    }
  });

  it("mints exactly one at a time", async () => {
    for (const quantity of [0n, 2n, maxUint256]) {
      await d.refuses(mint("7", quantity), d.card, "QuantityNotOne", [quantity]);
    }
  });

  it("mints a token once, however it is named", async () => {
    await mint("a hero");
    await d.refuses(mint("a hero"), d.card, "ERC721InvalidSender");
    await d.refuses(mint(String(hashedId("a hero"))), d.card, "ERC721InvalidSender");
    await mintImx("{7}:{blue}");
    await d.refuses(mintImx("{7}:{red}"), d.imxCard, "ERC721InvalidSender");
  });

  it.each([
    ["0", 0n],
    ["4711", 4_711n],
    [String(maxUint256), maxUint256],
    ["007", hashedId("007")],
    [String(maxUint256 + 1n), hashedId(String(maxUint256 + 1n))],
    ["-1", hashedId("-1")],
    ["{7}:{}", hashedId("{7}:{}")],
  ])("reads %s in the mintmark scheme", async (mintingBlob, id) => {
    await mint(mintingBlob);
    expect(await d.card.read.ownerOf([id])).toBe(owner);
    expect(await d.card.read.blueprints([id])).toBe("0x");
  });

  it.each([
    ["{0}:{}", 0n, ""],
    ["{12}:{onchain: blue}", 12n, "onchain: blue"],
    ["{12}:{}:{}", 12n, "}:{"],
    [`{${maxUint256}}:{x}`, maxUint256, "x"],
  ])("reads %s in the imx scheme, and keeps its blueprint", async (mintingBlob, id, blueprint) => {
    await mintImx(mintingBlob);
    expect(await d.imxCard.read.ownerOf([id])).toBe(owner);
    expect(await d.imxCard.read.blueprints([id])).toBe(toHex(blueprint));
  });

  it("has a URI a token, under its base", async () => {
    await mint("7");
    expect(await d.card.read.tokenURI([7n])).toBe("ipfs://cards/7");
    await d.refuses(d.card.read.tokenURI([8n]) as never, d.card, "ERC721NonexistentToken", [8n]);
  });

  it("asks for a royalty by ERC-2981, or for none, as an ERC-1155 does", async () => {
    for (const token of [d.card, d.item]) {
      const [receiver, amount] = await token.read.royaltyInfo([7n, 1_000_000n]);
      expect(receiver).toBe(getAddress(d.actors.admin.account.address));
      expect(amount).toBe((1_000_000n * ROYALTY_FRACTION) / 10_000n);
    }
    const free = await viem.deployContract("MintableERC721", [
      "",
      "",
      "",
      1,
      { receiver: zeroAddress, fraction: 0n },
      owner,
      owner,
      zeroAddress,
      false,
    ]);
    expect(await free.read.royaltyInfo([7n, 1_000_000n])).toEqual([zeroAddress, 0n]);
  });

  it("is moved only by its owner and by approved accounts", async () => {
    for (const mintingBlob of ["1", "2", "3"]) await mint(mintingBlob);
    await d.refuses(
      d.card.write.transferFrom([owner, friend, 1n], d.by("friend")),
      d.card,
      "ERC721InsufficientApproval",
    );
    await d.card.write.transferFrom([owner, friend, 1n], d.by("owner"));
    await viem.assertions.emitWithArgs(
      d.card.write.approve([friend, 2n], d.by("owner")),
      d.card,
      "Approval",
      [owner, friend, 2n],
    );
    await d.card.write.transferFrom([owner, friend, 2n], d.by("friend"));
    expect(await d.card.read.getApproved([2n])).toBe(zeroAddress);
    await viem.assertions.emitWithArgs(
      d.card.write.setApprovalForAll([friend, true], d.by("owner")),
      d.card,
      "ApprovalForAll",
      [owner, friend, true],
    );
    await d.card.write.safeTransferFrom([owner, friend, 3n], d.by("friend"));
    expect(await d.card.read.balanceOf([friend])).toBe(3n);
    await d.refuses(
      d.card.write.transferFrom([owner, friend, 1n], d.by("friend")),
      d.card,
      "ERC721IncorrectOwner",
    );
  });

  it("goes safely only to a contract that takes it, but is minted to any", async () => {
    const wallet = await viem.deployContract("Wallet1271", [owner, 0]);
    await mint("1");
    await d.refuses(
      d.card.write.safeTransferFrom([owner, wallet.address, 1n], d.by("owner")),
      d.card,
      "ERC721InvalidReceiver",
    );
    await d.card.write.mintFor([wallet.address, 1n, toHex("2")], d.by("minter"));
    expect(await d.card.read.balanceOf([wallet.address])).toBe(1n);
    await d.refuses(
      d.card.write.mintFor([zeroAddress, 1n, toHex("3")], d.by("minter")),
      d.card,
      "ERC721InvalidReceiver",
    );
  });
});

describe("MintableERC1155", () => {
  const mint = (mintingBlob: string, quantity: bigint, to = owner) =>
    d.item.write.mintFor([to, quantity, toHex(mintingBlob)], d.by("minter"));

  it("says what it is", async () => {
    expect(await d.item.read.name()).toBe("Item");
    expect(await d.item.read.symbol()).toBe("ITEM");
    expect(await d.item.read.uri([7n])).toBe("ipfs://items/{id}");
    expect(await supported(d.item)).toEqual([
      "erc165",
      "mintable",
      "accessControl",
      "erc2981",
      "erc1155",
      "erc1155MetadataUri",
    ]);
  });

  it("mints any quantity of an id for the minter, and for nobody else", async () => {
    const minter = getAddress(d.actors.minter.account.address);
    await viem.assertions.emitWithArgs(mint("7", 3n), d.item, "TransferSingle", [
      minter,
      zeroAddress,
      owner,
      7n,
      3n,
    ]);
    await mint("7", 4n);
    await mint("8", 1n, friend);
    expect(
      await d.item.read.balanceOfBatch([
        [owner, friend, owner],
        [7n, 8n, 8n],
      ]),
    ).toEqual([7n, 1n, 0n]);
    expect(await d.item.read.totalSupply([7n])).toBe(7n);
    expect(await d.item.read.exists([9n])).toBe(false);
    for (const actor of ["admin", "owner", "stranger"] as const) {
      await d.refuses(
        d.item.write.mintFor([owner, 1n, toHex("7")], d.by(actor)),
        d.item,
        "AccessControlUnauthorizedAccount",
      );
    }
  });

  it("reads the imx scheme, whatever the blueprint, and nothing else", async () => {
    const mintImx = (mintingBlob: string) =>
      d.imxItem.write.mintFor([owner, 2n, toHex(mintingBlob)], d.by("minter"));
    await mintImx("{7}:{blue}");
    await mintImx("{7}:{}");
    expect(await d.imxItem.read.balanceOf([owner, 7n])).toBe(4n);
    for (const mintingBlob of ["7", "{07}:{}", "{7}", ""]) {
      await d.refuses(mintImx(mintingBlob), d.imxItem, "MintingBlobInvalid", [toHex(mintingBlob)]);
    }
  });

  it("is minted to a contract only if that takes it", async () => {
    const [taker, wallet] = [
      await viem.deployContract("Recipient"),
      await viem.deployContract("Wallet1271", [owner, 0]),
    ];
    await mint("7", 5n, taker.address);
    expect(await d.item.read.balanceOf([taker.address, 7n])).toBe(5n);
    await d.refuses(mint("7", 5n, wallet.address), d.item, "ERC1155InvalidReceiver");
    await d.refuses(mint("7", 5n, zeroAddress), d.item, "ERC1155InvalidReceiver");
  });
});
