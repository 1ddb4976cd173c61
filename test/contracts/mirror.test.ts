import fc from "fast-check";
import { type Address, type ContractErrorName, getAddress, toHex, zeroHash } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import type { stateMirrorAbi } from "../../core/l1/abi.ts";
import type { Growth } from "../../core/mirror/history.ts";
import { MODES, type Mode } from "../../core/model.ts";
import { type StateCounts, stateCommitment } from "../../core/protocol/commitment.ts";
import { bytesToHex, unpackHashes } from "../../core/protocol/hex.ts";
import { manifestPath } from "../../core/protocol/manifest.ts";
import { StateTree } from "../../core/protocol/state-tree.ts";
import { pathOf, toStruct } from "./fixture/batches.ts";
import { assetOf, CHANGE_DELAY, MATURITY, MODE, SCHEME, STANDARD } from "./fixture/deployment.ts";
import {
  advanceArgs,
  attestState,
  cardOf,
  countsAfter,
  importArgs,
  MIRROR_CHAIN,
  type MirrorDeployment,
  newSource,
  openMirrorChain,
  SOURCE,
  step,
} from "./fixture/mirror.ts";

const EMPTY: StateCounts = { countValidium: 0, countRollup: 0 };
const { fresh } = await openMirrorChain();

let d: MirrorDeployment;
let owner: Address;
beforeEach(async () => {
  d = await fresh();
  owner = d.actors.owner.account.address;
});

const commitCard = (mode: Mode, text: string, to = owner) =>
  d.source.commit(mode, [cardOf(d, to, text)]);
const grown = (from: StateCounts): Growth => {
  const growth = d.source.history.nextGrowth(from);
  if (growth === null) throw new Error("the source has not gone on");
  return growth;
};
const refusal = (
  call: Promise<unknown>,
  error: ContractErrorName<typeof stateMirrorAbi>,
  args: readonly unknown[],
) => d.viem.assertions.revertWithCustomErrorWithArgs(call, d.mirror, error, args as never);

