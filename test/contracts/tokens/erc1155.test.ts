import { type Address, getAddress, toHex, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { openTokens, supported, type TokenDeployment } from "./fixture.ts";

const { viem, fresh } = await openTokens();

describe("MintableERC1155", () => {
  let d: TokenDeployment;
  let owner: Address;
  let friend: Address;
  beforeEach(async () => {
    d = await fresh();
    owner = getAddress(d.actors.owner.account.address);
    friend = getAddress(d.actors.friend.account.address);
  });

  const mint = (blob: string, quantity: bigint, to = owner) =>
    d.item.write.mintFor([to, quantity, toHex(blob)], d.by("minter"));

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
    await viem.assertions.emitWithArgs(mint("7", 3n), d.item, "TransferSingle", [minter, zeroAddress, owner, 7n, 3n]);
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
    const mintImx = (blob: string) => d.imxItem.write.mintFor([owner, 2n, toHex(blob)], d.by("minter"));
    await mintImx("{7}:{blue}");
    await mintImx("{7}:{}");
    expect(await d.imxItem.read.balanceOf([owner, 7n])).toBe(4n);
    for (const blob of ["7", "{07}:{}", "{7}", ""]) {
      await d.refuses(mintImx(blob), d.imxItem, "BlobInvalid", [toHex(blob)]);
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
