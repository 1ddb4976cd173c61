import { type Address, concatHex, encodeFunctionData, numberToHex, slice, toHex } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { decodeEvents } from "../../core/l1/logs.ts";
import { settlementArguments } from "../../core/l1/trades.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import {
  type CommittedBatch,
  commitAs,
  commitRollup,
  commitValidium,
  entry,
} from "./fixture/batches.ts";
import { COIN_QUANTUM, MATURITY, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { madeId, madeIn } from "./fixture/makings.ts";
import { type Half, holdingsIn, settleArgs, tradeOf, tradesIn } from "./fixture/trades.ts";
import {
  commitTransfers,
  give,
  hopOf,
  openTransferChain,
  signedGroup,
  type TransferDeployment,
} from "./fixture/transfers.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;
/** The least gas of a trade that the contract takes. */
const TRADE_GAS = 2_000_000n;

describe("trades of two owners' vaults", () => {
  let d: TransferDeployment;
  let [ann, bob, eve] = [] as unknown as [PrivateKeyAccount, PrivateKeyAccount, PrivateKeyAccount];
  beforeEach(async () => {
    d = await fresh();
    [ann, bob, eve] = d.keys as unknown as [typeof ann, typeof bob, typeof eve];
  });

  const lower = (address: Address) => address.toLowerCase() as Address;
  const idOf = (batch: CommittedBatch, slot = 0) => batch.vaults[slot]?.vaultId as bigint;
  const settle = async (trades: readonly (readonly [Half, Half])[], by = eve.address) =>
    d.state.write.settle(await settleArgs(d, trades), { account: by });
  const settled = async (...given: Parameters<typeof settle>) => {
    const outcome = await tradesIn(d, settle(...given));
    expect(outcome.errors).toEqual([]);
    return madeIn(d, outcome.hash);
  };
  const withdraw = (batch: CommittedBatch, slot: number, by: PrivateKeyAccount) =>
    d.state.write.withdraw(withdrawArgs(request(batch, slot)), { account: by.address });
  const withdrawnOf = (vaultId: bigint, standard: keyof typeof STANDARD = "erc20") =>
    d.state.read.withdrawn([vaultId, STANDARD[standard]]);
  const ripe = async (slots: readonly VaultEntry[]) => {
    const batch = await commitRollup(d, slots);
    await time.increase(MATURITY);
    return batch;
  };
  /** A card of Ann's in slot 0, and 300 coins of Bob's in slot 1. */
  const market = () => {
    const { card, coin } = d.transferable;
    return ripe([entry(card, ann.address, "7"), entry(coin, bob.address, "", 300n)]);
  };
  const sells = (batch: CommittedBatch, change: Partial<Half> = {}): Half => ({
    by: ann,
    batch,
    asset: d.transferable.card,
    ...change,
  });
  const buys = (batch: CommittedBatch, change: Partial<Half> = {}): Half => ({
    by: bob,
    batch,
    slot: 1,
    asset: d.transferable.coin,
    gives: 250n,
    ...change,
  });

  it("give each owner what its order wants, and events rebuild what L1 made", async () => {
    const batch = await market();
    const outcome = await tradesIn(d, settle([[sells(batch), buys(batch)]]));
    expect(outcome.traded).toEqual([[idOf(batch), idOf(batch, 1)]]);
    const { logs } = await d.publicClient.getTransactionReceipt({ hash: outcome.hash });
    // The engine takes the units off as off a withdrawal, and the vaults as those of a renewal.
    const events = decodeEvents(logs);
    expect(events).toMatchObject([
      { type: "withdrawn", vaultId: idOf(batch), quantity: 1n, withdrawnTotal: 1n },
      { type: "withdrawn", vaultId: idOf(batch, 1), quantity: 250n, withdrawnTotal: 250n },
      {
        type: "made",
        making: 1n,
        entered: null,
        vaults: [
          { owner: lower(ann.address), amount: 250n },
          { owner: lower(bob.address), amount: 1n },
        ],
      },
    ]);
    const made = await madeIn(d, outcome.hash);
    expect(holdingsIn(made)).toEqual([
      [lower(ann.address), d.transferable.coin.assetType, 250n],
      [lower(bob.address), d.transferable.card.assetType, 1n],
    ]);
    expect(idOf(made, 1)).toBe(madeId(1, 1));
    await withdraw(made, 0, ann);
    await withdraw(made, 1, bob);
    expect(await withdrawnOf(idOf(batch, 1))).toBe(250n);
    await d.refuses(withdraw(batch, 0, ann), "VaultExhausted", [idOf(batch)]);
  });

  it("take shares out of what the signer receives", async () => {
    const batch = await market();
    const [fee, royalty, friend] = d.members.map(({ address }) => address) as [
      Address,
      Address,
      Address,
    ];
    const shares = [
      { to: fee, amount: 5n },
      { to: royalty, amount: 12n },
    ];
    const gift = { shares: [{ to: friend, amount: 1n }] };
    const made = await settled([
      [sells(batch, { order: { shares } }), buys(batch, { order: gift })],
    ]);
    const { card, coin } = d.transferable;
    // The buyer gave the whole card to a friend, so the buyer itself has no vault.
    expect(holdingsIn(made)).toEqual([
      [lower(fee), coin.assetType, 5n],
      [lower(royalty), coin.assetType, 12n],
      [lower(ann.address), coin.assetType, 233n],
      [lower(friend), card.assetType, 1n],
    ]);
  });

  it("are signed in base units, of any standard, scheme and kind of batch", async () => {
    const args = [STANDARD.erc721, SCHEME.raw32, 0n, d.state.address] as const;
    const { address } = await d.viem.deployContract("MakingToken", args);
    const raw = await d.register("erc721", address);
    const coin = await d.mintable.erc20({ quantum: COIN_QUANTUM, isTransferable: true });
    const gold = await d.register("erc20", coin.address, COIN_QUANTUM);
    const { item } = d.transferable;
    const id = numberToHex(99, { size: 32 });
    for (const kind of ["validium", "calldata", "blobs"] as const) {
      const batch = await commitAs[kind](d, [
        { ...entry(raw, ann.address), mintingBlob: id },
        entry(gold, bob.address, "", 40n),
        entry(item, ann.address, "sword", 9n),
        entry(item, bob.address, "5", 8n),
      ]);
      await time.increase(MATURITY);
      const base = { batch, by: bob } as const;
      const made = await settled([
        [
          { batch, by: ann, asset: raw, scheme: "raw32" },
          {
            ...base,
            slot: 1,
            asset: gold,
            quantum: COIN_QUANTUM,
            gives: 40n * COIN_QUANTUM,
            order: { shares: [] },
          },
        ],
        [
          { batch, by: ann, slot: 2, asset: item, gives: 4n },
          { ...base, slot: 3, asset: item, gives: 7n },
        ],
      ]);
      expect(made.vaults.map((vault) => [vault?.mintingBlob, vault?.amount])).toEqual([
        ["0x", 40n],
        [id, 1n],
        [toHex("5"), 7n],
        [toHex("sword"), 4n],
      ]);
      await withdraw(made, 0, ann);
      await withdraw(made, 3, bob);
      expect(await coin.read.balanceOf([ann.address])).toBeGreaterThanOrEqual(40n * COIN_QUANTUM);
    }
  });

  it("need no signature of an owner who calls, and none other's word", async () => {
    const batch = await market();
    const own = buys(batch, { signature: "0x" });
    const refused = await tradesIn(d, settle([[sells(batch), own]]));
    expect(refused.errors).toEqual(["SignatureInvalid"]);
    expect(await d.state.read.makings()).toBe(0n);
    const both = [sells(batch, { signature: "0x" }), own] as const;
    expect((await tradesIn(d, settle([both], bob.address))).errors).toEqual(["SignatureInvalid"]);
    await settled([[sells(batch), own]], bob.address);
  });

  it("take a vault from anywhere: of a transfer, of a trade, of the change that one left", async () => {
    const { card, coin } = d.transferable;
    const batch = await ripe([entry(card, ann.address, "7"), entry(coin, ann.address, "", 300n)]);
    const moved = await commitTransfers(d, [
      await signedGroup(d, ann, [give(idOf(batch, 1), bob.address, 120n)]),
    ]);
    const way = [hopOf(moved, 0)];
    const first = await settled([[sells(batch), buys(batch, { hops: way, slot: 1, gives: 100n })]]);
    // The change stayed with Ann, and the rest of the tip with Bob.
    expect(await withdrawnOf(hopOf(moved, 0).outId)).toBe(100n);
    const back = sells(first, { slot: 1, by: bob });
    const pays: Half = { by: ann, batch: first, slot: 0, asset: coin, gives: 60n };
    const second = await settled([[back, pays]]);
    const third = await settled([
      [
        { ...pays, gives: 15n, order: { withdrawnBefore: 60n } },
        { by: bob, batch: second, slot: 0, asset: coin, gives: 5n },
      ],
    ]);
    expect(holdingsIn(third).map((held) => held?.[2])).toEqual([5n, 15n]);
    await withdraw(second, 1, ann);
  });

  it("of one call do not know each other: each fails alone, and two failed calls make nothing", async () => {
    const { card, coin } = d.transferable;
    const slots = Array.from({ length: 8 }, (_, i) =>
      i % 2 === 0
        ? entry(card, ann.address, String(i))
        : entry(coin, bob.address, "", i === 3 ? 100n : 300n),
    );
    const batch = await ripe(slots);
    const pairs = [0, 2, 4, 6].map(
      (slot) =>
        [
          sells(batch, { slot, ...(slot === 4 && { by: eve }) }),
          buys(batch, { slot: slot + 1 }),
        ] as const,
    );
    const outcome = await tradesIn(d, settle(pairs));
    expect(outcome.failed).toEqual([
      { vaults: [idOf(batch, 2), idOf(batch, 3)], error: "QuantityTooLarge" },
      { vaults: [idOf(batch, 4), idOf(batch, 5)], error: "SignatureInvalid" },
    ]);
    const made = await madeIn(d, outcome.hash);
    expect(made.vaults.map((vault) => vault?.owner)).toEqual(
      [ann, bob, ann, bob].map(({ address }) => lower(address)),
    );
    // Nothing is left of the halves that were good.
    for (const slot of [2, 4]) expect(await withdrawnOf(idOf(batch, slot), "erc721")).toBe(0n);
    for (const slot of [3, 5]) expect(await withdrawnOf(idOf(batch, slot))).toBe(0n);
    const again = await tradesIn(d, settle(pairs.slice(1, 3)));
    expect(again.errors).toHaveLength(2);
    expect(await d.state.read.makings()).toBe(1n);
    const args = await settleArgs(d, pairs.slice(1, 3));
    const { result } = await d.state.simulate.settle(args, { account: eve.address });
    expect(result).toEqual([0n, 2n]);
  });

  it("fill a making to 255 vaults, and the next trade fails alone", async () => {
    const { item } = d.transferable;
    const slots = Array.from({ length: 54 }, (_, i) =>
      entry(item, i % 2 === 0 ? ann.address : bob.address, String(i), 9n),
    );
    const batch = await commitValidium(d, slots);
    const shares = [1n, 2n, 1n, 1n].map((amount) => ({ to: eve.address, amount }));
    const trade = (i: number, of: typeof shares = shares): readonly [Half, Half] => {
      const [order, other] = [{ shares: of }, i === 25 ? {} : { shares: of }];
      return [
        { by: ann, batch, slot: 2 * i, asset: item, order },
        { by: bob, batch, slot: 2 * i + 1, asset: item, order: other },
      ];
    };
    // 25 trades of ten vaults; then ten find no room, and five do.
    const full = Array.from({ length: 25 }, (_, i) => trade(i));
    const outcome = await tradesIn(
      d,
      settle([...full, trade(26), trade(25, shares.slice(0, 3)), trade(26, [])]),
    );
    expect(outcome.errors).toEqual(["MakingFull", "MakingFull"]);
    const made = await madeIn(d, outcome.hash);
    expect(made.vaults).toHaveLength(255);
    expect(idOf(made, 254)).toBe(madeId(1, 254));
    await withdraw(made, 254, bob);
    expect((await settled([trade(26)])).vaults).toHaveLength(10);
  });

  it("run with the gas that the caller promises, or the whole call reverts", async () => {
    const batch = await market();
    const trades = [[sells(batch), buys(batch)]] as const;
    const [assets, packed] = await settleArgs(d, trades);
    const by = { account: eve.address };
    const low = d.state.write.settle([assets, packed, TRADE_GAS - 1n], by);
    await d.refuses(low, "ItemGasTooLow", [TRADE_GAS - 1n]);
    const args = [assets, packed, TRADE_GAS] as const;
    const poor = d.state.write.settle(args, { ...by, gas: TRADE_GAS });
    await d.refuses(poor, "GasTooLow", [0n]);
    await d.state.write.settle(args, { ...by, gas: (TRADE_GAS * 64n) / 63n + 130_000n });
  });

  it("refuse a side that is cut short, too long, or names what the call has not", async () => {
    const batch = await market();
    const [assets, packed] = await settleArgs(d, [[sells(batch), buys(batch)]]);
    const by = { account: eve.address };
    const send = (trades: `0x${string}`, of = assets) =>
      d.state.write.settle([of, trades, TRADE_GAS], by);
    const length = (packed.length - 2) / 2;
    for (const cut of [0x01, length - 1, length / 2])
      await d.refuses(send(slice(packed, 0, Math.floor(cut))), "ItemsMalformed", [0n]);
    await d.refuses(send(concatHex([packed, "0x00"])), "ItemsMalformed", [BigInt(length)]);
    const maker = Number(slice(packed, 0, 2));
    const changed = (at: number, byte: number) =>
      concatHex([slice(packed, 0, at), numberToHex(byte, { size: 1 }), slice(packed, at + 1)]);
    const malformed = async (trades: `0x${string}`, of = assets) =>
      expect((await tradesIn(d, send(trades, of))).errors).toEqual(["ItemMalformed"]);
    // Unknown flag, unknown asset, a slot that no batch has.
    await malformed(changed(2, 0x40));
    await malformed(changed(3, 2));
    await malformed(changed(4, 0x10));
    // A sibling that is no whole word.
    const longer = numberToHex(maker + 1, { size: 2 });
    await malformed(
      concatHex([longer, slice(packed, 2, 2 + maker), "0x00", slice(packed, 2 + maker)]),
    );
    await malformed(packed, []);
    await malformed(concatHex(["0x0000", "0x0000"]));
  });

  it("run by this call alone: the settlement contract has no function for one trade", async () => {
    const batch = await market();
    const [assets, packed] = await settleArgs(d, [[sells(batch), buys(batch)]]);
    const code = await d.viem.getContractAt("Makings", d.state.address);
    const one = code.write.settleTrade([assets, packed, 0n], { account: eve.address });
    await expect(one).rejects.toThrow("reverted");
    const to = await d.state.read.makingsCode();
    const args = [assets, packed, 0n] as const;
    const call = encodeFunctionData({ abi: code.abi, functionName: "settleTrade", args });
    // The task stands behind the arguments.
    const data = concatHex([call, numberToHex(0, { size: 32 })]);
    const alone = d.publicClient.call({ to, data, account: eve.address });
    await d.viem.assertions.revertWithCustomError(alone as never, d.state, "HeaderMismatch");
  });

  it("are not packed by the core when the orders do not fit each other or their vaults", async () => {
    const batch = await market();
    const { maker, taker } = await tradeOf(d, sells(batch), buys(batch));
    const invalid = expect.objectContaining({ code: "validation_failed" });
    const { order } = maker;
    const refused = [
      { order: { ...order, vaultId: order.vaultId + 1n } },
      { order: { ...order, want: { ...order.want, token: ann.address } } },
      { order: { ...order, want: { ...order.want, id: 1n } } },
      { order: { ...order, want: { ...order.want, amount: 251n } } },
      { order: { ...order, taker: eve.address } },
      { order: { ...order, give: { ...order.give, amount: 2n ** 63n } } },
      { quantum: 2n },
      {
        order: {
          ...order,
          shares: Array.from({ length: 5 }, () => ({ to: eve.address, amount: 1n })),
        },
      },
      { signature: `0x${"00".repeat(65_536)}` as const },
    ];
    for (const change of refused)
      expect(() => settlementArguments([{ maker: { ...maker, ...change }, taker }])).toThrow(
        invalid,
      );
  });
});