describe("advancing a mirror", () => {
  it("begins with the source's empty state, and cannot be of its own chain", async () => {
    expect(await d.mirror.read.commitment()).toBe(d.source.history.stateAt(EMPTY).commitment);
    const here = d.viem.deployContract("StateMirror", [
      { ...d.config, sourceChainId: MIRROR_CHAIN },
    ]);
    await refusal(here, "SourceOnThisChain", []);
  });

  it("takes a step at a time, each the source's own state", async () => {
    for (const mode of ["validium", "validium", "zk-rollup", "validium"] as const)
      await commitCard(mode, mode);
    let counts = EMPTY;
    for (const [validium, rollup] of [
      [2, 0],
      [2, 1],
      [3, 1],
    ] as const) {
      counts = (await step(d, counts)) ?? EMPTY;
      expect(counts).toEqual({ countValidium: validium, countRollup: rollup });
      expect(await d.mirror.read.commitment()).toBe(d.source.history.stateAt(counts).commitment);
    }
    expect(await step(d, counts)).toBeNull();
    expect(await d.mirror.read.stepCount()).toBe(3n);
    // Two validium batches and one rollup batch, but not in this order.
    expect(() => d.source.history.stateAt({ countValidium: 1, countRollup: 1 })).toThrow(
      "has no final state",
    );
  });

  it("refuses what does not start where it is, and what is not newer", async () => {
    await commitCard("validium", "1");
    const first = advanceArgs(
      d,
      EMPTY,
      grown(EMPTY),
      await attestState(d, { countValidium: 1, countRollup: 0 }),
    );
    await d.mirror.write.advance(first);
    const [now, old] = [
      { countValidium: 1, countRollup: 0 },
      d.source.history.stateAt(EMPTY).commitment,
    ];
    const expected = d.source.history.stateAt(now).commitment;
    await refusal(d.mirror.write.advance(first), "CommitmentMismatch", [expected, old]);
    const again = advanceArgs(d, now, grown(EMPTY), first[2]);
    await refusal(d.mirror.write.advance(again), "StateNotNewer", [1n, 1n]);
  });

  it("refuses signatures over another count, commitment, epoch or source, and too few of them", async () => {
    await commitCard("validium", "1");
    await commitCard("validium", "2");
    const growth = grown(EMPTY);
    const to = countsAfter(EMPTY, growth);
    for (const change of [
      { countValidium: 1 },
      { countRollup: 1 },
      { commitment: zeroHash },
      { epoch: 1n },
      { sourceChainId: 1n },
      { sourceContract: d.mirror.address },
    ]) {
      const args = advanceArgs(d, EMPTY, growth, await attestState(d, to, change));
      await refusal(d.mirror.write.advance(args), "CommitteeMismatch", [0n]);
    }
    const two = advanceArgs(d, EMPTY, growth, await attestState(d, to, {}, [0, 1]));
    await refusal(d.mirror.write.advance(two), "CommitteeMismatch", [0n]);
    await refusal(d.mirror.write.advance([two[0], two[1], "0x"]), "AttestationMalformed", [0n]);
  });

  it("refuses the signatures of a committee that is no longer in force", async () => {
    await commitCard("validium", "1");
    const args = advanceArgs(
      d,
      EMPTY,
      grown(EMPTY),
      await attestState(d, { countValidium: 1, countRollup: 0 }),
    );
    const others = d.config.committee.slice(1);
    await d.mirror.write.scheduleCommittee([others, 3], d.by("admin"));
    await expect(d.mirror.write.activateCommittee([others, 3])).rejects.toThrow("ChangeNotDue");
    await d.connection.networkHelpers.time.increase(CHANGE_DELAY);
    await d.mirror.write.activateCommittee([others, 3]);
    await refusal(d.mirror.write.advance(args), "CommitteeMismatch", [1n]);
  });

  it("refuses a state that all members signed, but that drops or changes what was accepted", async () => {
    const { batchNumber } = await commitCard("zk-rollup", "1");
    await step(d, EMPTY);
    const now = { countValidium: 0, countRollup: batchNumber + 1 };
    // Another history of two rollup batches, in which the first is not the accepted one.
    const rival = new StateTree(new Uint8Array(64).fill(7));
    const rollup = bytesToHex(rival.root());
    const { rootValidium } = d.source.history.stateAt(now);
    const to = { countValidium: 0, countRollup: 2 };
    const commitment = stateCommitment(SOURCE, { rootValidium, rootRollup: rollup, ...to });
    const growth: Growth = {
      mode: "zk-rollup",
      count: 2,
      root: rollup,
      leaf: bytesToHex(rival.leaf(1)),
      atOld: unpackHashes(rival.siblings(1)),
      atNew: unpackHashes(rival.siblings(2)),
    };
    const args = advanceArgs(d, now, growth, await attestState(d, to, { commitment }));
    await refusal(d.mirror.write.advance(args), "StateNotConsistent", []);
  });
});

describe("importing a batch", () => {
  it("is open to anyone, keeps the header, and can be repeated", async () => {
    const { batchNumber } = await commitCard("validium", "1");
    await step(d, EMPTY);
    const args = importArgs(d, 0n, "validium", batchNumber, 1);
    for (const account of [d.actors.stranger.account, d.actors.owner.account]) {
      await d.mirror.write.importBatch(args, { account });
    }
    expect(await d.mirror.read.batchHeaderHash([MODE.validium, 0n])).not.toBe(zeroHash);
  });

  it("refuses an unknown step, another step's batch, and any other content", async () => {
    await commitCard("validium", "1");
    await commitCard("zk-rollup", "2");
    const after = (await step(d, EMPTY)) ?? EMPTY;
    await step(d, after);
    const [, number, batch, siblings] = importArgs(d, 0n, "validium", 0, 1);
    const call = (sequence: bigint, n: bigint, content = batch, path = siblings) =>
      d.mirror.write.importBatch([sequence, n, content, path]);
    await refusal(call(2n, number), "StepUnknown", [2n]);
    await refusal(call(0n, 1n), "BatchNotInStep", [0n, 1n, 1n]);
    // The other mode's step has a batch of this number, which is not this one.
    await refusal(call(1n, 0n), "BatchProofInvalid", [0n]);
    await refusal(call(0n, number, { ...batch, vaultCount: 2 }), "BatchProofInvalid", [0n]);
    await refusal(call(0n, number, { ...batch, dataHash: zeroHash }), "BatchProofInvalid", [0n]);
    await refusal(call(0n, number, { ...batch, vaultCount: 0 }), "VaultCountInvalid", [0]);
    await refusal(call(0n, number, { ...batch, vaultCount: 2 ** 20 + 1 }), "VaultCountInvalid", [
      2 ** 20 + 1,
    ]);
    await refusal(call(0n, number, batch, siblings.slice(1)), "BatchProofInvalid", [0n]);
  });

  it("works for every batch of random histories, from its own step and no other", async () => {
    const histories = fc.array(fc.constantFrom(...MODES), { minLength: 1, maxLength: 9 });
    await fc.assert(
      fc.asyncProperty(histories, async (modes) => {
        d = await fresh();
        for (const [i, mode] of modes.entries()) await commitCard(mode, `${i}`);
        const steps: { mode: Mode; first: number; count: number }[] = [];
        for (let at: StateCounts | null = EMPTY; at !== null; ) {
          const from: StateCounts = at;
          at = await step(d, from);
          if (at === null) break;
          const { mode, count } = grown(from);
          steps.push({
            mode,
            count,
            first: mode === "validium" ? from.countValidium : from.countRollup,
          });
        }
        // There are as many steps as the source has runs of one mode.
        expect(steps.length).toBe(modes.filter((mode, i) => mode !== modes[i - 1]).length);
        for (const [sequence, { mode, first, count }] of steps.entries()) {
          for (let n = 0; n < count; n++) {
            const imported = d.mirror.write.importBatch(
              importArgs(d, BigInt(sequence), mode, n, count),
            );
            if (n < first) await expect(imported).rejects.toThrow("BatchNotInStep");
            else await imported;
          }
        }
      }),
      { numRuns: 8 },
    );
  });
});

