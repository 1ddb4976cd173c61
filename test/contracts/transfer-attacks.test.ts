import {
  concat,
  encodeFunctionData,
  type Hex,
  hexToBytes,
  slice,
  toFunctionSelector,
  toHex,
} from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { sessionTypedData, transfersDigest } from "../../core/protocol/transfer.ts";
import { decodeTransferData, encodeTransferData } from "../../core/protocol/transfer-data.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { type CommittedBatch, commitAs, commitRollup, entry } from "./fixture/batches.ts";
import { MATURITY } from "./fixture/deployment.ts";
import { errorIn, outcomeOf } from "./fixture/outcomes.ts";
import {
  commitTransfers,
  type Exit,
  exitArgs,
  give,
  hopOf,
  LATER,
  NOBODY,
  openTransferChain,
  signedGroup,
  type TransferDeployment,
  transferBatchArgs,
} from "./fixture/transfers.ts";
import {
  batchArgs,
  entryOf,
  listed,
  NEVER,
  type Request,
  request,
  SOME_TERMS,
  signed,
  tipIdOf,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { connection, fresh } = await openTransferChain();
const { time, takeSnapshot } = connection.networkHelpers;

describe("attacks on transfers", () => {
  let d: TransferDeployment;
  let [ann, bob, dan] = [] as unknown as [PrivateKeyAccount, PrivateKeyAccount, PrivateKeyAccount];
  beforeEach(async () => {
    d = await fresh();
    [ann, bob, dan] = d.keys as unknown as [
      PrivateKeyAccount,
      PrivateKeyAccount,
      PrivateKeyAccount,
    ];
  });
  const coins = (amount: bigint) => [entry(d.transferable.coin, ann.address, "", amount)];
  const cards = (count: number) =>
    Array.from({ length: count }, (_, i) => entry(d.transferable.card, ann.address, String(i)));
  const idOf = (batch: CommittedBatch, slot = 0) => batch.vaults[slot]?.vaultId as bigint;
  const moved = async (...transfers: ReturnType<typeof give>[]) =>
    commitTransfers(d, [await signedGroup(d, ann, transfers)]);
  const bogus = (...transfers: ReturnType<typeof give>[]) =>
    commitTransfers(d, [{ transfers, deadline: LATER, signature: `0x${"00".repeat(64)}` }]);
  /** The error of an exit, or `nothing`. */
  const exit = (
    batch: CommittedBatch,
    by: PrivateKeyAccount,
    { slot = 0, ...exit }: Exit & { slot?: number } = {},
  ) =>
    d.state.simulate
      .withdrawTransferred(exitArgs(batch, slot, { recipient: bob.address, ...exit }), {
        account: by.address,
      })
      .then(
        () => "nothing",
        (error: unknown) => errorIn(error).error,
      );

  /** A request of the vault that hops lead to, whole and to its owner unless changed. */
  const tip = (
    batch: CommittedBatch,
    slot: number,
    hops: Request["hops"],
    change: Partial<Request> = {},
  ): Request => ({ ...request(batch, slot), hops, ...change });
  const outcome = async (args: ReturnType<typeof batchArgs>) =>
    outcomeOf(d, await d.state.write.withdrawBatch(args, d.by("relayer")));
  /** The errors of the requests, sent by somebody else in one call. */
  const relayed = async (...requests: Request[]) =>
    (await outcome(batchArgs(requests))).failed.map(({ error }) => error);
  /** The errors of a request whose item names this vault, under these lists. */
  const namedAs = async (asked: Request, tipId: bigint, lists = batchArgs([asked])[1]) => {
    const [[group], , itemGas] = batchArgs([asked]);
    const { items, ...rest } = group as NonNullable<typeof group>;
    // Behind the frame and the kind.
    const changed = concat([slice(items, 0, 6), toHex(tipId, { size: 8 }), slice(items, 14)]);
    const { failed } = await outcome([[{ ...rest, items: changed }], lists, itemGas]);
    return failed.map(({ error }) => error);
  };

  it("lists pay vaults of transfers beside minted ones, to their owners' recipient, by anybody", async () => {
    const mint = await commitRollup(d, [...coins(100n), ...coins(7n), ...cards(1)]);
    const batch = await moved(give(idOf(mint), bob.address, 40n), give(idOf(mint, 2), bob.address));
    const minted = await commitRollup(d, [entry(d.transferable.coin, bob.address, "", 5n)]);
    await time.increase(MATURITY);
    const recipient = dan.address;
    const bobs = [
      tip(mint, 0, [hopOf(batch, 0)], { quantity: 40n, recipient }),
      tip(mint, 2, [hopOf(batch, 2)], { recipient }),
      { ...request(minted, 0), recipient },
    ];
    const anns = [tip(mint, 0, [hopOf(batch, 1)], { quantity: 60n }), request(mint, 1)];
    const asked = [...(await listed(d, bob, bobs)), ...(await listed(d, ann, anns))];
    const { withdrawn, failed } = await outcome(batchArgs(asked));
    expect(failed).toEqual([]);
    expect(withdrawn.toSorted()).toEqual(asked.map(tipIdOf).toSorted());
    expect(await relayed(...asked)).toEqual(asked.map(() => "VaultExhausted"));
  });

  it("a list's entry of one vault pays no way to another, and no stranger's list pays the tip", async () => {
    const mint = await commitRollup(d, coins(100n));
    const batch = await moved(give(idOf(mint), bob.address, 40n));
    const hops = [hopOf(batch, 0)];
    const bobs = tip(mint, 0, hops, { quantity: 40n, recipient: dan.address });
    for (const thief of [ann, dan])
      expect(await relayed(await signed(d, thief, bobs))).toEqual(["SignatureInvalid"]);
    const [good] = await listed(d, bob, [bobs]);
    // The giver has signed for the tip, and the list says so.
    const message = { vaults: [entryOf(bobs)], recipient: dan.address, deadline: NEVER };
    const signature = await ann.signTypedData(withdrawalListTypedData(d.settlement, message));
    const [groups, [list], itemGas] = batchArgs([good as Request]);
    const head = slice(list as Hex, 20, 50 + 24);
    const { failed } = await outcome([groups, [concat([ann.address, head, signature])], itemGas]);
    expect(failed.map(({ error }) => error)).toEqual(["NotOwner"]);
    expect(await relayed(good as Request)).toEqual([]);
  });

  it("a cancelled vault id stops its owner's lists, and no record of a transfer", async () => {
    const mint = await commitRollup(d, coins(100n));
    const id = toHex(idOf(mint), { size: 32 });
    await d.state.write.cancel([ann.address, id, "0x"], { account: ann.address });
    expect(await relayed(await signed(d, ann, request(mint, 0)))).toEqual([
      "AuthorizationIsCancelled",
    ]);
    const batch = await moved(give(idOf(mint), bob.address));
    const hops = [hopOf(batch, 0)];
    const tipId = toHex(hops[0]?.outId as bigint, { size: 32 });
    // The giver's word on the receiver's vault is nothing.
    await d.state.write.cancel([ann.address, tipId, "0x"], { account: ann.address });
    const asked = tip(mint, 0, hops, { recipient: bob.address });
    const bobs = await signed(d, bob, asked);
    const snapshot = await takeSnapshot();
    expect(await relayed(bobs)).toEqual([]);
    await snapshot.restore();
    await d.state.write.cancel([bob.address, tipId, "0x"], { account: bob.address });
    expect(await relayed(bobs)).toEqual(["AuthorizationIsCancelled"]);
    expect(await exit(mint, bob, { hops, quantity: 100n })).toBe("nothing");
  });

  it("an item with a way that breaks off is refused by name", async () => {
    const mint = await commitRollup(d, [...coins(100n), ...coins(1n)]);
    const batch = await moved(give(idOf(mint), bob.address));
    const asked = await signed(d, bob, tip(mint, 0, [hopOf(batch, 0)], { recipient: bob.address }));
    const [[group], lists, itemGas] = batchArgs([asked]);
    const { items, ...rest } = group as NonNullable<typeof group>;
    // The lengths of the hops and of the refutation, behind frame, kind, tip and first owner.
    const lengths = 5 + 1 + 8 + 20;
    const withLengths = (text: Hex) =>
      concat([slice(items, 0, lengths), text, slice(items, lengths + 4)]);
    const write = (changed: Hex) => outcome([[{ ...rest, items: changed }], lists, itemGas]);
    for (const text of ["0xffff0000", "0x0000ffff"] as const)
      await expect(write(withLengths(text))).rejects.toThrow("ItemMalformed");
    // The former way is read as the item, which fails alone.
    const { failed } = await write(withLengths("0x00000000"));
    expect(failed.map(({ error }) => error)).toEqual(["ItemMalformed"]);
    const direct = d.state.write.withdrawTransferredItem([SOME_TERMS, 1n, 1n, 0n], d.by("relayer"));
    await d.refuses(direct, "NotSelf");
  });

  it("a session that a key signs for its own vaults is none of its wallet contract", async () => {
    const wallet = await d.viem.deployContract("Wallet1271", [ann.address, 0]);
    const until = BigInt(await time.latest()) + 1_000_000n;
    const authorize = async (owner: Hex) => {
      const session = {
        owner,
        key: dan.address,
        until,
        limit: 5n,
        assetType: toHex(0, { size: 32 }),
      };
      const signature = await ann.signTypedData(sessionTypedData(d.settlement, session));
      const args = [wallet.address, dan.address, until, 5n, 0n, signature] as const;
      return d.state.write.authorizeSession(args, { account: bob.address });
    };
    await expect(authorize(ann.address)).rejects.toThrow("SignatureInvalid");
    await authorize(wallet.address);
  });

  it("a stranger's signature under an approved list does not let the stranger cancel it", async () => {
    const mint = await commitRollup(d, cards(1));
    const group = await signedGroup(d, dan, [give(idOf(mint), bob.address)]);
    await d.state.write.approveTransfers([group.transfers, LATER], { account: ann.address });
    await d.state.write.cancelTransfers([transfersDigest(d.settlement, group)], {
      account: dan.address,
    });
    const batch = await commitTransfers(d, [group]);
    await time.increase(MATURITY);
    expect(await exit(mint, bob, { hops: [hopOf(batch, 0)] })).toBe("nothing");
    expect(await exit(mint, ann, { refutation: [hopOf(batch, 0)] })).toBe("VaultSpent");
  });

  it("nobody's signature moves what is redeemed, and nobody gets it", async () => {
    const mint = await commitRollup(d, coins(100n));
    const batch = await moved(give(idOf(mint), NOBODY));
    const hops = [hopOf(batch, 0)];
    // A list of the zero address names the burned vault, and nobody has signed it.
    for (const signature of ["00".repeat(64), "00".repeat(65), `${"11".repeat(64)}1b`, "01"]) {
      const burned = tip(mint, 0, hops, { recipient: bob.address });
      const list = [{ vaultId: hops[0]?.outId as bigint, withdrawnBefore: 0n, quantity: 100n }];
      const authorization = { deadline: 2n ** 63n, signature: `0x${signature}` as const, list };
      expect(await relayed({ ...burned, authorization }), signature).toEqual(["SignatureInvalid"]);
    }
    expect(await exit(mint, ann, { hops })).toBe("NotOwner");
    expect(await exit(mint, ann, { refutation: hops })).toBe("VaultSpent");
  });

  it("records of slots that a batch does not have spend nothing", async () => {
    const mint = await commitRollup(d, coins(100n));
    const batch = await bogus(give(idOf(mint) + 1n, bob.address));
    expect(await exit(mint, bob, { hops: [hopOf(batch, 0)] })).toBe("ProofInvalid");
    await d.state.write.withdraw(withdrawArgs(request(mint, 0)), { account: ann.address });
  });

  it("an entry of a list pays one vault: the mint's nothing of its outputs, an output's no other one", async () => {
    const mint = await commitRollup(d, coins(100n));
    const old = await signed(d, ann, { ...request(mint, 0), quantity: 10n });
    const batch = await moved(give(idOf(mint), ann.address, 40n));
    const hop = [hopOf(batch, 0), hopOf(batch, 1)] as const;
    // Both tips are the signer's own, so only the entry's id keeps them apart.
    const [first, change] = hop.map((each) => tip(mint, 0, [each], { quantity: 10n }));
    const [one] = await listed(d, ann, [first as Request]);
    const [two] = await listed(d, ann, [change as Request]);
    const firstList = batchArgs([one as Request])[1];
    // The way leads to the change, but the item and the entry of its list name the first output.
    expect(await namedAs(two as Request, hop[0].outId, firstList)).toEqual(["ItemMalformed"]);
    // The item names the change, and its entry the first output.
    await expect(namedAs(two as Request, hop[1].outId, firstList)).rejects.toThrow("ListMalformed");
    // The item and the entry name the minted vault, whose way leads on.
    const oldList = batchArgs([old])[1];
    expect(await namedAs(two as Request, idOf(mint), oldList)).toEqual(["ItemMalformed"]);
    expect(await relayed(one as Request)).toEqual([]);
    expect(await relayed(one as Request)).toEqual(["NotListed"]);
    expect(await relayed(old)).toEqual(["VaultSpent"]);
    const [vault, , path] = exitArgs(mint, 0);
    const fake = { ...vault, vaultId: hop[1].outId, amount: 60n };
    for (const siblings of [hop[1].siblings, path.siblings, []]) {
      const args = [fake, batch.header, { ...path, siblings }, 1n, ann.address];
      const call = d.state.simulate.withdraw(args as never, { account: ann.address });
      await expect(call).rejects.toThrow("ProofInvalid");
    }
  });

  it("a voided mint is void for every owner after it, and a redeemed earlier one voids still", async () => {
    const mint = await commitRollup(d, cards(1));
    const twin = await commitRollup(d, cards(1));
    const redeemed = await moved(give(idOf(mint), NOBODY));
    const given = await moved(give(idOf(twin), bob.address));
    const [earlier, later] = [exitArgs(mint, 0), exitArgs(twin, 0)];
    const pair = [earlier[0], earlier[1], earlier[2], later[0], later[1], later[2]] as const;
    await time.increase(MATURITY);
    const snapshot = await takeSnapshot();
    const args = exitArgs(twin, 0, { hops: [hopOf(given, 0)], recipient: bob.address });
    await d.state.write.withdrawTransferred(args, { account: bob.address });
    // The token is minted already. So nobody else gets it.
    await d.state.write.voidDuplicate(pair);
    expect(await exit(twin, ann, { refutation: [hopOf(given, 0)] })).toBe("VaultExhausted");
    await snapshot.restore();
    await d.state.write.voidDuplicate(pair);
    expect(await exit(twin, bob, { hops: [hopOf(given, 0)] })).toBe("TransferInvalid");
    expect(await exit(mint, ann, { refutation: [hopOf(redeemed, 0)] })).toBe("VaultSpent");
  });

  it("a batch of withdrawals, and a signed list, fails at spent vaults only", async () => {
    const mint = await commitRollup(d, cards(3));
    await moved(give(idOf(mint, 1), bob.address));
    await time.increase(MATURITY);
    const all = [0, 1, 2].map((slot) => request(mint, slot));
    for (const asked of [
      await listed(d, ann, all),
      await Promise.all(all.map((one) => signed(d, ann, one))),
    ]) {
      const snapshot = await takeSnapshot();
      const hash = await d.state.write.withdrawBatch(batchArgs(asked), d.by("relayer"));
      const { blockNumber } = await d.publicClient.getTransactionReceipt({ hash });
      const range = { fromBlock: blockNumber, toBlock: blockNumber };
      const failed = await d.state.getEvents.WithdrawalFailed({}, range);
      const reason = toFunctionSelector("VaultSpent(uint64)");
      expect(failed.map(({ args }) => [args.vaultId, args.reason?.slice(0, 10)])).toEqual([
        [idOf(mint, 1), reason],
      ]);
      expect((await d.state.getEvents.Withdrawn({}, range)).length).toBe(2);
      await snapshot.restore();
    }
  });

  it("a token does not come back through the code of transfers", async () => {
    const token = await d.viem.deployContract("ReentrantToken");
    const asset = await d.register("erc1155", token.address);
    const mint = await commitRollup(d, [
      entry(asset, d.actors.owner.account.address, "1", 10n),
      ...coins(10n),
    ]);
    const batch = await moved(give(idOf(mint, 1), token.address));
    const args = exitArgs(mint, 1, { hops: [hopOf(batch, 0)], recipient: token.address });
    const call = encodeFunctionData({
      abi: d.state.abi,
      functionName: "withdrawTransferred",
      args,
    });
    await token.write.arm([d.state.address, call]);
    const asked = withdrawArgs(request(mint, 0, { quantity: 1n }));
    await d.state.write.withdraw(asked, d.by("owner"));
    expect(await token.read.callAnswer()).toBe(
      toFunctionSelector("ReentrancyGuardReentrantCall()"),
    );
  });

  it("the code of transfers alone has no vault, no operator and no word over the contract's owners", async () => {
    const mint = await commitRollup(d, coins(10n));
    const batch = await moved(give(idOf(mint), bob.address));
    const code = await d.viem.getContractAt("Transfers", await d.state.read.transfersCode());
    const exit = exitArgs(mint, 0, { hops: [hopOf(batch, 0)], recipient: bob.address });
    const byBob = { account: bob.address };
    await expect(code.simulate.withdrawTransferred(exit, byBob)).rejects.toThrow();
    await expect(
      code.read.verifyTransferred([exit[0], exit[1], exit[2], exit[3], "0x"]),
    ).rejects.toThrow("HeaderMismatch");
    const group = await signedGroup(d, ann, [give(1n, dan.address)]);
    const commit = await transferBatchArgs(d, toHex(encodeTransferData([group])));
    const byOperator = { account: d.actors.operator.account.address };
    // The role's refusal, which this code's own interface does not name.
    const unauthorized = toFunctionSelector("AccessControlUnauthorizedAccount(address,bytes32)");
    await expect(code.simulate.commitTransferBatch(commit, byOperator)).rejects.toThrow(
      unauthorized,
    );
    const session = [bob.address, dan.address, LATER, 5n, 0n, "0x"] as const;
    await code.write.authorizeSession(session, byBob);
    expect((await d.state.read.session([bob.address, dan.address]))[0]).toBe(0n);
  });

  it("data of any form is taken by L1 as the decoder takes it, and spends each vault once", async () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    const bytes = (count: number) =>
      Array.from({ length: count }, () => random(256).toString(16).padStart(2, "0")).join("");
    const number = (value: bigint | number, size: number) =>
      value.toString(16).padStart(2 * size, "0");
    const spent = new Set<bigint>();
    const count = { taken: 0, refused: 0, malformed: 0 };
    for (const kind of ["calldata", "validium", "calldata"] as const)
      await commitAs[kind](d, coins(1n));
    for (let n = 0; n < 80; n++) {
      let data: Hex = "0x03";
      for (let groups = 1 + random(4); groups > 0; groups--) {
        const form = random(random(20) === 0 ? 256 : 64);
        const has = (bit: number) => (form & bit) !== 0;
        const length = has(4) ? 1 + random(6) : 1;
        data += number(form, 1) + (random(20) ? "ff" : "00") + bytes(3);
        // A base in the first batches, or anywhere.
        if (has(8))
          data += random(9)
            ? number((BigInt(random(2)) << 63n) | BigInt(random(1 << 21)), 8)
            : bytes(8);
        if (has(4)) data += number(length, 2);
        if (has(32)) data += bytes(20);
        if (!has(2)) data += bytes(64);
        for (let i = 0; i < length; i++) {
          const id = (BigInt(random(2)) << 63n) | (BigInt(random(2)) << 20n) | BigInt(random(255));
          data += has(16)
            ? number(random(9) ? id : 1n << BigInt(random(64)), 8)
            : number(random(1 << 20), 3);
          data +=
            (has(32) ? "" : bytes(20)) + (has(1) ? (random(2) ? number(0, 8) : bytes(8)) : "");
        }
      }
      const cut = random(8);
      if (cut === 0) data = data.slice(0, -2 * (1 + random(30))) as Hex;
      if (cut === 1) data += bytes(1 + random(30));
      const groups = (() => {
        try {
          return decodeTransferData(hexToBytes(data as Hex));
        } catch {
          return null;
        }
      })();
      const [validiums, batchNumber] = await d.state.read.batchCounts();
      const args =
        groups !== null
          ? await transferBatchArgs(d, data as Hex)
          : ([await d.state.read.history(), batchNumber, data as Hex, "0x"] as const);
      const outcome = await d.state.write.commitTransferBatch(args, d.by("operator")).then(
        () => "taken",
        (error: unknown) => errorIn(error).error,
      );
      if (groups === null) {
        expect(outcome).toMatch(/^(TransferDataInvalid|Spent|BatchUnknown|DeadlinePassed)$/);
        count.malformed++;
        continue;
      }
      const ids = groups.flatMap(({ transfers }) => transfers.map(({ vaultId }) => vaultId));
      const isThere = (id: bigint) =>
        ((id >> 20n) & 0xffff_ffffn) < (id >> 63n === 1n ? batchNumber : validiums);
      const now = BigInt(await time.latest());
      const isRefused =
        groups.some(({ deadline }) => deadline <= now) ||
        ids.some((id) => spent.has(id) || !isThere(id));
      if (isRefused) expect(outcome).toMatch(/^(Spent|BatchUnknown|DeadlinePassed)$/);
      else expect(outcome).toBe("taken");
      if (isRefused) count.refused++;
      else {
        for (const id of ids) spent.add(id);
        count.taken++;
      }
    }
    for (const id of spent) expect(await d.state.read.isSpent([id])).toBe(true);
    expect(Math.min(...Object.values(count)), JSON.stringify(count)).toBeGreaterThan(2);
  });
});
