import { bytesToHex, encodeFunctionData, type Hex, hashTypedData, keccak256, toHex } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { STANDARDS } from "../../core/model.ts";
import type { SessionMessage } from "../../core/protocol/transfer.ts";
import {
  sessionEndTypedData,
  sessionTypedData,
  transfersDigest,
} from "../../core/protocol/transfer.ts";
import { encodeTransferData, type TransferGroup } from "../../core/protocol/transfer-data.ts";
import { vectors } from "../core/protocol/vectors.ts";
import { type CommittedBatch, commitAs, commitRollup, entry } from "./fixture/batches.ts";
import { attest } from "./fixture/committee.ts";
import { MATURITY, STANDARD } from "./fixture/deployment.ts";
import { errorIn, outcomeOf } from "./fixture/outcomes.ts";
import {
  ANSWER,
  type CommittedTransfers,
  commitTransfers,
  type Exit,
  exitArgs,
  give,
  hopOf,
  LATER,
  NOBODY,
  openTransferChain,
  registerTransferable,
  signedGroup,
  type TransferDeployment,
  transferBatchArgs,
} from "./fixture/transfers.ts";
import {
  batchArgs,
  listed,
  type Request,
  request,
  signed,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { connection, fresh } = await openTransferChain();
const { time, takeSnapshot } = connection.networkHelpers;
const ANY_ASSET = `0x${"00".repeat(32)}` as Hex;

describe("transfers", () => {
  let d: TransferDeployment;
  let [ann, bob, cat, dan]: readonly PrivateKeyAccount[] = [];
  beforeEach(async () => {
    d = await fresh();
    [ann, bob, cat, dan] = d.keys;
  });
  const key = (account: PrivateKeyAccount | undefined) => account as PrivateKeyAccount;
  const cards = (count: number, owner = key(ann), first = 0) =>
    Array.from({ length: count }, (_, i) =>
      entry(d.transferable.card, owner.address, String(first + i)),
    );
  const coins = (amount: bigint, owner = key(ann)) => [
    entry(d.transferable.coin, owner.address, "", amount),
  ];
  const mature = () => time.increase(MATURITY);
  const idOf = (batch: CommittedBatch, slot = 0) => batch.vaults[slot]?.vaultId as bigint;

  async function exits(
    batch: CommittedBatch,
    slot: number,
    by: PrivateKeyAccount | undefined,
    exit: Exit = {},
  ) {
    const args = exitArgs(batch, slot, { recipient: key(by).address, ...exit });
    return d.state.write.withdrawTransferred(args, { account: key(by).address });
  }
  async function refused(
    batch: CommittedBatch,
    slot: number,
    by: PrivateKeyAccount | undefined,
    exit: Exit = {},
  ) {
    const args = exitArgs(batch, slot, { recipient: key(by).address, ...exit });
    const call = d.state.simulate.withdrawTransferred(args, { account: key(by).address });
    return call.then(() => ({ error: "nothing", args: [] as readonly unknown[] }), errorIn);
  }
  const moved = async (
    from: PrivateKeyAccount | undefined,
    ...transfers: TransferGroup["transfers"]
  ) => commitTransfers(d, [await signedGroup(d, key(from), transfers)]);
  const held = async (
    asset: { readonly token: Hex },
    owner: PrivateKeyAccount | undefined,
    mintingBlob = "",
  ) =>
    (await d.viem.getContractAt("TransferableToken", asset.token)).read.held([
      key(owner).address,
      keccak256(toHex(mintingBlob)),
    ]);

  describe.each(["validium", "calldata", "blobs"] as const)("of vaults in %s", (kind) => {
    it("let the receiver withdraw, alone or relayed, and the owner before no longer", async () => {
      const mint = await commitAs[kind](d, cards(3));
      const batch = await commitTransfers(d, [
        await signedGroup(d, key(ann), [give(idOf(mint), key(bob).address)]),
        await signedGroup(d, key(ann), [give(idOf(mint, 1), key(cat).address)]),
      ]);
      await mature();
      const hops = [hopOf(batch, 0)];
      await expect(
        d.state.write.withdraw(withdrawArgs(request(mint, 0)), { account: key(ann).address }),
      ).rejects.toThrow(new RegExp(`VaultSpent\\(.*\\s+\\(${idOf(mint)}\\)`));
      for (const refutation of [[], hops, [hopOf(batch, 1)]]) {
        expect((await refused(mint, 0, ann, { refutation })).error).toMatch(
          /^(VaultSpent|ProofInvalid)$/,
        );
      }
      expect(await refused(mint, 0, ann, { hops })).toMatchObject({ error: "NotOwner" });
      await exits(mint, 0, bob, { hops });
      expect(await refused(mint, 0, bob, { hops })).toMatchObject({ error: "VaultExhausted" });
      const asked = { ...request(mint, 1), recipient: key(cat).address };
      const relayed = await signed(d, key(cat), { ...asked, hops: [hopOf(batch, 1)] });
      await d.state.write.withdrawBatch(batchArgs([relayed]), d.by("relayer"));
      expect(await held(d.transferable.card, bob, "0")).toBe(1n);
      expect(await held(d.transferable.card, cat, "1")).toBe(1n);
      await d.state.write.withdraw(withdrawArgs(request(mint, 2)), { account: key(ann).address });
    });
  });

  it("chain: each owner passes the vault on, and the last one withdraws", async () => {
    const mint = await commitRollup(d, cards(1));
    const first = await moved(ann, give(idOf(mint), key(bob).address));
    const second = await moved(bob, give(first.outputs[0]?.outId as bigint, key(cat).address));
    const third = await moved(cat, give(second.outputs[0]?.outId as bigint, key(ann).address));
    await mature();
    const hops = [first, second, third].map((batch) => hopOf(batch, 0));
    for (const count of [0, 1, 2]) {
      const by = [ann, bob, cat][count];
      const chain = { hops: hops.slice(0, count), refutation: hops.slice(count, count + 1) };
      expect(await refused(mint, 0, by, chain)).toMatchObject({ error: "VaultSpent" });
    }
    expect((await refused(mint, 0, ann, { hops: [hops[0], hops[2]] as never })).error).toBe(
      "ProofInvalid",
    );
    await exits(mint, 0, ann, { hops });
  });

  it("end behind eight records, so that nobody makes an exit too dear", async () => {
    const mint = await commitRollup(d, coins(20n));
    const chain: CommittedTransfers[] = [];
    for (let i = 0; i < 9; i++) {
      const last = chain.at(-1)?.outputs[1]?.outId ?? idOf(mint);
      chain.push(await moved(ann, give(last, key(bob).address, 1n)));
    }
    const hops = chain.map((batch) => hopOf(batch, 1));
    expect(await refused(mint, 0, ann, { hops })).toMatchObject({ error: "TransferInvalid" });
    const paid = [...hops.slice(0, 8), hopOf(chain[8] as CommittedTransfers, 0)];
    expect(await refused(mint, 0, bob, { hops: paid })).toMatchObject({ error: "TransferInvalid" });
    await exits(mint, 0, bob, {
      hops: [...hops.slice(0, 7), hopOf(chain[7] as CommittedTransfers, 0)],
    });
    await exits(mint, 0, ann, { hops: hops.slice(0, 8), refutation: hops.slice(8), quantity: 12n });
  });

  it("cost an item of a list less than the gas that it gets for them: eight by a session, and a ninth to refute", async () => {
    const mint = await commitRollup(d, [...coins(20n), ...coins(20n)]);
    const session = [key(ann).address, key(dan).address, LATER, 20n, 0n, "0x"] as const;
    await d.state.write.authorizeSession(session, { account: key(ann).address });
    const chain: CommittedTransfers[] = [];
    // The key splits the vault four times, and then gives the rest to its owner.
    for (let i = 0; i < 9; i++) {
      const last = chain.at(-1)?.outputs.at(-1)?.outId ?? idOf(mint);
      const to = i < 4 ? give(last, key(bob).address, 1n) : give(last, key(ann).address);
      chain.push(await moved(dan, to));
    }
    const hops = chain.map((batch) => hopOf(batch, batch.outputs.length - 1));
    const gasOf = async (asked: Request) => {
      const [one] = await listed(d, key(ann), [asked]);
      const args = batchArgs([one as Request]);
      const { withdrawn, gasUsed } = await outcomeOf(
        d,
        await d.state.write.withdrawBatch(args, d.by("relayer")),
      );
      expect(withdrawn).toHaveLength(1);
      return gasUsed;
    };
    const plain = await gasOf(request(mint, 1));
    const way = { hops: hops.slice(0, 8), refutation: hops.at(-1), quantity: 16n };
    const behind = await gasOf(request(mint, 0, way));
    // 300,000 without the calldata, which the transaction pays before.
    expect(behind - plain).toBeLessThan(240_000n);
    console.info(`gas of a list of one: ${plain}, behind eight records and a ninth: ${behind}`);
  });

  it("tell who owns what is left, before and behind maturity, and are refused to a proof of the mint alone", async () => {
    const mint = await commitRollup(d, [...cards(2), ...coins(100n)]);
    const owner = async (slot: number, exit: Exit = {}) => {
      const [vault, header, path, hops, refutation] = exitArgs(mint, slot, exit);
      const call = d.state.read.verifyTransferred([vault, header, path, hops, refutation]);
      return call.then(([account, amount]) => [account, amount], errorIn);
    };
    const withdrawn = (slot: number) => {
      const [vault, header, path] = exitArgs(mint, slot);
      return d.state.read.verifyVault([vault, header, path]).catch(errorIn);
    };
    expect(await owner(0)).toEqual([key(ann).address, 1n]);
    const batch = await moved(
      ann,
      give(idOf(mint), NOBODY),
      give(idOf(mint, 2), key(bob).address, 30n),
    );
    const bogus = await moved(bob, give(idOf(mint, 1), key(bob).address));
    expect(await owner(0, { hops: [hopOf(batch, 0)] })).toEqual([NOBODY, 1n]);
    expect(await owner(0)).toMatchObject({ error: "VaultSpent" });
    expect(await owner(1)).toMatchObject({ error: "VaultSpent" });
    expect(await owner(1, { refutation: [hopOf(bogus, 0)] })).toEqual([key(ann).address, 1n]);
    expect(await owner(1, { hops: [hopOf(bogus, 0)] })).toMatchObject({ error: "TransferInvalid" });
    const hops = [hopOf(batch, 1)];
    expect(await owner(2, { hops })).toEqual([key(bob).address, 30n]);
    await exits(mint, 2, bob, { hops, quantity: 12n });
    expect(await owner(2, { hops })).toEqual([key(bob).address, 18n]);
    expect(await owner(2, { hops: [hopOf(batch, 2)] })).toEqual([key(ann).address, 70n]);
    for (const slot of [0, 1, 2])
      expect(await withdrawn(slot)).toMatchObject({ error: "VaultSpent" });
    const others = await commitRollup(d, [
      ...coins(5n),
      entry(d.assets.coin, key(ann).address, "", 5n),
    ]);
    await moved(ann, give(idOf(others, 1), key(bob).address));
    for (const slot of [0, 1]) {
      const [vault, header, path] = exitArgs(others, slot);
      expect(await d.state.read.verifyVault([vault, header, path])).toBe(0n);
    }
  });

  it("mature with the mint, not with the record", async () => {
    const mint = await commitRollup(d, cards(1));
    await time.increase(MATURITY - 100n);
    const batch = await moved(ann, give(idOf(mint), key(bob).address));
    const hops = [hopOf(batch, 0)];
    expect(await refused(mint, 0, bob, { hops })).toMatchObject({ error: "NotMature" });
    await time.increase(100n);
    await exits(mint, 0, bob, { hops });
  });

  it("split coins into exactly what is left, before and behind withdrawals", async () => {
    const mint = await commitRollup(d, coins(100n));
    await d.state.write.withdraw(withdrawArgs(request(mint, 0, { quantity: 10n })), {
      account: key(ann).address,
    });
    const batch = await moved(ann, give(idOf(mint), key(bob).address, 30n));
    const [receiver, change] = [hopOf(batch, 0), hopOf(batch, 1)];
    expect(await refused(mint, 0, bob, { hops: [receiver], quantity: 31n })).toMatchObject({
      error: "QuantityTooLarge",
    });
    expect(await refused(mint, 0, bob, { hops: [change] })).toMatchObject({ error: "NotOwner" });
    expect(await refused(mint, 0, ann, { hops: [{ ...receiver, part: 1 }] })).toMatchObject({
      error: "ProofInvalid",
    });
    await exits(mint, 0, bob, { hops: [receiver], quantity: 12n });
    const again = await moved(bob, give(receiver.outId, key(cat).address));
    await exits(mint, 0, cat, { hops: [receiver, hopOf(again, 0)], quantity: 18n });
    await exits(mint, 0, ann, { hops: [change], quantity: 60n });
    const { coin } = d.transferable;
    expect([await held(coin, ann), await held(coin, bob), await held(coin, cat)]).toEqual([
      70n,
      12n,
      18n,
    ]);
  });

  it("split items, and burn a part or all of them", async () => {
    const items = [5n, 5n].map((amount) =>
      entry(d.transferable.item, key(ann).address, "7", amount),
    );
    const mint = await commitRollup(d, items);
    const batch = await moved(ann, give(idOf(mint), NOBODY, 2n), give(idOf(mint, 1), NOBODY));
    expect(batch.outputs.length).toBe(3);
    for (const by of [ann, bob]) {
      for (const slot of [0, 2]) {
        const origin = slot === 0 ? 0 : 1;
        expect(await refused(mint, origin, by, { hops: [hopOf(batch, slot)] })).toMatchObject({
          error: "NotOwner",
        });
        expect((await refused(mint, origin, by, { refutation: [hopOf(batch, slot)] })).error).toBe(
          "VaultSpent",
        );
      }
    }
    await exits(mint, 0, ann, { hops: [hopOf(batch, 1)], quantity: 3n });
    // No record that somebody makes up for it opens the burned vault.
    const later = await commitTransfers(d, [
      {
        transfers: [give(hopOf(batch, 2).outId, key(bob).address)],
        deadline: LATER,
        signature: `0x${"00".repeat(64)}`,
      },
    ]);
    const chain = { hops: [hopOf(batch, 2), hopOf(later, 0)] };
    expect(await refused(mint, 1, bob, chain)).toMatchObject({ error: "TransferInvalid" });
  });

  describe("that do not count", () => {
    /** The owner leaves over the record, and whoever it names gets nothing. */
    async function isRefuted(
      mint: CommittedBatch,
      batch: CommittedTransfers,
      quantity = 1n,
      slot = 0,
    ) {
      await mature();
      const hop = hopOf(batch, slot);
      expect(await refused(mint, 0, bob, { hops: [hop] })).toMatchObject({
        error: "TransferInvalid",
      });
      expect(await refused(mint, 0, ann, { quantity })).toMatchObject({ error: "VaultSpent" });
      const altered = { ...hop, signature: `0x${"11".repeat(64)}` as Hex };
      expect(await refused(mint, 0, ann, { refutation: [altered] })).toMatchObject({
        error: "ProofInvalid",
      });
      await exits(mint, 0, ann, { refutation: [hop], quantity });
      expect(await refused(mint, 0, bob, { hops: [hop] })).toMatchObject({
        error: "TransferInvalid",
      });
    }

    it("are refuted when another signed", async () => {
      const mint = await commitRollup(d, cards(1));
      await isRefuted(mint, await moved(bob, give(idOf(mint), key(bob).address)));
    });

    it("are refuted when their signer has cancelled them before, an owner or a session's key", async () => {
      const mint = await commitRollup(d, cards(5));
      const groups = await Promise.all(
        [ann, ann, ann, dan, dan].map((by, slot) =>
          signedGroup(d, key(by), [give(idOf(mint, slot), key(bob).address)]),
        ),
      );
      const digests = groups.map((group) => transfersDigest(d.settlement, group));
      const cancel = (slot: number, by: PrivateKeyAccount | undefined) =>
        d.state.write.cancelTransfers([digests[slot] as Hex], { account: key(by).address });
      const until = BigInt(await time.latest()) + 1_000_000n;
      await d.state.write.authorizeSession(
        [key(ann).address, key(dan).address, until, 1n, 0n, "0x"],
        {
          account: key(ann).address,
        },
      );
      await d.state.write.approveTransfers([(groups[1] as TransferGroup).transfers, LATER], {
        account: key(ann).address,
      });
      for (const [slot, by] of [
        [1, ann],
        [2, bob],
        [3, dan],
        [4, ann],
      ] as const)
        await cancel(slot, by);
      const batch = await commitTransfers(d, groups);
      await cancel(0, ann);
      await mature();
      for (const [slot, counts] of [true, false, true, false, false].entries()) {
        const hops = [hopOf(batch, slot)];
        const outcome = (await refused(mint, slot, bob, { hops })).error;
        expect(outcome, `slot ${slot}`).toBe(counts ? "nothing" : "TransferInvalid");
        const refuted = (await refused(mint, slot, ann, { refutation: hops })).error;
        expect(refuted, `slot ${slot}`).toBe(counts ? "VaultSpent" : "nothing");
      }
      const [, at] = await d.state.read.approval([key(ann).address, digests[1] as Hex]);
      await cancel(1, ann);
      expect(await d.state.read.approval([key(ann).address, digests[1] as Hex])).toEqual([
        expect.any(BigInt),
        at,
      ]);
    });

    it("are refuted when they take more than there is, or a part of a card", async () => {
      const mint = await commitRollup(d, coins(10n));
      await isRefuted(mint, await moved(ann, give(idOf(mint), key(bob).address, 10n)), 10n);
      const card = await commitRollup(d, cards(1));
      await isRefuted(card, await moved(ann, give(idOf(card), key(bob).address, 1n)), 1n, 1);
    });

    it("are refuted when a withdrawal came first that leaves no more than they take, and spoil the vault", async () => {
      const mint = await commitRollup(d, [...coins(10n), ...coins(10n), ...coins(10n)]);
      const groups = await Promise.all(
        [6n, 4n, 0n].map((amount, slot) =>
          signedGroup(d, key(ann), [give(idOf(mint, slot), key(bob).address, amount)]),
        ),
      );
      for (const slot of [0, 1, 2])
        await d.state.write.withdraw(withdrawArgs(request(mint, slot, { quantity: 4n })), {
          account: key(ann).address,
        });
      const batch = await commitTransfers(d, groups);
      await isRefuted(mint, batch, 1n);
      await exits(mint, 0, ann, { refutation: [hopOf(batch, 0)], quantity: 5n });
      await expect(moved(ann, give(idOf(mint), key(bob).address))).rejects.toThrow("Spent");
      // A larger withdrawal only makes the change, or the whole rest, smaller.
      await exits(mint, 1, bob, { hops: [hopOf(batch, 2)], quantity: 4n });
      await exits(mint, 1, ann, { hops: [hopOf(batch, 3)], quantity: 2n });
      await exits(mint, 2, bob, { hops: [hopOf(batch, 4)], quantity: 6n });
    });

    it("stay refuted when the owner leaves in parts", async () => {
      const mint = await commitRollup(d, coins(10n));
      const batch = await moved(ann, give(idOf(mint), key(bob).address, 11n));
      const refutation = [hopOf(batch, 1)];
      for (const quantity of [1n, 4n, 5n]) await exits(mint, 0, ann, { refutation, quantity });
      expect(await refused(mint, 0, ann, { refutation })).toMatchObject({
        error: "VaultExhausted",
      });
    });

    it("spend nothing that is withdrawn already", async () => {
      const mint = await commitRollup(d, coins(10n));
      await d.state.write.withdraw(withdrawArgs(request(mint, 0)), { account: key(ann).address });
      const batch = await moved(ann, give(idOf(mint), key(bob).address));
      expect(await refused(mint, 0, bob, { hops: [hopOf(batch, 0)] })).toMatchObject({
        error: "TransferInvalid",
      });
    });

    it("are not made up by a validium root that holds a record's leaf", async () => {
      const mint = await commitRollup(d, cards(1));
      const real = await moved(bob, give(idOf(mint), key(bob).address));
      const validium = await commitAs.validium(d, cards(1, key(bob), 9));
      await mature();
      const hop = { ...hopOf(real, 0), outId: 0n, header: validium.header };
      expect(await refused(mint, 0, ann, { refutation: [hop] })).toMatchObject({
        error: "ProofInvalid",
      });
      expect(await refused(mint, 0, bob, { hops: [hop] })).toMatchObject({ error: "ProofInvalid" });
      const unknown = {
        ...hopOf(real, 0),
        header: { ...real.header, committedAt: real.header.committedAt - 1n },
      };
      expect(await refused(mint, 0, bob, { hops: [unknown] })).toMatchObject({
        error: "HeaderMismatch",
      });
      const deeper = { ...hopOf(real, 0), siblings: [keccak256("0x")] };
      expect(await refused(mint, 0, bob, { hops: [deeper] })).toMatchObject({
        error: "ProofInvalid",
      });
      const outside = { ...hopOf(real, 0), outId: hopOf(real, 0).outId + 1n };
      expect(await refused(mint, 0, bob, { hops: [outside] })).toMatchObject({
        error: "ProofInvalid",
      });
    });
  });

  it("of a duplicate die with it", async () => {
    const mint = await commitRollup(d, [...cards(1), ...cards(1)]);
    const batch = await moved(ann, give(idOf(mint, 1), key(bob).address));
    const [[first, firstHeader, firstPath], [later, laterHeader, laterPath]] = [0, 1].map((slot) =>
      exitArgs(mint, slot),
    ) as [ReturnType<typeof exitArgs>, ReturnType<typeof exitArgs>];
    await d.state.write.voidDuplicate([
      first,
      firstHeader,
      firstPath,
      later,
      laterHeader,
      laterPath,
    ]);
    await mature();
    expect(await refused(mint, 1, bob, { hops: [hopOf(batch, 0)] })).toMatchObject({
      error: "TransferInvalid",
    });
    expect(await refused(mint, 1, ann, { refutation: [hopOf(batch, 0)] })).toMatchObject({
      error: "VaultExhausted",
    });
    await exits(mint, 0, ann);
  });

  describe("by a session's key", () => {
    const session = async (change: Partial<SessionMessage> = {}): Promise<SessionMessage> => ({
      owner: key(ann).address,
      key: key(dan).address,
      until: BigInt(await time.latest()) + 1000n,
      limit: 1n,
      assetType: ANY_ASSET,
      ...change,
    });
    const args = ({ key, until, limit, assetType }: SessionMessage, signature: Hex = "0x") =>
      [d.keys[0]?.address as Hex, key, until, limit, BigInt(assetType), signature] as const;
    const authorize = async (terms: SessionMessage) =>
      d.state.write.authorizeSession(args(terms), { account: key(ann).address });

    it("count while the session is in force, within its scope", async () => {
      const mint = await commitRollup(d, [...cards(4), ...coins(10n)]);
      const other = await moved(dan, give(idOf(mint, 3), key(bob).address));
      await authorize(await session({ assetType: d.transferable.card.assetType }));
      const [good, coin] = [
        await moved(dan, give(idOf(mint), key(bob).address)),
        await moved(dan, give(idOf(mint, 4), key(bob).address, 1n)),
      ];
      const parties = { owner: key(ann).address, key: key(dan).address };
      const end = await key(ann).signTypedData(sessionEndTypedData(d.settlement, parties));
      const wrong = await key(bob).signTypedData(sessionEndTypedData(d.settlement, parties));
      const bring = (signature: Hex) =>
        d.state.write.revokeSession([parties.owner, parties.key, signature], d.by("relayer"));
      for (const bad of ["0x", wrong] as const)
        await expect(bring(bad)).rejects.toThrow("SignatureInvalid");
      await bring(end);
      const late = await moved(dan, give(idOf(mint, 1), key(bob).address));
      await mature();
      await exits(mint, 0, bob, { hops: [hopOf(good, 0)] });
      for (const [batch, slot] of [
        [other, 3],
        [coin, 4],
        [late, 1],
      ] as const) {
        const hops = [hopOf(batch, 0)];
        expect(await refused(mint, slot, bob, { hops })).toMatchObject({
          error: "TransferInvalid",
        });
        await exits(mint, slot, ann, { refutation: hops });
      }
    });

    it("count up to the limit, a whole vault with its full amount", async () => {
      const mint = await commitRollup(d, [...coins(10n), ...coins(10n), ...coins(5n)]);
      await authorize(await session({ limit: 5n }));
      const [part, whole, small] = [
        await moved(dan, give(idOf(mint), key(bob).address, 5n)),
        await moved(dan, give(idOf(mint, 1), key(bob).address)),
        await moved(dan, give(idOf(mint, 2), key(bob).address)),
      ];
      await exits(mint, 0, bob, { hops: [hopOf(part, 0)], quantity: 5n });
      await exits(mint, 2, bob, { hops: [hopOf(small, 0)], quantity: 5n });
      const refutation = [hopOf(whole, 0)];
      await exits(mint, 1, ann, { refutation, quantity: 6n });
      expect(await refused(mint, 1, bob, { hops: refutation })).toMatchObject({
        error: "TransferInvalid",
      });
      await exits(mint, 1, ann, { refutation, quantity: 4n });
    });

    it("split a vault below four others only, so that its owner can still give it away", async () => {
      const mint = await commitRollup(d, coins(20n));
      await authorize(await session());
      const chain: CommittedTransfers[] = [];
      const split = async (by: PrivateKeyAccount | undefined) => {
        const last = chain.at(-1)?.outputs[1]?.outId ?? idOf(mint);
        chain.push(await moved(by, give(last, key(bob).address, 1n)));
      };
      for (let i = 0; i < 4; i++) await split(dan);
      const before = chain.map((batch) => hopOf(batch, 1));
      const snapshot = await takeSnapshot();
      await split(dan);
      const fifth = chain[4] as CommittedTransfers;
      expect(await refused(mint, 0, bob, { hops: [...before, hopOf(fifth, 0)] })).toMatchObject({
        error: "TransferInvalid",
      });
      await exits(mint, 0, ann, { hops: before, refutation: [hopOf(fifth, 0)], quantity: 16n });
      await snapshot.restore();
      chain.pop();
      for (let i = 0; i < 4; i++) await split(ann);
      const paid = chain.map((batch, i) => hopOf(batch, i === 7 ? 0 : 1));
      await exits(mint, 0, bob, { hops: paid });
    });

    it.each(vectors("transfer-rules").vectors)(
      "of $amount by the $by, behind $before others: $counts",
      async (vector) => {
        const { by, amount, before, counts } = vector;
        const mint = await commitRollup(d, coins(20n));
        await authorize(await session({ limit: 20n }));
        const chain: CommittedTransfers[] = [];
        const give = async (from: PrivateKeyAccount | undefined, units: bigint) => {
          const vaultId = chain.at(-1)?.outputs.at(-1)?.outId ?? idOf(mint);
          chain.push(await moved(from, { vaultId, amount: units, to: key(ann).address }));
        };
        for (let i = 0; i < before; i++) await give(ann, 1n);
        await give(by === "owner" ? ann : dan, BigInt(amount));
        const hops = chain.map((batch) => hopOf(batch, batch.outputs.length - 1));
        if (counts) await exits(mint, 0, ann, { hops });
        else
          expect(await refused(mint, 0, ann, { hops })).toMatchObject({ error: "TransferInvalid" });
      },
    );

    it("count neither behind its end nor in the second of its start", async () => {
      const mint = await commitRollup(d, cards(3));
      await connection.provider.request({ method: "evm_setAutomine", params: [false] });
      const operator = { account: d.actors.operator.account, gas: 2_000_000n } as const;
      const until = BigInt(await time.latest()) + 1000n;
      const group = await signedGroup(d, key(dan), [give(idOf(mint), key(bob).address)]);
      const data = bytesToHex(encodeTransferData([group]));
      const transaction = await d.state.write.commitTransferBatch(
        await transferBatchArgs(d, data),
        operator,
      );
      await d.state.write.authorizeSession(args(await session({ until })), {
        account: key(ann).address,
        gas: 200_000n,
      });
      await connection.provider.request({ method: "evm_setAutomine", params: [true] });
      await connection.networkHelpers.mine();
      const [from] = await d.state.read.session([key(ann).address, key(dan).address]);
      const { blockNumber } = await d.publicClient.getTransactionReceipt({ hash: transaction });
      const { timestamp } = await d.publicClient.getBlock({ blockNumber });
      expect(from).toBe(timestamp);
      await time.setNextBlockTimestamp(until);
      const last = await moved(dan, give(idOf(mint, 1), key(bob).address));
      const late = await moved(dan, give(idOf(mint, 2), key(bob).address));
      await mature();
      await exits(mint, 1, bob, { hops: [hopOf(last, 0)] });
      expect(await refused(mint, 2, bob, { hops: [hopOf(late, 0)] })).toMatchObject({
        error: "TransferInvalid",
      });
      const header = {
        ...last.header,
        committedAt: timestamp,
        sequence: last.header.sequence - 1n,
      };
      const early = (
        await d.state.getEvents.BatchCommitted({}, { fromBlock: blockNumber, toBlock: blockNumber })
      )[0];
      expect(early?.args).toMatchObject({
        committedAt: header.committedAt,
        sequence: header.sequence,
      });
      const first: CommittedTransfers = {
        ...last,
        batchNumber: last.batchNumber - 1,
        groups: [group],
        outputs: [
          {
            ...(last.outputs[0] as CommittedTransfers["outputs"][0]),
            outId: hopOf(last, 0).outId - (1n << 20n),
            transfer: group.transfers[0] as never,
          },
        ],
        header: { ...header, batchRoot: early?.args.batchRoot as Hex },
      };
      expect(await refused(mint, 0, bob, { hops: [hopOf(first, 0)] })).toMatchObject({
        error: "TransferInvalid",
      });
      await exits(mint, 0, ann, { refutation: [hopOf(first, 0)] });
    });

    it("need the owner's call or signature, once for each key", async () => {
      const terms = await session();
      const signature = await key(ann).signTypedData(sessionTypedData(d.settlement, terms));
      const relay = d.by("relayer");
      const wrong = await key(bob).signTypedData(sessionTypedData(d.settlement, terms));
      const other = { ...terms, owner: key(bob).address };
      const another = await key(ann).signTypedData(sessionTypedData(d.settlement, other));
      for (const bad of ["0x", wrong, another] as const) {
        await expect(d.state.write.authorizeSession(args(terms, bad), relay)).rejects.toThrow(
          "SignatureInvalid",
        );
      }
      for (const bad of [{ limit: 0n }, { until: BigInt(await time.latest()) }, { key: NOBODY }]) {
        await expect(authorize({ ...terms, ...bad })).rejects.toThrow("SessionInvalid");
      }
      await d.state.write.authorizeSession(args(terms, signature), relay);
      const [from, until, revokedAt, limit] = await d.state.read.session([
        key(ann).address,
        terms.key,
      ]);
      expect([from, until, revokedAt, limit]).toEqual([
        BigInt(await time.latest()),
        terms.until,
        0n,
        1n,
      ]);
      await expect(authorize(terms)).rejects.toThrow("SessionKeyUsed");
      await d.state.write.revokeSession([terms.owner, terms.key, "0x"], {
        account: key(ann).address,
      });
      const [, , at] = await d.state.read.session([key(ann).address, terms.key]);
      await d.state.write.revokeSession([terms.owner, terms.key, "0x"], {
        account: key(ann).address,
      });
      expect((await d.state.read.session([key(ann).address, terms.key]))[2]).toBe(at);
      await d.state.write.revokeSession([terms.owner, key(cat).address, "0x"], {
        account: key(ann).address,
      });
      await expect(authorize({ ...terms, key: key(cat).address })).rejects.toThrow(
        "SessionKeyUsed",
      );
      expect(hashTypedData(sessionTypedData(d.settlement, terms))).toHaveLength(66);
    });
  });

  it("count by an approval of an earlier second, without a signature", async () => {
    const mint = await commitRollup(d, cards(2));
    const [first, second] = [0, 1].map((slot): TransferGroup => {
      const transfers = [give(idOf(mint, slot), key(bob).address)];
      return { transfers, deadline: LATER, signature: "0x" };
    }) as [TransferGroup, TransferGroup];
    const approve = (group: TransferGroup) =>
      d.state.write.approveTransfers([group.transfers, group.deadline], {
        account: key(ann).address,
      });
    await approve(first);
    const approvedAt = async () =>
      (await d.state.read.approval([key(ann).address, transfersDigest(d.settlement, first)]))[0];
    const at = await approvedAt();
    expect(at).toBe(BigInt(await time.latest()));
    const good = await commitTransfers(d, [first]);
    const early = await commitTransfers(d, [second]);
    await approve(second);
    await approve(first);
    expect(await approvedAt()).toBe(at);
    await mature();
    await exits(mint, 0, bob, { hops: [hopOf(good, 0)] });
    expect(await refused(mint, 1, bob, { hops: [hopOf(early, 0)] })).toMatchObject({
      error: "TransferInvalid",
    });
    await exits(mint, 1, ann, { refutation: [hopOf(early, 0)] });
  });

  describe("are only of assets that say so", () => {
    it("and do not touch others, which are withdrawn as ever", async () => {
      const mint = await commitRollup(d, [entry(d.assets.coin, key(ann).address, "", 5n)]);
      const batch = await moved(ann, give(idOf(mint), key(bob).address));
      const { error } = await refused(mint, 0, bob, { hops: [hopOf(batch, 0)] });
      expect(error).toBe("NotTransferable");
      await d.state.write.withdraw(withdrawArgs(request(mint, 0)), { account: key(ann).address });
    });

    it.each(Object.entries(ANSWER))("answer %s", async (name, answer) => {
      const asset = await registerTransferable(d, "erc721", answer);
      const isYes = name === "yes";
      expect(await d.state.read.isTransferable([asset.chainId, BigInt(asset.assetType)])).toBe(
        isYes,
      );
      const told = await d.state.getEvents.AssetTransferable({
        assetType: BigInt(asset.assetType),
      });
      expect(told.length).toBe(isYes ? 1 : 0);
    });

    it("and this project's tokens say what they were deployed with", async () => {
      for (const { chainId, assetType } of [d.assets.coin, d.assets.card, d.assets.item]) {
        expect(await d.state.read.isTransferable([chainId, BigInt(assetType)])).toBe(false);
      }
      for (const standard of STANDARDS) {
        const { address } = await d.mintable[standard]({ isTransferable: true });
        const { chainId, assetType } = await d.register(standard, address);
        expect(await d.state.read.isTransferable([chainId, BigInt(assetType)])).toBe(true);
      }
    });

    it("whatever gas the registration gets", async () => {
      const token = await d.viem.deployContract("TransferableToken", [
        STANDARD.erc721,
        ANSWER.yes,
        d.state.address,
        NOBODY,
      ]);
      const call = [STANDARD.erc721, 31_337n, token.address, 1n, 1] as const;
      const needed = await d.publicClient.estimateGas({
        account: key(ann).address,
        to: d.state.address,
        data: encodeFunctionData({ abi: d.state.abi, functionName: "registerAsset", args: call }),
      });
      for (let gas = needed - 60_000n; gas <= needed + 40_000n; gas += 5_000n) {
        const snapshot = await takeSnapshot();
        const done = await d.state.write.registerAsset(call, { gas }).catch(() => null);
        const told = done === null ? 1 : (await d.state.getEvents.AssetTransferable()).length;
        expect(told, `with ${gas} gas`).toBe(1);
        await snapshot.restore();
      }
    });
  });

  describe("are committed", () => {
    const write = async (
      args: Awaited<ReturnType<typeof transferBatchArgs>>,
      account = d.actors.operator.account,
    ) => d.state.write.commitTransferBatch(args, { account });

    it("once for each vault, whoever signed", async () => {
      const mint = await commitRollup(d, cards(2));
      await moved(bob, give(idOf(mint), key(bob).address));
      expect(await d.state.read.isSpent([idOf(mint)])).toBe(true);
      expect(await d.state.read.isSpent([idOf(mint, 1)])).toBe(false);
      await expect(moved(ann, give(idOf(mint), key(bob).address))).rejects.toThrow(
        new RegExp(` Spent\\(.*\\s+\\(${idOf(mint)}\\)`),
      );
      expect(await d.state.read.isSpent([idOf(mint, 1)])).toBe(false);
    });

    it("until the deadline, of batches that are there, and never a chain in one batch", async () => {
      const mint = await commitRollup(d, cards(2));
      const validium = await commitAs.validium(d, cards(1, key(ann), 5));
      const [validiums, rollups] = await d.state.read.batchCounts();
      const future = [
        (1n << 63n) | (rollups << 20n),
        validiums << 20n,
        (1n << 63n) | ((rollups + 1n) << 20n),
      ];
      for (const vaultId of future) {
        const chain = [give(idOf(mint), key(bob).address), give(vaultId, key(cat).address)];
        await expect(moved(ann, ...chain)).rejects.toThrow(
          new RegExp(`BatchUnknown[^]*${vaultId}`),
        );
      }
      const deadline = BigInt(await time.latest()) + 100n;
      const group = await signedGroup(d, key(ann), [give(idOf(mint), key(bob).address)], deadline);
      const other = await signedGroup(d, key(ann), [give(idOf(validium), key(bob).address)]);
      await time.setNextBlockTimestamp(deadline + 1n);
      await expect(commitTransfers(d, [other, group])).rejects.toThrow(
        new RegExp(`DeadlinePassed[^]*${deadline}`),
      );
      await time.setNextBlockTimestamp(deadline);
      await commitTransfers(d, [other, group]);
    });

    it("by the operator, in its turn, with the members' own signatures, unless paused", async () => {
      const mint = await commitRollup(d, cards(1));
      const data = bytesToHex(
        encodeTransferData([await signedGroup(d, key(ann), [give(idOf(mint), key(bob).address)])]),
      );
      const good = await transferBatchArgs(d, data);
      const [history, number, , attestation] = good;
      const byStranger = write(good, d.actors.stranger.account);
      await d.refuses(byStranger, "AccessControlUnauthorizedAccount");
      await expect(write([keccak256("0x"), number, data, attestation])).rejects.toThrow(
        "HistoryMismatch",
      );
      await expect(write([history, number + 1n, data, attestation])).rejects.toThrow(
        "BatchNumberMismatch",
      );
      await expect(write([history, number, data, "0x"])).rejects.toThrow("AttestationMalformed");
      const batchRoot = keccak256("0x01");
      const message = {
        history,
        batchNumber: Number(number),
        batchRoot,
        vaultCount: 1,
        dataHash: keccak256(data),
        epoch: 0n,
      };
      await expect(write([history, number, data, await attest(d, message)])).rejects.toThrow(
        "CommitteeMismatch",
      );
      await d.state.write.pauseCommits([true], d.by("guardian"));
      await expect(write(good)).rejects.toThrow("CommittingPaused");
      await d.state.write.pauseCommits([false], d.by("admin"));
      const hash = await write(good);
      await d.tells(Promise.resolve(hash), "TransfersCommitted", [number]);
    });
  });
});