/** Proof of the one card of a batch, with its header on the mirror. */
async function proven(batch: Awaited<ReturnType<typeof commitCard>>, sequence: bigint) {
  const [vault] = batch.vaults;
  if (vault === undefined) throw new Error("an empty batch");
  const { acceptedAt, count } = await d.mirror.read.step([sequence]);
  await d.mirror.write.importBatch(
    importArgs(d, sequence, batch.mode, batch.batchNumber, Number(count)),
  );
  const header = { ...batch.header, committedAt: acceptedAt, sequence };
  const path = pathOf({ siblings: batch.siblings, assetPath: manifestPath(batch.assets, vault) });
  return [toStruct(vault), header, path] as const;
}

it("registers no token whose vaults are made only, and is no minter that makes any", async () => {
  const { viem, mirror, by, actors } = d;
  const args = [STANDARD.erc20, SCHEME.mintmark, 1n, mirror.address] as const;
  const { address } = await viem.deployContract("MakingToken", args);
  await viem.assertions.revertWithCustomErrorWithArgs(
    mirror.write.registerAsset([STANDARD.erc20, MIRROR_CHAIN, address, 1n, SCHEME.mintmark]),
    mirror,
    "TokenMadeOnly",
    [getAddress(address)],
  );
  await d.card.write.lockMinter(by("admin"));
  const entered = d.card.write.enter([actors.owner.account.address, 7n], by("owner"));
  await expect(entered).rejects.toThrow("reverted");
});

it("a vault from before its token's registration on the mirror never counts, in either mode", async () => {
  const thief = d.actors.stranger;
  const { address } = await d.viem.deployContract("ImxToken", [d.mirror.address]);
  const { chainId, assetType } = assetOf("erc721", address, 1n, MIRROR_CHAIN);
  const card = (to: Address) => ({
    chainId,
    owner: to,
    assetType,
    amount: 1n,
    mintingBlob: toHex("{7}:{}"),
  });
  const planted = [
    await d.source.commit("zk-rollup", [card(thief.account.address)]),
    await d.source.commit("validium", [card(thief.account.address)]),
  ];
  let counts = EMPTY;
  for (const _ of planted) counts = (await step(d, counts)) ?? EMPTY;
  await d.mirror.write.registerAsset([STANDARD.erc721, MIRROR_CHAIN, address, 1n, SCHEME.imx]);
  expect((await d.mirror.read.asset([MIRROR_CHAIN, BigInt(assetType)]))[4]).toBe(2n);
  const mine = await d.source.commit("zk-rollup", [card(owner)]);
  await step(d, counts);
  const honest = await proven(mine, 2n);
  await d.mature();
  for (const [sequence, batch] of planted.entries()) {
    const stolen = await proven(batch, BigInt(sequence));
    const [{ vaultId }] = stolen;
    const theft = d.mirror.write.withdraw([...stolen, 1n, owner], {
      account: thief.account,
    });
    await refusal(theft, "BatchBeforeRegistration", [vaultId, 2n]);
    await refusal(d.mirror.write.voidDuplicate([...stolen, ...honest]), "NotDuplicates", [
      vaultId,
      honest[0].vaultId,
    ]);
  }
  await d.mirror.write.withdraw([...honest, 1n, owner], d.by("owner"));
});

