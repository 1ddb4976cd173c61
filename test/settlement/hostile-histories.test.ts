import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { collectAttestations } from "../../core/committee/collector.ts";
import type { CommitteeMember } from "../../core/committee/member.ts";
import type { Hash, SealedBatch } from "../../core/index.ts";
import { decodeBatch } from "../../core/protocol/batch-data.ts";
import { COMMITTEE, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { l1, moveHistory, newMember, onL1, pointOf, sign, stateOf } from "./committee-fixture.ts";
import { at } from "./fixture.ts";
import { entry, sealed } from "./signed-batches.ts";

beforeEach(() => {
  onL1.length = 0;
});

/** A batch that enough members have signed, and the history that they signed it for. */
interface Signed {
  readonly batch: SealedBatch;
  readonly history: Hash;
}

type Step =
  /**
   * Asks some of the members for the next batch, of one token, behind L1's newest commit or behind
   * signed batches that L1 does not have; those that lack batches of L1 get them first.
   */
  | {
      readonly kind: "attest";
      readonly token: number;
      readonly ahead: number;
      readonly deaf: readonly number[];
    }
  /** Gives a member another batch than L1's under a number that L1 has taken. */
  | {
      readonly kind: "mislead";
      readonly member: number;
      readonly back: number;
      readonly token: number;
    }
  /** Commits any of the batches that were ever signed and that L1 takes now. */
  | { readonly kind: "commit"; readonly which: number }
  | { readonly kind: "rollup" }
  | { readonly kind: "reorganise"; readonly commits: number };

/** So few that each of them is asked for again and again. */
const token = fc.integer({ min: 1, max: 2 });
const member = fc.nat(COMMITTEE.length - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("attest" as const),
      token,
      ahead: fc.nat(2),
      deaf: fc.uniqueArray(member, { maxLength: COMMITTEE.length - THRESHOLD }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("mislead" as const), member, back: fc.nat(1), token }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("commit" as const), which: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("rollup" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("reorganise" as const),
      commits: fc.integer({ min: 1, max: 2 }),
    }),
  },
);

/**
 * An operator that plays histories against each other, and a committee whose members are all
 * honest.
 */
class HostileOperator {
  readonly #members: readonly CommitteeMember[];
  readonly #signed: Signed[] = [];
  /** Validium batches that L1 has taken, those of a reorganisation too. */
  commits = 0;
  /** Most batches that L1 did not have and one more was asked for behind. */
  ahead = 0;

  constructor(members: readonly CommitteeMember[]) {
    this.#members = members;
  }

  async take(todo: Step): Promise<void> {
    if (todo.kind === "attest") await this.#attest(todo);
    else if (todo.kind === "mislead") await this.#mislead(todo.member, todo.back, todo.token);
    else if (todo.kind === "rollup") moveHistory();
    else if (todo.kind === "reorganise") onL1.splice(Math.max(0, onL1.length - todo.commits));
    else this.#commit(todo.which);
  }

  async #attest({ token: id, ahead, deaf }: Step & { readonly kind: "attest" }): Promise<void> {
    const commits = [...onL1];
    for (let i = 0; i < ahead; i++)
      commits.push(
        ...this.#fit(commits)
          .slice(-1)
          .map(({ batch }) => batch),
      );
    this.ahead = Math.max(this.ahead, commits.length - onL1.length);
    const taken = commits.filter(({ mode }) => mode === "validium");
    const batch = sealed(taken.length, [entry("erc721", `${id}`)]);
    const members = this.#members.map((each, index) => ({
      address: each.address,
      nextBatch: () => each.nextBatch(),
      sign: deaf.includes(index)
        ? () => Promise.reject(new Error("not asked"))
        : each.sign.bind(each),
    }));
    const earlierBatch = async (batchNumber: number) => at(taken, batchNumber);
    const committee = collectAttestations({ members, threshold: THRESHOLD, l1, earlierBatch });
    const after = pointOf(commits);
    const attested = await committee.attest(batch, after).catch(() => null);
    if (attested !== null) this.#signed.push({ batch, history: after.history });
  }

  async #mislead(index: number, back: number, id: number): Promise<void> {
    const batchNumber = stateOf(onL1).countValidium - 1 - back;
    if (batchNumber < 0) return;
    await sign(at(this.#members, index), sealed(batchNumber, [entry("erc721", `${id}`)])).catch(
      () => {},
    );
  }

  /**
   * Commits like the settlement contract: the next number, the history that it has, and signatures
   * for that one.
   */
  #commit(which: number): void {
    const fit = this.#fit(onL1);
    const { batch } = fit[which % Math.max(1, fit.length)] ?? {};
    if (batch === undefined) return;
    onL1.push(batch);
    this.commits++;
  }

  /** Signed batches that L1 would take after these commits. */
  #fit(commits: readonly SealedBatch[]): Signed[] {
    const { countValidium, history: present } = stateOf(commits);
    return this.#signed.filter(
      ({ batch, history }) => batch.batchNumber === countValidium && history === present,
    );
  }
}

function tokensOn(commits: readonly SealedBatch[]): string[] {
  const validium = commits.filter(({ mode }) => mode === "validium");
  return validium.flatMap(({ data }) =>
    decodeBatch(data).slots.map((vault) => vault?.mintingBlob ?? ""),
  );
}

describe("a hostile operator with two histories", () => {
  test("never lets L1 take a token twice that honest members signed", async () => {
    let committed = 0;
    let ahead = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 50 }), async (steps) => {
        onL1.length = 0;
        const members = await Promise.all(COMMITTEE.map((_, index) => newMember(index)));
        const operator = new HostileOperator(members);
        for (const todo of steps) {
          await operator.take(todo);
          const tokens = tokensOn(onL1);
          expect(new Set(tokens).size).toBe(tokens.length);
        }
        committed += operator.commits;
        ahead = Math.max(ahead, operator.ahead);
        for (const each of members) await each.close();
      }),
      { numRuns: Number(process.env.RUNS ?? 20) },
    );
    // The members do sign, and L1 does take.
    expect(committed).toBeGreaterThan(20);
    expect(ahead).toBeGreaterThan(0);
  });
});
