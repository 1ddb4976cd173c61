import { type Hex, numberToHex, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import {
  type CommittedBatch,
  commitRollup,
  commitValidium,
  entry,
  proofOf,
  provenArgs,
} from "./fixture/batches.ts";
import {
  assetOf,
  type Deployment,
  openChain,
  SCHEME,
  STANDARD,
  type TestAsset,
} from "./fixture/deployment.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const HERE = 31_337n;
const raw = (id: bigint) => numberToHex(id, { size: 32 });
/** A slot whose minting blob is these very bytes. */
const slotOf = (asset: TestAsset, owner: Hex, mintingBlob: Hex, amount = 1n) => ({
  ...entry(asset, owner, "", amount),
  mintingBlob,
});

/** Tokens that were made for other engines, with the interface that those have published. */
describe("tokens of other engines", () => {
  let d: Deployment;
  let owner: Hex;
  beforeEach(async () => {
    d = await fresh();
    owner = d.actors.owner.account.address;
  });

  const register = async (standard: "erc721" | "erc1155", token: Hex, scheme: number) => {
    await d.state.write.registerAsset([STANDARD[standard], HERE, token, 1n, scheme]);
    return assetOf(standard, token);
  };
  const withdraw = (batch: CommittedBatch, slot: number) =>
    d.state.write.withdraw(withdrawArgs(request(batch, slot)), d.by("owner"));
  const proven = (batch: CommittedBatch, slot: number) => provenArgs(proofOf(batch, slot));

  it("StarkExpress's ERC-721 is withdrawn unchanged, in both modes", async () => {
    const token = await d.viem.deployContract("StarkExpressERC721", [d.state.address]);
    const asset = await register("erc721", token.address, SCHEME.raw32);
    const ids = [0n, 17n, 2n ** 256n - 1n];
    for (const [i, commit] of [commitRollup, commitValidium].entries()) {
      const own = ids.map((id) => id ^ (BigInt(i) << 128n));
      const batch = await commit(
        d,
        own.map((id) => slotOf(asset, owner, raw(id))),
      );
      await d.mature();
      for (const [slot, id] of own.entries()) {
        await withdraw(batch, slot);
        expect((await token.read.ownerOf([id])).toLowerCase()).toBe(owner.toLowerCase());
      }
    }
  });

  it("StarkExpress's ERC-1155 is withdrawn unchanged, in parts of a vault too", async () => {
    const token = await d.viem.deployContract("StarkExpressERC1155", [d.state.address]);
    const batch = await commitRollup(d, [
      slotOf(await register("erc1155", token.address, SCHEME.raw32), owner, raw(7n), 9n),
    ]);
    for (const quantity of [4n, 5n]) {
      await d.state.write.withdraw(withdrawArgs(request(batch, 0, { quantity })), d.by("owner"));
    }
    expect(await token.read.balanceOf([owner, 7n])).toBe(9n);
  });

  it("Immutable X's ERC-721 is withdrawn unchanged, with its blueprint", async () => {
    const token = await d.viem.deployContract("ImxAsset", [d.config.admin, d.state.address]);
    const asset = await register("erc721", token.address, SCHEME.imx);
    const batch = await commitRollup(d, [
      entry(asset, owner, "{17}:{sword,+3}"),
      entry(asset, owner, "{18}:{}"),
    ]);
    await d.mature();
    for (const slot of [0, 1]) await withdraw(batch, slot);
    expect(await token.read.blueprints([17n])).toBe("0x73776f72642c2b33");
    expect((await token.read.ownerOf([18n])).toLowerCase()).toBe(owner.toLowerCase());
  });

  it("a raw id has one spelling, so a vault with bytes behind the id pays nobody", async () => {
    const token = await d.viem.deployContract("StarkExpressERC721", [d.state.address]);
    const asset = await register("erc721", token.address, SCHEME.raw32);
    const mintingBlobs = [
      `${raw(7n)}00`,
      raw(7n).slice(0, 64),
      "0x07",
      `${raw(7n)}${raw(8n).slice(2)}`,
    ] as Hex[];
    const batch = await commitValidium(
      d,
      mintingBlobs.map((mintingBlob) => slotOf(asset, owner, mintingBlob)),
    );
    await d.mature();
    for (const [slot, mintingBlob] of mintingBlobs.entries()) {
      await d.refuses(withdraw(batch, slot), "MintingBlobInvalid", [mintingBlob]);
    }
  });

  it("the later of two vaults of one raw id is voided, and no vault of another id", async () => {
    const token = await d.viem.deployContract("StarkExpressERC721", [d.state.address]);
    const asset = await register("erc721", token.address, SCHEME.raw32);
    const [first, second] = [
      await commitRollup(d, [slotOf(asset, owner, raw(7n)), slotOf(asset, owner, raw(8n))]),
      await commitValidium(d, [slotOf(asset, zeroAddress, raw(9n)), slotOf(asset, owner, raw(7n))]),
    ];
    for (const [a, b] of [
      [proven(first, 1), proven(second, 1)],
      [proven(second, 1), proven(first, 0)],
      [proven(second, 0), proven(second, 1)],
    ] as const) {
      const call = d.state.write.voidDuplicate([...a, ...b]);
      await d.refuses(call, "NotDuplicates");
    }
    await d.state.write.voidDuplicate([...proven(first, 0), ...proven(second, 1)]);
    await d.mature();
    await d.refuses(withdraw(second, 1), "VaultExhausted");
    await withdraw(first, 0);
  });
});