it("k members can add a state that the source never had; accepted vaults stay, and no true state follows", async () => {
  const thief = d.actors.stranger;
  const mine = await commitCard("zk-rollup", "7");
  const liars = newSource();
  await liars.commit("zk-rollup", [cardOf(d, owner, "7")]);
  const accepted = (await step(d, EMPTY)) ?? EMPTY;
  await commitCard("zk-rollup", "8");
  const madeUp = await liars.commit("zk-rollup", [cardOf(d, thief.account.address, "9")]);
  expect(await step({ ...d, source: liars }, accepted)).toEqual({
    countValidium: 0,
    countRollup: 2,
  });

  const present = await d.mirror.read.commitment();
  await refusal(step(d, accepted), "CommitmentMismatch", [
    present,
    d.source.history.stateAt(accepted).commitment,
  ]);
  const honest = await proven(mine, 0n);
  await d.mature();
  await d.mirror.write.withdraw([...honest, 1n, owner], d.by("owner"));
  d.source = liars;
  const stolen = await proven(madeUp, 1n);
  await d.mature();
  const theft = [...stolen, 1n, thief.account.address] as const;
  await d.mirror.write.withdraw(theft, { account: thief.account });
  expect(
    [await d.card.read.ownerOf([7n]), await d.card.read.ownerOf([9n])].map((at) =>
      at.toLowerCase(),
    ),
  ).toEqual([owner, thief.account.address].map((at) => at.toLowerCase()));
});

it("a vault in blobs is paid by its opening, and voids a later one of its token", async () => {
  const thief = d.actors.stranger;
  const mine = await d.source.commitBlobs([cardOf(d, owner, "7"), cardOf(d, owner, "8")]);
  const stolen = await d.source.commitBlobs([cardOf(d, thief.account.address, "7")]);
  await step(d, EMPTY);
  const [earlier, later] = [await proven(mine, 0n), await proven(stolen, 0n)];
  const [vault, header, path] = later;
  const forged = [vault, header, { ...path, siblings: mine.siblings }] as const;
  await refusal(d.mirror.write.voidDuplicate([...earlier, ...forged]), "ProofInvalid", [
    vault.vaultId,
  ]);
  await d.mirror.write.voidDuplicate([...earlier, ...later]);
  await d.mature();
  await d.mirror.write.withdraw([...earlier, 1n, owner], d.by("owner"));
  expect((await d.card.read.ownerOf([7n])).toLowerCase()).toBe(owner.toLowerCase());
});

