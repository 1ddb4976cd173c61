import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { collectAttestations } from "../../core/committee/collector.ts";
import type { CommitteeMember } from "../../core/committee/member.ts";
import { type Engine, MODES, type Mode, openEngine } from "../../core/index.ts";
import { commitSealed } from "../../core/settlement/commit.ts";
import { Consents } from "../../core/settlement/consents.ts";
import { RefusedSlots } from "../../core/settlement/refused-slots.ts";
import { Attempts } from "../../core/settlement/rounds.ts";
import type { Settler } from "../../core/settlement/settler.ts";
import { THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { at, copyOf, createWorld, expectOneHistory, openMembers, type World } from "./fixture.ts";

/** One of two operators whose stores were the same once. */
interface Operator {
  readonly engine: Engine;
  readonly settler: Settler;
  readonly members: readonly CommitteeMember[];
  /** Mints in both modes, and seals. */
  seal(): Promise<void>;
  /**
   * Commits without a look at L1's events first: as a settler does that has read them a moment too
   * early.
   */
  commit(): Promise<number>;
}

let world: World;
let operators: Operator[];
beforeEach(async () => {
  world = await createWorld();
  operators = [await openCopy(1_000), await openCopy(2_000)];
});
afterEach(async () => {
  for (const { engine, members } of operators) {
    await engine.close();
    for (const member of members) await member.close();
  }
  await world.close();
});

/**
 * An engine over a copy of the world's store, whose tokens begin at a number of its own. Its
 * members have a memory of their own too, so that nobody but L1 keeps the two apart.
 */
async function openCopy(firstToken: number): Promise<Operator> {
  const store = await copyOf(world.engineStore);
  const l1 = await world.chain.connectOperator();
  const engine = await openEngine({
    store,
    settlement: l1.settlement,
    environment: "sandbox",
    divergenceMs: 0,
  });
  const members = await openMembers(l1);
  const committee = collectAttestations({ members, threshold: THRESHOLD, l1, timeoutMs: 20_000 });
  const parts = { engine, l1, committee };
  let token = firstToken;
  return {
    engine,
    members,
    settler: world.chain.newSettler(parts),
    async seal() {
      for (const mode of MODES) {
        await { ...world, engine }.mint("erc721", mode, String(token++));
        await engine.operator.seal(mode);
      }
    },
    async commit() {
      const attempts = new Attempts(undefined);
      const consents = new Consents({ engine, l1 });
      const options = {
        ...parts,
        consents,
        checks: [],
        refused: new RefusedSlots(engine, l1, Date.now),
      };
      const committed = await attempts.of(() => commitSealed(options, attempts));
      attempts.end();
      return committed;
    },
  };
}

/** Which operators sealed the batches that L1 has, by their numbers in {@link operators}. */
async function whoIsOnL1(): Promise<number[]> {
  const { l1, chain } = world;
  const events = await l1.events(chain.settlement.deployedAtBlock, await l1.blockNumber());
  const commits = events.filter((event) => event.type === "batchCommitted");
  return Promise.all(
    commits.map(({ mode, batchNumber, dataHash }) => sealerOf(mode, batchNumber, dataHash)),
  );
}

async function sealerOf(mode: Mode, batchNumber: number, dataHash: string): Promise<number> {
  const hashes = await Promise.all(
    operators.map(
      async ({ engine }) =>
        (await engine.batches.get(mode, batchNumber).catch(() => null))?.dataHash,
    ),
  );
  return hashes.indexOf(dataHash as `0x${string}`);
}

describe("two operators on copies of one store", () => {
  test("one that has not seen the other's commits sends nothing", async () => {
    const [first, second] = [at(operators, 0), at(operators, 1)];
    for (let i = 0; i < 2; i++) await first.seal();
    for (let i = 0; i < 3; i++) await second.seal();
    expect(await first.commit()).toBe(4);
    // L1's state alone could be this store's own, with assets left out: what tells is the events of
    // the commits.
    await expect(second.commit()).rejects.toMatchObject({ code: "l1_failed" });
    expect(await whoIsOnL1()).toEqual([0, 0, 0, 0]);
    await expect(second.settler.round()).rejects.toMatchObject({ code: "history_diverged" });
    expect(await whoIsOnL1()).toEqual([0, 0, 0, 0]);
    await first.settler.round();
    expect((await world.l1.state()).history).toBe(first.engine.operator.history());
  });

  test.each([1, 2, 3, 4])(
    "that commit at the same time never mix, in either mode, run %i",
    async (run) => {
      for (let i = 0; i < 3; i++) for (const operator of operators) await operator.seal();
      for (let round = 0; round < 4; round++) {
        // An operator that is a little later meets the other one in the middle of its commits.
        const late = operators.map(async (operator, i) => {
          await new Promise((resolve) => setTimeout(resolve, i === run % 2 ? 5 * run : 0));
          await operator.commit();
        });
        await Promise.allSettled(late);
      }
      const sealers = await whoIsOnL1();
      expect(sealers).toHaveLength(6);
      expect(new Set(sealers).size).toBe(1);
      const winner = at(operators, at(sealers, 0));
      await winner.settler.round();
      await expectOneHistory({ ...world, ...winner });
    },
  );
});
