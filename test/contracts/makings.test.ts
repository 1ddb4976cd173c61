import { type Address, concat, type Hex, keccak256, maxUint256, toHex, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import {
  isMadeVaultId,
  packMadeVaultId,
  packVaultId,
  unpackMadeVaultId,
} from "../../core/protocol/vault.ts";
import {
  type CommittedBatch,
  commit,
  commitRollup,
  commitValidium,
  entry,
  proofOf,
  provenArgs,
  sealedRoot,
} from "./fixture/batches.ts";
import { MATURITY, MODE, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { madeId, madeIn } from "./fixture/makings.ts";
import { outcomeOf } from "./fixture/outcomes.ts";
import {
  commitTransfers,
  exitArgs,
  give,
  hopOf,
  LATER,
  openTransferChain,
  signedGroup,
  type TransferDeployment,
} from "./fixture/transfers.ts";
import { batchArgs, listed, request, withdrawArgs } from "./fixture/withdrawals.ts";

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;

describe("entering", () => {
  let d: TransferDeployment;
  let [ann, bob]: readonly Address[] = [];
  let card: Awaited<ReturnType<TransferDeployment["mintable"]["erc721"]>>;
  let coin: Awaited<ReturnType<TransferDeployment["mintable"]["erc20"]>>;
  let item: Awaited<ReturnType<TransferDeployment["mintable"]["erc1155"]>>;
  let assets: Record<"card" | "coin" | "item", Awaited<ReturnType<typeof d.register>>>;
  beforeEach(async () => {
    d = await fresh();
    [ann, bob] = d.keys.map(({ address }) => address);
    card = await d.mintable.erc721({ isTransferable: true });
    coin = await d.mintable.erc20({ isTransferable: true, quantum: 1_000n });
    item = await d.mintable.erc1155({ isTransferable: true });
    await card.write.lockMinter(d.by("admin"));
    await coin.write.lockMinter(d.by("admin"));
    await item.write.lockMinter(d.by("admin"));
    assets = {
      card: await d.register("erc721", card.address),
      coin: await d.register("erc20", coin.address, 1_000n),
      item: await d.register("erc1155", item.address),
    };
  });

  const owned = (address: Address | undefined) => address as Address;
  const as = (account: Address | undefined) => ({ account: owned(account) });
  const idOf = (batch: CommittedBatch, slot = 0) => batch.vaults[slot]?.vaultId as bigint;
  const withdraw = (batch: CommittedBatch, by: Address | undefined, slot = 0) =>
    d.state.write.withdraw(withdrawArgs(request(batch, slot)), as(by));
  /** Mints a card, lets it mature, and withdraws it. */
  const onL1 = async (id: string, owner = owned(ann)) => {
    const batch = await commitRollup(d, [entry(assets.card, owner, id)]);
    await time.increase(MATURITY);
    await withdraw(batch, owner);
    return batch;
  };
  const enterCard = (id: bigint, by = ann, owner = by) =>
    madeIn(d, card.write.enter([owned(owner), id], as(by)));
  const holderOf = async (id: bigint) => (await card.read.ownerOf([id])).toLowerCase();
  const coinsOnL1 = async (amount: bigint, owner = owned(ann)) => {
    const batch = await commitRollup(d, [entry(assets.coin, owner, "", amount)]);
    await withdraw(batch, owner);
  };

  it("makes a vault of a card, which its owner withdraws at once, by events alone", async () => {
    await onL1("7");
    const made = await enterCard(7n, ann, bob);
    expect(idOf(made)).toBe(madeId(1));
    expect(made.vaults).toEqual([
      {
        vaultId: madeId(1),
        chainId: 31_337n,
        owner: owned(bob).toLowerCase(),
        assetType: assets.card.assetType,
        amount: 1n,
        mintingBlob: toHex("7"),
      },
    ]);
    const { batchRoot } = made.header;
    const root = `0x${Buffer.from(made.tree.root).toString("hex")}` as Hex;
    expect(batchRoot).toBe(sealedRoot("validium", made.assets, root));
    expect(await d.state.read.makings()).toBe(1n);
    expect(await d.state.read.latestEntry([BigInt(assets.card.assetType), 7n])).toBe(1n);
    await expect(card.read.ownerOf([7n])).rejects.toThrow("ERC721NonexistentToken");
    expect(await d.state.read.verifyVault(provenArgs(proofOf(made, 0)))).toBe(0n);
    await d.refuses(withdraw(made, ann), "NotOwner");
    await withdraw(made, bob);
    expect(await holderOf(7n)).toBe(owned(bob).toLowerCase());
    expect(await d.state.read.withdrawn([madeId(1), STANDARD.erc721])).toBe(1n);
    await d.refuses(withdraw(made, bob), "VaultExhausted", [madeId(1)]);
  });

  it("makes vaults of units, which are withdrawn in parts and in batches", async () => {
    await coinsOnL1(9n);
    const minted = await commitRollup(d, [entry(assets.item, owned(ann), "5", 4n)]);
    await withdraw(minted, ann);
    const coins = await madeIn(d, coin.write.enter([owned(ann), 8_000n], as(ann)));
    const items = await madeIn(d, item.write.enter([owned(ann), 5n, 3n], as(ann)));
    expect([coins, items].map((made) => made.vaults[0])).toMatchObject([
      { vaultId: madeId(1), amount: 8n, mintingBlob: "0x" },
      { vaultId: madeId(2), amount: 3n, mintingBlob: toHex("5") },
    ]);
    expect(await coin.read.totalSupply()).toBe(1_000n);
    expect(await item.read.totalSupply([5n])).toBe(1n);
    const asked = [
      request(coins, 0, { quantity: 2n, recipient: owned(bob) }),
      request(items, 0, { quantity: 3n, recipient: owned(bob) }),
    ];
    const [key] = d.keys;
    const args = batchArgs(await listed(d, key as never, asked));
    const outcome = await outcomeOf(d, await d.state.write.withdrawBatch(args, d.by("relayer")));
    expect(outcome).toMatchObject({ failed: [], withdrawn: [madeId(1), madeId(2)] });
    expect(await coin.read.balanceOf([owned(bob)])).toBe(2_000n);
    expect(await item.read.balanceOf([owned(bob), 5n])).toBe(3n);
    expect(await d.state.read.withdrawn([madeId(1), STANDARD.erc20])).toBe(2n);
    await d.refuses(withdraw(coins, ann), "QuantityTooLarge", [madeId(1), 8n, 6n]);
  });

  it("keeps what is withdrawn of each made vault apart from all others", async () => {
    await coinsOnL1(20n);
    const owner = owned(ann);
    // Without their bit, the ids of makings 1 to 3 would be those of validium batches 1 to 3.
    for (const _ of [0, 1, 2, 3]) await commitValidium(d, [entry(assets.coin, owner, "", 9n)]);
    const made: CommittedBatch[] = [];
    for (const _ of [1, 2, 3, 4, 5])
      made.push(await madeIn(d, coin.write.enter([owner, 2_000n], as(ann))));
    for (const [i, each] of made.entries())
      await d.state.write.withdraw(
        withdrawArgs(request(each, 0, { quantity: i === 2 ? 2n : 1n })),
        as(ann),
      );
    const read = async (id: bigint) => d.state.read.withdrawn([id, STANDARD.erc20]);
    expect(await Promise.all(made.map((each) => read(idOf(each))))).toEqual([1n, 1n, 2n, 1n, 1n]);
    for (const slot of [1, 2, 255]) expect(await read(madeId(1, slot))).toBe(0n);
    for (let batchNumber = 0; batchNumber < 9; batchNumber++)
      for (const mode of ["validium", "zk-rollup"] as const)
        if (mode === "validium" || batchNumber > 0)
          expect(await read(packVaultId({ mode, batchNumber, slot: 0 }))).toBe(0n);
  });

  it("is open only once the minter is locked, and then makes vaults of that minter alone", async () => {
    const open = await d.mintable.erc20({});
    await d.register("erc20", open.address);
    const enter = () => open.write.enter([owned(ann), 0n], as(ann));
    await expect(enter()).rejects.toThrow("MinterNotLocked");
    const stranger = d.actors.stranger.account.address;
    await open.write.grantRole([keccak256(toHex("MINTER")), stranger], d.by("admin"));
    await expect(enter()).rejects.toThrow("MinterNotLocked");
    await open.write.revokeRole([keccak256(toHex("MINTER")), stranger], d.by("admin"));
    await open.write.lockMinter(d.by("admin"));
    await d.refuses(enter(), "VaultUnpayable");
  });

  it("takes the caller's tokens alone, whatever they have approved", async () => {
    await onL1("7");
    await card.write.setApprovalForAll([owned(bob), true], as(ann));
    await card.write.approve([owned(bob), 7n], as(ann));
    await expect(card.write.enter([owned(bob), 7n], as(bob))).rejects.toThrow(
      "ERC721IncorrectOwner",
    );
    await coinsOnL1(2n);
    await coin.write.approve([owned(bob), maxUint256], as(ann));
    await expect(coin.write.enter([owned(bob), 1_000n], as(bob))).rejects.toThrow(
      "ERC20InsufficientBalance",
    );
    await expect(card.write.enter([owned(bob), 8n], as(bob))).rejects.toThrow(
      "ERC721IncorrectOwner",
    );
    expect(await holderOf(7n)).toBe(owned(ann).toLowerCase());
  });

  it("is refused where nobody could be paid, and burns nothing", async () => {
    await onL1("7");
    await coinsOnL1(3n);
    for (const call of [
      () => card.write.enter([zeroAddress, 7n], as(ann)),
      () => coin.write.enter([zeroAddress, 1_000n], as(ann)),
    ])
      await d.refuses(call(), "VaultUnpayable");
    const odd = coin.write.enter([owned(ann), 1_500n], as(ann));
    await d.refuses(odd, "AmountIndivisible", [1_500n, 1_000n]);
    await d.refuses(coin.write.enter([owned(ann), 0n], as(ann)), "VaultUnpayable");
    const capped = await d.mintable.erc20({ cap: 10n ** 9n });
    await capped.write.lockMinter(d.by("admin"));
    await d.register("erc20", capped.address);
    await expect(capped.write.enter([owned(ann), 0n], as(ann))).rejects.toThrow("CapForbidsEntry");
    const unregistered = await d.mintable.erc20({});
    await unregistered.write.lockMinter(d.by("admin"));
    await d.refuses(unregistered.write.enter([owned(ann), 0n], as(ann)), "NotToken");
    expect(await holderOf(7n)).toBe(owned(ann).toLowerCase());
    expect(await coin.read.balanceOf([owned(ann)])).toBe(3_000n);
    expect(await d.state.read.makings()).toBe(0n);
  });

  it("is the token's alone: nobody else makes a vault of its asset", async () => {
    const args = [BigInt(assets.coin.assetType), owned(ann), 1_000n, "0x"] as const;
    for (const actor of ["admin", "operator", "stranger"] as const)
      await d.refuses(d.state.write.make(args, d.by(actor)), "NotToken");
  });

  it("ends each older vault of the id, whoever has it and however it was transferred", async () => {
    const [, other] = d.keys as [never, never];
    const mint = await commitRollup(d, [entry(assets.card, owned(ann), "7")]);
    const hidden = await commitValidium(d, [
      entry(assets.card, owned(bob), "7"),
      entry(assets.card, owned(bob), "7"),
    ]);
    // Another spelling of the id.
    const number = BigInt(keccak256(toHex("a hero")));
    const hero = await commitRollup(d, [entry(assets.card, owned(ann), "a hero")]);
    const duplicate = await commitValidium(d, [entry(assets.card, owned(bob), String(number))]);
    const moved = await commitTransfers(d, [
      await signedGroup(d, other, [give(idOf(hidden, 1), owned(ann))]),
    ]);
    await time.increase(MATURITY);
    await withdraw(mint, ann);
    await withdraw(hero, ann);
    const made = await enterCard(7n);
    await enterCard(number);
    const ended = async (batch: CommittedBatch, by: Address | undefined, slot = 0) =>
      d.refuses(withdraw(batch, by, slot), "LineageEnded");
    await d.refuses(withdraw(hidden, bob), "LineageEnded", [idOf(hidden), 1n]);
    await ended(duplicate, bob);
    await d.refuses(d.state.read.verifyVault(provenArgs(proofOf(hidden, 0))), "LineageEnded");
    const exit = exitArgs(hidden, 1, { hops: [hopOf(moved, 0)], recipient: owned(ann) });
    await d.refuses(d.state.write.withdrawTransferred(exit, as(ann)), "LineageEnded");
    const verified = d.state.read.verifyTransferred(exit.slice(0, 5) as never);
    await d.refuses(verified, "LineageEnded");
    const asked = batchArgs(
      await listed(d, other, [request(hidden, 0, { recipient: owned(ann) })]),
    );
    const { failed } = await outcomeOf(d, await d.state.write.withdrawBatch(asked, as(ann)));
    expect(failed.map(({ error }) => error)).toEqual(["LineageEnded"]);
    // A vault that is committed later is no better.
    const later = await commit.validium(d, [entry(assets.card, owned(bob), "7")]);
    await time.increase(MATURITY);
    await ended(later, bob);
    // An entry ends the one before it, and its withdrawal does not revive that.
    await withdraw(made, ann);
    const again = await enterCard(7n);
    await d.refuses(withdraw(made, ann), "LineageEnded", [idOf(made), 3n]);
    await withdraw(again, ann);
    await ended(made, ann);
  });

  it("of a card that another one duplicated leaves other ids and other tokens alone", async () => {
    const batch = await commitRollup(d, [
      entry(assets.card, owned(ann), "7"),
      entry(assets.card, owned(ann), "8"),
      entry(d.assets.card, owned(ann), "7"),
    ]);
    await time.increase(MATURITY);
    await withdraw(batch, ann);
    await enterCard(7n);
    await withdraw(batch, ann, 1);
    await withdraw(batch, ann, 2);
    expect(await holderOf(8n)).toBe(owned(ann).toLowerCase());
  });

  it("makes vaults that are given away by records, and exit at the tip", async () => {
    await onL1("7");
    await coinsOnL1(9n);
    const [key] = d.keys as [never];
    const cards = await enterCard(7n);
    const coins = await madeIn(d, coin.write.enter([owned(ann), 9_000n], as(ann)));
    const batch = await commitTransfers(d, [
      await signedGroup(d, key, [give(idOf(cards), owned(bob)), give(idOf(coins), owned(bob), 4n)]),
    ]);
    await d.refuses(withdraw(cards, ann), "VaultSpent", [idOf(cards)]);
    const exit = (made: CommittedBatch, slot: number, by: Address | undefined, quantity = 1n) =>
      d.state.write.withdrawTransferred(
        exitArgs(made, 0, { hops: [hopOf(batch, slot)], recipient: owned(by), quantity }),
        as(by),
      );
    await exit(cards, 0, bob);
    expect(await holderOf(7n)).toBe(owned(bob).toLowerCase());
    await exit(coins, 1, bob, 4n);
    await exit(coins, 2, ann, 5n);
    expect(await coin.read.balanceOf([owned(bob)])).toBe(4_000n);
    // Its tip, a vault of a batch, is of the making's lineage.
    await enterCard(7n, bob);
    await d.refuses(exit(cards, 0, bob), "LineageEnded");
  });

  it("leaves an owner the vault that an unsigned record names", async () => {
    await onL1("7");
    const made = await enterCard(7n);
    const transfers = [give(idOf(made), owned(bob))];
    const bogus = await commitTransfers(d, [
      { transfers, deadline: LATER, signature: `0x${"00".repeat(64)}` },
    ]);
    await d.refuses(withdraw(made, ann), "VaultSpent");
    const exit = exitArgs(made, 0, { refutation: [hopOf(bogus, 0)] });
    await d.state.write.withdrawTransferred(exit, as(ann));
    expect(await holderOf(7n)).toBe(owned(ann).toLowerCase());
  });

  it("plants no bit ahead: records name makings that L1 has", async () => {
    await onL1("7");
    const [key] = d.keys as [never];
    const history = await d.state.read.history();
    const record = concat([toHex(madeId(0), { size: 8 }), `0x${"00".repeat(64 + 3 + 20)}`]);
    const nameless = d.state.write.commitTransferBatch(
      [history, 1n, concat(["0x0308ffffffff", record]), "0x"],
      d.by("operator"),
    );
    await d.refuses(nameless, "BatchUnknown", [madeId(0)]);
    for (const vaultId of [madeId(1), madeId(2), madeId(2 ** 40)])
      await d.refuses(
        commitTransfers(d, [await signedGroup(d, key, [give(vaultId, owned(bob))])]),
        "BatchUnknown",
        [vaultId],
      );
    const { vaults } = await enterCard(7n);
    const group = await signedGroup(d, key, [give(vaults[0]?.vaultId as bigint, owned(bob))]);
    await commitTransfers(d, [group]);
    await d.refuses(commitTransfers(d, [group]), "Spent", [madeId(1)]);
    const ahead = await signedGroup(d, key, [give(madeId(2), owned(bob)), give(3n, owned(bob))]);
    await d.refuses(commitTransfers(d, [ahead]), "BatchUnknown");
  });

  it("makes no vault that is voided, or voids another", async () => {
    const batch = await onL1("7");
    const made = await enterCard(7n);
    const later = await commitRollup(d, [entry(assets.card, owned(bob), "7")]);
    const proofs = [batch, made, later].map((each) => provenArgs(proofOf(each, 0)));
    const [first, own, last] = proofs as [never, never, never];
    const voids = (a: readonly unknown[], b: readonly unknown[]) =>
      d.refuses(d.state.write.voidDuplicate([...a, ...b] as never), "NotDuplicates");
    await voids(first, own);
    await voids(own, last);
    await voids(own, own);
    await d.state.write.voidDuplicate([...(first as []), ...(last as [])] as never);
    await withdraw(made, ann);
  });

  it("is no commit: the state, its history and a commit that is under way stay", async () => {
    await onL1("7");
    const read = () =>
      Promise.all([
        d.state.read.history(),
        d.state.read.stateCommitment(),
        d.state.read.batchCounts(),
      ]);
    const before = await read();
    const made = await enterCard(7n);
    expect(await read()).toEqual(before);
    await d.state.write.pauseCommits([true], d.by("guardian"));
    await withdraw(made, ann);
    await enterCard(7n);
    expect(await d.state.read.makings()).toBe(2n);
    await d.state.write.pauseCommits([false], d.by("guardian"));
    await commitRollup(d, [entry(assets.coin, owned(ann), "", 1n)]);
    expect(await d.state.read.makings()).toBe(2n);
    const [validium] = await d.state.read.batchCounts();
    expect(validium).toBe(0n);
    const stored = await d.state.read.batchHeaderHash([MODE.validium, 2n ** 42n + 1n]);
    expect(stored).not.toBe(`0x${"00".repeat(32)}`);
    await d.refuses(
      d.state.write.withdraw(
        withdrawArgs({ ...request(made, 0), header: { ...made.header, committedAt: 1n } }),
        as(ann),
      ),
      "HeaderMismatch",
    );
  });

  it("keeps an imx card's blueprint, and takes ids of all sizes", async () => {
    const imx = await d.mintable.erc721({ scheme: SCHEME.imx });
    await imx.write.lockMinter(d.by("admin"));
    const asset = await d.register("erc721", imx.address);
    const big = maxUint256 - 1n;
    const batch = await commitRollup(d, [
      entry(asset, owned(ann), "{7}:{blue}"),
      entry(asset, owned(ann), `{${big}}:{}`),
      entry(assets.card, owned(ann), String(big)),
    ]);
    const copy = await commitRollup(d, [entry(asset, owned(bob), "{7}:{red}")]);
    await time.increase(MATURITY);
    for (const slot of [0, 1, 2]) await withdraw(batch, ann, slot);
    for (const id of [7n, big]) {
      const made = await madeIn(d, imx.write.enter([owned(ann), id], as(ann)));
      expect(made.vaults[0]?.mintingBlob).toBe(toHex(`{${id}}:{}`));
      await withdraw(made, ann);
    }
    expect(await imx.read.blueprints([7n])).toBe(toHex("blue"));
    await withdraw(await enterCard(big), ann);
    await d.refuses(withdraw(copy, bob), "LineageEnded");
  });

  it("of one vault many times never pays twice", async () => {
    await coinsOnL1(4n);
    for (const _ of [1, 2, 3]) {
      const made = await madeIn(d, coin.write.enter([owned(ann), 4_000n], as(ann)));
      expect(await coin.read.totalSupply()).toBe(0n);
      await withdraw(made, ann);
      await d.refuses(withdraw(made, ann), "VaultExhausted");
    }
    expect(await coin.read.totalSupply()).toBe(4_000n);
  });

  it("gives ids as the core packs them", () => {
    expect(packMadeVaultId({ making: 1n, slot: 0 })).toBe(madeId(1));
    expect(unpackMadeVaultId(madeId(2 ** 41, 255))).toEqual({ making: 2n ** 41n, slot: 255 });
    expect([madeId(0), madeId(1) + 2n ** 63n, 2n ** 62n - 1n].map(isMadeVaultId)).toEqual([
      false,
      false,
      false,
    ]);
  });
});
