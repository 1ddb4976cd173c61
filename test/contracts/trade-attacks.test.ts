import {
  type Address,
  concatHex,
  encodeFunctionData,
  type Hash,
  numberToHex,
  padHex,
  size,
  slice,
  toFunctionSelector,
  toHex,
} from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { cancellationId } from "../../core/protocol/typed-data.ts";
import {
  type CommittedBatch,
  commitBlobs,
  commitRollup,
  commitValidium,
  entry,
  proofOf,
  provenArgs,
} from "./fixture/batches.ts";
import { MATURITY, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { madeId, madeIn } from "./fixture/makings.ts";
import { digestOf, type Half, holdingsIn, settleArgs, tradesIn } from "./fixture/trades.ts";
import {
  commitTransfers,
  exitArgs,
  give,
  hopOf,
  LATER,
  openTransferChain,
  registerTransferable,
  signedGroup,
  type TransferDeployment,
} from "./fixture/transfers.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;
/** Solidity's `Wallet1271.Manner`. */
const MANNER = {
  honest: 0,
  reverts: 1,
  burnsGas: 2,
  answersTooMuch: 3,
  answersNothing: 4,
  slow: 5,
} as const;

describe("attacks on trades", () => {
  let d: TransferDeployment;
  let [ann, bob, eve] = [] as unknown as [PrivateKeyAccount, PrivateKeyAccount, PrivateKeyAccount];
  beforeEach(async () => {
    d = await fresh();
    [ann, bob, eve] = d.keys as unknown as [typeof ann, typeof bob, typeof eve];
  });

  const lower = (address: Address) => address.toLowerCase() as Address;
  const idOf = (batch: CommittedBatch, slot = 0) => batch.vaults[slot]?.vaultId as bigint;
  const attempt = async (...trades: readonly (readonly [Half, Half])[]) =>
    tradesIn(d, d.state.write.settle(await settleArgs(d, trades), { account: eve.address }));
  const settled = async (...trades: readonly (readonly [Half, Half])[]) => {
    const { hash, errors } = await attempt(...trades);
    expect(errors).toEqual([]);
    return madeIn(d, hash);
  };
  const fails = async (error: string, ...trade: readonly [Half, Half]) =>
    expect((await attempt(trade)).errors).toEqual([error]);
  const withdraw = (batch: CommittedBatch, slot: number, by: { readonly address: Address }) =>
    d.state.write.withdraw(withdrawArgs(request(batch, slot)), { account: by.address });
  const withdrawnOf = (vaultId: bigint, standard: keyof typeof STANDARD = "erc20") =>
    d.state.read.withdrawn([vaultId, STANDARD[standard]]);
  const ripe = async (slots: readonly VaultEntry[]) => {
    const batch = await commitRollup(d, slots);
    await time.increase(MATURITY);
    return batch;
  };
  const market = () => {
    const { card, coin } = d.transferable;
    return ripe([
      entry(card, ann.address, "7"),
      entry(coin, bob.address, "", 300n),
      entry(coin, eve.address, "", 300n),
      entry(card, eve.address, "8"),
    ]);
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
  const eves = (batch: CommittedBatch, change: Partial<Half> = {}) =>
    buys(batch, { by: eve, slot: 2, ...change });

  it("1: half a trade: what one side gave comes back when the other fails", async () => {
    const batch = await market();
    await fails("QuantityTooLarge", sells(batch), buys(batch, { gives: 301n }));
    await fails("SignatureInvalid", sells(batch), buys(batch, { by: eve }));
    expect(await withdrawnOf(idOf(batch), "erc721")).toBe(0n);
    expect(await withdrawnOf(idOf(batch, 1))).toBe(0n);
    await settled([sells(batch), buys(batch)]);
  });

  it("2: an order that is brought again", async () => {
    const { coin } = d.transferable;
    const batch = await market();
    const some = buys(batch, { gives: 100n });
    const others = eves(batch, { gives: 10n });
    await settled([some, others]);
    // Both vaults have enough left, and neither order names the units that went.
    await fails("NotListed", some, { ...others, order: { withdrawnBefore: 10n } });
    await fails("NotListed", { ...some, order: { withdrawnBefore: 100n } }, others);
    // With the units that went, the packed order is another than the signed one.
    const packed = { order: { withdrawnBefore: 100n }, signed: { withdrawnBefore: 0n } };
    const next = { ...others, order: { withdrawnBefore: 10n } };
    await fails("SignatureInvalid", { ...some, ...packed }, next);
    await settled([
      sells(batch),
      { ...buys(batch, { gives: 1n }), order: { withdrawnBefore: 100n } },
    ]);
    await fails("VaultExhausted", sells(batch), buys(batch, { asset: coin }));
  });

  it("3: one sword for two buyers: the second trade fails, even in one call", async () => {
    const batch = await market();
    const { errors, hash } = await attempt(
      [sells(batch), buys(batch)],
      [sells(batch), eves(batch)],
    );
    expect(errors).toEqual(["VaultExhausted"]);
    expect((await madeIn(d, hash)).vaults).toHaveLength(2);
    expect(await withdrawnOf(idOf(batch, 2))).toBe(0n);
    // The other way round: one purse for two swords.
    const both = await market();
    const purse = buys(both, { gives: 200n });
    const eighth = sells(both, { by: eve, slot: 3 });
    const twice = await attempt([sells(both), purse], [eighth, purse]);
    expect(twice.errors).toEqual(["QuantityTooLarge"]);
  });

  it("4: the owner withdraws just before, and the others' trades go on", async () => {
    const batch = await market();
    await withdraw(batch, 0, ann);
    const eighth = sells(batch, { by: eve, slot: 3 });
    const { errors } = await attempt([sells(batch), eves(batch)], [eighth, buys(batch)]);
    expect(errors).toEqual(["VaultExhausted"]);
    expect(await withdrawnOf(idOf(batch, 2))).toBe(0n);
    // Part of a purse ends its order too.
    const other = await market();
    await d.state.write.withdraw(withdrawArgs(request(other, 1, { quantity: 1n })), {
      account: bob.address,
    });
    await fails("NotListed", sells(other), buys(other));
  });

  it("5: the owner gives it away first", async () => {
    const batch = await market();
    await commitTransfers(d, [await signedGroup(d, ann, [give(idOf(batch), eve.address)])]);
    await fails("VaultSpent", sells(batch), buys(batch));
  });

  it("6: a record that is committed behind the trade counts for nobody, and stops no batch", async () => {
    const batch = await market();
    const made = await settled([sells(batch), buys(batch)]);
    const late = await commitTransfers(d, [
      await signedGroup(d, ann, [give(idOf(batch), eve.address)]),
    ]);
    const exit = exitArgs(batch, 0, { hops: [hopOf(late, 0)], recipient: eve.address });
    const stolen = d.state.write.withdrawTransferred(exit, { account: eve.address });
    await d.refuses(stolen, "TransferInvalid", [idOf(batch)]);
    await withdraw(made, 1, bob);
  });

  it("7: cheaper, of another id, of another token, or for less than was signed", async () => {
    const batch = await market();
    const { coin } = d.transferable;
    const wants = (change: object) =>
      sells(batch, {
        signed: { want: { token: coin.token, id: 0n, amount: 250n, ...change } },
      });
    await fails("SignatureInvalid", wants({}), buys(batch, { gives: 249n }));
    await settled([wants({}), buys(batch)]);
    const other = await market();
    const change = [
      { want: { token: coin.token, id: 0n, amount: 251n } },
      { want: { token: coin.token, id: 1n, amount: 250n } },
      { want: { token: d.transferable.item.token, id: 0n, amount: 250n } },
      { give: { token: d.transferable.card.token, id: 8n, amount: 1n } },
      { give: { token: d.transferable.crown.token, id: 7n, amount: 1n } },
      { vaultId: idOf(other, 3) },
      { shares: [{ to: ann.address, amount: 1n }] },
    ];
    for (const signed of change)
      await fails("SignatureInvalid", sells(other, { signed }), buys(other));
  });

  it("7: less than the order wants, told in so many words", async () => {
    const batch = await market();
    const [assets, packed, gas] = await settleArgs(d, [
      [sells(batch, { wants: 249n }), buys(batch)],
    ]);
    // The core packs no such trade: 249 becomes 251.
    const trades = packed.replace("00000000000000f9", "00000000000000fb") as `0x${string}`;
    const sent = d.state.write.settle([assets, trades, gas], { account: eve.address });
    expect((await tradesIn(d, sent)).errors).toEqual(["OrderUnmet"]);
  });

  it("8: another taker than the order names", async () => {
    const batch = await market();
    const forBob = sells(batch, { order: { taker: bob.address } });
    // Packed as an order for anybody, or as one for Eve.
    const open = sells(batch, { signed: { taker: bob.address } });
    await fails("SignatureInvalid", open, eves(batch));
    const forEve = { ...open, order: { taker: eve.address } };
    await fails("SignatureInvalid", forEve, eves(batch));
    await settled([forBob, buys(batch)]);
  });

  it("9: an order counts until its last second", async () => {
    const batch = await market();
    const now = BigInt(await time.latest());
    const until = sells(batch, { order: { deadline: now + 50n } });
    const args = await settleArgs(d, [[until, buys(batch)]]);
    const by = { account: eve.address };
    await time.setNextBlockTimestamp(now + 51n);
    expect((await tradesIn(d, d.state.write.settle(args, by))).errors).toEqual([
      "AuthorizationExpired",
    ]);
    const later = sells(batch, { order: { deadline: now + 90n } });
    const last = await settleArgs(d, [[later, buys(batch)]]);
    await time.setNextBlockTimestamp(now + 90n);
    expect((await tradesIn(d, d.state.write.settle(last, by))).errors).toEqual([]);
  });

  it("10: a cancelled order, or one of a cancelled vault; nobody else can cancel it", async () => {
    const batch = await market();
    const [half, other] = [sells(batch), buys(batch)];
    const digest = digestOf(d, half, other);
    const cancel = (id: `0x${string}`, { address }: PrivateKeyAccount) =>
      d.state.write.cancel([address, id, "0x"], { account: address });
    await cancel(digest, eve);
    await cancel(digest, bob);
    await cancel(cancellationId(idOf(batch)), bob);
    const { result } = await d.state.simulate.settle(await settleArgs(d, [[half, other]]), {
      account: eve.address,
    });
    expect(result[1]).toBe(0n);
    await cancel(digest, ann);
    await fails("AuthorizationIsCancelled", half, other);
    const anew = sells(batch, { order: { deadline: 2n ** 40n } });
    await cancel(cancellationId(idOf(batch)), ann);
    await fails("AuthorizationIsCancelled", anew, other);
    // The cancellation binds no other vault of hers.
    await settled([sells(batch, { by: eve, slot: 3 }), other]);
  });

  it("11: whoever fills it pays the signed price, and a surplus goes to the maker", async () => {
    const batch = await market();
    const made = await settled([sells(batch, { wants: 250n }), eves(batch, { gives: 300n })]);
    expect(holdingsIn(made)[0]).toEqual([lower(ann.address), d.transferable.coin.assetType, 300n]);
  });

  it("13: an unsigned record spoils no trade: the side brings it as a refutation", async () => {
    const batch = await market();
    const unsigned = await commitTransfers(d, [
      {
        transfers: [give(idOf(batch), eve.address)],
        deadline: 2n ** 32n - 2n,
        signature: `0x${"00".repeat(64)}`,
      },
    ]);
    await fails("VaultSpent", sells(batch), buys(batch));
    const refuted = sells(batch, { refutation: hopOf(unsigned, 0) });
    await withdraw(await settled([refuted, buys(batch)]), 1, bob);
  });

  it("14: nobody voids a traded card by the mint it came from, nor by another trade", async () => {
    const batch = await market();
    const made = await settled([sells(batch), buys(batch)]);
    const [mint, card] = [provenArgs(proofOf(batch, 0)), provenArgs(proofOf(made, 1))];
    for (const pair of [
      [...mint, ...card],
      [...card, ...mint],
    ])
      await d.refuses(d.state.write.voidDuplicate(pair as never), "NotDuplicates");
    await withdraw(made, 1, bob);
  });

  it("15: two vaults of one id, traded before a withdrawal: one is paid, until the id enters", async () => {
    const token = await d.mintable.erc721({ isTransferable: true });
    await token.write.lockMinter(d.by("admin"));
    const card = await d.register("erc721", token.address);
    const { coin } = d.transferable;
    const hidden = await commitValidium(d, [entry(card, eve.address, "7")]);
    const batch = await commitRollup(d, [
      entry(card, ann.address, "7"),
      entry(coin, bob.address, "", 900n),
    ]);
    const fake: Half = { by: eve, batch: hidden, asset: card };
    await fails("NotMature", fake, buys(batch));
    await time.increase(MATURITY);
    const first = await settled([sells(batch, { asset: card }), buys(batch)]);
    const rest = { order: { withdrawnBefore: 250n } };
    const second = await settled([fake, buys(batch, rest)]);
    await withdraw(second, 1, bob);
    await d.refuses(withdraw(first, 1, bob), "TokenRefused");
    // Back on layer 2, only the entered vault counts; the traded ones are over, as vaults and as
    // halves of a trade.
    const entered = await madeIn(d, token.write.enter([bob.address, 7n], { account: bob.address }));
    for (const old of [first, second])
      await d.refuses(withdraw(old, 1, bob), "LineageEnded", [idOf(old, 1), 3n]);
    const pays = { by: ann, batch: first, slot: 0, asset: coin, gives: 9n } as const;
    await fails("LineageEnded", { by: bob, batch: first, slot: 1, asset: card }, pays);
    const sold = await settled([{ by: bob, batch: entered, asset: card }, pays]);
    await withdraw(sold, 1, ann);
  });

  it("17: nothing of an asset that only makings have is traded out of a batch", async () => {
    const args = [STANDARD.erc20, SCHEME.mintmark, 1n, d.state.address] as const;
    const { address } = await d.viem.deployContract("MakingToken", args);
    const held = await d.register("erc20", address);
    const batch = await ripe([
      entry(held, ann.address, "", 9n),
      entry(d.transferable.coin, bob.address, "", 300n),
    ]);
    await fails("VaultNotMade", sells(batch, { asset: held }), buys(batch));
  });

  it("27: a trade begins the count of transfers anew", async () => {
    const batch = await market();
    const hops = [];
    let tip = idOf(batch);
    for (let i = 0; i < 8; i++) {
      const [from, to] = i % 2 === 0 ? [ann, bob] : [bob, ann];
      const moved = await commitTransfers(d, [await signedGroup(d, from, [give(tip, to.address)])]);
      hops.push(hopOf(moved, 0));
      tip = hopOf(moved, 0).outId;
    }
    const made = await settled([sells(batch, { hops, gives: 1n }), buys(batch)]);
    const moved = await commitTransfers(d, [
      await signedGroup(d, bob, [give(madeId(1, 1), eve.address)]),
    ]);
    const exit = exitArgs(made, 1, { hops: [hopOf(moved, 0)], recipient: eve.address });
    await d.state.write.withdrawTransferred(exit, { account: eve.address });
  });

  it("28: shares of nothing, of nobody, or of more than there is", async () => {
    const batch = await market();
    const to = eve.address;
    const half = sells(batch, { order: { shares: [{ to, amount: 77n }] } });
    const [assets, mixed, gas] = await settleArgs(d, [[half, buys(batch)]]);
    const packed = mixed.toLowerCase() as `0x${string}`;
    const by = { account: eve.address };
    const share = `${lower(to).slice(2)}000000000000004d`;
    expect(packed.split(share)).toHaveLength(2);
    for (const other of [
      `${lower(to).slice(2)}0000000000000000`,
      `${lower(to).slice(2)}00000000000000fb`,
      `${"00".repeat(20)}000000000000004d`,
    ]) {
      // The signature is looked at first. Ann calls by herself, and needs none.
      const trades = packed.replace(share, other) as `0x${string}`;
      const { errors } = await tradesIn(d, d.state.write.settle([assets, trades, gas], by));
      expect(errors).toEqual(["SignatureInvalid"]);
      const [, unsigned] = await settleArgs(d, [[{ ...half, signature: "0x" }, buys(batch)]]);
      const own = unsigned.toLowerCase().replace(share, other) as `0x${string}`;
      const called = d.state.write.settle([assets, own, gas], { account: ann.address });
      expect((await tradesIn(d, called)).errors).toEqual(["ShareInvalid"]);
    }
    const five = `05${share.repeat(5)}`;
    const grown = packed.replace(`01${share}`, five);
    const length = Number(`0x${packed.slice(2, 6)}`) + 28 * 4;
    const trades = `0x${length.toString(16).padStart(4, "0")}${grown.slice(6)}` as const;
    const sent = d.state.write.settle([assets, trades, gas], by);
    expect((await tradesIn(d, sent)).errors).toEqual(["ItemMalformed"]);
  });

  it("28: nothing is given for nothing", async () => {
    const batch = await market();
    const [assets, packed, gas] = await settleArgs(d, [
      [sells(batch), buys(batch, { gives: 77n })],
    ]);
    const none = packed.replace("000000000000004d", "0000000000000000") as `0x${string}`;
    const sent = d.state.write.settle([assets, none, gas], { account: eve.address });
    expect((await tradesIn(d, sent)).errors).toEqual(["QuantityZero"]);
  });

  it("30: vaults that cannot be given away are not traded either", async () => {
    const batch = await ripe([
      entry(d.assets.card, ann.address, "7"),
      entry(d.transferable.coin, bob.address, "", 300n),
    ]);
    await fails("NotTransferable", sells(batch, { asset: d.assets.card }), buys(batch));
    const free = await ripe([
      entry(d.transferable.card, ann.address, "9"),
      entry(d.assets.coin, bob.address, "", 300n),
    ]);
    const coins = buys(free, { asset: d.assets.coin, quantum: 1_000n, gives: 250_000n });
    await fails("NotTransferable", sells(free), coins);
  });

  it("32: a wallet contract that lies, burns its gas or answers at length costs its own trade", async () => {
    const { coin, card } = d.transferable;
    const wallets: Address[] = [];
    for (const manner of Object.values(MANNER).slice(0, 5))
      wallets.push((await d.viem.deployContract("Wallet1271", [bob.address, manner])).address);
    const batch = await ripe([
      ...wallets.map((wallet) => entry(coin, wallet, "", 300n)),
      ...wallets.map((_, i) => entry(card, ann.address, String(i))),
    ]);
    const pairs = wallets.map(
      (_, slot) => [sells(batch, { slot: wallets.length + slot }), buys(batch, { slot })] as const,
    );
    const { errors, gasUsed, hash } = await attempt(...pairs);
    expect(errors).toEqual(Array(4).fill("SignatureInvalid"));
    expect((await madeIn(d, hash)).vaults[1]?.owner).toBe(lower(wallets[0] as Address));
    // The bound of one wallet's gas, and not the trade's: two million.
    expect(gasUsed).toBeLessThan(1_400_000n);
  });

  it("33: an account with delegated code signs by its key, and another's code asks nobody", async () => {
    const batch = await market();
    const delegate = await d.viem.deployContract("Wallet1271", [eve.address, MANNER.honest]);
    const bytecode = `0xef0100${delegate.address.slice(2)}` as const;
    await d.testClient.setCode({ address: ann.address, bytecode });
    // The delegate's key speaks too: the owner has chosen the code.
    await settled([sells(batch), buys(batch)]);
    const other = await market();
    await settled([sells(other, { by: eve }), buys(other)]);
    await d.testClient.setCode({ address: ann.address, bytecode: "0x" });
    const last = await market();
    await fails("SignatureInvalid", sells(last, { by: eve }), buys(last));
  });

  it("34: no token settles while a withdrawal pays it", async () => {
    const token = await d.viem.deployContract("ReentrantToken");
    const asset = await d.register("erc1155", token.address);
    const batch = await ripe([
      entry(asset, eve.address, "1", 10n),
      entry(d.transferable.card, ann.address, "7"),
      entry(d.transferable.coin, bob.address, "", 300n),
    ]);
    const args = await settleArgs(d, [[sells(batch, { slot: 1 }), buys(batch, { slot: 2 })]]);
    const payload = encodeFunctionData({ abi: d.state.abi, functionName: "settle", args });
    await token.write.arm([d.state.address, payload]);
    await withdraw(batch, 0, eve);
    expect(await token.read.callSucceeded()).toBe(false);
    const guard = toFunctionSelector("ReentrancyGuardReentrantCall()");
    expect(await token.read.callAnswer()).toBe(guard);
    expect(await d.state.read.makings()).toBe(0n);
  });

  it("37: a key with a session, and an approval of transfers, sell nothing", async () => {
    const batch = await market();
    const session = [ann.address, eve.address, 2n ** 40n, 10n, 0n, "0x"] as const;
    await d.state.write.authorizeSession(session, { account: ann.address });
    const transfers = [{ vaultId: idOf(batch), amount: 0n, to: bob.address }];
    await d.state.write.approveTransfers([transfers, LATER], { account: ann.address });
    await fails("SignatureInvalid", sells(batch, { by: eve }), buys(batch));
    await fails("SignatureInvalid", sells(batch, { signature: "0x" }), buys(batch));
  });

  it("trades no vault that was voided as a duplicate", async () => {
    const { card, coin } = d.transferable;
    const first = await commitRollup(d, [entry(card, eve.address, "7")]);
    const batch = await commitRollup(d, [
      entry(card, ann.address, "7"),
      entry(coin, bob.address, "", 300n),
    ]);
    const pair = [...provenArgs(proofOf(first, 0)), ...provenArgs(proofOf(batch, 0))];
    await d.state.write.voidDuplicate(pair as never);
    await time.increase(MATURITY);
    await fails("VaultExhausted", sells(batch), buys(batch));
  });

  it("takes of one vault on both sides what both orders say, once each", async () => {
    const batch = await market();
    await fails("VaultExhausted", sells(batch), sells(batch));
    const some = buys(batch, { gives: 100n });
    await fails("NotListed", some, buys(batch, { gives: 30n }));
    const more = buys(batch, { gives: 30n, order: { withdrawnBefore: 100n } });
    const made = await settled([some, more]);
    expect(holdingsIn(made).map((one) => one?.[2])).toEqual([30n, 100n]);
    expect(await withdrawnOf(idOf(batch, 1))).toBe(130n);
  });

  it("makes vaults of the assets that it has proven, wherever an offset of the calldata leads", async () => {
    // The calldata is longer than the gas of one trade, and costs more than a transaction's cap.
    const wide = { hardfork: "prague", blockGasLimit: 100_000_000n } as const;
    const { fresh } = await openTransferChain(wide);
    const base = await fresh();
    const config = { ...base.config, maturity: 0n };
    const state = await base.viem.deployContract("StateCommitment", [config]);
    const settlement = { ...base.settlement, contract: state.address };
    const own: TransferDeployment = { ...base, state, settlement };
    const [one, two] = own.keys as unknown as [typeof ann, typeof ann];
    const junk = await registerTransferable(own, "erc20");
    const gold = await registerTransferable(own, "erc20");
    const batch = await commitValidium(own, [
      entry(junk, one.address, "", 5n),
      entry(junk, two.address, "", 7n),
    ]);
    const halves = [
      { by: one, batch, asset: junk },
      { by: two, batch, slot: 1, asset: junk },
    ] as const;
    const [[asset], packed, gas] = await settleArgs(own, [halves]);
    if (asset === undefined) throw new Error("the trade has no asset");
    const dataOf = (assetType: bigint) =>
      encodeFunctionData({
        abi: state.abi,
        functionName: "settle",
        args: [[{ ...asset, assetType }], "0x", gas],
      });
    // Behind the selector, three heads, and the array's length and only offset.
    const structOf = (assetType: bigint) => slice(dataOf(assetType), 4 + 5 * 32, -32);
    const word = (value: bigint | number) => numberToHex(value, { size: 32 });
    const upTo = (hex: `0x${string}`, bytes: number) => padHex(hex, { dir: "right", size: bytes });
    // The array of assets begins at the third argument, which is so the first asset's offset. As
    // the gas it leads to the gold. As a task of zeros it would lead to the junk.
    const trades = 0x400;
    const heads = [word(0x20), word(trades), word(gas)];
    const rest = slice(structOf(asset.assetType), 32);
    const sides = [word(size(packed)), packed];
    const front = concatHex([upTo(concatHex([...heads, rest]), trades), ...sides]);
    const data = concatHex([
      slice(dataOf(0n), 0, 4),
      upTo(front, 0x40 + Number(gas)),
      structOf(BigInt(gold.assetType)),
    ]);
    const [wallet] = await own.viem.getWalletClients();
    const hash = await wallet?.sendTransaction({ to: state.address, data, gas: 100_000_000n });
    const outcome = await tradesIn(own, hash as Hash);
    expect(outcome.errors).toEqual(["ProofInvalid"]);
    expect(await state.read.makings()).toBe(0n);
  });

  it("32: a trade's gas is enough for two of the longest proofs and two slow wallets", async () => {
    const { item } = d.transferable;
    const slow = (key: PrivateKeyAccount) =>
      d.viem.deployContract("Wallet1271", [key.address, MANNER.slow]);
    const [one, two] = [await slow(ann), await slow(bob)];
    const text = (fill: string) => fill.repeat(255);
    const batch = await commitBlobs(d, [
      entry(item, one.address, text("a"), 2n),
      entry(item, two.address, text("b"), 2n),
    ]);
    const halves = [
      { by: ann, batch, asset: item },
      { by: bob, batch, slot: 1, asset: item },
    ] as const;
    const { errors, hash } = await attempt(halves);
    expect(errors).toEqual([]);
    expect((await madeIn(d, hash)).vaults[0]?.mintingBlob).toBe(toHex(text("b")));
  });
});
