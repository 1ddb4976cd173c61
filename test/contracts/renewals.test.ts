import { encodeFunctionData, hashTypedData, toFunctionSelector, toHex } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import type { ProvenHop } from "../../core/ports.ts";
import { cancellationId, renewalListTypedData } from "../../core/protocol/typed-data.ts";
import { type CommittedBatch, commit, commitRollup, entry } from "./fixture/batches.ts";
import { MATURITY, SCHEME, STANDARD, type TestAsset } from "./fixture/deployment.ts";
import { madeId, madeIn } from "./fixture/makings.ts";
import { outcomeOf } from "./fixture/outcomes.ts";
import { type RenewalChange, renewalOf } from "./fixture/renewals.ts";
import {
  ANSWER,
  commitTransfers,
  give,
  hopOf,
  NOBODY,
  openTransferChain,
  signedGroup,
  type TransferDeployment,
} from "./fixture/transfers.ts";
import {
  authorizationOf,
  batchArgs,
  entryOf,
  listed,
  NEVER,
  type Request,
  request,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;
const MOST_UNITS = 2n ** 63n - 1n;

describe("renewing vaults", () => {
  let d: TransferDeployment;
  let [ann, bob] = [] as unknown as [PrivateKeyAccount, PrivateKeyAccount];
  beforeEach(async () => {
    d = await fresh();
    [ann, bob] = d.keys as unknown as [PrivateKeyAccount, PrivateKeyAccount];
  });

  const idOf = (batch: CommittedBatch, slot = 0) => batch.vaults[slot]?.vaultId as bigint;
  const renew = async (requests: readonly Request[], change: RenewalChange = {}, by = ann) =>
    d.state.write.renew(await renewalOf(d, by, requests, change), d.by("relayer"));
  const renewed = async (...given: Parameters<typeof renew>) => madeIn(d, await renew(...given));
  const coins = (...amounts: bigint[]) =>
    amounts.map((amount) => entry(d.transferable.coin, ann.address, "", amount));
  const all = (batch: CommittedBatch) => batch.vaults.map((_, slot) => request(batch, slot));
  const withdraw = (batch: CommittedBatch, slot = 0, by = ann, change: Partial<Request> = {}) =>
    d.state.write.withdraw(withdrawArgs(request(batch, slot, change)), { account: by.address });
  const withdrawnOf = (vaultId: bigint, standard: keyof typeof STANDARD = "erc20") =>
    d.state.read.withdrawn([vaultId, STANDARD[standard]]);

  it("makes one vault of many small ones, in any batch and mode, and pays no token", async () => {
    const first = await commitRollup(d, coins(5n, 6n, 7n));
    const second = await commit.validium(d, coins(2n));
    const hash = await renew([...all(first), ...all(second)]);
    const made = await madeIn(d, hash);
    expect(made.vaults).toMatchObject([
      { vaultId: madeId(1), owner: ann.address.toLowerCase(), amount: 20n, mintingBlob: "0x" },
    ]);
    // Readers take the units off as off a withdrawal, whose recipient is the contract itself.
    const { withdrawn } = await outcomeOf(d, hash);
    expect(withdrawn).toEqual([...all(first), ...all(second)].map(({ vault }) => vault.vaultId));
    for (const [batch, slot] of [
      [first, 0],
      [first, 2],
      [second, 0],
    ] as const)
      await d.refuses(withdraw(batch, slot), "VaultExhausted", [idOf(batch, slot)]);
    const moved = await commitTransfers(d, [
      await signedGroup(d, ann, [give(madeId(1), bob.address, 12n)]),
    ]);
    const asked = request(made, 0, { quantity: 12n, recipient: bob.address });
    const bobs = await renewed([{ ...asked, hops: [hopOf(moved, 0)] }], {}, bob);
    expect(bobs.vaults).toMatchObject([{ amount: 12n, owner: bob.address.toLowerCase() }]);
    await withdraw(bobs, 0, bob);
  });

  it("keeps assets, texts and ids apart, and takes a part of a vault", async () => {
    const { coin, item, card } = d.transferable;
    const batch = await commitRollup(d, [
      entry(card, ann.address, "7"),
      entry(item, ann.address, "5", 4n),
      entry(coin, ann.address, "", 9n),
      entry(item, ann.address, "05", 1n),
      entry(card, ann.address, "8"),
      entry(item, ann.address, "5", 6n),
      entry(d.assets.coin, ann.address, "", 3n),
    ]);
    await time.increase(MATURITY);
    const requests = all(batch).map((asked, i) => (i === 2 ? { ...asked, quantity: 4n } : asked));
    const made = await renewed(requests);
    const told = made.vaults.map((vault) => [vault?.assetType, vault?.mintingBlob, vault?.amount]);
    // Items of a group follow one another, so the order is that of the groups.
    expect(told).toEqual([
      [card.assetType, toHex("7"), 1n],
      [card.assetType, toHex("8"), 1n],
      [item.assetType, toHex("5"), 10n],
      [item.assetType, toHex("05"), 1n],
      [coin.assetType, "0x", 4n],
      [d.assets.coin.assetType, "0x", 3n],
    ]);
    for (const slot of made.vaults.keys()) await withdraw(made, slot);
    await withdraw(batch, 2, ann, { quantity: 5n });
    await d.refuses(withdraw(batch, 2, ann, { quantity: 1n }), "VaultExhausted");
  });

  it("lets a vault at its eighth transfer begin anew", async () => {
    const batch = await commitRollup(d, coins(9n));
    const hops: ProvenHop[] = [];
    let tip = idOf(batch);
    for (let i = 0; i < 8; i++) {
      const [from, to] = i % 2 === 0 ? [ann, bob] : [bob, ann];
      const moved = await commitTransfers(d, [await signedGroup(d, from, [give(tip, to.address)])]);
      hops.push(hopOf(moved, 0));
      tip = hopOf(moved, 0).outId;
    }
    const made = await renewed([{ ...request(batch, 0), hops }]);
    const moved = await commitTransfers(d, [
      await signedGroup(d, ann, [give(madeId(1), bob.address)]),
    ]);
    const again = { ...request(made, 0, { recipient: bob.address }), hops: [hopOf(moved, 0)] };
    await withdraw(await renewed([again], {}, bob), 0, bob);
  });

  it("takes its list whole or not at all", async () => {
    const batch = await commitRollup(d, coins(5n, 6n, 7n));
    const requests = all(batch);
    const list = requests.map((asked) => entryOf(asked));
    await d.refuses(renew(requests.slice(1), { list }), "RenewalIncomplete");
    await d.refuses(renew([...requests, requests[1] as Request], { list }), "RenewalIncomplete");
    const [groups, packed] = await renewalOf(d, ann, requests);
    const [more] = await renewalOf(d, ann, requests.slice(0, 1));
    await d.refuses(
      d.state.write.renew([[...groups, ...more], packed], d.by("relayer")),
      "RenewalIncomplete",
    );
    await d.refuses(d.state.write.renew([[], packed], d.by("relayer")), "RenewalIncomplete");
    await withdraw(batch, 1);
    await d.refuses(renew(requests), "VaultExhausted", [idOf(batch, 1)]);
    expect(await withdrawnOf(idOf(batch))).toBe(0n);
    expect(await d.state.read.makings()).toBe(0n);
  });

  it("is nobody else's word, and no list of withdrawals is one", async () => {
    const batch = await commitRollup(d, coins(5n, 6n));
    const requests = all(batch);
    await d.refuses(renew(requests, {}, bob), "SignatureInvalid");
    const list = requests.map((asked) => entryOf(asked));
    const message = { vaults: list, recipient: ann.address, deadline: NEVER };
    const signature = await ann.signTypedData(renewalListTypedData(d.settlement, message));
    // Nobody splits it by withdrawing its vaults.
    const authorization = { deadline: NEVER, signature, list };
    const relayed = batchArgs(requests.map((asked) => ({ ...asked, authorization })));
    const { failed } = await outcomeOf(d, await d.state.write.withdrawBatch(relayed));
    expect(failed.map(({ error }) => error)).toEqual(["SignatureInvalid", "SignatureInvalid"]);
    const [own] = await listed(d, ann, requests);
    const asList = authorizationOf(own as Request).signature;
    await d.refuses(renew(requests, { signature: asList }), "SignatureInvalid");
    // An account that is not the owner proves nothing.
    const bobs = requests.map((asked) => ({
      ...asked,
      vault: { ...asked.vault, owner: bob.address },
    }));
    await d.refuses(renew(bobs, {}, bob), "ProofInvalid");
  });

  it("counts once, before its deadline, and until its signer cancels it or a vault of it", async () => {
    const batch = await commitRollup(d, coins(5n, 6n, 7n, 8n));
    const some = (...slots: number[]) => slots.map((slot) => request(batch, slot));
    const past = BigInt(await time.latest()) - 1n;
    await d.refuses(renew(some(0), { deadline: past }), "AuthorizationExpired", [past]);
    const parts = some(0).map((asked) => ({ ...asked, quantity: 2n }));
    const args = await renewalOf(d, ann, parts);
    await d.state.write.renew(args, d.by("relayer"));
    await d.refuses(d.state.write.renew(args, d.by("relayer")), "NotListed", [idOf(batch)]);
    const message = {
      vaults: some(1).map((asked) => entryOf(asked)),
      recipient: ann.address,
      deadline: NEVER,
    };
    const digest = hashTypedData(renewalListTypedData(d.settlement, message));
    // A stranger's word on it is nothing.
    await d.state.write.cancel([bob.address, digest, "0x"], { account: bob.address });
    await d.state.write.cancel([ann.address, digest, "0x"], { account: ann.address });
    await d.refuses(renew(some(1)), "AuthorizationIsCancelled", [digest]);
    const id = cancellationId(idOf(batch, 2));
    await d.state.write.cancel([ann.address, id, "0x"], { account: ann.address });
    await d.refuses(renew(some(2, 3)), "AuthorizationIsCancelled", [id]);
    await renew(some(1, 3));
  });

  it("needs no signature of an owner who calls, and takes a wallet contract's", async () => {
    const wallet = await d.viem.deployContract("Wallet1271", [bob.address, 0]);
    const batch = await commitRollup(d, [
      ...coins(5n),
      entry(d.transferable.coin, wallet.address, "", 6n),
    ]);
    const own = await renewalOf(d, ann, [request(batch, 0)], { signature: "0x" });
    await d.refuses(d.state.write.renew(own, d.by("relayer")), "SignatureInvalid");
    await d.state.write.renew(own, { account: ann.address });
    const made = await renewed([request(batch, 1)], {}, bob);
    expect(made.vaults[0]).toMatchObject({ owner: wallet.address.toLowerCase(), amount: 6n });
  });

  it("goes to another owner only where vaults can be given away", async () => {
    const batch = await commitRollup(d, [...coins(5n), entry(d.assets.coin, ann.address, "", 6n)]);
    const recipient = bob.address;
    const zero = `0x${"00".repeat(20)}` as const;
    await d.refuses(renew([request(batch, 1)], { recipient }), "NotTransferable", [
      BigInt(d.assets.coin.assetType),
    ]);
    await d.refuses(renew([request(batch, 0)], { recipient: zero }), "RecipientZero");
    const made = await renewed([request(batch, 0)], { recipient });
    await withdraw(made, 0, bob);
    await renewed([request(batch, 1)]);
  });

  it("refuses what no withdrawal would pay, and all else of the list with it", async () => {
    const { coin, card } = d.transferable;
    const batch = await commitRollup(d, [
      ...coins(5n),
      entry(card, ann.address, "7"),
      entry(coin, ann.address, "", 8n),
      entry(d.assets.coin, bob.address, "", 1n),
    ]);
    const copy = await commit.validium(d, [
      entry(card, bob.address, "7"),
      entry(card, ann.address, "7"),
    ]);
    const [good, unripe, given] = all(batch) as [Request, Request, Request];
    await d.refuses(renew([good, unripe]), "NotMature");
    await time.increase(MATURITY);
    await d.refuses(renew([good, request(copy, 0, { recipient: ann.address })]), "ProofInvalid");
    await d.refuses(renew([good, { ...good, quantity: 1n }]), "RenewalIncomplete");
    const twice = [entryOf(good), entryOf({ ...good, quantity: 1n })];
    await d.refuses(renew([good], { list: twice }), "RenewalIncomplete");
    await d.refuses(renew([{ ...good, quantity: 6n }]), "QuantityTooLarge");
    await d.refuses(renew([unripe, request(copy, 1)]), "TokenTwice", [idOf(copy, 1)]);
    await commitTransfers(d, [await signedGroup(d, ann, [give(idOf(batch, 2), bob.address)])]);
    await d.refuses(renew([good, given]), "VaultSpent", [idOf(batch, 2)]);
    const refutable = await commitTransfers(d, [
      {
        transfers: [give(idOf(batch), bob.address)],
        deadline: 2n ** 32n - 2n,
        signature: `0x${"00".repeat(64)}`,
      },
    ]);
    await d.refuses(renew([good]), "VaultSpent", [idOf(batch)]);
    const made = await renewed([{ ...good, refutation: hopOf(refutable, 0) }, unripe]);
    expect(made.vaults).toMatchObject([{ amount: 5n }, { mintingBlob: toHex("7") }]);
  });

  it("makes no vault above the most units, and fails before it takes", async () => {
    const batch = await commitRollup(d, coins(MOST_UNITS, 1n, MOST_UNITS - 1n));
    await d.refuses(renew([request(batch, 0), request(batch, 1)]), "VaultUnpayable");
    await d.refuses(renew(all(batch)), "VaultUnpayable");
    for (const slot of [0, 1, 2]) expect(await withdrawnOf(idOf(batch, slot))).toBe(0n);
    const made = await renewed([request(batch, 1), request(batch, 2)]);
    expect(made.vaults).toMatchObject([{ amount: MOST_UNITS }]);
  });

  it("fills a making to its last slot", async () => {
    const { item } = d.transferable;
    const slots = Array.from({ length: 256 }, (_, i) => entry(item, ann.address, String(i), 2n));
    const batch = await commitRollup(d, slots);
    const made = await renewed(all(batch));
    expect(idOf(made, 255)).toBe(madeId(1, 255));
    expect(made.vaults).toHaveLength(256);
    await withdraw(made, 255);
    expect(await withdrawnOf(madeId(1, 254), "erc1155")).toBe(0n);
    expect(await withdrawnOf(madeId(1, 255), "erc1155")).toBe(2n);
  });

  it("names each of many assets once, in the order of the items", async () => {
    const token = await d.viem.deployContract("TransferableToken", [
      STANDARD.erc20,
      ANSWER.yes,
      d.state.address,
      NOBODY,
    ]);
    const assets: TestAsset[] = [];
    for (let quantum = 1n; quantum <= 20n; quantum++)
      assets.push(await d.register("erc20", token.address, quantum));
    const twice = [...assets, ...assets];
    const batch = await commitRollup(
      d,
      twice.map((asset) => entry(asset, ann.address, "", 2n)),
    );
    const made = await renewed(all(batch));
    expect(made.vaults.map((vault) => [vault?.assetType, vault?.amount])).toEqual(
      assets.map(({ assetType }) => [assetType, 4n]),
    );
    await withdraw(made, 19);
  });

  it("ends with its card's next entry, as every vault of it does", async () => {
    const card = await d.mintable.erc721({ isTransferable: true });
    await card.write.lockMinter(d.by("admin"));
    const asset = await d.register("erc721", card.address);
    const batch = await commitRollup(d, [entry(asset, ann.address, "7")]);
    const copy = await commit.validium(d, [entry(asset, ann.address, "7")]);
    await time.increase(MATURITY);
    // Two vaults of an id that nobody voided: whichever is withdrawn first is paid.
    const made = await renewed(all(batch));
    const other = await renewed(all(copy));
    await withdraw(other);
    await d.refuses(withdraw(made), "TokenRefused");
    const entered = await madeIn(d, card.write.enter([ann.address, 7n], { account: ann.address }));
    for (const old of [made, other, batch]) await d.refuses(withdraw(old), "LineageEnded");
    await d.refuses(renew(all(made)), "LineageEnded");
    await withdraw(await renewed(all(entered)));
  });

  it("renews no vault of an asset that only makings have, but those", async () => {
    const args = [STANDARD.erc20, SCHEME.mintmark, 1n, d.state.address] as const;
    const token = await d.viem.deployContract("MakingToken", args);
    const asset = await d.register("erc20", token.address);
    const batch = await commitRollup(d, [entry(asset, ann.address, "", 5n)]);
    await d.refuses(renew(all(batch)), "VaultNotMade", [idOf(batch)]);
    const made = await madeIn(
      d,
      token.write.make([BigInt(asset.assetType), ann.address, 5n, "0x"]),
    );
    await withdraw(await renewed(all(made)));
  });

  it("does not run while a withdrawal pays a token", async () => {
    const token = await d.viem.deployContract("ReentrantToken");
    const asset = await d.register("erc1155", token.address);
    const batch = await commitRollup(d, [entry(asset, ann.address, "1", 10n), ...coins(5n)]);
    const args = await renewalOf(d, ann, [request(batch, 1)]);
    const { abi } = d.state;
    const payload = encodeFunctionData({ abi, functionName: "renew", args });
    await token.write.arm([d.state.address, payload]);
    await withdraw(batch, 0);
    expect(await token.read.callSucceeded()).toBe(false);
    const guard = toFunctionSelector("ReentrancyGuardReentrantCall()");
    expect(await token.read.callAnswer()).toBe(guard);
  });

  it("is not there without the makings' code", async () => {
    const config = { ...d.config, makingsCode: `0x${"00".repeat(20)}` as const };
    const bare = await d.viem.deployContract("StateCommitment", [config]);
    await expect(bare.write.renew([[], "0x"])).rejects.toThrow("reverted");
  });
});
