import { decodeFunctionData, type Hash, hexToBytes, maxUint256, toHex, zeroAddress } from "viem";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { deriveBatch } from "../../core/archive/index.ts";
import { MODES, type Mode } from "../../core/model.ts";
import { manifestPath } from "../../core/protocol/manifest.ts";
import type { CommittedBatch } from "./fixture/batches.ts";
import {
  commitRollup,
  commitValidium,
  entry,
  pathOf,
  proofOf,
  provenArgs,
  toStruct,
} from "./fixture/batches.ts";
import type { Deployment } from "./fixture/deployment.ts";
import {
  ascendingAccounts,
  COIN_QUANTUM,
  MODE,
  openChain,
  SCHEME,
  STANDARD,
} from "./fixture/deployment.ts";
import {
  advanceArgs,
  attestState,
  cardOf,
  importArgs,
  newSource,
  openMirrorChain,
  step,
} from "./fixture/mirror.ts";
import { outcomeOf } from "./fixture/outcomes.ts";
import { batchArgs, digestOf, request, signed, withdrawArgs } from "./fixture/withdrawals.ts";

/**
 * Cells of the tables in docs/security.md that say "no". A party calls everything that could help
 * it, in a form that would be good from somebody else. What the contract takes of it is listed.
 * Afterwards all that was committed before is as it was, can be read, and is paid to its owner.
 */

type Attempts = Readonly<Record<string, () => Promise<unknown>>>;
type Wallet = Deployment["actors"]["owner"];

/** Tries all in their order, and returns the names of those that the contract took. */
async function taken(attempts: Attempts): Promise<string[]> {
  const names: string[] = [];
  for (const [name, attempt] of Object.entries(attempts)) {
    if (
      await attempt().then(
        () => true,
        () => false,
      )
    )
      names.push(name);
  }
  return names;
}

/** The contract takes these of anyone: they change nothing for anybody else. */
const HARMLESS = [
  "sends a batch of withdrawals, which pays nothing",
  "cancels what it has signed itself",
];

/**
 * Resolves when all calls have ended and one was taken, so that none is under way in the next
 * attempt.
 */
async function someOf(calls: readonly Promise<unknown>[]): Promise<void> {
  const ends = await Promise.allSettled(calls);
  const [refused] = ends.filter((end) => end.status === "rejected");
  if (refused !== undefined && ends.every(({ status }) => status === "rejected"))
    throw refused.reason;
}