describe("after anything that relayers, members, owners and thieves do in any order", () => {
  const mode = fc.constantFrom(...MODES);
  const action = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        does: fc.constant("commit" as const),
        mode,
        n: fc.nat(5),
        steals: fc.boolean(),
      }),
    },
    {
      weight: 12,
      arbitrary: fc.record({
        does: fc.constantFrom(
          "advance",
          "advance",
          "lie",
          "import",
          "exit",
          "exit",
          "exit",
          "wait",
          "wait",
          "elect",
        ),
        n: fc.nat(1_000),
      }),
    },
  );
  interface Card {
    readonly batch: Awaited<ReturnType<typeof commitCard>>;
    readonly id: bigint;
    readonly account: MirrorDeployment["actors"]["owner"]["account"];
    sequence?: bigint;
  }

  it("the state only grows, headers stay, and each card is its first owner's", async () => {
    const seen = { paid: 0, voided: 0, refused: 0 };
    const property = fc.asyncProperty(
      fc.array(action, { minLength: 30, maxLength: 50 }),
      async (actions) => {
        d = await fresh();
        const { time } = d.connection.networkHelpers;
        const cards: Card[] = [];
        const [headers, paid, voided] = [
          new Map<Card, string>(),
          new Map<bigint, Address>(),
          new Set<Card>(),
        ];
        let counts = EMPTY;
        const refused = async (call: Promise<unknown>, name: RegExp) => {
          await expect(call).rejects.toThrow(name);
          seen.refused++;
        };
        const accepted = () => cards.filter(({ sequence }) => sequence !== undefined);
        const provenCard = ({ batch, sequence = 0n }: Card) => proven(batch, sequence);
        /** Before time passes, somebody voids each later vault of a card. */
        const pass = async (seconds: bigint) => {
          for (const [i, card] of accepted().entries()) {
            const first = accepted().find(({ id }) => id === card.id) as Card;
            const proof = await provenCard(card);
            const hash = await d.mirror.read.batchHeaderHash([
              MODE[card.batch.mode],
              BigInt(card.batch.batchNumber),
            ]);
            expect(headers.get(card) ?? hash, `header of card ${i}`).toBe(hash);
            headers.set(card, hash);
            if (first === card || voided.has(card)) continue;
            const earlier = await provenCard(first);
            await refused(d.mirror.write.voidDuplicate([...proof, ...earlier]), /NotDuplicates/);
            await d.mirror.write.voidDuplicate([...earlier, ...proof]);
            voided.add(card);
            seen.voided++;
          }
          await time.increase(seconds);
        };
        for (const { does, n, ...more } of actions) {
          const growth = d.source.history.nextGrowth(counts);
          const card = cards[n % Math.max(1, cards.length)];
          if (does === "commit" && "mode" in more) {
            const { account } = d.actors[more.steals ? "stranger" : "owner"];
            const batch = await d.source.commit(more.mode, [cardOf(d, account.address, `${n}`)]);
            cards.push({ batch, id: BigInt(n), account });
          } else if (does === "advance" && growth !== null) {
            const sequence = await d.mirror.read.stepCount();
            counts = (await step(d, counts)) ?? EMPTY;
            for (const one of cards)
              if (one.batch.mode === growth.mode && one.batch.batchNumber < growth.count)
                one.sequence ??= sequence;
          } else if (does === "lie" && growth !== null) {
            const [, epoch] = await d.mirror.read.committee();
            const lies = [
              { epoch: epoch + 1n },
              { commitment: zeroHash },
              { sourceChainId: 1n },
              {},
            ];
            const [change = {}, signers] = [lies[n % 4], n % 4 === 3 ? [0, 1] : [0, 1, 2]];
            const attestation = await attestState(d, countsAfter(counts, growth), change, signers);
            await refused(
              d.mirror.write.advance(advanceArgs(d, counts, growth, attestation)),
              /CommitteeMismatch/,
            );
          } else if (does === "import" && card?.sequence !== undefined) {
            const { count } = await d.mirror.read.step([card.sequence]);
            const args = importArgs(
              d,
              card.sequence,
              card.batch.mode,
              card.batch.batchNumber,
              Number(count),
            );
            await refused(
              d.mirror.write.importBatch([
                args[0],
                args[1],
                { ...args[2], batchRoot: zeroHash },
                args[3],
              ]),
              /BatchProofInvalid/,
            );
          } else if (does === "exit" && card?.sequence !== undefined) {
            const proof = await provenCard(card);
            const { acceptedAt } = await d.mirror.read.step([card.sequence]);
            const isMature = BigInt(await time.latest()) > acceptedAt + MATURITY;
            const exit = (account: Card["account"]) =>
              d.mirror.write.withdraw([...proof, 1n, account.address], { account });
            if (!isMature || voided.has(card) || paid.has(card.id)) {
              await refused(exit(card.account), /NotMature|VaultExhausted/);
              continue;
            }
            await refused(exit(d.actors.admin.account), /NotOwner/);
            await exit(card.account);
            paid.set(card.id, card.account.address);
            seen.paid++;
          } else if (does === "wait") await pass(MATURITY + 100n);
          else if (does === "elect") {
            await d.mirror.write.scheduleCommittee([d.config.committee, 3], d.by("admin"));
            await pass(CHANGE_DELAY);
            await d.mirror.write.activateCommittee([d.config.committee, 3]);
          }
          expect(await d.mirror.read.commitment()).toBe(
            d.source.history.stateAt(counts).commitment,
          );
        }
        for (let id = 0n; id < 6n; id++) {
          const holder = await d.card.read.ownerOf([id]).catch(() => undefined);
          expect(holder?.toLowerCase()).toBe(paid.get(id)?.toLowerCase());
        }
      },
    );
    await fc.assert(property, { numRuns: 20 });
    for (const [name, count] of Object.entries(seen)) expect(count, name).toBeGreaterThan(5);
  });
});
