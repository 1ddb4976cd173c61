import { getAddress, zeroAddress, zeroHash } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { committeeHash } from "../../core/protocol/attestation.ts";
import { commitRollup, commitValidium, entry, sealedRoot } from "./fixture/batches.ts";
import { attest, changeCommittee } from "./fixture/committee.ts";
import {
  ascendingAccounts,
  CHANGE_DELAY,
  type Deployment,
  openChain,
} from "./fixture/deployment.ts";

const { fresh } = await openChain();

describe("roles", () => {
  let d: Deployment;
  beforeEach(async () => {
    d = await fresh();
  });

  const newOperator = () => d.actors.relayer.account.address;
  const isOperator = async (address = newOperator()) =>
    d.state.read.hasRole([await d.state.read.OPERATOR_ROLE(), address]);
  const wait = (seconds = CHANGE_DELAY) => d.time.increase(seconds);
  const unauthorized = (call: Promise<unknown>) =>
    d.refuses(call as Promise<`0x${string}`>, "AccessControlUnauthorizedAccount");

  describe("the operator", () => {
    it("is announced by the admin, and activated by anyone after the delay", async () => {
      await d.state.write.scheduleOperator([newOperator()], d.by("admin"));
      expect(await isOperator()).toBe(false);
      const activeFrom = BigInt(await d.time.latest()) + CHANGE_DELAY;
      await d.refuses(d.state.write.activateOperator([newOperator()]), "ChangeNotDue", [
        activeFrom,
      ]);
      await d.time.setNextBlockTimestamp(activeFrom - 1n);
      await d.refuses(
        d.state.write.activateOperator([newOperator()], { gas: 200_000n }),
        "ChangeNotDue",
      );
      await d.time.setNextBlockTimestamp(activeFrom);
      await d.state.write.activateOperator([newOperator()], d.by("stranger"));
      expect(await isOperator()).toBe(true);
    });

    it("has no other way in: not by grant, not unannounced, not twice", async () => {
      const role = await d.state.read.OPERATOR_ROLE();
      await d.refuses(
        d.state.write.grantRole([role, newOperator()], d.by("admin")),
        "OperatorNotTimeLocked",
      );
      await d.refuses(d.state.write.activateOperator([newOperator()]), "ChangeNotDue", [0n]);
      await d.state.write.scheduleOperator([newOperator()], d.by("admin"));
      await wait();
      await d.state.write.activateOperator([newOperator()]);
      await d.state.write.revokeOperator([newOperator()], d.by("guardian"));
      await d.refuses(d.state.write.activateOperator([newOperator()]), "ChangeNotDue", [0n]);
    });

    it("is revoked at once by admin or guardian, an announced one too", async () => {
      for (const actor of ["admin", "guardian"] as const) {
        await d.state.write.scheduleOperator([newOperator()], d.by("admin"));
        await wait();
        await d.state.write.revokeOperator([newOperator()], d.by(actor));
        await d.refuses(d.state.write.activateOperator([newOperator()]), "ChangeNotDue");
      }
      expect(await isOperator(d.config.operator)).toBe(true);
      await d.state.write.revokeOperator([d.config.operator], d.by("guardian"));
      expect(await isOperator(d.config.operator)).toBe(false);
      await unauthorized(commitRollup(d, [entry(d.assets.card, newOperator(), "1")]));
    });

    it("is not revived by an old announcement, however the role was taken", async () => {
      await d.state.write.scheduleOperator([d.config.operator], d.by("admin"));
      await wait();
      await d.state.write.revokeRole(
        [await d.state.read.OPERATOR_ROLE(), d.config.operator],
        d.by("admin"),
      );
      await d.refuses(
        d.state.write.activateOperator([d.config.operator], d.by("stranger")),
        "ChangeNotDue",
      );
    });

    it("can be called off before it is active", async () => {
      await d.state.write.scheduleOperator([newOperator()], d.by("admin"));
      await d.tells(
        d.state.write.cancelOperator([newOperator()], d.by("guardian")),
        "OperatorScheduled",
        [getAddress(newOperator()), 0n],
      );
      await wait();
      await d.refuses(d.state.write.activateOperator([newOperator()]), "ChangeNotDue");
    });

    it("is nobody's to change but theirs", async () => {
      for (const actor of ["guardian", "operator", "stranger"] as const) {
        await unauthorized(d.state.write.scheduleOperator([newOperator()], d.by(actor)));
      }
      for (const actor of ["operator", "stranger"] as const) {
        await unauthorized(d.state.write.revokeOperator([d.config.operator], d.by(actor)));
        await unauthorized(d.state.write.cancelOperator([newOperator()], d.by(actor)));
        await unauthorized(d.state.write.pauseCommits([true], d.by(actor)));
      }
    });
  });

  describe("the guardian's role", () => {
    it("is the admin's to give and to take", async () => {
      const role = await d.state.read.GUARDIAN_ROLE();
      await unauthorized(d.state.write.grantRole([role, newOperator()], d.by("guardian")));
      await d.state.write.grantRole([role, newOperator()], d.by("admin"));
      await d.state.write.pauseCommits([true], d.by("relayer"));
      await d.state.write.revokeRole([role, newOperator()], d.by("admin"));
      await unauthorized(d.state.write.pauseCommits([false], d.by("relayer")));
    });

    it("can be given up by whoever has it, and by nobody else for them", async () => {
      const role = await d.state.read.GUARDIAN_ROLE();
      const forAnother = d.state.write.renounceRole([role, d.config.guardian], d.by("stranger"));
      await d.refuses(forAnother, "AccessControlBadConfirmation");
      await d.state.write.renounceRole([role, d.config.guardian], d.by("guardian"));
      await unauthorized(d.state.write.pauseCommits([true], d.by("guardian")));
    });
  });

  describe("the committee", () => {
    const next = ascendingAccounts(4);
    const members = next.map(({ address }) => address);
    const schedule = (who = members, threshold = 2) =>
      d.state.write.scheduleCommittee([who, threshold], d.by("admin"));

    it("changes after the delay, exactly as announced, and begins an epoch", async () => {
      await d.refuses(d.state.write.activateCommittee([members, 2]), "ChangeNotDue", [0n]);
      await schedule();
      const activeFrom = BigInt(await d.time.latest()) + CHANGE_DELAY;
      await d.refuses(d.state.write.activateCommittee([members, 2]), "ChangeNotDue", [activeFrom]);
      await wait();
      for (const [others, threshold] of [
        [members, 1],
        [members.slice(1), 2],
        [d.config.committee, 2],
      ] as const) {
        await d.refuses(
          d.state.write.activateCommittee([others, threshold]),
          "CommitteeNotScheduled",
        );
      }
      await d.tells(
        d.state.write.activateCommittee([members, 2], d.by("stranger")),
        "CommitteeChanged",
        [1n, 2, members],
      );
      expect(await d.state.read.committee()).toEqual([
        committeeHash(1n, { threshold: 2, members }),
        1n,
      ]);
      await d.refuses(d.state.write.activateCommittee([members, 2]), "ChangeNotDue", [0n]);
    });

    it("of a new epoch signs alone; even the same members sign anew", async () => {
      const content = zeroHash.replace("0x0", "0x1") as `0x${string}`;
      const message = {
        history: await d.state.read.history(),
        batchNumber: 0,
        batchRoot: sealedRoot("validium", [], content),
        vaultCount: 1,
        dataHash: zeroHash,
        epoch: 0n,
      };
      const old = await attest(d, message);
      await changeCommittee(d, d.config.committee, 3);
      const write = async (attestation: `0x${string}`) =>
        d.state.write.commitValidiumBatch(
          [await d.state.read.history(), 0n, content, 1, zeroHash, "0x", attestation, "0x"],
          d.by("operator"),
        );
      await d.refuses(write(old), "CommitteeMismatch", [1n]);
      await write(await attest(d, { ...message, epoch: 1n }));
    });

    it("that left signs nothing more", async () => {
      await changeCommittee(d, members, 2);
      await d.refuses(
        commitValidium(d, [entry(d.assets.card, newOperator(), "1")]),
        "CommitteeMismatch",
        [1n],
      );
      const batch = await commitValidium(
        { ...d, members: next, config: { ...d.config, threshold: 2 } },
        [entry(d.assets.card, newOperator(), "1")],
      );
      expect(batch.header.sequence).toBe(0n);
    });

    it("is announced by the admin alone, and the last announcement counts", async () => {
      for (const actor of ["guardian", "operator", "stranger"] as const) {
        await unauthorized(d.state.write.scheduleCommittee([members, 2], d.by(actor)));
      }
      await schedule();
      await wait(CHANGE_DELAY - 100n);
      await schedule(d.config.committee, 1);
      await wait(200n);
      await d.refuses(d.state.write.activateCommittee([members, 2]), "ChangeNotDue");
      await wait();
      await d.refuses(d.state.write.activateCommittee([members, 2]), "CommitteeNotScheduled");
    });

    it("can be called off before it is in office, by admin or guardian", async () => {
      for (const actor of ["admin", "guardian"] as const) {
        await schedule();
        await wait();
        await d.tells(d.state.write.cancelCommittee(d.by(actor)), "CommitteeScheduled", [
          0n,
          0,
          [],
        ]);
        await d.refuses(d.state.write.activateCommittee([members, 2]), "ChangeNotDue", [0n]);
      }
      for (const actor of ["operator", "stranger"] as const) {
        await unauthorized(d.state.write.cancelCommittee(d.by(actor)));
      }
      const inOffice = { threshold: d.config.threshold, members: d.config.committee };
      expect(await d.state.read.committee()).toEqual([committeeHash(0n, inOffice), 0n]);
    });

    it("must be able to meet its threshold, with members that ascend", async () => {
      const [a, b, c, e] = members as [`0x${string}`, `0x${string}`, `0x${string}`, `0x${string}`];
      for (const [who, threshold] of [
        [members, 0],
        [members, 5],
        [[], 0],
        [[], 1],
      ] as const) {
        await d.refuses(schedule([...who], threshold), "CommitteeInvalid", [
          BigInt(who.length),
          threshold,
        ]);
      }
      const crowd = Array.from(
        { length: 65 },
        (_, i) => `0x${(i + 1).toString(16).padStart(40, "0")}` as const,
      );
      await d.refuses(schedule(crowd, 1), "CommitteeInvalid", [65n, 1]);
      // The constructor's input has room for as many as the contract takes.
      await d.viem.deployContract("StateCommitment", [
        { ...d.config, committee: crowd.slice(1), threshold: 64 },
      ]);
      for (const [who, index] of [
        [[b, a, c, e], 1n],
        [[a, b, c, c], 3n],
        [[zeroAddress, a], 0n],
      ] as const) {
        await d.refuses(schedule([...who], 1), "CommitteeNotAscending", [index]);
      }
      await schedule(crowd.slice(1), 64);
    });
  });

  describe("pausing", () => {
    it("stops commits of both modes, and nothing else", async () => {
      await d.state.write.pauseCommits([true], d.by("guardian"));
      const slots = [entry(d.assets.card, newOperator(), "1")];
      for (const commit of [commitRollup, commitValidium]) {
        await d.refuses(commit(d, slots), "CommittingPaused");
      }
      await d.tells(d.state.write.pauseCommits([false], d.by("admin")), "CommitsPaused", [false]);
      for (const commit of [commitRollup, commitValidium]) await commit(d, slots);
    });

    it("leaves the counts, the sequence and the epoch as they were", async () => {
      await changeCommittee(d, d.config.committee, 3);
      const slots = [entry(d.assets.card, newOperator(), "1")];
      await commitValidium(d, slots);
      await commitRollup(d, slots);
      await d.state.write.pauseCommits([true], d.by("guardian"));
      await d.state.write.pauseCommits([false], d.by("guardian"));
      expect(await d.state.read.batchCounts()).toEqual([1n, 1n]);
      expect((await d.state.read.committee())[1]).toBe(1n);
      expect((await commitRollup(d, slots)).header.sequence).toBe(2n);
    });
  });
});