describe("of what was committed before", () => {
  /**
   * A deployment with an application's tokens, whose minter is locked, and an owner's vaults in
   * both modes.
   */
  async function furnished() {
    const { fresh } = await openChain();
    const d = await fresh();
    const { relayer: application, owner } = d.actors;
    const roles = [application.account.address, d.state.address, zeroAddress] as const;
    const coins = await d.viem.deployContract("MintableERC20", [
      "C",
      "C",
      maxUint256,
      COIN_QUANTUM,
      ...roles,
      false,
    ]);
    const royalty = { receiver: application.account.address, fraction: 0n };
    const cards = await d.viem.deployContract("MintableERC721", [
      "C",
      "C",
      "",
      SCHEME.mintmark,
      royalty,
      ...roles,
      false,
    ]);
    await coins.write.lockMinter({ account: application.account });
    await cards.write.lockMinter({ account: application.account });
    const coin = await d.register("erc20", coins.address, COIN_QUANTUM);
    const card = await d.register("erc721", cards.address);
    const to = owner.account.address;
    const batches = {
      validium: await commitValidium(d, [entry(coin, to, "", 5n), entry(card, to, "1")]),
      "zk-rollup": await commitRollup(d, [entry(coin, to, "", 5n), entry(card, to, "2")]),
    };
    await d.mature();
    return { d, coins, cards, card, batches };
  }

  let world: Awaited<ReturnType<typeof furnished>>;
  let restore: () => Promise<void>;
  beforeAll(async () => {
    world = await furnished();
  });
  beforeEach(async () => {
    ({ restore } = await world.d.connection.networkHelpers.takeSnapshot());
  });
  afterEach(() => restore());

  const headers = () =>
    Promise.all(MODES.map((mode) => world.d.state.read.batchHeaderHash([MODE[mode], 0n])));
  const vaults = () =>
    MODES.flatMap((mode) => [0, 1].map((slot) => request(world.batches[mode], slot)));

  function attemptsOf(wallet: Wallet, members = ascendingAccounts(5)): Attempts {
    const { d, coins, cards, card, batches } = world;
    const { state } = d;
    const { address: self } = wallet.account;
    const by = { account: wallet.account };
    const asOperator = { ...d, members, actors: { ...d.actors, operator: wallet } };
    const committee = [ascendingAccounts(3).map(({ address }) => address), 2] as const;
    const theirs = vaults().map((asked) => ({ ...asked, recipient: self }));
    const first = theirs[0] as (typeof theirs)[0];
    const paid = async (sent: Promise<Hash>) => {
      const { failed } = await outcomeOf(d, await sent);
      if (failed.length > 0) throw new Error(failed[0]?.error);
    };
    const proof = (mode: Mode) => provenArgs(proofOf(batches[mode], 1));
    /** A later duplicate of the owner's cards, first in its own batch. */
    const duplicates = [entry(card, self, "1"), entry(card, self, "2")];
    let hidden: CommittedBatch | null = null;
    return {
      "commits a rollup batch": () => commitRollup(asOperator, [entry(card, self, "3")]),
      "commits a rollup batch of hidden data": async () =>
        state.write.commitRollupBatch(
          [await state.read.history(), "0x", (await state.read.batchCounts())[1], "0x"],
          by,
        ),
      "commits a validium batch of hidden data": async () => {
        hidden = await commitValidium(asOperator, duplicates);
      },
      "commits in the place of another batch": async () =>
        state.write.commitRollupBatch(
          [await state.read.history(), "0x", 0n, await calldataOf(batches["zk-rollup"])],
          by,
        ),
      "voids the owner's vault by its own": async () => {
        const own = provenArgs(proofOf(hidden ?? batches.validium, hidden === null ? 1 : 0));
        await state.write.voidDuplicate([...own, ...proof("validium")], by);
      },
      "withdraws as the owner": async () => {
        await someOf(theirs.map((asked) => state.write.withdraw(withdrawArgs(asked), by)));
      },
      "withdraws by its own signature": async () => {
        await someOf(
          theirs.map(async (asked) =>
            paid(state.write.withdrawBatch(batchArgs([await signed(d, wallet, asked)]), by)),
          ),
        );
      },
      "sends a batch of withdrawals, which pays nothing": () =>
        state.write.withdrawBatch(batchArgs(theirs), by),
      "cancels what it has signed itself": async () =>
        state.write.cancel([self, digestOf(d, await signed(d, wallet, first)), "0x"], by),
      "registers the token as of another standard": () =>
        state.write.registerAsset(
          [STANDARD.erc1155, 31_337n, cards.address, 1n, SCHEME.mintmark],
          by,
        ),
      "registers another quantum": () =>
        state.write.registerAsset([STANDARD.erc20, 31_337n, coins.address, 1n, SCHEME.imx], by),
      "takes the minter role from the contract": async () =>
        cards.write.revokeRole([await cards.read.MINTER_ROLE(), state.address], by),
      "becomes a minter": async () =>
        cards.write.grantRole([await cards.read.MINTER_ROLE(), self], by),
      "mints the token itself": () => cards.write.mintFor([self, 1n, toHex("1")], by),
      "is operator at once": async () =>
        state.write.grantRole([await state.read.OPERATOR_ROLE(), self], by),
      "announces itself as operator": () => state.write.scheduleOperator([self], by),
      "becomes operator before the delay is over": () => state.write.activateOperator([self], by),
      "announces a committee": () => state.write.scheduleCommittee([...committee], by),
      "has its committee before the delay is over": () =>
        state.write.activateCommittee([...committee], by),
      "revokes the operator": () => state.write.revokeOperator([d.config.operator], by),
      "pauses commits": () => state.write.pauseCommits([true], by),
    };
  }

  /** The batch's data as anyone reads it from L1. */
  async function calldataOf({ txHash }: CommittedBatch) {
    const { input } = await world.d.publicClient.getTransaction({ hash: txHash });
    const { functionName, args } = decodeFunctionData({ abi: world.d.state.abi, data: input });
    if (functionName !== "commitRollupBatch")
      throw new Error(`not a rollup commit: ${functionName}`);
    return args[3];
  }

  it("the same calls pay when the owner sends them", async () => {
    const names = await taken(attemptsOf(world.d.actors.owner));
    expect(names.toSorted()).toEqual([...HARMLESS, "withdraws as the owner"].toSorted());
  });

  it.each([
    { who: "an application", actor: "relayer", powers: [] },
    { who: "the guardian", actor: "guardian", powers: ["revokes the operator", "pauses commits"] },
    {
      who: "the administrator",
      actor: "admin",
      powers: [
        "announces itself as operator",
        "announces a committee",
        "revokes the operator",
        "pauses commits",
      ],
    },
    { who: "the operator", actor: "operator", powers: ["commits a rollup batch"] },
    {
      who: "the committee with the operator",
      actor: "operator",
      signs: true,
      powers: ["commits a rollup batch", "commits a validium batch of hidden data"],
    },
  ] as const)(
    "$who changes nothing, hides nothing, and stops no exit, whatever it calls",
    async (party) => {
      const { d, coins, cards, batches } = world;
      const before = await headers();
      const members = "signs" in party ? d.members : ascendingAccounts(5);
      const taking = await taken(attemptsOf(d.actors[party.actor], members));
      expect(taking.toSorted()).toEqual([...party.powers, ...HARMLESS].toSorted());

      expect(await headers()).toEqual(before);
      const data = hexToBytes(await calldataOf(batches["zk-rollup"]));
      expect(deriveBatch("zk-rollup", 0, data).batchRoot).toBe(
        batches["zk-rollup"].header.batchRoot,
      );
      for (const asked of vaults()) {
        await d.state.write.withdraw(withdrawArgs(asked), d.by("owner"));
      }
      const owner = d.actors.owner.account.address;
      expect(await coins.read.balanceOf([owner])).toBe(10n * COIN_QUANTUM);
      expect(await cards.read.balanceOf([owner])).toBe(2n);
    },
  );
});

describe("of what a mirror has accepted", () => {
  const EMPTY = { countValidium: 0, countRollup: 0 };

  it.each([
    { who: "the source's operator", actor: "stranger", powers: [] },
    { who: "the administrator", actor: "admin", powers: ["announces a committee"] },
  ] as const)(
    "$who, with two members of five, changes nothing and stops no exit there",
    async ({ actor, powers }) => {
      const { fresh } = await openMirrorChain();
      const d = await fresh();
      const { mirror, card, source } = d;
      const owner = d.actors.owner.account;
      const wallet = d.actors[actor];
      const { address: self } = wallet.account;
      const by = { account: wallet.account };
      const mine = await source.commit("zk-rollup", [cardOf(d, owner.address, "7")]);
      const accepted = (await step(d, EMPTY)) ?? EMPTY;
      await mirror.write.importBatch(importArgs(d, 0n, "zk-rollup", 0, 1));
      await d.mature();
      const proven = async (batch: typeof mine) => {
        const [vault] = batch.vaults;
        if (vault === undefined) throw new Error("an empty batch");
        const { acceptedAt } = await mirror.read.step([0n]);
        const path = pathOf({ siblings: [], assetPath: manifestPath(batch.assets, vault) });
        return [
          toStruct(vault),
          { ...batch.header, committedAt: acceptedAt, sequence: 0n },
          path,
        ] as const;
      };
      // The source never had this: the owner's card once more, of another owner.
      const lies = newSource();
      const stolen = await lies.commit("zk-rollup", [cardOf(d, self, "7")]);
      await source.commit("validium", [cardOf(d, self, "7")]);
      const honest = await proven(mine);
      const header = await mirror.read.batchHeaderHash([MODE["zk-rollup"], 0n]);
      const members = [ascendingAccounts(3).map(({ address }) => address), 2] as const;
      const growth = source.history.nextGrowth(accepted);
      const lie = lies.history.nextGrowth(EMPTY);
      if (growth === null || lie === null) throw new Error("the source has not gone on");
      const names = await taken({
        "advances it by two signatures": async () =>
          mirror.write.advance(
            advanceArgs(
              d,
              accepted,
              growth,
              await attestState(d, { countValidium: 1, countRollup: 1 }, {}, [0, 1]),
            ),
            by,
          ),
        "takes it back to a state of its own": async () => {
          const other = { ...d, source: lies };
          const to = { countValidium: 0, countRollup: 1 };
          await mirror.write.advance(
            advanceArgs(other, EMPTY, lie, await attestState(other, to, {}, [0, 1])),
            by,
          );
        },
        "imports another batch in the place": () =>
          mirror.write.importBatch(importArgs({ ...d, source: lies }, 0n, "zk-rollup", 0, 1), by),
        "withdraws a vault of its own making": async () =>
          mirror.write.withdraw([...(await proven(stolen)), 1n, self], by),
        "withdraws as the owner": () => mirror.write.withdraw([...honest, 1n, self], by),
        "voids the vault by one of its own making": async () =>
          mirror.write.voidDuplicate([...(await proven(stolen)), ...honest], by),
        "announces a committee": () => mirror.write.scheduleCommittee([...members], by),
        "has its committee before the delay is over": () =>
          mirror.write.activateCommittee([...members], by),
        "registers the token as of another standard": () =>
          mirror.write.registerAsset(
            [STANDARD.erc1155, 31_338n, card.address, 1n, SCHEME.mintmark],
            by,
          ),
        "mints the token itself": () => card.write.mintFor([self, 1n, toHex("7")], by),
      });
      expect(names).toEqual(powers);
      expect(await mirror.read.batchHeaderHash([MODE["zk-rollup"], 0n])).toBe(header);
      expect(await mirror.read.commitment()).toBe(source.history.stateAt(accepted).commitment);
      await mirror.write.withdraw([...honest, 1n, owner.address], { account: owner });
      expect((await card.read.ownerOf([7n])).toLowerCase()).toBe(owner.address.toLowerCase());
    },
  );
});
